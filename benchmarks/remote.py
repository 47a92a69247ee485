"""Remote executors over the Open Inference Protocol: what they cost, and what their faults cost.

A server in a process of its own waits for a given time in place of computing, and answers as
another edgebox does. Real sockets, real HTTP, a real box, real cameras.

    python -m benchmarks.remote [--part overhead|throughput|faults|jitter] [--json]
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import statistics
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from edgebox import __version__
from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.config.config_file import load
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor_spec import open_executor
from edgebox.inference.family import Family
from edgebox.inference.family_prints import family_print
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.remote.binary_tensors import HEADER_LENGTH, InputTensor, infer_request
from edgebox.inference.remote.http_connection import ServerAddress
from edgebox.inference.remote.open_inference_executor import OpenInferenceSpec
from edgebox.inference.tensors import EncodedPicture
from edgebox.inference.zoo import bundled_folders, load_family
from edgebox.media.jpeg import encode
from edgebox.media.sources import PictureSource
from edgebox.media.typical import typical_canvases

WAIT_S = 0.02
RATE_HZ = 15.0
SLO_MS = 150.0
PART_S = 8.0


# -- the server that only waits ---------------------------------------------------------------


def _answers(count: int) -> bytes:
    """Return the outputs of so many pictures with nothing on them, and the length of their JSON."""
    outcomes = b"".join(struct.pack("<I", 7) + b"on_time" for _ in range(count))
    outputs = [
        ("boxes", "FP32", [count, 0, 4], b""),
        ("scores", "FP32", [count, 0], b""),
        ("labels", "INT64", [count, 0], b""),
        ("counts", "INT64", [count], bytes(8 * count)),
        ("outcomes", "BYTES", [count], outcomes),
    ]
    head = orjson.dumps(
        {
            "outputs": [
                {
                    "name": name,
                    "datatype": datatype,
                    "shape": shape,
                    "parameters": {"binary_data_size": len(data)},
                }
                for name, datatype, shape, data in outputs
            ]
        }
    )
    body = head + b"".join(data for *_, data in outputs)
    return (
        f"HTTP/1.1 200 OK\r\n{HEADER_LENGTH}: {len(head)}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def serve(port: Any, hung: Event, wait_s: Any, jitter_s: Any, documents: dict[str, Any]) -> None:
    """Answer as another edgebox does, after a wait; the main function of the server's process."""
    rng = random.Random(0)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                _, path, _ = head.split(" ", 2)
                lengths = [
                    line for line in head.split("\r\n") if line.lower().startswith("content-length")
                ]
                body = await reader.readexactly(int(lengths[0].split(":")[1]) if lengths else 0)
                if path.endswith("/infer"):
                    begin = body.index(b'"shape":[') + 9
                    count = int(body[begin : body.index(b"]", begin)])
                    await asyncio.sleep(max(0, wait_s.value + rng.gauss(0, jitter_s.value)))
                    while hung.is_set():  # noqa: ASYNC110 - another process sets it
                        await asyncio.sleep(0.01)
                    writer.write(_answers(count))
                else:
                    found = orjson.dumps(documents[path])
                    writer.write(
                        f"HTTP/1.1 200 OK\r\nContent-Length: {len(found)}\r\n\r\n".encode()
                    )
                    writer.write(found)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(client, "127.0.0.1", port.value)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(main())


class WaitingServer:
    """The process of a server that only waits."""

    def __init__(self, family: Family, wait_s: float = WAIT_S) -> None:
        """Start it."""
        spawn = multiprocessing.get_context("spawn")
        self._port, self.hung = spawn.Value("i", 0), spawn.Event()
        self.wait_s, self.jitter_s = spawn.Value("d", wait_s), spawn.Value("d", 0.0)
        names = [family.name, *(variant.name for variant in family.variants)]
        config = {"parameters": {"fingerprint": {"string_value": family_print(family)}}}
        documents = {
            "/v2": {"name": "edgebox", "version": __version__},
            f"/v2/models/{family.name}/config": config,
            "/v2/repository/index": [{"name": name} for name in names],
        }
        self._arguments = (self._port, self.hung, self.wait_s, self.jitter_s, documents)
        self._spawn = spawn
        self.start()

    def start(self) -> None:
        """Start the process, on the same port each time."""
        self._process = self._spawn.Process(target=serve, args=self._arguments, daemon=True)
        self._process.start()
        while not self._port.value:
            time.sleep(0.01)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port.value}"

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.join()


