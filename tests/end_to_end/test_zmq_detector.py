"""Detectors of Frigate over ZeroMQ: real sockets, a client as the protocol's description has it."""

import asyncio
import contextlib
import json
import socket
import stat
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import zmq
import zmq.asyncio
from numpy.typing import NDArray

from edgebox.app.composition import App
from edgebox.domain.errors import ConfigError, EdgeboxError
from edgebox.media.jpeg import decode
from edgebox.web.refusal_pacing import COST_PER_S, WHOLE_COST
from edgebox.web.zmq_detector import IN_FLIGHT_MAX
from edgebox.web.zmq_endpoint import CONNECTIONS_MAX
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import get_json, post, running, unharmed_bystander
from tests.end_to_end.streets import street_jpeg

pytestmark = pytest.mark.usefixtures("few_sizes")

PATIENT_MS = 30_000.0


@pytest.fixture(scope="module")
def street() -> NDArray[np.uint8]:
    return decode(street_jpeg(3, 640, 360))


class Client:
    """Waits for each answer before it asks again, as a detector process of Frigate does."""

    def __init__(self, endpoint: str) -> None:
        self._zmq = zmq.asyncio.Context()
        self._socket = self._zmq.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.IPV6, 1)
        self._socket.connect(endpoint)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._zmq.destroy()

    async def ask(self, *frames: bytes) -> Sequence[bytes]:
        async with asyncio.timeout(PATIENCE_S):
            await self._socket.send_multipart(frames)
            return await self._socket.recv_multipart()

    async def detect(self, rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
        header = {"shape": [1, *rgb.shape], "dtype": "uint8", "model_type": "ssd"}
        (rows,) = await self.ask(json.dumps(header).encode(), rgb.tobytes())
        return np.frombuffer(rows, np.float32).reshape(20, 6)

    async def refused(self, *frames: bytes) -> str:
        said, nothing = await self.ask(*frames)
        assert nothing == b""
        return str(json.loads(said)["error"])


def mode_of(endpoint: str) -> int:
    """Return the permissions of an endpoint's file."""
    return stat.S_IMODE(Path(endpoint.removeprefix("ipc://")).stat().st_mode)


def write_file(endpoint: str, text: str) -> None:
    Path(endpoint.removeprefix("ipc://")).write_text(text)


def remove_file(endpoint: str) -> None:
    Path(endpoint.removeprefix("ipc://")).unlink()


def read_file(endpoint: str) -> str:
    return Path(endpoint.removeprefix("ipc://")).read_text()


@pytest.fixture
async def endpoint(tmp_path: Path) -> str:
    return f"ipc://{tmp_path}/detector"


@pytest.fixture
async def app(database: Path, endpoint: str) -> AsyncIterator[App]:
    async with running(
        database, zmq_detector__endpoint=endpoint, zmq_detector__deadline_ms=PATIENT_MS
    ) as app:
        yield app


@pytest.mark.all_sizes
async def test_a_picture_is_answered_as_at_infer(
    app: App, endpoint: str, street: NDArray[np.uint8]
) -> None:
    assert mode_of(endpoint) == 0o600
    async with Client(endpoint) as client:
        (said,) = await client.ask(b'{"model_request": true, "model_name": "yolo.onnx"}')
        assert json.loads(said) == {"model_available": True, "model_loaded": True}
        rows = await client.detect(street)
    query = {"deadline_ms": 30_000, "score_min": 0.5}
    _, expected = await post(app, street_jpeg(3, 640, 360), query)
    seen = [row for row in rows.tolist() if row[1] >= 0.5]
    assert seen, "a street full of people and cars, and nothing was seen"
    for row, same in zip(seen, expected["detections"], strict=True):
        x1, y1, x2, y2 = same["box"]
        assert row[0] == same["label_id"]
        assert row[1] == pytest.approx(same["score"], abs=0.001)
        assert row[2:] == pytest.approx([y1 / 360, x1 / 640, y2 / 360, x2 / 640], abs=0.001)


async def test_several_clients_share_batches_and_each_gets_its_own_answer(
    app: App, endpoint: str, street: NDArray[np.uint8]
) -> None:
    empty = np.zeros_like(street)
    async with Client(endpoint) as one, Client(endpoint) as two, Client(endpoint) as three:
        for _ in range(3):
            seen, nothing, again = await asyncio.gather(
                one.detect(street), two.detect(empty), three.detect(street)
            )
            assert seen[:, 1].max() > 0.5 > nothing[:, 1].max()
            assert np.allclose(seen, again, atol=0.01)
    state = (await get_json(app, "/v1/state"))[1]
    assert {row["app"]: row["count"] for row in state["box"]["applications"]}["zmq"] == 9


async def test_bad_requests_are_told_why_and_harm_nobody(app: App, endpoint: str) -> None:
    good = b'{"shape": [1, 8, 8, 3], "dtype": "uint8"}'
    async with unharmed_bystander(app), Client(endpoint) as client:
        for frames, message in (
            ((b"hello", bytes(192)), "the header must be JSON"),
            ((b"[]", bytes(192)), "the header must be a JSON object"),
            ((good,), "a JSON object, and a tensor"),
            ((good, bytes(192), b""), "a JSON object, and a tensor"),
            ((good, bytes(191)), "the tensor has 191 bytes; header.shape needs 192"),
            ((b'{"shape": [1, 8, 8, 3], "dtype": "float32"}', bytes(768)), "must be uint8"),
            ((b" " * 5000, b""), "a JSON object, and a tensor"),
        ):
            assert message in await client.refused(*frames)
        (said,) = await client.ask(b'{"model_data": true, "model_name": "yolo.onnx"}', b"onnx")
        assert json.loads(said)["model_loaded"] is False
        assert (await client.detect(np.zeros((8, 8, 3), np.uint8))).shape == (20, 6)


async def test_what_cannot_be_in_time_is_refused_and_counted(
    database: Path, endpoint: str, street: NDArray[np.uint8]
) -> None:
    async with (
        running(database, zmq_detector__endpoint=endpoint, zmq_detector__deadline_ms=1.0) as app,
        Client(endpoint) as client,
    ):
        header = {"shape": [1, *street.shape], "dtype": "uint8"}
        said = await client.refused(json.dumps(header).encode(), street.tobytes())
        assert "too little time" in said
        assert app.box.refusals.counts["infeasible"] == 1
    with pytest.raises(FileNotFoundError):
        mode_of(endpoint)


async def test_a_family_that_is_missing_is_told_of_at_the_start(
    database: Path, endpoint: str, street: NDArray[np.uint8]
) -> None:
    async with (
        running(database, zmq_detector__endpoint=endpoint, zmq_detector__family="yolo") as app,
        Client(endpoint) as client,
    ):
        why = "zmq_detector.family: no model family 'yolo'; there are street"
        told = [event.text for event in app.box.notices.recent if event.level == "warning"]
        assert any(text.startswith(why) for text in told), told
        header = {"shape": [1, *street.shape], "dtype": "uint8"}
        assert (await client.refused(json.dumps(header).encode(), street.tobytes())).startswith(why)


async def test_who_floods_is_refused_and_the_others_are_answered(
    app: App, endpoint: str, street: NDArray[np.uint8]
) -> None:
    """A client that does not wait for its answers, and one that says no word of the protocol."""
    header = json.dumps({"shape": [1, *street.shape], "dtype": "uint8"}).encode()
    flood = zmq.asyncio.Context()
    async with unharmed_bystander(app), Client(endpoint) as client:
        dealer = flood.socket(zmq.DEALER)
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(endpoint)
        try:
            await dealer.send_multipart([b"no", b"envelope"])
            for _ in range(3 * IN_FLIGHT_MAX):
                await dealer.send_multipart([b"", header, street.tobytes()])
            async with asyncio.timeout(PATIENCE_S):
                answers = [await dealer.recv_multipart() for _ in range(3 * IN_FLIGHT_MAX)]
        finally:
            flood.destroy()
        refused = [json.loads(answer[1])["error"] for answer in answers if len(answer) == 3]
        assert 0 < len(refused) < len(answers)
        assert all("than it can answer in time" in said for said in refused)
        assert (await client.detect(street))[:, 1].max() > 0.5
    assert app.box.refusals.counts["overload"] == len(refused)


async def test_requests_that_are_no_pictures_are_read_no_faster_than_their_budget_allows(
    app: App, endpoint: str, street: NDArray[np.uint8]
) -> None:
    saved = COST_PER_S // WHOLE_COST
    count = 2 * saved
    flood = zmq.asyncio.Context()
    async with unharmed_bystander(app), Client(endpoint) as client:
        dealer = flood.socket(zmq.DEALER)
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(endpoint)
        began_s = asyncio.get_running_loop().time()
        try:
            for number in range(count):
                said = b"{}" if number % 2 else b'{"model_request": true}'
                await dealer.send_multipart([b"", said])
            async with asyncio.timeout(PATIENCE_S):
                assert (await client.detect(street))[:, 1].max() > 0.5
                for _ in range(count):
                    await dealer.recv_multipart()
        finally:
            flood.destroy()
        took_s = asyncio.get_running_loop().time() - began_s
    assert took_s > 0.9 * (count - saved) * WHOLE_COST / COST_PER_S


async def test_what_a_box_left_at_its_endpoint_is_replaced(
    database: Path, endpoint: str, street: NDArray[np.uint8]
) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(endpoint.removeprefix("ipc://"))
    async with (
        running(database, zmq_detector__endpoint=endpoint, zmq_detector__deadline_ms=PATIENT_MS),
        Client(endpoint) as client,
    ):
        assert (await client.detect(street))[:, 1].max() > 0.5


async def test_a_file_at_the_endpoint_is_kept_and_ends_the_start(
    database: Path, endpoint: str
) -> None:
    write_file(endpoint, "of somebody")
    with pytest.raises(EdgeboxError, match="there is something else at"):
        async with running(database, zmq_detector__endpoint=endpoint):
            pass
    assert read_file(endpoint) == "of somebody"


async def test_an_endpoint_of_another_program_is_left_to_it(
    app: App, endpoint: str, tmp_path: Path, street: NDArray[np.uint8]
) -> None:
    with pytest.raises(EdgeboxError, match="another program listens"):
        async with running(tmp_path / "second.sqlite3", zmq_detector__endpoint=endpoint):
            pass
    async with Client(endpoint) as client:
        assert (await client.detect(street))[:, 1].max() > 0.5


async def test_an_endpoint_that_another_program_took_over_is_left_to_it(
    database: Path, endpoint: str
) -> None:
    path = endpoint.removeprefix("ipc://")
    with socket.socket(socket.AF_UNIX) as other:
        async with running(database, zmq_detector__endpoint=endpoint):
            remove_file(endpoint)
            other.bind(path)
        assert mode_of(endpoint)


async def test_an_ipv6_address_is_listened_on(database: Path, street: NDArray[np.uint8]) -> None:
    with socket.socket(socket.AF_INET6) as free:
        try:
            free.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        endpoint = f"tcp://[::1]:{free.getsockname()[1]}"
    async with (
        running(database, zmq_detector__endpoint=endpoint, zmq_detector__deadline_ms=PATIENT_MS),
        Client(endpoint) as client,
    ):
        assert (await client.detect(street))[:, 1].max() > 0.5


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("missing/detector", "its folder is missing"),
        (100 * "x", "the path is too long for a socket"),
    ],
)
async def test_an_endpoint_that_cannot_be_used_ends_the_start(
    database: Path, tmp_path: Path, file: str, why: str
) -> None:
    endpoint = f"ipc://{tmp_path}/{file}"
    with pytest.raises(ConfigError, match=rf"cannot listen on ipc://.*: {why}$"):
        async with running(database, zmq_detector__endpoint=endpoint):
            pass


