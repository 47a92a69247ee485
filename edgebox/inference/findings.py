"""What `edgebox doctor` finds: one thing that was looked at, how bad it is, and what helps."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum


class Health(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    """Works, but not as well as it could."""
    FAIL = "fail"
    """Does not work until mended."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    check: str
    health: Health
    found: str
    mend: str = ""
    """Suggested fix; empty when none is needed."""


def to_json(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """Return findings as plain values."""
    return [asdict(finding) for finding in findings]
