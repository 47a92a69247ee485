"""edgebox-client against a real box: pictures, results and cameras, with and without asyncio."""

import asyncio
import io
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from edgebox_client import (
    AsyncClient,
    BoxRefusedError,
    Client,
    InvalidInputError,
    NotInTimeError,
    Picture,
    RefusedError,
    SubscriptionRefusedError,
    UnreachableError,
)
from edgebox_client.options import CameraSettings
from edgebox_client.pictures import as_jpeg
from PIL import Image

from edgebox.app.composition import App
from edgebox.domain.access import Scope
from edgebox.domain.requests import CameraId
from edgebox.link.override_messages import NAMES
from edgebox.media.jpeg import encode
from edgebox.media.sources import PictureSource
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import (
    CLOSED,
    PICTURE,
    SIZE_PX,
    SLO_MS,
    free_port,
    new_token,
    running,
    streaming,
    until,
)
from tests.end_to_end.streets import street_picture

pytestmark = pytest.mark.usefixtures("few_sizes")

DEADLINE_MS = 60_000.0


def decoded_format(data: bytes) -> str | None:
    with Image.open(io.BytesIO(data)) as picture:
        picture.load()
        return picture.format


async def test_a_picture_may_be_anything(database: Path, tmp_path: Path) -> None:
    rgb = street_picture(3, 640, 360)
    png = io.BytesIO()
    Image.fromarray(rgb).save(png, "PNG")
    file = tmp_path / "street.jpg"
    file.write_bytes(encode(rgb, 95))
    (tmp_path / "street.png").write_bytes(png.getvalue())
    pictures: list[Picture] = [
        file, str(tmp_path / "street.png"), file.read_bytes(), png.getvalue(), rgb,
        Image.fromarray(rgb), Image.fromarray(rgb).convert("RGBA"),
    ]  # fmt: skip
    # Whatever it is, a JPEG is sent, as the request says.
    for each in pictures:
        assert decoded_format(as_jpeg(each)) == "JPEG"
    async with running(database) as app, AsyncClient(app.url) as box:
        answers = [await box.infer(each, deadline_ms=DEADLINE_MS) for each in pictures]
        grey = await box.infer(rgb[:, :, 0], deadline_ms=DEADLINE_MS, score_min=1.0)
    first = answers[0]
    assert (first.width_px, first.height_px, first.on_time) == (640, 360, True)
    assert first.timing_ms.total >= first.timing_ms.inference > 0
    assert first.detections
    assert first.detections[0].score == max(found.score for found in first.detections)
    for answer in answers[1:]:
        assert answer.detections == first.detections
    assert grey.detections == ()