async def test_a_port_of_another_program_ends_the_start_as_a_wrong_configuration(
    database: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        endpoint = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ConfigError, match=r"another program listens there$") as raised:
            async with running(database, zmq_detector__endpoint=endpoint):
                pass
    assert raised.value.exit_code == 78


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
READY = b"\x05READY\x0bSocket-Type" + (6).to_bytes(4, "big") + b"DEALER"


async def greeted(endpoint: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection whose next bytes are a message's.

    By hand, because ZeroMQ's own clients send the parts of a message only when they have all.
    """
    reader, writer = await asyncio.open_unix_connection(endpoint.removeprefix("ipc://"))
    writer.write(GREETING + b"\x04" + bytes([len(READY)]) + READY)
    async with asyncio.timeout(PATIENCE_S):
        await reader.readuntil(b"ROUTER")  # it is ready, too
    return reader, writer


@pytest.mark.parametrize(
    ("begins", "code"),
    [((b"\x03", b""), "too_large"), ((b"\x07", b"\x09SUBSCRIBE"), "invalid")],
    ids=["parts", "commands that ZeroMQ would keep as parts"],
)
async def test_a_message_of_ever_more_parts_ends_its_connection_alone(
    database: Path,
    endpoint: str,
    street: NDArray[np.uint8],
    begins: tuple[bytes, bytes],
    code: str,
) -> None:
    limit = street.nbytes
    flags, first = begins
    part = flags + (10_000).to_bytes(8, "big") + first + bytes(10_000 - len(first))
    async with (
        running(
            database,
            zmq_detector__endpoint=endpoint,
            zmq_detector__deadline_ms=PATIENT_MS,
            limits__frame_bytes_max=limit,
        ) as app,
        Client(endpoint) as client,
    ):
        _, writer = await greeted(endpoint)
        sent = 0
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    writer.write(part)
                    await writer.drain()
                    sent += len(part)
        assert sent < limit + 10_000_000, "and what the system holds"
        writer.close()
        assert app.box.refusals.counts[code] == 1
        assert (await client.detect(street))[:, 1].max() > 0.5, "which is as large as may be"


async def detected_within(
    seconds: float, endpoint: str, rgb: NDArray[np.uint8]
) -> NDArray[np.float32] | None:
    """Ask as a new client, which begins anew where it is refused; None: there was no answer."""
    try:
        async with asyncio.timeout(seconds), Client(endpoint) as client:
            return await client.detect(rgb)
    except TimeoutError:
        return None


async def test_messages_that_never_end_hold_no_more_than_bodies_may(
    database: Path, endpoint: str, street: NDArray[np.uint8]
) -> None:
    """Each has come but for its last byte, and of 8 MB for bodies one address may have half."""
    part = b"\x02" + (1_000_000).to_bytes(8, "big") + bytes(999_999)
    async with (
        running(
            database,
            zmq_detector__endpoint=endpoint,
            zmq_detector__deadline_ms=PATIENT_MS,
            limits__frame_bytes_max=1_000_000,
            limits__bodies_max_mb=8,
        ) as app,
    ):
        opened = [await greeted(endpoint) for _ in range(12)]
        for _, writer in opened:
            writer.write(part)
        open_still = {asyncio.create_task(reader.read()) for reader, _ in opened}
        async with asyncio.timeout(PATIENCE_S):
            while len(open_still) > 4:
                _, open_still = await asyncio.wait(open_still, return_when=asyncio.FIRST_COMPLETED)
        assert app.box.refusals.counts["too_busy"] >= 8
        for _, writer in opened:
            writer.close()
        await asyncio.gather(*open_still, return_exceptions=True)
        async with asyncio.timeout(PATIENCE_S):
            while (found := await detected_within(5.0, endpoint, street[:300])) is None:
                pass  # the box has not heard yet that the others are gone
        assert found[:, 1].max() > 0.5


async def test_a_message_must_be_complete_in_time(
    database: Path, endpoint: str, street: NDArray[np.uint8]
) -> None:
    async with (
        running(
            database,
            zmq_detector__endpoint=endpoint,
            zmq_detector__deadline_ms=PATIENT_MS,
            limits__body_timeout_s=0.2,
        ) as app,
        Client(endpoint) as client,
    ):
        assert (await client.detect(street))[:, 1].max() > 0.5
        reader, writer = await greeted(endpoint)
        writer.write(b"\x02" + (5_000).to_bytes(8, "big") + bytes(1_000))
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionError):
                await reader.read()
        assert app.box.refusals.counts["slow_body"] == 1
        assert (await client.detect(street))[:, 1].max() > 0.5, "who waits between pictures stays"
        writer.close()


async def test_more_connections_than_may_be_are_ended_and_the_others_stay(
    app: App, endpoint: str, street: NDArray[np.uint8]
) -> None:
    path = endpoint.removeprefix("ipc://")
    async with Client(endpoint) as client:
        assert (await client.detect(street))[:, 1].max() > 0.5
        opened = [await asyncio.open_unix_connection(path) for _ in range(CONNECTIONS_MAX)]
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionError):
                assert await opened[-1][0].read() == b""
        assert app.box.refusals.counts["too_many_connections"] == 1
        assert (await client.detect(street))[:, 1].max() > 0.5
        for _, writer in opened:
            writer.close()
