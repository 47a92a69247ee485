"""Cameras whose pictures the box fetches itself, from real servers."""

import asyncio
import stat
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.domain.requests import CameraId
from edgebox.ingest import pulled_session
from edgebox.ingest.pulled_session import PulledSession
from edgebox.ingest.source_reader import NewestPicture, SourceReader
from edgebox.link.sender import Send
from edgebox.media import losses
from edgebox.media.picture_stream import DecodedPicture
from edgebox.runtime.source_status import SourceState, SourceStatus
from tests.end_to_end.running import SLO_MS, counts_of, get_json, running, texts, until
from tests.end_to_end.sources import (
    VIDEO_PX,
    changing_codec,
    mjpeg,
    rtsp,
    write_changing_video,
    write_video,
)

pytestmark = pytest.mark.usefixtures("few_sizes")

USER, PASSWORD = "ann", "p@ss/w:rd"
ADMIN: dict[str, Any] = {"access__open_scope": "admin"}


@pytest.fixture(scope="module")
def h264(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("h264") / "video.mkv", "h264")


@pytest.fixture(scope="module")
def h265(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("h265") / "video.mkv", "h265")


async def send(
    app: App, method: str, path: str, body: dict[str, Any] | None = None
) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, f"{app.url}{path}", json=body) as answer,
    ):
        return answer.status, await answer.json() if answer.status != 204 else {}


async def add(app: App, name: str, url: str, **fields: Any) -> dict[str, Any]:
    status, camera = await send(
        app, "POST", "/v1/cameras", {"id": name, "url": url, "slo_ms": SLO_MS, **fields}
    )
    assert status == 201, camera
    return camera


def source(app: App, name: str) -> SourceStatus:
    return app.box.sources[CameraId(name)]


async def answered(app: App, name: str, count: int = 3) -> None:
    before = counts_of(app, name).on_time
    await until(lambda: counts_of(app, name).on_time >= before + count, f"answers of {name}")


async def test_a_camera_is_fetched_over_rtsp_like_any_other(database: Path, h264: Path) -> None:
    async with running(database, **ADMIN) as app, rtsp(h264, "h264") as server:
        await add(app, "gate", server.url)
        await answered(app, "gate")
        status, camera = await get_json(app, "/v1/cameras/gate")
        assert status == 200
        assert camera["connected"]
        assert (camera["in_force"]["width_px"], camera["in_force"]["height_px"]) == VIDEO_PX
        found = camera["source"]
        assert (found["state"], found["codec"], found["decoder"]) == ("live", "h264", "software")
        assert found["address"] == f"rtsp://127.0.0.1:{server.port}"
        assert found["decoding"]["decode_ms"] > 0
        # The server's sender reports say when pictures were captured.
        await until(lambda: source(app, "gate").times == "rtcp", "a sender report")
        status, _ = await send(app, "DELETE", "/v1/cameras/gate")
        assert status == 204
        counts = counts_of(app, "gate")
        assert counts.pending == 0
        assert (await get_json(app, "/v1/cameras/gate"))[0] == 404


async def test_a_lost_source_is_tried_for_ever_and_may_come_back_with_another_codec(
    database: Path, h264: Path, h265: Path
) -> None:
    async with running(database, **ADMIN) as app, rtsp(h264, "h264") as server:
        await add(app, "gate", server.url)
        await answered(app, "gate")
        await server.stop()
        await until(lambda: source(app, "gate").state is SourceState.LOST, "the loss")
        await until(lambda: source(app, "gate").why == "connection refused", "the reason")
        _, state = await get_json(app, "/v1/state")
        [shown] = state["sources"]
        assert shown["text"].startswith("source lost since ")
        assert shown["text"].endswith(": connection refused")
        [camera] = state["cameras"]
        assert not camera["connected"]
        assert camera["left"]["why"].startswith("source lost: ")
        assert (camera["grade"], camera["trouble"]) == ("lost", shown["text"])
        (remedy,) = camera["remedies"]
        assert (remedy["action"], remedy["text"]) == ("check_source", losses.REFUSED.remedy)
        assert camera["remedies"] == shown["remedies"]
        assert any("source lost" in text for text in texts(app, "warning"))
        await server.start(h265, "h265")
        await answered(app, "gate")
        assert source(app, "gate").codec == "hevc"
        _, state = await get_json(app, "/v1/state")
        [camera] = state["cameras"]
        assert camera["grade"] != "lost"
        assert camera["trouble"] is None
        assert source(app, "gate").losses == 1
        assert any("pictures come again" in text for text in texts(app))
        metrics = await text_of(app, "/metrics")
        assert 'edgebox_source_losses_total{camera="gate"} 1.0' in metrics
        assert 'edgebox_source_live{camera="gate"} 1.0' in metrics


