"""`edgebox profile FAMILY` as its users meet it: data sets, frames, a live camera, Ctrl-C."""

import asyncio
import json
import shutil
import signal
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from edgebox.app import accuracy_measurement
from edgebox.app.composition import App
from edgebox.app.family_folders import known_folders
from edgebox.commands.console import scatter
from edgebox.config.config_file import load
from edgebox.domain.access import Scope
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import AccuracyReport, FamilyName, VariantName
from edgebox.inference.accuracy.evaluation import LabelEvaluator, ReferenceModelEvaluator
from edgebox.inference.accuracy.pruning import PICTURES_MIN
from edgebox.inference.family import MANIFEST
from edgebox.inference.sessions import Session, open_session
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.scene.street_camera import LABELS, Scene
from edgebox.storage.database import Storage
from tests.conftest import settings
from tests.end_to_end.program import (
    Ended,
    beside_the_loop,
    configured,
    edgebox,
    finish,
    said,
    start,
    within_this_process,
)
from tests.end_to_end.running import CLOSED, new_token, running, until
from tests.end_to_end.test_residency import FILE_MB, SIZES_PX, family_of_files

SCENES = 4
SIZE_PX = (640, 360)


@pytest.fixture(scope="module")
def streets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rendered scenes with labels in COCO's format; what is small or hidden is a crowd."""
    folder = tmp_path_factory.mktemp("streets")
    images: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for number in range(SCENES):
        frame = Scene(990_100 + number, *SIZE_PX).render(8.0)
        (folder / "images").mkdir(exist_ok=True)
        Image.fromarray(frame.rgb).save(folder / "images" / f"{number}.png")
        images.append(
            {"id": number, "file_name": f"{number}.png", "width": SIZE_PX[0], "height": SIZE_PX[1]}
        )
        for item in frame.objects:
            left, top, right, bottom = map(float, item.box)
            small = bottom - top < 6 or item.visible_fraction < 0.5
            rows.append(
                {
                    "id": len(rows),
                    "image_id": number,
                    "category_id": LABELS.index(item.label) + 1,
                    "bbox": [left, top, right - left, bottom - top],
                    "iscrowd": int(small),
                }
            )
    categories = [{"id": at + 1, "name": name.upper()} for at, name in enumerate(LABELS)]
    (folder / "annotations").mkdir()
    (folder / "annotations" / "instances_val.json").write_text(
        json.dumps({"images": images, "annotations": rows, "categories": categories})
    )
    return folder


FEW = ("street-128", "street-288", "street-320")
SMALL = ("street-128", "street-160")
ENDS = ("street-128", "street-320", "street-608")


def street_of_few_sizes(tmp_path: Path, database: Path, names: tuple[str, ...] = FEW) -> Path:
    """Write a configuration with a family that is the bundled one in three sizes, named few.

    Every picture runs on every size, and large ones take most of the time.
    """
    bundled = bundled_folders()[0]
    folder = tmp_path / "models" / "few"
    shutil.copytree(bundled, folder)
    head, *variants = (folder / MANIFEST).read_text().split("[[variants]]")
    kept = [each for each in variants if each.split('"')[1] in names]
    assert len(kept) == len(names)
    text = "[[variants]]".join([head, *kept]).replace('"street-', '"few-')
    (folder / MANIFEST).write_text(text.replace('name = "street"', 'name = "few"'))
    return configured(tmp_path, database, f'models = "{folder.parent}"')


async def shown(home: Path, *arguments: str) -> Ended:
    """Run `edgebox models list`."""
    return await beside_the_loop(home, "models", "list", *arguments)


