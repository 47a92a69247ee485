"""Opens models in ONNX Runtime: session options, provider, and the provider in use.

Limits: one device per session; TensorRT is used only where it was asked for, because it builds
each model for minutes at first.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from edgebox.domain.errors import ModelError
from edgebox.inference.cuda_libraries import CUDA_BUILD, DRIVER, PROVIDER, missing_cuda_libraries
from edgebox.inference.gpus import gpu_names
from edgebox.inference.machine import processor_name, usable_cores
from edgebox.inference.onnx_runtime import onnx_runtime

Provider = Literal["cuda", "tensorrt", "cpu"]
CPU = "CPUExecutionProvider"
CUDA = PROVIDER
TENSORRT = "TensorrtExecutionProvider"

_FATAL_ONLY = 4
"""ONNX Runtime's severity: failures become exceptions with better messages."""
_PLACE_IN_CODE = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : |"
    r"\S+\.(?:cc|h):\d+ [^()\n]*\([^()\n]*\)(?: const)?(?: \[with [^\]\n]*\])? ?"
)
"""What ONNX Runtime says of itself: the kind of error, its file, line and function."""


@dataclass(frozen=True, slots=True)
class Session:
    """A model ready to run, and where it ended up."""

    session: Any
    """`onnxruntime.InferenceSession`, which has no type information."""
    input_name: str
    provider: str
    """The provider in use after creation, which may differ from the requested one."""
    records: bool = False
    """Whether its runs may be recorded and replayed (`edgebox.inference.fixed_runs`)."""


def default_cpu_threads() -> int:
    """Return the threads a CPU session computes with: one core is left to the event loop."""
    return max(1, usable_cores() - 1)


def session_options(cpu_threads: int) -> Any:
    """Return the options of every session: deliberate, the same for serving and measuring."""
    ort = onnx_runtime()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = cpu_threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL_ONLY
    # Spinning threads take cores from JPEG decoding and the event loop between two operators.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


ORDINARY = -1
"""Recorded nowhere: what ONNX Runtime calls a run without a CUDA graph."""


def run_options(recording: int = ORDINARY) -> Any:
    """Return options for runs that end between two operators once `terminate` is set True.

    Args:
        recording: the number, from 1, that the run is recorded with at first and replayed by then.
    """
    options = onnx_runtime().RunOptions()
    options.log_severity_level = _FATAL_ONLY
    # Also where nothing is recorded: ONNX Runtime asks for it in each run, and where it is not set
    # an exception is raised and caught on the way, which takes longer than preparing the run.
    options.add_run_config_entry("gpu_graph_id", str(recording))
    return options


def cuda_options(
    device_index: int, arena_bytes_max: int = 0, *, records: bool = False
) -> dict[str, str]:
    """Return the CUDA provider's options; `arena_bytes_max` 0: no limit.

    TF32 stays on (the provider's default): convolutions round their inputs to 10 bits of
    mantissa on GPUs that have it, which costs detectors nothing measurable.
    """
    limit = {"gpu_mem_limit": str(arena_bytes_max)} if arena_bytes_max else {}
    return limit | {
        "device_id": str(device_index),
        # One session sees many shapes; doubling the arena for each would strand memory.
        "arena_extend_strategy": "kSameAsRequested",
        # EXHAUSTIVE tries every algorithm for every new shape: minutes over a whole family.
        "cudnn_conv_algo_search": "HEURISTIC",
        "cudnn_conv_use_max_workspace": "1",
        # A second copy stream would need a synchronisation for each batch.
        "do_copy_in_default_stream": "1",
        "use_tf32": "1",
        **({"enable_cuda_graph": "1"} if records else {}),
    }


def tensorrt_options(device_index: int, engines: Path | None) -> dict[str, str]:
    """Return the TensorRT provider's options; `engines`: the folder of its engines, None: none.

    An engine holds for the shapes it has seen and is built again for others, so that everything is
    run once before the box is ready. Only what the model itself rounds is in half precision.
    """
    options = {"device_id": str(device_index)}
    if engines is not None:
        options |= {
            "trt_engine_cache_enable": "True",
            "trt_engine_cache_path": str(engines),
            "trt_timing_cache_enable": "True",
            "trt_timing_cache_path": str(engines),
        }
    return options