async def test_what_is_no_picture_is_an_error_before_anything_is_sent(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    wrong: list[tuple[object, str]] = [
        (tmp_path / "none.jpg", "none.jpg: cannot be read: No such file"),
        ("~nobody-of-this-name/a.jpg", "there is no user 'nobody-of-this-name'"),
        (broken, r"broken\.png: not a picture that can be read: it is none of JPEG, PNG, .*TIFF$"),
        (np.zeros((3, 4, 4), np.uint8), r"not uint8 of \(3, 4, 4\)"),
        (np.zeros((3, 4, 3), np.float32), "not float32"),
        ([1, 2], "not list"),
    ]
    async with AsyncClient(f"127.0.0.1:{free_port()}") as box:
        for picture, message in wrong:
            with pytest.raises(InvalidInputError, match=message):
                await box.infer(picture)  # type: ignore[arg-type]
        with pytest.raises(UnreachableError, match="/v1/infer: "):
            await box.infer(PICTURE)


@pytest.mark.all_sizes
async def test_refusals_say_why(database: Path) -> None:
    async with running(database, **CLOSED) as app:
        token = await new_token(app, Scope.CAMERA, "gate")
        async with AsyncClient(app.url, token=token) as box:
            with pytest.raises(RefusedError, match="no model family 'cats'") as refused:
                await box.infer(PICTURE, family="cats")
            assert (refused.value.status, refused.value.code) == (404, "unknown")
            with pytest.raises(NotInTimeError) as late:
                await box.infer(PICTURE, deadline_ms=1, variant="street-608")
            assert late.value.status == 503
            with pytest.raises(SubscriptionRefusedError):
                await anext(box.results())
        async with AsyncClient(app.url) as nobody:
            with pytest.raises(RefusedError, match="token") as refused:
                await nobody.infer(PICTURE)
            assert refused.value.code == "unauthorized"
            camera = nobody.camera("gate", size_px=SIZE_PX)
            with pytest.raises(BoxRefusedError):
                async with camera:
                    pass


async def test_results_are_typed(database: Path) -> None:
    async with (
        running(database) as app,
        streaming(app, "gate"),
        streaming(app, "door"),
        AsyncClient(app.url) as box,
    ):
        results = box.results("ga*", max_hz=100)
        found = [await anext(results) for _ in range(3)]
        await results.aclose()
        assert {result.camera for result in found} == {"gate"}
        assert [result.frame for result in found] == sorted({result.frame for result in found})
        assert found[0].family == "street"
        assert (found[0].width_px, found[0].height_px) == SIZE_PX
        every = box.results()
        async with asyncio.timeout(PATIENCE_S):
            names = {(await anext(every)).camera}
            while names != {"gate", "door"}:
                names.add((await anext(every)).camera)
        await every.aclose()


async def test_settings_are_read_and_changed(database: Path) -> None:
    async with running(database, **CLOSED) as app, streaming(app, "gate", rate_hz=8.0):
        viewer, operator = [await new_token(app, each) for each in (Scope.VIEWER, Scope.OPERATOR)]
        async with (
            AsyncClient(app.url, token=viewer) as looking,
            AsyncClient(app.url, token=operator) as box,
        ):
            (seen,) = await looking.cameras()
            assert (seen.id, seen.connected, seen.requested["rate_hz"]) == ("gate", True, 8)
            with pytest.raises(RefusedError) as refused:
                await looking.change("gate", rate_hz=2)
            assert refused.value.code == "forbidden"
            changed = await box.change("gate", base=seen.versions, rate_hz=2, tracking=True)
            assert changed.in_force is not None
            assert changed.in_force["rate_hz"] == changed.overrides["rate_hz"] == 2
            assert [each.overrides for each in await box.cameras()] == [changed.overrides]
            with pytest.raises(RefusedError, match="rate_hz") as refused:
                await box.change("gate", base=seen.versions, rate_hz=3)
            assert (refused.value.status, refused.value.code) == (409, "settings_changed")
            back = await box.change("gate", base=changed.versions, rate_hz=None)
            assert (back.overrides["rate_hz"], back.overrides["tracking"]) == (None, True)
            with pytest.raises(RefusedError, match="no camera 'a/b'") as refused:
                await box.change("a/b", rate_hz=2)
            assert refused.value.code == "unknown"


def test_every_setting_can_be_changed() -> None:
    assert set(CameraSettings.__annotations__) == set(NAMES)


async def test_a_program_without_asyncio_does_the_same(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(database, **CLOSED) as app:
        monkeypatch.setenv("EDGEBOX_TOKEN", await new_token(app, Scope.CAMERA, "gate"))
        viewer = await new_token(app, Scope.VIEWER)
        operator = await new_token(app, Scope.OPERATOR)
        await asyncio.to_thread(_program, app, viewer, operator)


def _program(app: App, viewer: str, operator: str) -> None:
    remarks: list[str] = []
    ended: list[int] = []
    with (
        Client(app.url, on_remark=remarks.append) as box,
        Client(app.url, token=viewer) as looking,
        Client(app.url, token=operator) as setting,
    ):
        assert box.infer(PICTURE, deadline_ms=DEADLINE_MS).on_time
        with box.camera(
            "gate",
            size_px=SIZE_PX,
            slo_ms=SLO_MS,
            on_result=lambda result: ended.append(result.frame),
        ) as camera:
            results = looking.results("gate")
            with pytest.raises(InvalidInputError, match="a frame must be uint8"):
                camera.send(PICTURE[:10])
            # A subscription begins when the first result is asked for: frames are sent meanwhile.
            stop = _while(lambda: camera.send(PICTURE))
            seen = [next(results) for _ in range(2)]
            stop()
            assert camera.status().connected
            results.close()  # type: ignore[attr-defined]
            (known,) = looking.cameras()
            changed = setting.change("gate", base=known.versions, rate_hz=2)
            assert changed.overrides["rate_hz"] == 2
        summary = camera.summary()
        assert {result.frame for result in seen} <= set(ended)
        assert summary.pending == 0
        assert summary.on_time == len(ended)
        source_camera = box.camera(
            "gate", PictureSource(SIZE_PX, 20.0, lambda number: PICTURE, 10), slo_ms=SLO_MS
        )
        assert source_camera.run().captured == 10
    assert [text for text in remarks if text.startswith("connected to")]
    with pytest.raises(InvalidInputError, match="this client is closed"):
        box.infer(PICTURE)


def _while(work: Callable[[], object]) -> Callable[[], None]:
    """Do something ten times a second in a thread; return what ends it."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(0.1):
            work()

    thread = threading.Thread(target=run)
    thread.start()

    def end() -> None:
        over.set()
        thread.join()

    return end


async def test_who_waits_for_results_is_released_when_the_client_is_closed(database: Path) -> None:
    async with running(database) as app:
        box = Client(app.url)
        waiting = asyncio.create_task(asyncio.to_thread(lambda: list(box.results())))
        await until(lambda: bool(app.box.observers), "a subscription")
        await asyncio.to_thread(box.close)
        assert await waiting == []


async def test_only_the_certificate_of_the_fingerprint_is_accepted(database: Path) -> None:
    async with running(database, server__tls="self-signed") as app:
        async with AsyncClient(app.url, fingerprint=app.fingerprint) as box:
            assert (await box.infer(PICTURE, deadline_ms=DEADLINE_MS)).on_time
            async with box.camera("gate", size_px=SIZE_PX, slo_ms=SLO_MS) as camera:
                assert camera.status().connected
        async with AsyncClient(app.url, fingerprint="00" * 32) as box:
            with pytest.raises(UnreachableError, match="another certificate"):
                await box.infer(PICTURE)
        async with AsyncClient(app.url) as box:
            with pytest.raises(UnreachableError, match=r"(?i)certificate"):
                await box.infer(PICTURE)


async def test_a_camera_is_paired_with_a_code(database: Path) -> None:
    async with running(database, **CLOSED) as app:
        code = app.access.begin_pairing(CameraId("gate")).shown
        async with AsyncClient(app.url) as box:
            token = await box.pair(code, "gate")
        async with AsyncClient(app.url, token=token) as box:
            assert (await box.infer(PICTURE, deadline_ms=DEADLINE_MS)).on_time