async def test_map_is_measured_kept_listed_and_served(
    tmp_path: Path, database: Path, streets: Path
) -> None:
    flags = ("--config", str(street_of_few_sizes(tmp_path, database, ENDS)))
    ended = await edgebox(tmp_path, "profile", "few", "--dataset", str(streets), "--json", *flags)
    document = ended.json()
    assert (document["kind"], document["pictures"], document["kept"]) == ("mAP", SCENES, True)
    assert document["source"] == f"{streets.name}/instances_val"
    assert any(remark.startswith("pycocotools agrees") for remark in document["remarks"])
    assert any("no variant is taken as dominated" in remark for remark in document["remarks"])
    by_name = {row["name"]: row for row in document["variants"]}
    # The network is known to see far more at larger sizes (tests/models).
    assert by_name["few-128"]["accuracy"] + 0.1 < by_name["few-608"]["accuracy"] < 0.9
    listed = (await shown(tmp_path, "--json", *flags)).json()
    (few,) = (family for family in listed["families"] if family["name"] == "few")
    assert {row["name"] for row in few["variants"]} == by_name.keys()
    for row in few["variants"]:
        assert round(row["accuracy"], 4) == by_name[row["name"]]["accuracy"]
        assert row["accuracy_report"]["kind"] == "mAP"
        assert row["accuracy_report"]["mAP50"] == by_name[row["name"]]["mAP50"]
        assert row["p50_ms"]["1"] == by_name[row["name"]]["p50_ms"]
    text = (await shown(tmp_path, *flags)).out
    assert f"± two standard errors on {SCENES} pictures of {streets.name}" in text
    assert "ms (P50 of one picture)" in text
    few_only = {"inference.models": str(tmp_path / "models"), "inference.family": "few"}
    app = App(load(None, settings(database, **few_only)))
    await app.start()
    try:
        served = {v.name: v.accuracy for v in app.box.families[FamilyName("few")].offered}
        assert served.keys() == by_name.keys()
        assert served[VariantName("few-608")] == pytest.approx(
            by_name["few-608"]["accuracy"], abs=1e-4
        )
    finally:
        await app.stop()


async def test_what_is_set_aside_is_not_offered(tmp_path: Path, database: Path) -> None:
    app = App(load(None, settings(database)))
    await app.start()
    family = app.box.families[FamilyName("street")]
    await app.stop()
    aside = AccuracyReport("mAP", 0.4, 0.01, "yard", 500, 1, "street-256 is as good")
    storage = await Storage.open(database)
    storage.save_accuracy_reports(family.name, family.sha256, {VariantName("street-608"): aside})
    await storage.close()
    app = App(load(None, settings(database)))
    await app.start()
    try:
        family = app.box.families[family.name]
        assert family.variants[-1].accuracy == 0.4
        assert family.dominated(family.variants[-1].name) == "street-256 is as good"
        assert family.offered == family.variants[:-1]
        snapshot = app.box.driver.scheduler.snapshot(app.box.driver.clock_ns())
        assert set(snapshot.variants) == set(family.offered)
    finally:
        await app.stop()
    text = (await shown(tmp_path, "--config", str(configured(tmp_path, database)))).out
    assert "street-608: street-256 is as good" in text


async def test_f1_of_frames_and_of_a_video(tmp_path: Path, database: Path, streets: Path) -> None:
    flags = ("--json", "--config", str(street_of_few_sizes(tmp_path, database)))
    folder = tmp_path / "yard"
    folder.mkdir()
    for number in range(PICTURES_MIN):
        shutil.copy(streets / "images" / f"{number % SCENES}.png", folder / f"{number}.png")
    frames = ("profile", "few", "--frames", str(folder), *flags)
    document = (await edgebox(tmp_path, *frames)).json()
    assert (document["kind"], document["source"], document["kept"]) == ("F1", "yard", True)
    assert (document["pictures"], document["pictures_planned"]) == (PICTURES_MIN, PICTURES_MIN)
    accuracies = [row["accuracy"] for row in document["variants"]]
    assert accuracies[-1] == 1.0
    assert accuracies[0] < 0.8 < accuracies[-2] < 1.0
    await call_reports_map(tmp_path, database)
    # What was measured with labels is worth more.
    document = (await edgebox(tmp_path, *frames)).json()
    assert not document["kept"]
    assert any("this F1 is not kept" in remark for remark in document["remarks"])
    listed = (await shown(tmp_path, *flags)).json()
    (few,) = (family for family in listed["families"] if family["name"] == "few")
    kinds = {row["accuracy_report"]["kind"] for row in few["variants"]}
    assert kinds == {"mAP"}


