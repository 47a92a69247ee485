"""What the planner considers for a camera: the plan's own choice, and true words on the rest."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName
from edgebox.domain.plans import PlanningSnapshot
from edgebox.planning.explain import Explanation, explanation
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import link, seen, snapshot
from tests.planning.test_plans_by_brute_force import boxes
from tests.scheduling.scene import FAMILY, MS, camera

P = PlanningParameters()
ITERATIONS = 10_000


def weighed(of: PlanningSnapshot, at: int = 0) -> Explanation:
    found = explanation(of, of.cameras[at].camera.id, P, ITERATIONS)
    assert found is not None
    return found


def verdicts(of: Explanation) -> dict[str, str]:
    return {option.variant.name: option.verdict for option in of.options}


@settings(max_examples=60, deadline=None)
@given(boxes(6), st.integers(0, 5))
def test_exactly_the_planned_size_is_chosen_with_the_planned_sentence(
    of: PlanningSnapshot, drawn: int
) -> None:
    at = drawn % len(of.cameras)
    planned = plan(of, ITERATIONS).assignments
    found = explanation(of, of.cameras[at].camera.id, P, ITERATIONS)
    given_ = planned.get(of.cameras[at].camera.id)
    if found is None or given_ is None:
        assert found is None and given_ is None
        return
    chosen = [option for option in found.options if option.verdict == "chosen"]
    assert [(o.variant.name, o.why) for o in chosen] == [(given_.variant, given_.reason)]
    pixels = [option.variant.pixels for option in found.options]
    assert pixels == sorted(pixels)
    for option in found.options:
        assert option.why
        if option.verdict == "smaller":
            assert option.variant.pixels < chosen[0].variant.pixels
            assert option.left_ns >= option.needed_ns


@settings(max_examples=60, deadline=None)
@given(boxes(4), st.integers(0, 3))
def test_who_is_alone_with_a_better_link_gets_what_only_the_link_forbade(
    of: PlanningSnapshot, drawn: int
) -> None:
    one = of.cameras[drawn % len(of.cameras)]
    of = replace(of, cameras=(replace(one, current=None, lowered_ns=None),))
    found = explanation(of, one.camera.id, P, ITERATIONS)
    if found is None or found.bandwidth_bps is None:
        return
    for option in found.options:
        if option.verdict == "infeasible" and option.needed_bps is not None:
            assert option.needed_bps > found.bandwidth_bps * (1 - 1e-6)
            better = replace(one.link, bandwidth_bps=option.needed_bps * 1.000001)
            freed = replace(of, cameras=(replace(of.cameras[0], link=better),))
            assert verdicts(weighed(freed))[option.variant.name] != "infeasible"


def test_a_slow_link_forbids_the_larger_sizes_and_the_table_says_what_they_need() -> None:
    of = weighed(snapshot([seen(camera(rate_hz=10), link(0.9))]))
    found = verdicts(of)
    assert list(found) == [variant.name for variant in FAMILY]
    at = list(found.values()).index("chosen")
    assert set(list(found.values())[:at]) <= {"smaller"}
    above = of.options[at + 1]
    assert above.verdict == "infeasible"
    assert above.needed_bps is not None and above.needed_bps > 0.9e6
    assert "the uplink carries 900 kbit/s" in above.why
    assert f"{above.variant.width_px} px would need" in above.why


def test_an_accuracy_that_is_asked_for_rules_smaller_sizes_out() -> None:
    least = FAMILY[1].accuracy
    of = weighed(snapshot([seen(camera(min_accuracy=least))]))
    assert of.options[0].verdict == "inaccurate"
    assert of.options[0].why == f"less accurate than the {least:g} that is asked for"


def test_a_size_beyond_the_cameras_own_picture_is_covered() -> None:
    small = replace(camera(), width_px=200, height_px=120)
    of = weighed(snapshot([seen(small)]))
    assert of.options[-1].verdict == "exceeds_source"
    assert "200 × 120 px" in of.options[-1].why


def test_a_size_beyond_the_one_of_the_pipelines_first_stage_is_not_allowed() -> None:
    limit = FAMILY[2].name
    stage = PipelineStage(StageName("find"), FAMILY[0].family, variant=limit)
    limited = replace(camera("gate-2"), pipeline=Pipeline(PipelineName("p"), (stage,)))
    both = snapshot([seen(camera()), seen(limited)])
    assert "exceeds_stage" not in verdicts(weighed(both)).values()
    of = weighed(both, 1)
    found = verdicts(of)
    assert found[limit] in {"chosen", "smaller", "contended"}
    for larger in FAMILY[3:]:
        assert found[larger.name] == "exceeds_stage"
    assert of.options[-1].why == f"larger than {limit}, the largest of its stage"


def test_a_size_that_is_no_better_says_than_which() -> None:
    worse = replace(FAMILY[2], accuracy=FAMILY[1].accuracy)
    of = weighed(snapshot([seen()], variants=(*FAMILY[:2], worse, *FAMILY[3:])))
    assert of.options[2].verdict == "no_gain"
    assert of.options[2].why == f"no more accurate than {FAMILY[1].name}"


def test_other_cameras_can_be_in_the_way() -> None:
    of = snapshot(seen(camera(f"gate-{at}", rate_hz=20)) for at in range(8))
    alone = verdicts(weighed(replace(of, cameras=of.cameras[:1])))
    found = weighed(of)
    shared = [option for option in found.options if option.verdict == "contended"]
    assert all("eight cameras" in o.why or "gate-" in o.why for o in shared)
    assert any(alone[option.variant.name] in ("chosen", "smaller") for option in shared)


def test_where_not_even_smallest_sizes_fit_all_larger_ones_are_shared_out() -> None:
    crowd = snapshot((seen(camera(f"gate-{at}", 300, 30)) for at in range(20)), slowdown=4)
    found = weighed(crowd)
    assert found.options[0].verdict == "chosen"
    assert "cameras share cpu/0, too many for this size" in found.options[1].why


def test_a_link_that_is_not_measured_must_be_waited_for() -> None:
    of = weighed(snapshot([seen(camera(rate_hz=10), link(None))]))
    assert of.bandwidth_bps is None
    waits = [option for option in of.options if option.verdict == "not_yet"]
    assert waits
    assert all("the link has not been measured yet" in option.why for option in waits)


def test_a_camera_that_was_lowered_a_moment_ago_waits() -> None:
    lowered = replace(seen(camera(), has_px=FAMILY[0].width_px), lowered_ns=0)
    of = weighed(snapshot([lowered]))
    assert verdicts(of)[FAMILY[1].name] == "not_yet"
    assert "its size was lowered" in of.options[1].why
    rested = replace(snapshot([lowered]), taken_ns=P.upgrade_hold_ns)
    assert verdicts(weighed(rested))[FAMILY[1].name] != "not_yet"


def test_a_deadline_that_no_link_can_meet_says_so() -> None:
    of = weighed(snapshot([seen(camera(slo_ms=60))]))
    last = of.options[-1]
    assert (last.verdict, last.needed_bps) == ("infeasible", None)
    missing_ms = -(-(last.needed_ns - last.left_ns) // MS)
    assert last.why == (
        f"even the best link would not do: inference alone takes {missing_ms} ms too long"
    )


def test_nothing_is_considered_for_a_camera_that_is_not_there() -> None:
    assert explanation(snapshot([seen()]), camera("other").id, P, ITERATIONS) is None
    assert explanation(snapshot([seen()], variants=()), camera().id, P, ITERATIONS) is None


def test_a_size_that_the_deadline_forbids_has_its_limit_while_the_camera_is_held() -> None:
    lowered = replace(seen(camera(slo_ms=100), link(50), has_px=256), lowered_ns=0)
    (*_, largest) = weighed(snapshot([lowered])).options
    assert "its size was lowered" in weighed(snapshot([lowered])).options[1].why
    assert (largest.variant.name, largest.verdict) == ("street-608", "infeasible")
    assert largest.limit is not None
    assert largest.limit.resource == "deadline"
    assert largest.limit.gain > 0