@contextmanager
def executors_on(servers: list[WaitingServer], family: Family) -> Iterator[list[ModelExecutor]]:
    """Open an executor on each server."""
    opened = [
        open_executor(
            OpenInferenceSpec(ExecutorId(f"r/{at}"), ServerAddress(server.url), "{variant}"),
            [family],
        )
        for at, server in enumerate(servers)
    ]
    try:
        yield opened
    finally:
        for each in opened:
            each.close()


def picture_of(family: Family) -> EncodedPicture:
    """Return a typical JPEG of the largest size."""
    variant = family.variants[-1]
    canvas = typical_canvases(variant.width_px, variant.height_px, 114, "top_left")[0]
    return EncodedPicture(encode(canvas), variant.width_px, variant.height_px)


# -- parts ------------------------------------------------------------------------------------


def overhead(family: Family) -> dict[str, Any]:
    """Return medians of a batch through an executor, and of the bare HTTP calls, alternating."""
    server = WaitingServer(family, 0.002)
    variant, picture = family.variants[-1].name, picture_of(family)
    bare = HTTPConnection(urlsplit(server.url).netloc)
    out: dict[str, Any] = {}
    with executors_on([server], family) as (executor,):
        for size in (1, 4, 16):
            request = infer_request(
                [InputTensor.of_elements("image", [picture.jpeg] * size)],
                ["boxes", "scores", "labels", "counts", "outcomes"],
                {"deadline_ms": 1000.0, "score_min": 0.05, "partial": True},
            )
            head, binary = request
            body = b"".join([head, *binary])
            through_ms: list[float] = []
            bare_ms: list[float] = []
            for _ in range(300):
                began_s = time.perf_counter()
                bare.request(
                    "POST", f"/v2/models/{variant}/infer", body, {HEADER_LENGTH: str(len(head))}
                )
                bare.getresponse().read()
                bare_ms.append(1e3 * (time.perf_counter() - began_s))
                began_s = time.perf_counter()
                executor.submit(variant, [picture] * size, size).result()
                through_ms.append(1e3 * (time.perf_counter() - began_s))
            out[f"batch of {size}, {len(body) / 1e3:.0f} kB"] = overhead_of(bare_ms, through_ms)
    bare.close()
    server.kill()
    return out


def overhead_of(bare_ms: Sequence[float], through_ms: Sequence[float]) -> dict[str, float]:
    """Return what executors add to bare calls, by the median and at the 95th percentile."""
    bare, through = statistics.median(bare_ms), statistics.median(through_ms)
    bare_p95, through_p95 = (statistics.quantiles(ms, n=20)[-1] for ms in (bare_ms, through_ms))
    return {
        "bare_ms": round(bare, 3),
        "through_executor_ms": round(through, 3),
        "overhead_ms": round(through - bare, 3),
        "overhead_p95_ms": round(through_p95 - bare_p95, 3),
    }


def scaling(
    executors: Sequence[ModelExecutor], family: Family, what: str, seconds: float
) -> dict[str, Any]:
    """Return batches of four a second through 1, 2, 4 and 8 of some executors."""
    variant, picture = family.variants[-1].name, picture_of(family)
    out: dict[str, Any] = {}
    for count in (1, 2, 4, 8):
        until_s = time.monotonic() + seconds

        def run(executor: ModelExecutor, until_s: float = until_s) -> int:
            done = 0
            while time.monotonic() < until_s:
                executor.submit(variant, [picture] * 4, 4).result()
                done += 1
            return done

        with ThreadPoolExecutor(count) as threads:
            done = sum(threads.map(run, executors[:count]))
        out[f"{count} {what}"] = {"batches_per_s": round(done / seconds, 1)}
    one = out[f"1 {what}"]["batches_per_s"]
    for each in out.values():
        each["times_one"] = round(each["batches_per_s"] / one, 2)
    return out


def throughput(family: Family) -> dict[str, Any]:
    """Return batches a second through so many remote executors that only wait."""
    servers = [WaitingServer(family) for _ in range(8)]
    with executors_on(servers, family) as opened:
        out = scaling(opened, family, "executors", 3.0)
    for server in servers:
        server.kill()
    return out


