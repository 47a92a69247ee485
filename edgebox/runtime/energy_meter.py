"""Reads how much energy the machine has used, where its hardware counts it.

Processors of Intel and AMD count it for each package (RAPL, Linux powercap), in µJ from zero up to
a range, and then again. Boards of NVIDIA (Jetson) have INA3221 sensors that measure voltage and
current of their supplies; their product is added up over time. Files that this process may not
read are left out: RAPL's belong to root unless the system is told otherwise.

Limits: power between two readings of a sensor is taken for the mean of both.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_SENSOR = "ina3221"
_UJ = 1e-6


class _Source(Protocol):
    name: str

    def read_j(self, now_ns: int) -> float:
        """Return the energy since the first reading, in J.

        Raises:
            OSError: it cannot be read any more.
            ValueError: what was read is no number.
        """
        ...


@dataclass(slots=True)
class _Counter:
    """A RAPL zone."""

    name: str
    file: Path
    range_uj: int
    last_uj: int | None = None
    total_uj: int = 0

    def read_j(self, now_ns: int) -> float:
        value = int(self.file.read_text(encoding="ascii"))
        if self.last_uj is not None:
            self.total_uj += (value - self.last_uj) % (self.range_uj + 1)
        self.last_uj = value
        return self.total_uj * _UJ


@dataclass(slots=True)
class _Supply:
    """A channel of a sensor."""

    name: str
    millivolt: Path
    milliampere: Path
    last: tuple[int, float] | None = None
    """When, and the power in W."""
    total_j: float = 0.0

    def read_j(self, now_ns: int) -> float:
        volt, ampere = (
            int(file.read_text(encoding="ascii")) / 1e3
            for file in (self.millivolt, self.milliampere)
        )
        power_w = volt * ampere
        if self.last is not None:
            at_ns, before_w = self.last
            self.total_j += (now_ns - at_ns) / 1e9 * (before_w + power_w) / 2
        self.last = now_ns, power_w
        return self.total_j


class EnergyMeter:
    """All counters and sensors of the machine that can be read."""

    def __init__(self, root: Path = Path("/sys")) -> None:
        """Find them; `root` is the kernel's file system of devices."""
        found: list[_Source] = [
            *_counters(root / "class/powercap"),
            *_supplies(root / "class/hwmon"),
        ]
        self._sources: list[_Source] = []
        seen = Counter[str]()
        for source in found:
            # Boards have several supplies of one name, such as NC.
            seen[source.name] += 1
            if seen[source.name] > 1:
                source.name += f" ({seen[source.name]})"
            try:
                source.read_j(0)
            except (OSError, ValueError):
                continue
            if isinstance(source, _Supply):
                source.last = None  # the instant of that reading is not known
            self._sources.append(source)

    @property
    def names(self) -> tuple[str, ...]:
        """What is measured, each once; empty: nothing can be read here."""
        return tuple(source.name for source in self._sources)

    def read(self, now_ns: int) -> Mapping[str, float]:
        """Return the energy by source since the first reading, in J. Blocks shortly.

        A source that fails is left out, and tried again at the next reading.
        """
        out = {}
        for source in self._sources:
            try:
                out[source.name] = source.read_j(now_ns)
            except (OSError, ValueError):
                continue
        return out


def _counters(folder: Path) -> Iterator[_Counter]:
    """Yield the zones of whole packages; zones within them are part of their energy."""
    for zone in sorted(folder.glob("intel-rapl:*")):
        if zone.name.count(":") > 1:
            continue
        try:
            range_uj = int((zone / "max_energy_range_uj").read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        name = _text_of(zone / "name")
        if name is not None:
            yield _Counter(name, zone / "energy_uj", range_uj)


def _supplies(folder: Path) -> Iterator[_Supply]:
    for sensor in sorted(folder.glob("hwmon*")):
        if _text_of(sensor / "name") != _SENSOR:
            continue
        for label in sorted(sensor.glob("in*_label")):
            number = label.name.removeprefix("in").removesuffix("_label")
            name = _text_of(label)
            if name is None:
                continue
            files = sensor / f"in{number}_input", sensor / f"curr{number}_input"
            if all(file.is_file() for file in files):
                yield _Supply(name, *files)


def _text_of(file: Path) -> str | None:
    """Return the name that a file has; None: it cannot be read."""
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
