"""What is written down of learned times, and with which age."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import cast

import pytest

from edgebox.domain.learned import LearnedDrift, LearnedWork
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.runtime.learned_times_recorder import LearnedTimesRecorder
from edgebox.scheduling.events import LearningRestored, RequestSampled, VariantsAvailable
from edgebox.scheduling.remembered import HALF_LIFE_NS as DAY_NS
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from edgebox.storage.database import Storage
from tests.conftest import WallClock
from tests.scheduling.scene import CPU, FAMILY, LARGE, MS, Bench, name

V608 = name(608)
MODELS = {V608: "street 1"}
EXECUTORS = {(CPU, V608): "box"}


class Core:
    """What `Remembering` reads of a scheduler: one factor, and when batches confirmed it."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.confirmed_ns: int | None = None
        corrections = SimpleNamespace(confirmed_ns=lambda executor, variant: self.confirmed_ns)
        learning = SimpleNamespace(known_distributions=lambda: ())
        self.times = SimpleNamespace(corrections=corrections, learning=learning)

    @property
    def corrections(self) -> dict[object, dict[object, float]]:
        return {CPU: {V608: self.factor}} if self.factor != 1 else {}

    @property
    def scheduler(self) -> Scheduler:
        return cast(Scheduler, self)


@pytest.fixture
def remembering(storage: Storage) -> LearnedTimesRecorder:
    return LearnedTimesRecorder(storage.learned, models=MODELS, executors=EXECUTORS)


async def drifts(storage: Storage) -> list[LearnedDrift]:
    await storage.flush()
    return await storage.learned.load_drifts(EXECUTORS)


async def work(storage: Storage) -> list[LearnedWork]:
    await storage.flush()
    return await storage.learned.load_work(MODELS)


def drift(factor: float, age_ns: int) -> LearnedDrift:
    return LearnedDrift(CPU, V608, factor, age_ns)


async def restart(storage: Storage, core: Core) -> LearnedTimesRecorder:
    """Begin again with what is kept; the clock of the box begins at 0 again."""
    again = LearnedTimesRecorder(storage.learned, models=MODELS, executors=EXECUTORS)
    await again.load()
    core.confirmed_ns = None
    again.began(core.scheduler, 0)
    return again


async def test_a_factor_that_nothing_confirms_keeps_its_age(
    storage: Storage, clock: WallClock, remembering: LearnedTimesRecorder
) -> None:
    core = Core()
    core.factor = 2.0
    remembering.keep(core.scheduler, 0)
    for day in (1, 2):
        clock.ms += DAY_NS // MS
        remembering.keep(core.scheduler, day * DAY_NS)
        assert await drifts(storage) == [drift(2.0, day * DAY_NS)]


async def test_a_factor_fades_over_restarts_that_learn_nothing(
    storage: Storage, clock: WallClock, remembering: LearnedTimesRecorder
) -> None:
    core = Core()
    core.factor = 4.0
    remembering.keep(core.scheduler, 0)
    await storage.flush()
    for days, faded in ((1, 2.0), (2, 2**0.5)):
        clock.ms += DAY_NS // MS
        core.factor = faded
        again = await restart(storage, core)
        again.keep(core.scheduler, 60_000 * MS)
        assert await drifts(storage) == [drift(4.0, days * DAY_NS)], "what was kept holds"


async def test_a_factor_that_batches_confirm_is_as_old_as_they_are(
    storage: Storage, clock: WallClock, remembering: LearnedTimesRecorder
) -> None:
    core = Core()
    core.factor = 2.0
    remembering.keep(core.scheduler, 0)
    clock.ms += DAY_NS // MS
    core.confirmed_ns = DAY_NS - 5_000 * MS
    remembering.keep(core.scheduler, DAY_NS)
    assert await drifts(storage) == [drift(2.0, 5_000 * MS)]
    clock.ms += DAY_NS // MS  # the machine has slept, and its monotonic clock with it
    remembering.keep(core.scheduler, DAY_NS + 60_000 * MS)
    assert await drifts(storage) == [drift(2.0, DAY_NS + 5_000 * MS)], "nothing new confirms it"


async def test_a_factor_that_has_faded_away_leaves_no_row(
    storage: Storage, remembering: LearnedTimesRecorder
) -> None:
    core = Core()
    core.factor = 1.2
    remembering.keep(core.scheduler, 0)
    await storage.flush()
    core.factor = 1.0
    again = await restart(storage, core)
    again.keep(core.scheduler, 60_000 * MS)
    assert await drifts(storage) == []


