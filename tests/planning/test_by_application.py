"""Cameras of applications that take other times than the profiles say are planned for by theirs."""

from dataclasses import replace

from edgebox.domain.plans import Group, Plan, PlanningSnapshot
from edgebox.planning.by_application import by_application
from edgebox.planning.explain import explanation
from edgebox.planning.planner import DEFAULTS, plan
from tests.planning.scene import seen, snapshot
from tests.scheduling.scene import CPU, FAMILY, camera, name

NAMES = {variant.name for variant in FAMILY}


def learned(of: PlanningSnapshot, **factors: float) -> PlanningSnapshot:
    """Return a snapshot in which applications take so many times what the profiles say."""
    return replace(
        of,
        applications={
            app: {e: {v: p.scaled(f) for v, p in on.items()} for e, on in of.profiles.items()}
            for app, f in factors.items()
        },
    )


def planned(of: PlanningSnapshot) -> Plan:
    return plan(of, 2000)


def mixed(**factors: float) -> PlanningSnapshot:
    apps = ("short", "short", "long", "long")
    cameras = [seen(camera(f"{app}-{at}", rate_hz=7, app=app)) for at, app in enumerate(apps)]
    return learned(snapshot(cameras), **factors)


def test_where_nothing_differs_nothing_changes() -> None:
    same = mixed(short=1.04, long=0.95)
    assert by_application(same).snapshot is same
    assert planned(same) == planned(mixed())


def test_long_applications_get_smaller_variants_and_short_ones_larger() -> None:
    pixels = {variant.name: variant.pixels for variant in FAMILY}
    before, after = planned(mixed()), planned(mixed(short=0.25, long=4.0))

    def sizes(of: Plan, app: str) -> list[int]:
        return sorted(pixels[a.variant] for c, a in of.assignments.items() if app in c)

    assert sizes(after, "long") < sizes(before, "long")
    assert sizes(after, "short") > sizes(before, "short")
    assert all(a.served for a in after.assignments.values())
    assert after.utilisation <= 0.9


def test_what_cannot_be_in_time_is_not_planned_as_if_it_could() -> None:
    """A camera whose frames take ten times as long: 2 x 20 ms, the smallest, is all that fits."""
    alone = snapshot([seen(camera("gate", slo_ms=60, app="long"))])
    [before] = planned(alone).assignments.values()
    [after] = planned(learned(alone, long=10.0)).assignments.values()
    assert (before.variant, before.served) != (after.variant, after.served)
    [hopeless] = planned(learned(alone, long=50.0)).assignments.values()
    assert not hopeless.served


def test_applications_that_are_alike_count_as_one() -> None:
    cameras = [seen(camera(f"c{at}", app=f"app-{at}")) for at in range(4)]
    told = by_application(learned(snapshot(cameras), **{"app-0": 4.0, "app-1": 4.1, "app-2": 0.25}))
    families = {each.camera.family for each in told.snapshot.cameras}
    assert len(families) == 3
    # Of those that count as one, the longest time counts.
    [own] = {c.camera.family for c in told.snapshot.cameras if c.camera.app == "app-0"}
    at = next(v for v in told.snapshot.variants if v.family == own)
    base = told.snapshot.profiles[CPU][told.name(at.name)]
    assert told.snapshot.profiles[CPU][at.name] == base.scaled(4.1)


def test_plans_and_tables_speak_of_variants_that_exist() -> None:
    of = mixed(short=0.25, long=4.0)
    assert {a.variant for a in planned(of).assignments.values()} <= NAMES
    table = explanation(of, of.cameras[2].camera.id, DEFAULTS, 2000)
    assert table is not None
    assert {option.variant.name for option in table.options} == NAMES
    assert all("(" not in option.why for option in table.options)
    chosen = [option.variant.name for option in table.options if option.verdict == "chosen"]
    assert chosen == [planned(of).assignments[of.cameras[2].camera.id].variant]


def test_groups_that_would_share_a_variant_are_none() -> None:
    told = by_application(mixed(short=0.25, long=4.0))
    own = next(n for n, real in told.real.items() if real.name == name(128))
    apart = (Group((CPU,), (own,), 0), Group((CPU,), (name(128),), 0))
    assert told.groups(apart) is None
    assert told.groups(apart[:1]) == (Group((CPU,), (name(128),), 0),)