def open_session(
    path: Path,
    provider: Provider,
    cpu_threads: int,
    device_index: int = 0,
    *,
    arena_bytes_max: int = 0,
    engines: Path | None = None,
    records: bool = False,
) -> Session:
    """Open a model on one provider, never on another.

    Args:
        path: the file.
        provider: TensorRT leaves unsupported operators to CUDA.
        cpu_threads: threads a CPU session computes with.
        device_index: which GPU.
        arena_bytes_max: limit of a session's memory on a GPU; 0: none.
        engines: folder for TensorRT's engines of this model; None: they are not stored.
        records: whether its runs may be recorded, as CUDA graphs on a GPU.

    Raises:
        ModelError: ONNX Runtime cannot run or record the file, or the provider is not usable
            here; the message says why.
    """
    ort = onnx_runtime()
    ort.set_default_logger_severity(_FATAL_ONLY)
    if provider == "cpu":
        session = _create(path, cpu_threads, [CPU])
        return Session(session, session.get_inputs()[0].name, CPU, records)
    name, wanted = ("CUDA", CUDA) if provider == "cuda" else ("TensorRT", TENSORRT)
    obstacle = _obstacle(name, wanted)
    if wanted not in ort.get_available_providers():
        raise ModelError(obstacle)
    cuda = cuda_options(device_index, arena_bytes_max, records=records)
    providers: list[Any] = [(CUDA, cuda), CPU]
    if provider == "tensorrt":
        providers.insert(0, (TENSORRT, tensorrt_options(device_index, _make_folder(engines))))
    try:
        session = _create(path, cpu_threads, providers, name)
    except ModelError as error:
        # What is known to be missing is a better reason than what fails without it.
        raise (ModelError(obstacle) if obstacle else error) from error.__cause__
    if wanted in session.get_providers():
        return Session(session, session.get_inputs()[0].name, wanted, records)
    if not obstacle:
        obstacle = f"{name} cannot be used: " + (
            "its libraries (libnvinfer) cannot be loaded, or the GPU is not one it can use"
            if provider == "tensorrt"
            else "its libraries cannot be loaded, or the driver or the GPU is not one it can use"
        )
    raise ModelError(obstacle)


def cuda_obstacle() -> str:
    """Return why no model can run on a GPU here, as far as that shows without one; empty: it can.

    Loads CUDA's libraries.
    """
    return _obstacle("CUDA", CUDA)


def _obstacle(name: str, provider: str) -> str:
    ort = onnx_runtime()
    missing = missing_cuda_libraries()
    available = provider in ort.get_available_providers()
    if CUDA_BUILD in missing or not (available or missing):
        return f"{name} cannot be used: ONNX Runtime {ort.__version__} is built without it"
    if DRIVER in missing:
        return f"{name} cannot be used: there is no NVIDIA driver on this machine"
    if missing:
        return (
            f"{name} cannot be used: {', '.join(missing)} cannot be loaded: pip install "
            "'edgebox[cuda]' brings them"
        )
    return ""


def _make_folder(engines: Path | None) -> Path | None:
    """Make the folder and return it; None: it cannot be made, and engines are not stored."""
    if engines is not None:
        try:
            engines.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None
    return engines


def _create(
    path: Path, cpu_threads: int, providers: list[Any], runs_it: str = "ONNX Runtime"
) -> Any:
    ort = onnx_runtime()
    try:
        # Its fall-back to another provider would hide the cause, and print on stdout.
        return ort.InferenceSession(
            str(path), session_options(cpu_threads), providers, enable_fallback=0
        )
    except Exception as error:  # its exception classes share no base but Exception
        raise ModelError(f"{path}: {runs_it} cannot open it: {brief(error)}") from error


def brief(error: BaseException) -> str:
    """Return an error of ONNX Runtime as one line, without the places of its code."""
    text = " ".join(_PLACE_IN_CODE.sub("", str(error)).split())
    return text if len(text) <= 300 else text[:297] + "..."


def device_name(provider: str, cpu_threads: int, device_index: int = 0) -> str:
    """Return what a person calls the device behind a provider."""
    if provider != CPU:
        names = gpu_names()
        name = names[device_index] if device_index < len(names) else "NVIDIA GPU"
        return f"{name} (cuda:{device_index})"
    return f"{processor_name()}, {cpu_threads} thread{'s' if cpu_threads > 1 else ''}"


def available_providers() -> list[str]:
    """Return what ONNX Runtime was built with, whatever the machine has."""
    return list(onnx_runtime().get_available_providers())


def runtime_version() -> str:
    """Return ONNX Runtime's version."""
    return str(onnx_runtime().__version__)