class Shares:
    """Shares of frames on time by part, of all cameras."""

    def __init__(self, cameras: list[Camera]) -> None:
        self._cameras = cameras
        self._before = self._totals()

    def _totals(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for each in (camera.summary() for camera in self._cameras):
            found.update(each.dropped)
            found.update({"on_time": each.on_time, "late": each.late})
        del found["plan"]
        return found

    def part(self) -> dict[str, float]:
        """Return the share on time since the last call, and the numbers of the others."""
        now = self._totals()
        since, self._before = now - self._before, now
        share = since["on_time"] / max(1, since.total())
        del since["on_time"]
        return {"on_time": round(share, 4), **since}


async def with_cameras(
    family_folder: Path, tables: list[dict[str, Any]], cameras: int, work: Any
) -> None:
    """Run a box with cameras, and what a part does meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        config = load(
            None,
            {
                "server.port": 0,
                "access.open_to": "everybody",
                "storage.path": f"{folder}/box.sqlite3",
                "inference.models": f"{folder}/models",
                "inference.families": [str(family_folder)],
                "inference.family": "street",
                "inference.profile_s": 5.0,
                "executors": tables,
            },
        )
        app = App(config)
        await app.start()
        canvas = typical_canvases(320, 192, 114, "top_left")[0]
        streaming = [
            Camera(
                PictureSource((320, 192), RATE_HZ, lambda number: canvas),
                app.url, name=f"camera-{at}", rate_hz=RATE_HZ, slo_ms=SLO_MS,
            )
            for at in range(cameras)
        ]  # fmt: skip
        runs = [asyncio.create_task(each.run()) for each in streaming]
        try:
            await asyncio.sleep(5)
            await work(app, Shares(streaming))
        finally:
            for each in streaming:
                each.stop()
            await asyncio.gather(*runs)
            for each in streaming:
                found = each.summary()
                ended = found.on_time + found.late + sum(found.dropped.values())
                assert found.captured == ended, "every frame is accounted for"
            await app.stop()


async def faults(family: Family, folder: Path, cameras: int) -> dict[str, Any]:
    """Return shares on time before, during and after each fault of a remote executor."""
    server = WaitingServer(family)
    tables: list[dict[str, Any]] = [
        {"device": "cpu", "threads": 1},
        {"kind": "open_inference", "url": server.url},
    ]
    out: dict[str, Any] = {}

    async def work(app: App, shares: Shares) -> None:
        async def part() -> dict[str, float]:
            shares.part()
            await asyncio.sleep(PART_S)
            return shares.part()

        for fault, begin, end in (
            ("killed", server.kill, server.start),
            ("hung", server.hung.set, server.hung.clear),
            (
                "ten times slower",
                lambda: _set(server.wait_s, 10 * WAIT_S),
                lambda: _set(server.wait_s, WAIT_S),
            ),
        ):
            before = await part()
            begin()
            during = await part()
            end()
            settling = await part()
            after = await part()
            out[fault] = {
                "before": before,
                "during": during,
                f"{PART_S:.0f} s after": settling,
                "later": after,
            }
            out[fault]["losses"] = {
                str(name): text for name, text in app.box.driver.supervisor.last_losses.items()
            }

    await with_cameras(folder, tables, cameras, work)
    server.kill()
    return out


async def jitter(family: Family, folder: Path, cameras: int) -> dict[str, Any]:
    """Return shares on time without and with a remote of 5 +- 10 ms."""
    server = WaitingServer(family, 0.005)
    local = {"device": "cpu", "threads": 1}
    remote = {"kind": "open_inference", "url": server.url}
    server.jitter_s.value = 0.010
    out: dict[str, Any] = {}

    async def work(app: App, shares: Shares) -> None:
        shares.part()
        await asyncio.sleep(2 * PART_S)
        name = "with it" if len(app.box.driver.executors) > 1 else "local alone"
        out[f"{name}, run {len(out) // 2 + 1}"] = {
            **shares.part(),
            "batches": {
                str(key): meter.batches.total()
                for key, meter in app.box.driver.measurements.meters.items()
            },
        }

    for _ in range(2):
        await with_cameras(folder, [local], cameras, work)
        await with_cameras(folder, [local, remote], cameras, work)
    server.kill()
    return out


def _set(value: Any, to: float) -> None:
    value.value = to


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("overhead", "throughput", "faults", "jitter"))
    parser.add_argument("--cameras", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    (folder,) = [each for each in bundled_folders() if each.name == "street"]
    family = load_family(folder)
    out: dict[str, Any] = {}
    parts: tuple[tuple[str, Callable[[], dict[str, Any]]], ...] = (
        ("overhead", lambda: overhead(family)),
        ("throughput", lambda: throughput(family)),
        ("faults", lambda: asyncio.run(faults(family, folder, options.cameras))),
        ("jitter", lambda: asyncio.run(jitter(family, folder, options.cameras))),
    )
    for part, measure in parts:
        if options.part in (None, part):
            out[part] = measure()
            if not options.json:
                print(part)
                for row, figures in out[part].items():
                    print(f"  {row}: {figures}")
    if options.json:
        print(json.dumps(out))


if __name__ == "__main__":
    main()
