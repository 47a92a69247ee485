"""A camera whose box is not there, restarts, crashes, goes silent or refuses it."""

import asyncio

import pytest

from edgebox.camera import daemon
from edgebox.camera.daemon import Camera
from edgebox.camera.session import BoxRefusedError, ConnectionLostError
from edgebox.link.backoff import Backoff
from edgebox.link.messages import ErrorMessage
from tests.camera.box import Box
from tests.camera.test_daemon import assert_adds_up, assert_all_answered, camera, source
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import free_port, until


async def test_a_run_of_some_seconds_ends_if_no_box_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(daemon, "ANSWER_PATIENCE_S", 0.3)
    async with Box() as box:
        gone = camera(box)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(ConnectionLostError, match=r"no box has answered for 0\.3 s .*cannot"):
            await gone.run(duration_s=0.1)


async def test_a_box_that_answers_is_waited_for_however_long_it_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(daemon, "ANSWER_PATIENCE_S", 5.0)
    refusal = ErrorMessage("unavailable", "the box is starting", True)
    async with Box(refuse=refusal, refusals_left=3) as box:
        summary = await camera(box).run(duration_s=0.2)
    assert len(box.hellos) == 4
    assert summary.sent > 0


async def test_comes_back_after_the_box_was_restarted() -> None:
    box = Box()
    await box.start()
    running = camera(box, source(rate_hz=50.0))
    run = asyncio.create_task(running.run())
    await box.first_frame.wait()
    await box.stop(bye="shutdown")
    before = len(box.headers)
    await until(lambda: running.summary().skipped.get("offline", 0) > 0, "frames to be left out")
    await box.start()
    await until(lambda: len(box.headers) > before, "frames again")
    captured = running.summary().captured
    await until(lambda: running.summary().captured > captured, "one that is not reported yet")
    running.stop()
    summary = await run
    await box.stop()
    assert before > 0
    assert summary.reconnects == 1
    assert_adds_up(summary)
    first_after = box.headers[before]
    assert first_after.captured_total < first_after.frame
    assert box.hellos[0].instance == box.hellos[1].instance
    last = box.reports()[-1]
    assert last.captured is not None
    assert last.captured < summary.captured


async def test_waits_for_a_box_that_is_not_there_yet() -> None:
    box = Box()
    await box.start()
    await box.stop()
    run = asyncio.create_task(camera(box, source(count=5)).run())
    await asyncio.sleep(0.05)
    await box.start()
    summary = await run
    await box.stop()
    assert_all_answered(summary)
    assert summary.captured == 5
    assert summary.reconnects == 0


async def test_a_connection_that_went_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgebox.camera.box_connection.PATIENT_SILENCE_MAX_S", 1.5)
    monkeypatch.setattr("edgebox.camera.session.REPORT_PERIOD_S", 0.1)
    remarks: list[str] = []
    async with Box(mute_connections=1) as box:
        running = camera(box, on_remark=remarks.append)
        run = asyncio.create_task(running.run())
        await until(lambda: running.summary().on_time > 5, "answers by the next connection")
        running.stop()
        summary = await run
    assert_adds_up(summary)
    assert summary.reconnects == 1
    assert summary.dropped["lost"] == 2  # what fits into the window
    assert summary.skipped["window"] > 0
    assert any("nothing was received" in remark for remark in remarks)


async def test_a_box_that_crashes_costs_what_was_on_its_way() -> None:
    box = Box(result_after_s=0.15)
    await box.start()
    running = camera(box)
    run = asyncio.create_task(running.run())
    await until(lambda: len(box.headers) >= 5, "frames on their way")
    await box.stop()
    await until(lambda: running.summary().skipped.get("offline", 0) >= 10, "frames left out")
    running.stop()
    summary = await run
    assert_adds_up(summary)
    assert summary.dropped["lost"] >= 1
    assert summary.reconnects == 0


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgebox.camera.box_connection.PATIENT_CONNECT_TIMEOUT_S", 0.1)
    called = asyncio.Event()

    def accept(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        called.set()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    remarks: list[str] = []

    def remarked(remark: str) -> None:
        remarks.append(remark)
        running.stop()

    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    running = Camera(source(), address, on_remark=remarked)
    summary = await running.run()
    server.close()
    assert called.is_set()
    assert "cannot connect" in remarks[0]
    assert summary.captured == 0


async def test_a_box_that_is_not_there_is_told_of_in_plain_words() -> None:
    address = f"127.0.0.1:{free_port()}"
    remarks: list[str] = []

    def remarked(remark: str) -> None:
        remarks.append(remark)
        running.stop()

    running = Camera(source(), address, on_remark=remarked)
    await running.run()
    assert remarks == [f"ws://{address}/v1/stream: cannot connect: connection refused"]


async def test_what_each_attempt_says_again_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts, remarks = 0, list[str]()

    def wait_s(backoff: Backoff) -> float:
        nonlocal attempts
        attempts += 1
        if attempts == 3:
            running.stop()
        return 0.0

    monkeypatch.setattr(Backoff, "wait_s", wait_s)
    running = Camera(source(), f"127.0.0.1:{free_port()}", on_remark=remarks.append)
    await running.run()
    assert attempts >= 3
    assert len(remarks) == 1


@pytest.mark.parametrize("code", ["bad_hello", "version", "unknown_family"])
async def test_a_fatal_refusal_ends_with_the_boxs_message(code: str) -> None:
    async with Box(refuse=ErrorMessage(code, "because of this", fatal=True)) as box:
        with pytest.raises(BoxRefusedError, match="because of this"):
            await camera(box).run()
    assert len(box.hellos) == 1


@pytest.mark.parametrize("code", ["camera_in_use", "box_full", "no_capacity", "unavailable"])
async def test_a_refusal_for_now_is_shown_and_tried_again(code: str) -> None:
    refusal = ErrorMessage(code, "not beside gate", fatal=True)
    remarks: list[str] = []
    async with Box(refuse=refusal, refusals_left=1) as box:
        summary = await camera(box, source(count=5), on_remark=remarks.append).run()
    assert_all_answered(summary)
    assert len(box.hellos) == 2
    assert any("not beside gate" in remark for remark in remarks)
