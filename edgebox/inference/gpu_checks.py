"""Checks of GPUs, their driver and CUDA's libraries, for `edgebox doctor`."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from edgebox.inference.cuda_libraries import (
    CUDA_BUILD,
    DRIVER,
    DRIVER_MIN,
    cuda_major,
    missing_cuda_libraries,
)
from edgebox.inference.findings import Finding, Health
from edgebox.inference.gpus import JETSON, cuda_driver, driver_cuda_release

_CAPABILITY_MIN = (7, 5)
"""Older GPUs have no code in ONNX Runtime's packages."""
_USE_THE_CPU = 'set device = "cpu" in [[executors]], or use a newer GPU'


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as its driver describes it."""

    name: str
    driver: str
    memory: str
    capability: tuple[int, int]


def find_gpus() -> list[Gpu] | None:
    """Return the NVIDIA GPUs; None: there is a driver that does not answer.

    Where the driver's tool is not installed, as in many containers, the driver itself is asked.
    """
    tool = shutil.which("nvidia-smi")
    query = "--query-gpu=name,driver_version,memory.total,compute_cap"
    if tool is not None:
        command = [tool, query, "--format=csv,noheader"]
    elif cuda_driver() is not None:
        command = [sys.executable, "-m", "edgebox.inference.gpus"]
    else:
        return []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_gpus(done.stdout)


def parse_gpus(table: str) -> list[Gpu]:
    """Read nvidia-smi's rows: name, driver, memory, compute capability."""
    gpus = []
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4:
            major, _, minor = cells[3].partition(".")
            known = major.isdigit() and minor.isdigit()
            gpus.append(
                Gpu(
                    name=cells[0],
                    driver=cells[1],
                    memory=cells[2],
                    capability=(int(major), int(minor)) if known else _CAPABILITY_MIN,
                )
            )
    return gpus


def check_gpus(gpus: Sequence[Gpu] | None) -> Finding:
    """Report which GPUs there are."""
    if gpus is None:
        mend = "run nvidia-smi by hand; the driver may need to be installed again or loaded"
        return Finding("GPU", Health.WARN, "the GPU's driver fails or does not answer", mend)
    if not gpus:
        return Finding("GPU", Health.OK, "no NVIDIA GPU (or no driver): models run on the CPU")
    listed = "; ".join(f"{gpu.name}, {gpu.memory}, driver {gpu.driver}" for gpu in gpus)
    if _too_old(gpus):
        return Finding(
            "GPU",
            Health.WARN,
            f"{listed}: too old for ONNX Runtime's packages (compute capability below 7.5)",
            _USE_THE_CPU,
        )
    return Finding("GPU", Health.OK, listed)


def _too_old(gpus: Sequence[Gpu]) -> bool:
    return bool(gpus) and all(gpu.capability < _CAPABILITY_MIN for gpu in gpus)


@dataclass(frozen=True, slots=True)
class Cuda:
    """What there is of CUDA on a machine."""

    missing: Sequence[str] = ()
    """Of what ONNX Runtime loads, what cannot be loaded."""
    built_for: str = ""
    """The CUDA release that ONNX Runtime was built for: "13"; empty: none, or it does not say."""
    driver_release: tuple[int, int] | None = None
    """The newest CUDA release that the driver can run; None: there is no driver."""
    jetson: bool = False

    @property
    def driver_is_old(self) -> bool:
        """Whether the driver cannot run what ONNX Runtime was built for."""
        return bool(
            self.built_for and self.driver_release and self.driver_release[0] < int(self.built_for)
        )

    def mend(self, gpus: Sequence[Gpu]) -> str:
        """Return what helps against the cause that keeps models off these GPUs."""
        driver = DRIVER_MIN.get(self.built_for)
        causes = (
            (self.jetson, "docs/how-to/jetson.md says how to get an ONNX Runtime for this board"),
            (
                CUDA_BUILD in self.missing,
                "pip uninstall -y onnxruntime, then pip install 'edgebox[cuda]'",
            ),
            (_too_old(gpus), _USE_THE_CPU),
            (
                DRIVER in self.missing,
                "install NVIDIA's driver; a container needs to be started with --gpus all",
            ),
            (
                self.driver_is_old,
                f"install NVIDIA's driver {driver} or newer" if driver else "update the driver",
            ),
            (
                bool(self.missing),
                "pip install 'edgebox[cuda]' brings CUDA and cuDNN as packages",
            ),
        )
        otherwise = "run nvidia-smi: the GPU may be in use, lost or switched off"
        return next((mend for holds, mend in causes if holds), otherwise)


def find_cuda() -> Cuda:
    """Load CUDA's libraries and return what there is; needs ONNX Runtime."""
    return Cuda(missing_cuda_libraries(), cuda_major(), driver_cuda_release(), JETSON.exists())


def check_cuda(gpus: Sequence[Gpu] | None, cuda: Cuda) -> list[Finding]:
    """Report whether the libraries of the CUDA provider are there, and the driver can run them."""
    found = "CUDA and cuDNN can be loaded"
    if not cuda.built_for:
        found = "ONNX Runtime does not name its CUDA release: only a batch shows what is missing"
    if not gpus:
        if cuda.missing:
            found = "none, and there is no GPU to need them"
        return [Finding("CUDA libraries", Health.OK, found)]
    findings = [Finding("CUDA libraries", Health.OK, found)]
    if cuda.missing:
        found = f"cannot be loaded: {', '.join(cuda.missing)}"
        findings = [Finding("CUDA libraries", Health.WARN, found, cuda.mend(gpus))]
    if cuda.driver_release is not None and cuda.built_for:
        release = ".".join(map(str, cuda.driver_release))
        found = f"runs CUDA up to {release}; ONNX Runtime is built for CUDA {cuda.built_for}"
        if cuda.driver_is_old:
            findings.append(Finding("Driver", Health.WARN, found, cuda.mend(gpus)))
        else:
            findings.append(Finding("Driver", Health.OK, found))
    return findings