@pytest.mark.parametrize(("at_present", "kept"), [(1.0, []), (1.3, [drift(1.8, 0)])])
async def test_an_executor_that_comes_late_has_what_was_learned_of_it(
    storage: Storage, remembering: LearnedTimesRecorder, at_present: float, kept: list[LearnedDrift]
) -> None:
    core = Core()
    core.factor = 1.8
    remembering.keep(core.scheduler, 0)
    await storage.flush()
    there: dict[tuple[ExecutorId, VariantName], str] = {}
    late = LearnedTimesRecorder(storage.learned, models=MODELS, executors=there)
    assert (await late.load()).drifts == ()
    core.factor = 1.0
    late.began(core.scheduler, 0)
    late.keep(core.scheduler, 0)
    assert await drifts(storage) == [drift(1.8, 0)], "it has not come"
    assert await late.load_drifts(EXECUTORS) == (drift(1.8, 0),)
    core.factor = at_present  # it has decayed since
    there |= EXECUTORS
    late.began_on(EXECUTORS, core.scheduler)
    late.keep(core.scheduler, 60_000 * MS)
    assert await drifts(storage) == kept


def sampled(bench: Bench, times: Iterable[int], at_ms: float) -> None:
    for each in times:
        bench(RequestSampled(CPU, V608, "gate", each), at_ms)


async def test_only_what_was_learned_since_becomes_younger(
    storage: Storage, clock: WallClock, remembering: LearnedTimesRecorder
) -> None:
    bench = Bench(parameters=SchedulerParameters(first_pixels_max=LARGE))
    sampled(bench, [4 * MS + at for at in range(50)], 1)
    remembering.keep(bench.scheduler, 1 * MS)
    (kept,) = await work(storage)
    assert (kept.app, kept.age_ns) == ("gate", 0)
    clock.ms += 3_600_000
    remembering.keep(bench.scheduler, 3_600_001 * MS)
    (kept,) = await work(storage)
    assert kept.age_ns == 3_600_000 * MS, "nothing was learned in this hour"
    sampled(bench, [9 * MS], 3_600_001)
    remembering.keep(bench.scheduler, 3_600_001 * MS)
    (kept,) = await work(storage)
    assert kept.age_ns == 0


async def test_what_a_restart_brings_back_is_not_young_again(
    storage: Storage, clock: WallClock, remembering: LearnedTimesRecorder
) -> None:
    bench = Bench(parameters=SchedulerParameters(first_pixels_max=LARGE))
    sampled(bench, [4 * MS + at for at in range(100)], 1)
    remembering.keep(bench.scheduler, 1 * MS)
    before = await work(storage)
    clock.ms += 3_600_000
    again = LearnedTimesRecorder(storage.learned, models=MODELS, executors=EXECUTORS)
    fresh = Bench(parameters=SchedulerParameters(first_pixels_max=LARGE))
    fresh(LearningRestored(await again.load()), 0)
    again.began(fresh.scheduler, 0)
    again.keep(fresh.scheduler, 60_000 * MS)
    (kept,) = await work(storage)
    assert kept.age_ns == 3_600_000 * MS
    assert kept.work == before[0].work, "its row was left as it is"


async def test_what_another_model_of_a_name_learns_is_no_part_of_what_the_first_learned(
    storage: Storage,
) -> None:
    models, executors = dict(MODELS), dict(EXECUTORS)
    recorder = LearnedTimesRecorder(storage.learned, models=models, executors=executors)
    bench = Bench(parameters=SchedulerParameters(first_pixels_max=LARGE))
    sampled(bench, [4 * MS + at for at in range(50)], 1)
    recorder.keep(bench.scheduler, 1 * MS)
    before = await work(storage)
    recorder.forget({V608})
    models[V608], executors[CPU, V608] = "street 2", "box 2"
    bench(VariantsAvailable(FAMILY[:-1]), 2)
    bench(VariantsAvailable(FAMILY), 2)
    recorder.keep(bench.scheduler, 3 * MS)
    assert await storage.learned.load_work(models) == [], "nothing was learned of it"
    sampled(bench, [30 * MS + at for at in range(50)], 4)
    recorder.keep(bench.scheduler, 4 * MS)
    assert await work(storage) == before
    (learned,) = await storage.learned.load_work(models)
    assert min(learned.work) > 2 * max(before[0].work)


async def test_a_drift_is_no_part_of_what_another_model_of_the_name_had(storage: Storage) -> None:
    executors = dict(EXECUTORS)
    recorder = LearnedTimesRecorder(storage.learned, models=MODELS, executors=executors)
    core = Core()
    core.factor = 1.8
    recorder.keep(core.scheduler, 0)
    del executors[CPU, V608]
    recorder.forget({V608})
    core.factor = 1.0  # its executor has started without it
    recorder.keep(core.scheduler, 60_000 * MS)
    executors[CPU, V608] = "box 2"
    recorder.keep(core.scheduler, 120_000 * MS)
    assert await drifts(storage) == [drift(1.8, 0)]
    assert await storage.learned.load_drifts(executors) == []