async def call_reports_map(tmp_path: Path, database: Path) -> None:
    """Make what is stored of few look as if it had been measured with labels."""
    storage = await Storage.open(str(database))
    sha256 = load_zoo([tmp_path / "models" / "few"]).family("few").sha256
    found = await storage.load_accuracy_reports(FamilyName("few"), sha256)
    labelled = {name: replace(report, kind="mAP") for name, report in found.items()}
    storage.save_accuracy_reports(FamilyName("few"), sha256, labelled)
    await storage.close()


async def test_too_little_to_compare_is_refused(
    tmp_path: Path, database: Path, streets: Path
) -> None:
    flags = ("--config", str(configured(tmp_path, database)))
    pictures = ("--frames", str(streets / "images"))
    few = await edgebox(tmp_path, "profile", "street", *pictures, *flags)
    assert few.code == 1
    assert f"{SCENES} pictures are too few to compare variants; give at least 20" in " ".join(
        few.err.split()
    )
    whole = load_zoo(bundled_folders()).family("street")
    alone = replace(whole, variants=whole.variants[:1])
    evaluator = ReferenceModelEvaluator(alone, "yard", [], PICTURES_MIN)
    with pytest.raises(InvalidInputError, match="one variant, and there is nothing to compare"):
        accuracy_measurement.assess(
            load(None, settings(database)), alone, evaluator, lambda *_: None, lambda: False
        )


async def test_the_first_ctrl_c_gives_what_there_is(
    tmp_path: Path, database: Path, streets: Path
) -> None:
    many = json.loads((streets / "annotations" / "instances_val.json").read_text())
    folder = tmp_path / "many"
    shutil.copytree(streets / "images", folder / "images")
    many["images"] = [{**many["images"][at % SCENES], "id": at} for at in range(2_000)]
    (folder / "labels.json").write_text(json.dumps(many))
    flags = ("--config", str(configured(tmp_path, database)))
    process = await start(tmp_path, "profile", "street", "--dataset", str(folder), *flags)
    await said(process, "running street: 0 %")
    process.send_signal(signal.SIGINT)
    ended = await finish(process)
    assert ended.code == 0, ended.err
    assert "of 2000 pictures; nothing is kept" in " ".join(ended.out.split())
    assert "street-608" in ended.out
    listed = (await shown(tmp_path, "--json", *flags)).json()
    assert {row["accuracy_report"] is None for row in listed["families"][0]["variants"]} == {True}


async def test_frames_of_a_live_camera(tmp_path: Path, database: Path) -> None:
    few = str(street_of_few_sizes(tmp_path / "few", database, SMALL))
    token = tmp_path / "token"
    async with running(database, **CLOSED, server__tls="self-signed") as app:
        address = app.url.removeprefix("https://")
        at = ("--server", f"wss://{address}", "--fingerprint", app.fingerprint or "")
        profile = ("profile", "few", *at, "--config", few, "--json")
        stranger = await edgebox(tmp_path, *profile, "--from-camera", "gate-2")
        assert stranger.code == 1
        assert "the box needs a token" in stranger.err
        token.write_text(await new_token(app, Scope.VIEWER))
        allowed = (*profile, "--token-file", str(token))
        nobody = await edgebox(tmp_path, *allowed, "--from-camera", "gate-2")
        assert nobody.code == 1
        assert "no camera 'gate-2' is connected there (connected: none)" in " ".join(
            nobody.err.split()
        )
        # The box runs every frame, and one in a second is taken.
        camera_token = tmp_path / "camera-token"
        camera_token.write_text(await new_token(app, Scope.CAMERA, "gate-1"))
        stream = (*at, "--token-file", str(camera_token), "--name", "gate-1")
        # As large as the smallest variant: always sent whole.
        options = ("--size", "120x90", "--rate-hz", "2")
        small = await start(tmp_path, "camera", "scene:1", *stream, *options)
        try:
            await until(
                lambda: any(each.connected for each in app.box.cameras.values()),
                "the camera is connected",
            )
            document = (
                await edgebox(tmp_path, *allowed, "--from-camera", "gate-1", "--limit", "20")
            ).json()
        finally:
            small.send_signal(signal.SIGTERM)
            await finish(small)
    assert document["source"] == "camera gate-1"
    assert document["pictures"] == PICTURES_MIN


