"""Says in a line what a family is, so that two of them can be compared without their files."""

from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgebox.inference.family import Family


def family_print(family: "Family") -> str:
    """Return what a fingerprint ends with: the family, its files and its sizes."""
    sizes = ",".join(f"{v.name}:{v.width_px}x{v.height_px}" for v in family.variants)
    return f"{family.name} {family.sha256[:16]} {sha256(sizes.encode()).hexdigest()[:8]}"


def served_print(family: "Family") -> str:
    """Return a fingerprint of all that another box must have alike to use its answers."""
    told = [family_print(family), reading_print(family), family.labels]
    return sha256(repr(told).encode()).hexdigest()[:16]


def reading_print(family: "Family") -> str:
    """Return a fingerprint of how pictures become inputs, and outputs detections."""
    of = family.input
    told = [
        of.layout, of.dtype, of.order, of.fit, of.fill, of.size_multiple_px,
        of.scale, of.mean, of.std,
        family.task, family.decoder, len(family.labels), family.embedding_length,
        [len(each.labels) for each in family.attributes],
    ]  # fmt: skip
    return sha256(repr(told).encode()).hexdigest()[:16]
