"""A pipeline is an acyclic graph with one first stage, in topological order."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName


def stage(name: str, *after: str) -> PipelineStage:
    return PipelineStage(StageName(name), FamilyName("street"), tuple(map(StageName, after)))


def pipeline(*stages: PipelineStage) -> Pipeline:
    return Pipeline(PipelineName("gates"), stages)


def is_sound(stages: Sequence[PipelineStage]) -> bool:
    """Say by removing stages that come after nothing whether the graph is a pipeline."""
    names = [each.name for each in stages]
    known = set(names)
    if not stages or len(known) < len(names) or any(set(s.after) - known for s in stages):
        return False
    if sum(not each.after for each in stages) != 1:
        return False
    left = {each.name: set(each.after) for each in stages}
    while free := [name for name, after in left.items() if not after & set(left)]:
        for name in free:
            del left[name]
    return not left


names = st.sampled_from("abcde")
graphs = st.lists(st.builds(lambda n, after: stage(n, *after), names, st.lists(names, max_size=2)))


@given(graphs)
def test_exactly_the_acyclic_graphs_with_one_first_stage_are_pipelines(
    stages: list[PipelineStage],
) -> None:
    if not is_sound(stages):
        with pytest.raises(InvalidInputError):
            pipeline(*stages)
        return
    made = pipeline(*stages)
    assert sorted(s.name for s in made.stages) == sorted(s.name for s in stages)
    assert made.first.after == ()
    for at, each in enumerate(made.stages):
        earlier = {s.name for s in made.stages[:at]}
        assert set(each.after) <= earlier
        assert made.stage(each.name) is each
        after = made.next_stages(each.name)
        assert set(after) == {s for s in stages if each.name in s.after}


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        ((), "'gates' has no stages"),
        ((stage("find"), stage("find")), "has two stages 'find'"),
        ((stage("find"), stage("read", "fnd")), "after 'fnd', which is none of its stages"),
        ((stage("a"), stage("b", "c"), stage("c", "b")), "form a cycle: "),
        ((stage("a", "a"),), "form a cycle: a -> a"),
        ((stage("a"), stage("b")), r"several stages that take whole pictures \(a, b\)"),
    ],
)
def test_what_is_none_says_why(stages: tuple[PipelineStage, ...], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        pipeline(*stages)


def test_an_unknown_stage_is_none() -> None:
    made = pipeline(stage("read", "find"), stage("find"))
    assert [s.name for s in made.stages] == ["find", "read"]
    assert made.stage(StageName("gone")) is None
    assert made.stage(None) is None
    assert made.next_stages(StageName("gone")) == ()
