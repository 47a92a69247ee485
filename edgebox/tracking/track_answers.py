"""Remembers what stages said of tracked objects, so that each is asked about once. Pure.

An object is given to a stage when nothing was said of it yet. It is given again when its crop is
better than all before, until what is known is certain.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from edgebox.domain.pipelines import StageName

CERTAIN = 0.9
"""What is known of an object is certain if each attribute scores at least this."""

_Said = TypeVar("_Said")
_Key = tuple[StageName, int]


@dataclass(frozen=True, slots=True)
class Known(Generic[_Said]):
    """What stages have said of an object."""

    said: _Said
    quality: float
    """Quality of the best crop that was answered."""
    certain: bool


class TrackAnswers(Generic[_Said]):
    """What stages said of the tracks of one camera."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: dict[_Key, Known[_Said]] = {}
        self._submitted: dict[_Key, float] = {}
        """The best quality that a stage was given, answered or on its way."""

    def wants(self, stage: StageName, track: int, quality: float) -> bool:
        """Return whether an object is to be given to a stage; always if `track` is 0: none."""
        known = self._known.get((stage, track))
        if known is not None and known.certain:
            return False
        return not track or quality > self._submitted.get((stage, track), 0.0)

    def submitted(self, stage: StageName, track: int, quality: float) -> None:
        """Note that an object of a track was given to a stage."""
        self._submitted[stage, track] = quality

    def answered(
        self, stage: StageName, track: int, quality: float, said: _Said, *, certain: bool
    ) -> None:
        """Note what is known of an object, now that a stage has answered.

        Args:
            stage: which.
            track: of the object.
            quality: of the crop.
            said: what all its answers say, this one included.
            certain: whether it need not be asked again.
        """
        known = self._known.get((stage, track))
        best = quality if known is None else max(quality, known.quality)
        self._known[stage, track] = Known(said, best, certain)

    def unanswered(self, stage: StageName, track: int, quality: float) -> None:
        """Note that a stage did not answer in time: it is given the next crop."""
        if self._submitted.get((stage, track)) != quality:
            return  # a better one is on its way
        known = self._known.get((stage, track))
        if known is None:
            del self._submitted[stage, track]
        else:
            self._submitted[stage, track] = known.quality

    def known(self, stage: StageName, track: int) -> Known[_Said] | None:
        """Return what is known of a track; None: nothing."""
        return self._known.get((stage, track))

    def keep(self, alive: frozenset[int]) -> None:
        """Forget all tracks but these."""
        self._known = {key: of for key, of in self._known.items() if key[1] in alive}
        self._submitted = {key: of for key, of in self._submitted.items() if key[1] in alive}
