"""A scenario with pipelines: a detector, and a classifier that looks at each car."""

from edgebox.simulation.scenario import Scenario, parse_scenario

COUNTS = "at_s,video,car,person\n0,a,3,1\n1,a,5,0\n2,a,0,2\n0,b,9,9\n"
PIPELINE = """
[[pipelines]]
name = "cars"
[[pipelines.stages]]
name = "detect"
family = "detect"
[[pipelines.stages]]
name = "read"
family = "read"
after = ["detect"]
labels = ["car"]
crops_max = 4
"""
HARDWARE = """
[[executors]]
name = "gpu/0"
[[variants]]
name = "detect-320"
family = "detect"
width_px = 320
accuracy = 0.5
batch_ms = { 1 = 8, 2 = 12, 4 = 20, 8 = 36 }
[[variants]]
name = "read-64"
family = "read"
width_px = 64
accuracy = 0.8
batch_ms = { 1 = 1.5, 2 = 2, 4 = 3, 8 = 5, 16 = 9 }
"""


def yard(name: str = "yard", objects: str = "objects = 3", rate_hz: int = 10) -> str:
    """Return the lines of a camera whose frames go through the pipeline."""
    return (
        f'[[cameras]]\nname = "{name}"\npipeline = "cars"\nslo_ms = 200\nrate_hz = {rate_hz}\n'
        f"mbps = 1000\n{objects}\n"
    )


def pipelines_text(*cameras: str, top: str = "duration_s = 10", policy: str = "") -> str:
    """Return a scenario of cameras without adaptation."""
    plain = f'[policy]\nplanning = "none"\n{policy}\n'
    return "\n".join([top, plain, HARDWARE, PIPELINE, *cameras])


def pipelines_scenario(
    *cameras: str, top: str = "duration_s = 10", policy: str = "", counts: str = COUNTS
) -> Scenario:
    return parse_scenario(
        pipelines_text(*cameras, top=top, policy=policy), "test.toml", lambda name: counts
    )
