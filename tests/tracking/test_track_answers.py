"""Which tracked objects a stage is asked about, and what is known of them."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.pipelines import StageName
from edgebox.tracking.track_answers import TrackAnswers

KIND = StageName("kind")


@dataclass
class TrackedObject:
    """All that happened to one object, the long way."""

    taken: list[float] = field(default_factory=list)
    """Qualities of crops that are answered or on their way."""
    answers: list[tuple[float, int, bool]] = field(default_factory=list)

    def wants(self, quality: float) -> bool:
        if self.answers and self.answers[-1][2]:
            return False
        return quality > max(self.taken, default=0.0)


steps = st.lists(
    st.tuples(
        st.integers(1, 3), st.integers(1, 20), st.sampled_from(("answered", "certain", "lost"))
    ),
    max_size=40,
)


@given(steps)
def test_an_object_is_asked_about_with_better_crops_until_it_is_certain(
    steps: list[tuple[int, int, str]],
) -> None:
    answers: TrackAnswers[int] = TrackAnswers()
    objects = {track: TrackedObject() for track in (1, 2, 3)}
    for number, (track, quality, fate) in enumerate(steps):
        of = objects[track]
        assert answers.wants(KIND, track, quality) == of.wants(quality)
        assert answers.wants(StageName("other"), track, quality), "stages know their own only"
        if not of.wants(quality):
            continue
        answers.submitted(KIND, track, quality)
        if fate == "lost":
            answers.unanswered(KIND, track, quality)
            continue
        of.taken.append(quality)
        of.answers.append((quality, number, fate == "certain"))
        answers.answered(KIND, track, quality, number, certain=fate == "certain")
        known = answers.known(KIND, track)
        assert known is not None
        assert (known.said, known.quality) == (number, max(of.taken))
    for track, of in objects.items():
        assert (answers.known(KIND, track) is None) == (not of.answers)


def test_while_an_answer_is_on_its_way_only_a_better_crop_is_taken() -> None:
    answers: TrackAnswers[str] = TrackAnswers()
    answers.submitted(KIND, 7, 10.0)
    assert not answers.wants(KIND, 7, 10.0)
    assert answers.wants(KIND, 7, 11.0)
    answers.submitted(KIND, 7, 11.0)
    answers.unanswered(KIND, 7, 10.0)
    assert not answers.wants(KIND, 7, 10.5), "the better one may still come"
    answers.unanswered(KIND, 7, 11.0)
    assert answers.wants(KIND, 7, 0.1), "nothing is known: any crop will do"


def test_objects_without_a_track_are_always_taken_and_ended_tracks_forgotten() -> None:
    answers: TrackAnswers[str] = TrackAnswers()
    assert answers.wants(KIND, 0, 0.0)
    for track in (1, 2):
        answers.submitted(KIND, track, 5.0)
        answers.answered(KIND, track, 5.0, "car", certain=True)
    answers.keep(frozenset({2}))
    assert answers.known(KIND, 1) is None and answers.wants(KIND, 1, 1.0)
    assert answers.known(KIND, 2) is not None and not answers.wants(KIND, 2, 9.0)