async def test_a_size_that_changes_within_a_session_connects_anew(
    database: Path, tmp_path: Path
) -> None:
    changing = await asyncio.to_thread(
        write_changing_video, tmp_path / "changing.ts", ((160, 90), 8), (VIDEO_PX, 60)
    )
    async with running(database, **ADMIN) as app, rtsp(changing, "h264") as server:
        await add(app, "gate", server.url)
        await answered(app, "gate")
        assert source(app, "gate").width_px == 160
        why = f"its pictures have {VIDEO_PX[0]} × {VIDEO_PX[1]} px now"
        await until(lambda: any(why in text for text in texts(app)), "the change")
        # The server plays its file from the beginning to whoever connects.
        await answered(app, "gate")
        assert source(app, "gate").losses == 0
        status, _ = await send(app, "DELETE", "/v1/cameras/gate")
        assert status == 204
        counts = counts_of(app, "gate")
        ended = counts.on_time + counts.late + sum(counts.dropped.values())
        assert (counts.captured, counts.pending) == (ended, 0)


async def test_a_codec_that_changes_within_a_session_is_noticed(
    database: Path, tmp_path: Path
) -> None:
    first = await asyncio.to_thread(write_video, tmp_path / "first.ts", "h264", seconds=5)
    then = await asyncio.to_thread(write_video, tmp_path / "then.ts", "h265")
    async with running(database, **ADMIN) as app, changing_codec(first, then) as url:
        await add(app, "gate", url)
        await answered(app, "gate")
        assert source(app, "gate").codec == "h264"
        await until(lambda: source(app, "gate").codec == "hevc", "the other codec")
        await answered(app, "gate")
        assert any("cannot be decoded any more" in text for text in texts(app, "warning"))
        assert source(app, "gate").losses == 1


