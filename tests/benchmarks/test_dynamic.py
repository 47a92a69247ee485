"""The comparison on a model whose time depends on its input: the model, the plan, a short run."""

import random
import statistics
from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pytest

from benchmarks.dynamic import Settings, compare, show
from benchmarks.dynamic_cameras import CAMERAS_PER_APP, make_plan
from benchmarks.dynamic_cascades import KINDS, Scenes, mixes
from benchmarks.dynamic_loop import APPLICATIONS
from benchmarks.dynamic_model import STEPS_MAX, picture, write_family
from edgebox.commands.console import print_json
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.tensors import Canvas
from edgebox.inference.zoo import load_family
from edgebox.media.jpeg import decode
from edgebox.media.typical import typical_canvases
from edgebox.vision.detections import Detections


class Pairs:
    """Runs pictures two at a time, so that a picture's numbers only depend on the steps."""

    def __init__(self, folder: Path, profiled_steps: int) -> None:
        family = load_family(write_family(folder, profiled_steps))
        self.variant = family.variants[0]
        self._executor = OnnxExecutor(0, [family], providers="cpu", cpu_threads=1)

    def needs_more(self, steps: int, than: Canvas) -> bool:
        """Say whether a picture of so many steps holds another one up."""
        other = decode(picture(steps))
        alone, held_up = self._first(than, than), self._first(than, other)
        return not np.array_equal(alone.boxes, held_up.boxes)

    def _first(self, *canvases: Canvas) -> Detections:
        return self._executor.submit(self.variant.name, canvases, 2).result().detections[0]

    def close(self) -> None:
        self._executor.close()


@pytest.mark.parametrize("profiled_steps", [1, 30, STEPS_MAX])
def test_a_batch_takes_the_steps_of_its_busiest_picture(
    profiled_steps: int, tmp_path: Path
) -> None:
    pairs = Pairs(tmp_path, profiled_steps)
    for steps in (1, 2, 17, 31, STEPS_MAX - 1):
        canvas = decode(picture(steps))
        assert not pairs.needs_more(1, canvas)
        assert not pairs.needs_more(steps, canvas)
        assert pairs.needs_more(steps + 1, canvas)
    pairs.close()


@pytest.mark.parametrize("profiled_steps", [2, 30, STEPS_MAX - 1])
def test_the_profilers_pictures_take_the_steps_that_it_shall(
    profiled_steps: int, tmp_path: Path
) -> None:
    pairs = Pairs(tmp_path, profiled_steps)
    for canvas in typical_canvases(pairs.variant.width_px, pairs.variant.height_px):
        assert not pairs.needs_more(profiled_steps, canvas)
        assert pairs.needs_more(profiled_steps + 1, canvas)
    pairs.close()


def test_a_plan_is_the_same_for_all_and_mixes_the_applications() -> None:
    plan = make_plan(APPLICATIONS, 200.0, 1.0, 9.0, "seed")
    assert plan == make_plan(APPLICATIONS, 200.0, 1.0, 9.0, "seed")
    assert plan != make_plan(APPLICATIONS, 200.0, 1.0, 9.0, "other")
    assert [arrival.at_s for arrival in plan] == sorted(arrival.at_s for arrival in plan)
    assert all(arrival.counts == (arrival.at_s >= 1.0) for arrival in plan)
    assert len(plan) == pytest.approx(2000, rel=0.1)
    apps = Counter(arrival.app for arrival in plan)
    for of in APPLICATIONS:
        assert apps[of.name] / len(plan) == pytest.approx(of.share, abs=0.05)
    assert {arrival.camera for arrival in plan} == set(range(CAMERAS_PER_APP))
    assert all(1 <= arrival.picture <= STEPS_MAX for arrival in plan)


async def test_every_policy_is_offered_the_same_and_all_frames_are_accounted_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(
        policies=("adaptive", "edf"),
        loads=(0.5,),
        slo_multiples=(4.0,),
        rounds=1,
        learning_s=0.5,
        warm_s=0.2,
        counted_s=1.0,
        profile_s=1.0,
    )
    remarks: list[str] = []
    document = await compare(settings, tmp_path, remarks.append)

    (cell,) = document["cells"]
    assert list(cell["policies"]) == ["adaptive", "edf"]
    sent = {of["sent"] for of in cell["policies"].values()}
    assert len(sent) == 1
    assert sent.pop() > 0
    for of in cell["policies"].values():
        apps = of["apps"].values()
        for ends in (of, *apps):
            assert ends["sent"] == ends["on_time"] + ends["late"] + sum(ends["dropped"].values())
        assert of["sent"] == sum(app["sent"] for app in apps)
        assert of["on_time"] + of["late"] > 0
        assert of["finish_rate"] == round(of["on_time"] / of["sent"], 3)
        assert of["decision_us"]["p50"] > 0
    assert document["on_time_of_all"] == {
        policy: of["finish_rate"] for policy, of in cell["policies"].items()
    }
    counts_by_policy = document["counts_of_boxes"]
    assert counts_by_policy["adaptive"]["captured"] == counts_by_policy["edf"]["captured"]
    for counts in counts_by_policy.values():
        ended = counts["on_time"] + counts["late"] + sum(counts["dropped"].values())
        assert counts["captured"] == ended
    assert remarks[-1].startswith("round 1 of 1")
    print_json(document)
    assert orjson.loads(capsys.readouterr().out)["cells"] == [cell]
    show(document)
    assert capsys.readouterr().out.count("0.5      4.0 ") == 2


def test_the_mixes_differ_in_what_goes_on() -> None:
    easy, hard = range(10), range(10, 20)
    rng = random.Random(1)
    goes_on = {
        of.name: statistics.mean(of.draw(rng) >= 10 for _ in range(2000))
        for of in mixes(easy, hard)
    }
    assert goes_on == {
        "doorway": pytest.approx(0.1, abs=0.05),
        "street": pytest.approx(0.5, abs=0.05),
        "plaza": pytest.approx(0.85, abs=0.05),
    }
    assert sum(of.share for of in mixes(easy, hard)) == pytest.approx(1)


@pytest.mark.parametrize("model", list(KINDS))
async def test_two_models_answer_in_part_and_whole(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(
        model=model,
        policies=("edf",),
        loads=(0.3,),
        slo_multiples=(10.0,),
        rounds=1,
        learning_s=0.5,
        warm_s=0.2,
        counted_s=2.0,
        profile_s=1.0,
        scenes=Scenes(4, 1),
    )
    document = await compare(settings, tmp_path, lambda _: None)

    (cell,) = document["cells"]
    of = cell["policies"]["edf"]
    apps = of["apps"]
    assert list(apps) == ["doorway", "street", "plaza"]
    for ends in (of, *apps.values()):
        assert ends["sent"] == ends["on_time"] + ends["late"] + sum(ends["dropped"].values())
        assert sum(ends["cascade"].values()) == ends["on_time"]
        whole = ends["on_time"] - ends["cascade"].get("missed", 0)
        assert ends["whole_rate"] == round(whole / max(1, ends["sent"]), 3)
    assert of["cascade"].get("kept", 0) + of["cascade"].get("sent_on", 0) > 0
    alone = document["alone_ms"]["apps"]
    assert alone["doorway"]["p50"] < alone["plaza"]["p50"]
    show(document)
    assert "whole of all frames" in capsys.readouterr().out
