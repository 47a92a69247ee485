"""Owns how many objects the pictures of a simulated camera show over time. Pure.

The counts of recorded videos: a CSV file whose columns are `at_s` and one per class, one line per
change. A file with several videos names them in a column `video`.
"""

import csv
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from edgebox.domain.errors import InvalidInputError

ANY = ""
"""The class of objects that every stage takes, whatever its labels."""
_COUNT_MAX = 100_000


@dataclass(frozen=True, slots=True)
class ObjectCounts:
    """The number of objects by class and instant. It repeats for ever."""

    at_ns: Sequence[int]
    """When each count begins, rising from 0."""
    counts: Mapping[str, Sequence[int]]
    """By class, one count per instant of `at_ns`."""
    period_ns: int
    start_ns: int = 0
    """The instant of the series at which the run begins."""

    def number(self, labels: Collection[str], now_ns: int) -> int:
        """Return how many objects of these classes there are; no classes: of all.

        Args:
            labels: the classes.
            now_ns: the instant of the run.
        """
        at = bisect_right(self.at_ns, (self.start_ns + now_ns) % self.period_ns) - 1
        return sum(
            of[at] for name, of in self.counts.items() if not labels or name in (*labels, ANY)
        )


def constant(count: int) -> ObjectCounts:
    """Return a scene that always shows as many objects."""
    return ObjectCounts((0,), {ANY: (count,)}, 1)


def parse_object_counts(text: str, name: str, video: str | None = None) -> ObjectCounts:
    """Read the counts of one video.

    Args:
        text: of the file.
        name: of the file, for messages.
        video: which one; None: the file has no column `video`.

    Raises:
        InvalidInputError: the first mistake, with file and line.
    """
    rows = csv.reader(text.splitlines())
    heading = [cell.strip() for cell in next(rows, [])]
    classes = [cell for cell in heading if cell not in ("at_s", "video")]
    if "at_s" not in heading or not classes or len(set(heading)) < len(heading):
        raise InvalidInputError(f'{name}:1: must name the columns: "at_s" and one per class')
    if ("video" in heading) != (video is not None):
        what = "has no column" if video is not None else "needs objects_video, because it has one"
        raise InvalidInputError(f'{name}:1: {what} "video"')
    videos: dict[str, None] = {}
    at_ns: list[int] = []
    counts: dict[str, list[int]] = {each: [] for each in classes}
    for line, row in enumerate(rows, 2):
        if not any(row):
            continue
        if len(row) != len(heading):
            raise InvalidInputError(f"{name}:{line}: must have {len(heading)} columns")
        cells = dict(zip(heading, row, strict=True))
        if video is not None:
            videos[cells["video"]] = None
            if cells["video"] != video:
                continue
        at_ns.append(round(_number(cells["at_s"], 1e6, f"{name}:{line}: at_s") * 1e9))
        if len(at_ns) > 1 and at_ns[-1] <= at_ns[-2]:
            raise InvalidInputError(f"{name}:{line}: at_s: must be after the line before")
        for each in classes:
            counts[each].append(int(_number(cells[each], _COUNT_MAX, f"{name}:{line}: {each}")))
    if not at_ns:
        there = "nothing" if video is None else ", ".join(videos) or "no video"
        what = "there are no counts" if video is None else f"there is no video {video!r}"
        raise InvalidInputError(f"{name}: {what} (it has: {there})")
    shifted = tuple(each - at_ns[0] for each in at_ns)
    last_ns = shifted[-1] - shifted[-2] if len(shifted) > 1 else 1_000_000_000
    return ObjectCounts(
        shifted, {each: tuple(of) for each, of in counts.items()}, shifted[-1] + last_ns
    )


def _number(text: str, most: float, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise InvalidInputError(f"{what}: must be a number from 0 to {most:g}, not {text!r}")
    return value
