"""The scenario of the benchmark of pipelines: nine cameras, a detector and two classifiers."""

from collections.abc import Sequence

CAMERAS = 9
TRAFFIC = 6
"""So many cameras have cars and persons; the others persons alone."""
EXECUTORS = 3
SIZES = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
DETECTOR_MS = (2.0, 6.6)
"""What a batch takes that does not depend on its size, and what each picture adds."""
CLASSIFIER_MS = (0.8, 0.43)
SPREAD = (0.94, 0.96, 0.98, 1.0, 1.02, 1.05, 1.10, 1.15, 1.2)
"""Execution times by quantile, in units of the above."""


def scenario_text(
    interference: float, load: float, seed: int, videos: Sequence[str], traces: int
) -> str:
    """Return the scenario file.

    Args:
        interference: by how much each other batch slows one.
        load: the factor of all execution times.
        seed: of all random numbers, and of where in the videos it begins.
        videos: one for each camera, with the second at which it begins: `yard@900`.
        traces: how many files of traces there are; 0: links carry everything.
    """
    lines = [
        f"duration_s = 60\nwarmup_s = 10\nseed = {seed}\n",
        '[policy]\nplanning = "none"\n',
        *(_executor(at, interference, load) for at in range(EXECUTORS)),
        _variant("detect", 640, DETECTOR_MS),
        _variant("vehicle", 96, CLASSIFIER_MS),
        _variant("person", 96, CLASSIFIER_MS),
        _pipeline("traffic", {"vehicle": "car", "person": "person"}),
        _pipeline("people", {"person": "person"}),
        *(_camera(at, videos, seed, traces) for at in range(CAMERAS)),
    ]
    return "\n".join(lines)


def _executor(at: int, interference: float, load: float) -> str:
    return (
        f'[[executors]]\nname = "gpu/{at}"\ntimes = {load}\ninterference = {interference}\n'
        f"spread = {list(SPREAD)}\n"
    )


def _variant(family: str, side_px: int, batch_ms: tuple[float, float]) -> str:
    times = ", ".join(f"{n} = {batch_ms[0] + batch_ms[1] * n:.3f}" for n in SIZES)
    return (
        f'[[variants]]\nname = "{family}-{side_px}"\nfamily = "{family}"\nwidth_px = {side_px}\n'
        f"accuracy = 0.7\nbatch_ms = {{ {times} }}\n"
    )


def _pipeline(name: str, stages: dict[str, str]) -> str:
    lines = [f'[[pipelines]]\nname = "{name}"', _stage("detect", "")]
    lines += [
        _stage(stage, f'after = ["detect"]\nlabels = ["{label}"]\ncrops_max = 32')
        for stage, label in stages.items()
    ]
    return "\n".join(lines)


def _stage(name: str, lines: str) -> str:
    return f'[[pipelines.stages]]\nname = "{name}"\nfamily = "{name}"\n{lines}\n'


def _camera(at: int, videos: Sequence[str], seed: int, traces: int) -> str:
    video, _, start_s = videos[at].partition("@")
    begins_s = int(start_s or 0) + 60 * (seed - 1)
    link = (
        f'trace = "trace-{at % traces}"\ntrace_start_s = {60 * seed}' if traces else "mbps = 1000"
    )
    pipeline, slo_ms = ("traffic", 200) if at < TRAFFIC else ("people", 300)
    return (
        f'[[cameras]]\nname = "camera-{at + 1}"\npipeline = "{pipeline}"\n'
        f"slo_ms = {slo_ms}\nrate_hz = 15\nbytes_per_pixel = 0.15\n"
        f'objects = "counts.csv"\nobjects_video = "{video}"\n'
        f"objects_start_s = {begins_s}\n{link}\n"
    )