def test_what_is_wrong_is_said(tmp_path: Path, streets: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "yaks").mkdir()
    shutil.copy(streets / "images" / "0.png", tmp_path / "yaks")
    rows = {
        "images": [{"id": 1, "file_name": "0.png"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5]}],
        "categories": [{"id": 1, "name": "yak"}],
    }
    (tmp_path / "yaks" / "labels.json").write_text(json.dumps(rows))
    cases = (
        (("--dataset", str(streets)), "name the family whose accuracy is to be measured"),
        (("none", "--dataset", str(streets)), "there is no model family 'none'"),
        (("street", "--dataset", str(tmp_path / "empty")), "no annotations here"),
        (("street", "--dataset", str(tmp_path / "yaks")), "have no label in common"),
        (("street", "--dataset", "x", "--frames", "y"), "give one of --dataset, --frames"),
        (("street", "--frames", str(tmp_path / "empty")), "no pictures in this folder"),
        (("street", "--frames", str(tmp_path / "no.mp4")), "no such file or folder"),
        (
            ("street", "--from-camera", "a", "--box", "127.0.0.1:9"),
            "127.0.0.1:9: it cannot be reached",
        ),
    )
    for arguments, message in cases:
        ended = within_this_process(tmp_path, "profile", *arguments)
        assert ended.code == 1
        assert message in " ".join(ended.err.split())


def test_a_plot_has_its_marks_where_they_belong() -> None:
    points = [(1.0, 0.2, "a"), (10.0, 0.4, "b"), (100.0, 0.6, "c")]
    lines = scatter(points, "ms", width=21, height=5)
    assert lines[0] == "  0.600 │" + " " * 20 + "c"
    assert lines[2] == "        │" + " " * 10 + "b" + " " * 10
    assert lines[4] == "  0.200 │a" + " " * 20
    assert lines[6].split() == ["1.0", "ms", "100.0"]
    assert [line for line in scatter([(5.0, 0.5, "x")], "ms") if "x" in line]


async def test_a_memory_limit_holds_while_accuracy_is_measured(
    tmp_path: Path, database: Path, streets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[weakref.ref[Any]] = []
    most = 0

    def opening(*arguments: Any, **options: Any) -> Session:
        nonlocal most
        session = open_session(*arguments, **options)
        opened.append(weakref.ref(session.session))
        most = max(most, sum(each() is not None for each in opened))
        return session

    monkeypatch.setattr("edgebox.inference.session_store.open_session", opening)
    family_of_files(tmp_path / "models" / "gate", "gate")

    def judged(**limit: float) -> dict[VariantName, AccuracyReport]:
        nonlocal most
        most = 0
        config = load(
            None,
            settings(database, **{"inference.models": str(tmp_path / "models"), **limit}),
        )
        family = load_zoo(known_folders(config.inference)).family("gate")
        judge = LabelEvaluator(accuracy_measurement.read_dataset(streets), family)
        return accuracy_measurement.assess(
            config, family, judge, lambda *_: None, lambda: False
        ).accuracy_reports

    whole = await asyncio.to_thread(judged)
    assert most == len(SIZES_PX)
    limited = await asyncio.to_thread(judged, **{"inference.memory_limit_mb": FILE_MB})
    assert most == 1
    assert [each.accuracy for each in limited.values()] == [
        each.accuracy for each in whole.values()
    ]
    assert len({each.accuracy for each in whole.values()}) == len(SIZES_PX)
