"""The accounting of a real run: how its frames ended, and what that says of each measured part."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.links_accounting import (
    Batch,
    CameraCosts,
    Measured,
    batches,
    busy_share,
    jitter_ns,
    measured,
    phase_ns,
    report_of,
    slowdown,
    weight_of,
    with_measured_costs,
)
from benchmarks.links_machine import Machine
from benchmarks.links_run import RealRun
from benchmarks.links_tables import summary
from edgebox.domain.model_family import QUANTILES, ExecutorId, LatencyProfile, VariantName
from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.domain.requests import BatchId, RequestId
from edgebox.link.bandwidth import OVERHEAD_BYTES
from edgebox.runtime.entries import JournalEntry
from edgebox.scheduling.actions import Action, ComputePlan, Infer
from edgebox.scheduling.events import BatchCompleted, Event, PlanComputed, RequestPrepared
from edgebox.simulation.figures import figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario
from edgebox.simulation.simulated_cameras import PictureBytes
from tests.simulation.scenes import gate, scenario_text

MS = 1_000_000
S = 1000 * MS
GPU = ExecutorId("gpu/0")
SMALL, LARGE = VariantName("s-128"), VariantName("s-256")


def scenario(*cameras: str, top: str = "duration_s = 20") -> Scenario:
    return parse_scenario(scenario_text(*cameras, top=top), "test.toml", lambda name: name)


def record(frame: int, captured_ms: float, **more: Any) -> dict[str, Any]:
    """Return a line of `edgebox camera --frames`: of a frame that was skipped, if no more."""
    nothing = ("width_px", "height_px", "size_bytes", "encode_ms", "sent_ns", "advised",
               "acked_ns", "variant", "timing_ms")  # fmt: skip
    return {
        "frame": frame, "captured_ns": round(captured_ms * MS), "ended_ns": round(captured_ms * MS),
        "outcome": "dropped", "reason": "sender:window", **dict.fromkeys(nothing), **more,
    }  # fmt: skip


def answered(
    frame: int, captured_ms: float, outcome: str = "on_time", **more: Any
) -> dict[str, Any]:
    """Return the line of a frame that was answered 100 ms after its capture."""
    timing = {"network": 40.0, "queue": 10.0, "inference": 30.0, "return": 5.0, "total": 85.0,
              "batch_size": 1}  # fmt: skip
    fields = {
        "width_px": 256, "height_px": 256, "size_bytes": 20_000, "encode_ms": 4.0,
        "ended_ns": round((captured_ms + 100) * MS), "outcome": outcome, "reason": None,
        "variant": LARGE, "advised": LARGE, "timing_ms": timing,
    }  # fmt: skip
    return record(frame, captured_ms, **(fields | more))


def run_of(*records: dict[str, Any], journal: tuple[JournalEntry, ...] = ()) -> RealRun:
    return RealRun(1000 * MS, {"gate": list(records)}, journal, Machine(0.5, 0.1, 1.0, 1.0))  # type: ignore[dict-item]


def test_a_real_run_is_counted_as_a_simulated_one() -> None:
    parsed = scenario(gate(slo_ms=150) + "\nrtt_ms = 10", top="duration_s = 10\nwarmup_s = 1")
    dropped: dict[str, Any] = {"outcome": "dropped", "variant": None, "timing_ms": None}
    run = run_of(
        answered(1, 1500),  # warming up
        answered(2, 2500),
        answered(3, 2600, "late", advised=SMALL),
        answered(4, 2700, reason="infeasible", **dropped),
        record(5, 2800),
        answered(6, 2900, reason="lost", **dropped),
        answered(7, 3000, variant=SMALL, advised=SMALL),
        answered(8, 11_000),  # captured when it was over
    )
    found = figures(report_of(run, parsed), parsed)["all"]
    assert (found["captured"], found["on_time"], found["late"]) == (6, 2, 1)
    assert found["dropped"] == {"infeasible": 1, "sender:undelivered": 1, "sender:window": 1}
    assert found["miss_rate"] == round(4 / 6, 6)
    assert found["accuracy"] == round((0.45 + 0.3) / 6, 6)
    assert found["mismatches"] == 1
    assert found["latency_ms"]["all"] == {"mean": 100.0, "p99": 100.0}
    assert found["latency_ms"]["sending"]["mean"] == 40
    assert found["latency_ms"]["waiting"]["mean"] == 10
    # large, small (late), large (dropped), large (lost), small
    assert found["changes_per_camera_minute"] == 6 * 3


reasons = st.sampled_from(["sender:window", "sender:rate", "lost", "queue", "infeasible", None])


@given(st.lists(st.tuples(st.integers(0, 30_000), reasons, st.booleans()), max_size=60))
def test_every_counted_frame_ends_in_exactly_one_way(
    drawn: list[tuple[int, str | None, bool]],
) -> None:
    parsed = scenario(gate(), top="duration_s = 20\nwarmup_s = 2")
    records = []
    for frame, (at_ms, reason, in_time) in enumerate(drawn):
        if reason is None:
            records.append(answered(frame, at_ms, "on_time" if in_time else "late"))
        elif reason.startswith("sender"):
            records.append(record(frame, at_ms, reason=reason))
        else:
            records.append(answered(frame, at_ms, "dropped", reason=reason, timing_ms=None))
    found = figures(report_of(run_of(*records), parsed), parsed)["all"]
    counted = [of for of in drawn if 3000 <= of[0] < 21_000]
    assert found["captured"] == len(counted)
    assert found["on_time"] == sum(reason is None and in_time for _, reason, in_time in counted)
    assert found["captured"] == (
        found["on_time"] + found["late"] + sum(found["dropped"].values()) + found["departed"]
    )


def entry(at_ms: float, event: Event | None, *actions: Action) -> JournalEntry:
    return JournalEntry(round(at_ms * MS), event, actions)


def infer(batch: int, variant: VariantName, size: int = 1) -> Infer:
    return Infer(GPU, BatchId(batch), variant, (RequestId(batch),), size)


def completed(batch: int, took_ms: float) -> BatchCompleted:
    return BatchCompleted(GPU, BatchId(batch), round(took_ms * MS))


JOURNAL = (
    entry(900, completed(1, 5)),  # began before
    entry(1000, RequestPrepared(RequestId(2), 2 * MS), infer(2, SMALL)),
    entry(1010, completed(2, 9), infer(3, LARGE, 2)),
    entry(1040, completed(3, 29)),
    entry(1100, None, ComputePlan(PlanningSnapshot(0, (), (), {}, {}, 0))),
    entry(1104, PlanComputed(Plan(0))),
    entry(1200, RequestPrepared(RequestId(4), 6 * MS), infer(4, SMALL)),
)


def test_the_journal_says_what_ran_and_for_how_long() -> None:
    assert batches(JOURNAL) == [
        Batch(GPU, SMALL, 1, 1000 * MS, 9 * MS, 1010 * MS),
        Batch(GPU, LARGE, 2, 1010 * MS, 29 * MS, 1040 * MS),
    ]
    # It is known from 1,000 to 1,200 ms, of which 40 were busy; of 1,005 to 1,025 ms all.
    assert busy_share(JOURNAL, GPU, 1000 * MS, S) == pytest.approx(0.2)
    assert busy_share(JOURNAL, GPU, 1005 * MS, 20 * MS) == 1.0
    assert busy_share((), GPU, 0, S) == 0.0


def test_slowdown_is_of_all_time_against_the_profiles() -> None:
    steady = [LatencyProfile(of, GPU, {1: (ms * MS,) * 9}) for of, ms in ((SMALL, 4), (LARGE, 8))]
    ran = [Batch(GPU, SMALL, 1, 0, 10 * MS, 0), Batch(GPU, LARGE, 1, 0, 8 * MS, 0)]
    assert slowdown(ran, steady) == pytest.approx(18 / 12)
    assert slowdown([], steady) == 1.0


def test_batches_run_as_they_did_once_enough_are_known() -> None:
    parsed = scenario(gate())
    assert parsed.hardware is not None
    [as_measured] = parsed.hardware.profiles.values()
    median_ns = next(of for of in as_measured if of.variant == SMALL).quantile_ns(1, 0.5)
    entries = []
    for at in range(200):
        # 1 to 2.99 times as long as by the profile.
        took_ms = median_ns / MS * (1 + at / 100)
        entries += [
            entry(100 * at, None, infer(at, SMALL)),
            entry(100 * at + 50, completed(at, took_ms)),
        ]
    found = measured(run_of(journal=tuple(entries)), parsed, parsed.hardware)
    assert found.spread[GPU][0] == pytest.approx(1.0)
    assert found.spread[GPU][QUANTILES.index(0.5)] == pytest.approx(2.0, abs=0.011)
    assert found.spread[GPU][-1] == pytest.approx(2.99)
    fed_hardware = with_measured_costs(parsed, found).hardware
    assert fed_hardware is not None
    assert fed_hardware.profiles == parsed.hardware.profiles
    assert fed_hardware.slowdown == {}
    large = next(of for of in fed_hardware.taken[GPU] if of.variant == LARGE)
    expected_ns = next(of for of in as_measured if of.variant == LARGE).quantile_ns(4, 0.5) * 2.99
    assert large.quantile_ns(4, 1.0) == pytest.approx(expected_ns)
    few = measured(run_of(journal=tuple(entries[:20])), parsed, parsed.hardware)
    assert few.spread == {}
    assert few.slowdown[GPU] > 1


def test_a_run_tells_the_simulator_what_it_cannot_know() -> None:
    parsed = scenario(gate(rate_hz=10) + "\nrtt_ms = 20\nphase_ms = 50")
    # Its first picture came late, those after it every 100 ms.
    shots = [1200, *(1190 + 100 * at for at in range(1, 30))]
    run = run_of(*(answered(n, at) for n, at in enumerate(shots)), journal=JOURNAL)
    assert parsed.hardware is not None
    found = measured(run, parsed, parsed.hardware)
    assert found.prepare_ns == (2 * MS, 6 * MS)
    assert (found.overhead_ns, found.planning_ns) == (1 * MS, 4 * MS)
    costs = found.cameras[parsed.cameras[0].camera.id]
    assert costs.encode_ns == (4 * MS, 4 * MS)
    assert costs.phase_ns == 170 * MS
    as_measured = with_measured_costs(parsed, found)
    assert as_measured.costs.prepare_ns == (2 * MS, 6 * MS)
    assert as_measured.costs.timer_early_ns == parsed.costs.timer_early_ns
    assert as_measured.cameras[0].encode_ns == (4 * MS, 4 * MS)
    assert as_measured.hardware is not None
    assert as_measured.hardware.slowdown == found.slowdown
    assert found.to_json()["box"] == {
        "prepare_ms": [2.0, 6.0], "overhead_ms": 1.0, "planning_ms": 4.0,
    }  # fmt: skip


def test_a_run_that_says_nothing_changes_nothing() -> None:
    parsed = scenario(gate())
    assert parsed.hardware is not None
    nothing = measured(run_of(), parsed, parsed.hardware)
    plain = parsed.cameras[0]
    costs = CameraCosts(plain.encode_ns, plain.weight, plain.phase_ns, plain.jitter_ns)
    assert nothing == Measured(None, None, None, {GPU: 1.0}, {}, {plain.camera.id: costs})
    as_measured = with_measured_costs(parsed, nothing)
    assert as_measured.costs == parsed.costs
    assert run_scenario(as_measured).ended == run_scenario(parsed).ended


@given(st.floats(0.05, 1), st.floats(0.01, 0.5))
def test_weights_are_found_again(per_pixel: float, exponent: float) -> None:
    weight = PictureBytes(per_pixel, exponent)
    records = [
        {"width_px": side, "height_px": side,
         "size_bytes": OVERHEAD_BYTES + weight.median_bytes(side * side)}
        for side in (128, 256, 416, 608) * 2
    ]  # fmt: skip
    found = weight_of(records, PictureBytes(9, 0.9, 9))
    assert found.per_pixel == pytest.approx(per_pixel)
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.spread == pytest.approx(0, abs=1e-6)
    alike = weight_of([records[0]] * 10, PictureBytes(9, exponent))
    assert alike.median_bytes(128 * 128) == pytest.approx(weight.median_bytes(128 * 128))
    assert weight_of(records[:4], PictureBytes(9, 0.9)) == PictureBytes(9, 0.9)


@given(st.integers(0, 199), st.lists(st.integers(-20, 20), min_size=9, max_size=9))
def test_a_phase_is_what_most_pictures_have(phase_ms: int, early_ms: list[int]) -> None:
    spec = scenario(gate(rate_hz=5)).cameras[0]
    middle = sorted(early_ms)[4]
    shots = [(phase_ms + 200 * n + late) * MS for n, late in enumerate(early_ms)]
    assert phase_ns(shots, spec) == max(0, phase_ms + middle) * MS
    assert phase_ns([], spec) == spec.phase_ns


@given(st.integers(0, 30), st.integers(0, 2))
def test_jitter_is_twice_what_frames_are_late_by(late_ms: int, outliers: int) -> None:
    spec = scenario(gate(mbps=2, rate_hz=5) + "\nrtt_ms = 20").cameras[0]
    records = []
    for frame in range(60):
        # 20,000 bytes take 80 ms at 2 Mbit/s, and 10 ms on their way.
        network_ms = 4 + 80 + 10 + (400 if frame < outliers else late_ms)
        at_ms = 1000 + 500 * frame
        timing = {"network": float(network_ms), "queue": 1.0}
        records.append(answered(frame, at_ms, sent_ns=(at_ms + 4) * MS, timing_ms=timing))
    assert jitter_ns(records, spec, 1000 * MS) == 2 * late_ms * MS
    assert jitter_ns(records[:3], spec, 1000 * MS) == spec.jitter_ns


def figures_of(captured: int, departed: int, miss_rate: float, accuracy: float) -> dict[str, Any]:
    return {"all": {"captured": captured, "departed": departed, "miss_rate": miss_rate,
                    "accuracy": accuracy}}  # fmt: skip


def test_runs_are_summed_up_by_their_frames() -> None:
    simulated, real = figures_of(100, 0, 0.02, 0.5), figures_of(110, 10, 0.05, 0.4)
    longer = {
        "simulated": simulated,
        "as_measured": simulated,
        "real": figures_of(300, 0, 0.01, 0.6),
    }
    runs = [
        {"scenario": "a", "simulated": simulated, "as_measured": real, "real": real},
        {"scenario": "b", **longer},
        {"scenario": "a", **longer},
    ]
    both, single = summary(runs)
    assert (both["scenario"], both["runs"], both["frames"]) == ("a", 2, 400)
    assert both["miss_rate"] == {"simulated": 0.02, "as_measured": 0.035, "real": 0.02}
    assert both["accuracy"]["real"] == 0.55
    assert single["misses_real_less_simulated_points"] == {"simulated": -1.0, "as_measured": -1.0}