async def test_a_camera_is_fetched_over_tls(
    database: Path, h264: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with running(database, server__tls="self-signed"):
        pem = tmp_path / "camera.pem"
        made = [tmp_path / "tls.pem", tmp_path / "tls-key.pem"]
        pem.write_text("".join(file.read_text() for file in made))
    async with (
        running(database, **ADMIN) as app,
        rtsp(h264, "h264", USER, PASSWORD, pem=pem) as server,
    ):
        assert server.url.startswith("rtsps://")
        await add(app, "gate", server.url, username=USER, password=PASSWORD)
        await answered(app, "gate")
        assert source(app, "gate").address.shown == f"rtsps://127.0.0.1:{server.port}"
        # The same port speaks nothing but TLS.
        plain = server.url.replace("rtsps", "rtsp", 1)
        status, problem = await send(app, "POST", "/v1/sources/test", {"url": plain})
        assert status == 400
        assert PASSWORD not in caplog.text + str(problem)


async def test_a_source_that_is_off_at_the_start_is_tried_too(database: Path, h264: Path) -> None:
    async with rtsp(h264, "h264") as server:
        await server.stop()
        async with running(database, **ADMIN) as app:
            await add(app, "gate", server.url)
            await until(lambda: source(app, "gate").why == "connection refused", "the reason")
            _, listed = await get_json(app, "/v1/cameras")
            assert [camera["id"] for camera in listed["cameras"]] == ["gate"]
            await server.start(h264, "h264")
            await answered(app, "gate")


async def test_a_wrong_password_is_named_and_no_secret_is_shown_anywhere(
    database: Path, h264: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with running(database, **ADMIN) as app, rtsp(h264, "h264", USER, PASSWORD) as server:
        bare = server.url.removeprefix("rtsp://")
        tried, problem = await send(
            app, "POST", "/v1/sources/test", {"url": f"rtsp://{USER}:wr0ng@{bare}"}
        )
        assert tried == 400
        assert "the user name or the password is wrong" in problem["detail"]
        await add(app, "gate", server.url, username=USER, password="wr0ng")
        await until(lambda: "password is wrong" in source(app, "gate").why, "the refusal")
        status, _ = await send(app, "PATCH", "/v1/cameras/gate/source", {"password": PASSWORD})
        assert status == 200
        await answered(app, "gate")
        shown = [
            await text_of(app, path)
            for path in ("/v1/cameras", "/v1/state", "/v1/events", "/v1/config", "/metrics")
        ]
        everything = "".join([*shown, caplog.text, str(problem), *texts(app)])
        for secret in ("wr0ng", PASSWORD, "p%40ss", f"{USER}:", f"{USER}@"):
            assert secret not in everything
    assert PASSWORD.encode() not in await asyncio.to_thread(database.read_bytes)
    kept = database.with_name(f"{database.stem}.credentials.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


async def text_of(app: App, path: str) -> str:
    async with aiohttp.ClientSession() as client, client.get(f"{app.url}{path}") as answer:
        return await answer.text()


async def test_added_cameras_are_fetched_after_a_restart_and_configured_ones_too(
    database: Path, tmp_path: Path, h264: Path
) -> None:
    config = tmp_path / "box.toml"
    (tmp_path / "clip.mkv").symlink_to(h264)
    config.write_text(
        f'[[cameras]]\nname = "yard"\nurl = "file:clip.mkv"\nslo_ms = {SLO_MS}\n', encoding="utf-8"
    )
    async with mjpeg((USER, PASSWORD)) as url:
        async with running(database, file=config, **ADMIN) as app:
            await add(app, "gate", url, username=USER, password=PASSWORD)
            await answered(app, "gate")
            await answered(app, "yard")
            assert source(app, "gate").codec == "mjpeg"
            status, problem = await send(app, "DELETE", "/v1/cameras/yard")
            assert (status, problem["code"]) == (409, "source_configured")
            status, problem = await send(app, "POST", "/v1/cameras", {"id": "yard", "url": url})
            assert (status, problem["code"]) == (409, "source_exists")
        async with running(database, file=config, **ADMIN) as app:
            await answered(app, "gate")
            await answered(app, "yard")
            status, _ = await send(app, "DELETE", "/v1/cameras/gate")
            assert status == 204
        async with running(database, file=config, **ADMIN) as app:
            assert list(app.box.sources) == ["yard"]


@pytest.mark.parametrize("name", ["../x", "", "a b", "n" * 65, 7, None])
async def test_a_camera_with_an_unusable_name_is_refused(database: Path, name: object) -> None:
    async with running(database, **ADMIN) as app:
        fields = {"id": name, "url": "rtsp://127.0.0.1:1/stream"}
        status, problem = await send(app, "POST", "/v1/cameras", fields)
        assert (status, problem["code"]) == (400, "invalid")
        assert problem["detail"].startswith("source.id ")
        assert not app.box.sources


async def test_a_camera_of_a_model_that_is_not_there_is_refused_with_those_there_are(
    database: Path, h264: Path
) -> None:
    url = f"file:{h264}"
    async with running(database, **ADMIN) as app:
        for names, problem in (
            ({"family": "cats"}, "source.family: this box has no model family cats; it has street"),
            ({"pipeline": "gate"}, "source.pipeline: this box has no pipeline gate; it has none"),
        ):
            status, found = await send(app, "POST", "/v1/cameras", {"id": "a", "url": url, **names})
            assert (status, found["code"], found["detail"]) == (404, "unknown", problem)
        assert not app.box.sources
        await add(app, "gate", url)
        status, found = await send(app, "PATCH", "/v1/cameras/gate/source", {"family": "cats"})
        assert (status, found["code"]) == (404, "unknown")
        await answered(app, "gate")


async def test_a_configured_camera_of_a_model_that_is_not_there_says_what_there_is(
    database: Path, tmp_path: Path
) -> None:
    config = tmp_path / "box.toml"
    config.write_text(
        '[[cameras]]\nname = "yard"\nurl = "rtsp://127.0.0.1:1/stream"\nfamily = "cats"\n'
    )
    async with running(database, file=config, **ADMIN) as app:
        await until(lambda: source(app, "yard").state is SourceState.REFUSED, "the refusal")
        told = "yard: the box does not take it: this box has no model family cats; it has street"
        assert any(text.startswith(told) for text in texts(app, "warning"))
        [shown] = (await get_json(app, "/v1/state"))[1]["sources"]
        (remedy,) = shown["remedies"]
        assert remedy["action"] == "choose_model"


async def test_a_source_is_tried_before_it_is_added(database: Path, h264: Path) -> None:
    async with running(database, **ADMIN) as app:
        status, found = await send(app, "POST", "/v1/sources/test", {"url": f"file:{h264}"})
        assert status == 200
        assert (found["width_px"], found["height_px"]) == VIDEO_PX
        assert found["jpeg"].startswith("/9j/")
        status, problem = await send(app, "POST", "/v1/sources/test", {"url": "webcam:97"})
        assert status == 400
        assert "there is no such camera on this machine" in problem["detail"]
        assert app.box.sources == {}


@pytest.mark.all_sizes
async def test_a_fetched_camera_sends_no_more_than_the_plan_asks_for(
    database: Path, h264: Path
) -> None:
    async with running(database, **ADMIN) as app:
        await add(app, "gate", f"file:{h264}", rate_hz=5)
        await answered(app, "gate", 5)
        decoding = source(app, "gate").decoding
        status, _ = await send(app, "PATCH", "/v1/cameras/gate", {"rate_hz": 2})
        assert status == 200
        await answered(app, "gate")
        await until(lambda: decoding.cores is not None, "the cost")
        status, _ = await send(app, "DELETE", "/v1/cameras/gate")
        assert status == 204
        assert decoding.used <= decoding.pictures


@pytest.mark.all_sizes
async def test_the_smaller_stream_is_read_while_the_plan_needs_no_more(
    database: Path, h264: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgebox.ingest.stream_choice.SETTLED_NS", 1_000_000_000)
    large = await asyncio.to_thread(
        write_video, tmp_path / "large.mkv", "h264", seconds=20, size_px=(640, 360)
    )
    small = await asyncio.to_thread(
        write_video, tmp_path / "small.mkv", "h265", seconds=20, size_px=(160, 90)
    )
    async with running(database, **ADMIN) as app:
        # Whatever size the plan chooses, the smaller of these streams is not enough for it.
        await add(app, "large", f"file:{large}", substream_url=f"file:{small}")
        # This is: it is as large as the main one.
        await add(app, "gate", f"file:{h264}", substream_url=f"file:{h264}")
        await until(lambda: source(app, "gate").stream == "sub", "the change")
        await answered(app, "gate")
        await answered(app, "large")
        assert source(app, "large").stream == "main"
        assert source(app, "gate").losses == source(app, "large").losses == 0


async def test_still_pictures_are_left_out_and_are_no_misses(
    database: Path, tmp_path: Path
) -> None:
    still = await asyncio.to_thread(
        write_video, tmp_path / "still.mkv", "h264", seconds=20, moving=False
    )
    async with running(database, **ADMIN) as app:
        await add(app, "yard", f"file:{still}", motion_gate=True)
        await answered(app, "yard", 4)
        decoding = source(app, "yard").decoding
        assert decoding.still > decoding.used
        counts = counts_of(app, "yard")
        assert counts.captured <= decoding.captured_total
        assert counts.dropped["sender"] == 0


async def test_pictures_that_cannot_be_converted_are_a_loss_and_are_tried_again(
    database: Path, h264: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, left = pulled_session._encoded, iter(range(3))

    def breaks_at_first(picture: DecodedPicture, send: Send) -> tuple[bytes, int]:
        if next(left, None) is not None:
            raise ValueError("no such layout")
        return whole(picture, send)

    monkeypatch.setattr(pulled_session, "_encoded", breaks_at_first)
    async with running(database, **ADMIN) as app:
        await add(app, "gate", f"file:{h264}")
        await answered(app, "gate")
        assert source(app, "gate").losses == 3
        why = "its pictures could not be converted (ValueError)"
        assert any(why in text for text in texts(app, "warning"))


async def test_a_defect_does_not_end_the_fetching_of_a_camera(
    database: Path, h264: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, left = PulledSession.captured, iter(range(2))

    def breaks_at_first(session: PulledSession, newest: NewestPicture) -> None:
        if next(left, None) is not None:
            raise KeyError("sub")
        whole(session, newest)

    monkeypatch.setattr(PulledSession, "captured", breaks_at_first)
    async with running(database, **ADMIN) as app:
        await add(app, "gate", f"file:{h264}")
        await answered(app, "gate")
        assert any("the box failed with it (KeyError)" in text for text in texts(app, "warning"))


async def test_changes_of_one_camera_at_once_follow_each_other(database: Path, h264: Path) -> None:
    url = f"file:{h264}"
    async with running(database, **ADMIN) as app:
        path = "/v1/cameras/gate"
        body = {"id": "gate", "url": url, "slo_ms": SLO_MS}
        adding = [send(app, "POST", "/v1/cameras", body) for _ in range(4)]
        statuses = [status for status, _ in await asyncio.gather(*adding)]
        assert sorted(statuses) == [201, 409, 409, 409]
        await answered(app, "gate")
        fields: list[dict[str, Any]] = [
            {"rate_hz": 9}, {"min_accuracy": 0.01}, {"min_rate_hz": 2}, {"motion_gate": True}
        ]  # fmt: skip
        changing = [send(app, "PATCH", f"{path}/source", each) for each in fields]
        assert {status for status, _ in await asyncio.gather(*changing)} == {200}
        fetching = [task for task in asyncio.all_tasks() if task.get_name() == "source gate"]
        assert len(fetching) == 1
        assert app._sources is not None
        settings = app._sources._settings[CameraId("gate")]
        for name, value in (item for each in fields for item in each.items()):
            assert getattr(settings, name) == value
        removing = [send(app, "DELETE", path) for _ in range(4)]
        assert {status for status, _ in await asyncio.gather(*removing)} <= {204, 404}
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "source gate"]


async def test_what_an_ended_reader_says_does_not_count(
    database: Path, h264: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgebox.ingest.stream_choice.SETTLED_NS", 100_000_000)
    ended: list[SourceReader] = []
    close = SourceReader.close

    def closes(reader: SourceReader) -> None:
        ended.append(reader)
        close(reader)

    monkeypatch.setattr(SourceReader, "close", closes)
    async with running(database, **ADMIN) as app:
        await add(app, "gate", f"file:{h264}", substream_url=f"file:{h264}")
        await until(lambda: source(app, "gate").stream == "sub", "the change")
        [main] = ended
        # It is opened again, and only now does the old reader notice that it was ended.
        main._on_lost(losses.ENDED)
        main._on_picture()
        main._on_opened(main._stream)  # type: ignore[arg-type]
        await answered(app, "gate")
        assert (source(app, "gate").stream, source(app, "gate").losses) == ("sub", 0)
