"""`edgebox demo`: a real box, four real camera processes on this machine, and their figures.

The cameras are separate processes running `edgebox camera`, each shaping its own uplink; the box
does not know that they are simulated. Only loopback addresses are used.
"""

import asyncio
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from rich.live import Live
from rich.table import Table

from edgebox.camera.accounting import QUANTILES
from edgebox.camera.shutdown import on_end_signals
from edgebox.commands.console import err, out, progress_bar, table
from edgebox.commands.lazy_group import importing
from edgebox.config.config_file import Config, load
from edgebox.config.inference_section import InferenceParameters
from edgebox.config.storage_section import StorageParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.latency_histogram import PARTS, SUMMARY_BUCKETS, Histogram
from edgebox.planning.wording import bandwidth_text

if TYPE_CHECKING:
    from edgebox.app.composition import App
    from edgebox.web.state_types import BoxState, State

_PORT = 8787
_SLO_MS = 300.0
_REFRESH_S = 1.0
_PLAIN_PERIOD_S = 10.0
_END_PATIENCE_S = 15.0


@dataclass(frozen=True, slots=True)
class DemoCamera:
    """One simulated camera: its street and its uplink."""

    name: str
    source: str
    link: str
    about: str


CAMERAS = (
    DemoCamera("north-gate", "scene:1", "40", "good link, 40 Mbit/s"),
    DemoCamera("main-street", "scene:2", "40", "good link, 40 Mbit/s"),
    DemoCamera("bus-stop", "scene:3", "lte:1", "mobile link that changes every second"),
    DemoCamera("car-park", "scene:4", "0.6", "slow link, 0.6 Mbit/s"),
)


def demo_overrides(port: int | None) -> dict[str, Any]:
    """Return the configuration of a demo: loopback only, a database of its own."""
    return {
        "server.host": "127.0.0.1",
        "server.port": port if port is not None else _free_port(),
        "server.name": "edgebox demo",
        "access.open_to": "loopback",
        "storage.path": str(Path(StorageParameters().file).with_name("demo.sqlite3")),
    }


def demo_config(file: Path | None, port: int | None) -> Config:
    """Return the configuration of a demo.

    Its street is drawn, so it runs the model for that unless the file names another one.

    Raises:
        ConfigError: every error there is in the file.
    """
    overrides = demo_overrides(port)
    config = load(file, overrides)
    if config.origins.get("inference.family") == "stored":
        config = load(file, {**overrides, "inference.family": InferenceParameters().family})
    return config


def _free_port() -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", _PORT))
        except OSError:
            return 0
    return _PORT


class Demo:
    """One run of the demo."""

    def __init__(
        self, config: Config, *, rate_hz: float, duration_s: float | None, quiet: bool
    ) -> None:
        """Prepare; `run` does it.

        Args:
            config: of the box.
            rate_hz: frames per second of each camera.
            duration_s: how long cameras stream; None: until Ctrl-C.
            quiet: print nothing meanwhile.
        """
        self._config = config
        self._rate_hz = rate_hz
        self._duration_s = duration_s
        self._quiet = quiet
        self._summaries: list[dict[str, Any]] = []
        self._box: BoxState | None = None

    async def run(self) -> None:
        """Start the box, then the cameras; end with both stopped and counted.

        Raises:
            EdgeboxError: the box cannot start, or a camera ended badly.
        """
        with importing():
            from edgebox.app.composition import App

        stopping = asyncio.Event()
        on_end_signals(stopping.set)
        with progress_bar(self._quiet) as progress:
            app = App(self._config, on_progress=progress)
            await app.listen()
            self._say(f"[bold]edgebox demo[/]: open [bold cyan]{app.url}[/] in a browser")
            start = asyncio.create_task(app.start())
            stop = asyncio.create_task(stopping.wait())
            await asyncio.wait({start, stop}, return_when="FIRST_COMPLETED")
        try:
            if not start.done():
                start.cancel()
                await asyncio.gather(start, return_exceptions=True)
                return
            start.result()
            self._say(f"ready in {app.ready_s or 0:.1f} s; four cameras start, Ctrl-C stops")
            await self._stream(app, stop)
            if app.failure is not None:
                raise app.failure
        finally:
            stop.cancel()
            await app.stop()

    async def _stream(self, app: "App", stop: "asyncio.Task[Any]") -> None:
        cameras: list[asyncio.subprocess.Process] = []
        ends: list[asyncio.Task[tuple[bytes, bytes]]] = []
        showing = asyncio.create_task(self._show(app))
        failed = asyncio.create_task(app.failed.wait())
        try:
            for camera in CAMERAS:
                process = await self._start_camera(app, camera)
                cameras.append(process)
                ends.append(asyncio.create_task(process.communicate()))
            all_ended = asyncio.ensure_future(asyncio.wait(ends))
            await asyncio.wait({stop, all_ended, failed}, return_when="FIRST_COMPLETED")
        finally:
            failed.cancel()
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            for process in cameras:
                if process.returncode is None:
                    process.terminate()
            try:
                async with asyncio.timeout(_END_PATIENCE_S):
                    outputs = await asyncio.gather(*ends)
            except TimeoutError:
                for process in cameras:
                    if process.returncode is None:
                        process.kill()
                raise EdgeboxError("a camera did not stop; it was killed") from None
            self._box = (await _state_of(app))["box"]
        self._summaries = [
            self._read_summary(camera, process.returncode, *output)
            for camera, process, output in zip(CAMERAS, cameras, outputs, strict=True)
            # One that was stopped before it could begin has nothing to say.
            if process.returncode != -signal.SIGTERM
        ]

    async def _start_camera(self, app: "App", camera: DemoCamera) -> asyncio.subprocess.Process:
        arguments = [
            sys.executable, "-m", "edgebox", "camera", camera.source,
            "--server", app.url.replace("http", "ws", 1), "--name", camera.name,
            "--slo-ms", f"{_SLO_MS:g}", "--rate-hz", f"{self._rate_hz:g}",
            "--link", camera.link, "--json",
        ]  # fmt: skip
        if app.fingerprint is not None:
            arguments += ["--fingerprint", app.fingerprint]
        if self._duration_s is not None:
            arguments += ["--duration", f"{self._duration_s:g}"]
        try:
            return await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                # Ctrl-C reaches the whole terminal; the cameras are stopped by the demo alone.
                start_new_session=True,
            )
        except OSError as error:
            why = error.strerror or error
            raise EdgeboxError(f"camera {camera.name} cannot be started: {why}") from None

    def _read_summary(
        self, camera: DemoCamera, code: int | None, said: bytes, complained: bytes
    ) -> dict[str, Any]:
        try:
            summary = orjson.loads(said)
        except orjson.JSONDecodeError:
            last = complained.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise EdgeboxError(f"camera {camera.name} ended with code {code}: {last[0]}") from None
        return {**summary, "link": camera.about}

    # -- what a person sees -----------------------------------------------------------------

    def _say(self, text: str) -> None:
        if not self._quiet:
            err.print(text)

    async def _show(self, app: "App") -> None:
        if self._quiet:
            return
        if not err.is_terminal:
            while True:
                await asyncio.sleep(_PLAIN_PERIOD_S)
                for row in _rows(await _state_of(app)):
                    err.print(" | ".join(row), markup=False, soft_wrap=True)
        with Live(console=err, transient=True, auto_refresh=False) as live:
            while True:
                live.update(_live_table(await _state_of(app)), refresh=True)
                await asyncio.sleep(_REFRESH_S)

    # -- the end ----------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """Return what the cameras measured, each and all together, and what the box counted."""
        return {"cameras": self._summaries, "all": _total(self._summaries), "box": self._box}

    def print_summary(self) -> None:
        """Print what the cameras measured."""
        if not self._summaries:
            return
        rows = [_summary_row(summary) for summary in self._summaries]
        rows.append(_summary_row({"camera": "all", "link": "", **_total(self._summaries)}))
        headings = (
            "camera", "captured", "sent", "accepted", "on time", "late", "dropped",
            "p50 ms", "p99 ms", "mean width px",
        )  # fmt: skip
        out.print(table(f"Frames by camera, deadline {_SLO_MS:g} ms", headings, rows))
        out.print(table("Latency by part, ms (p50 / p90 / p99)", ("camera", *PARTS), self._parts()))
        for summary in self._summaries:
            reasons = ", ".join(f"{n} {reason}" for reason, n in summary["dropped"].items())
            out.print(
                f"{summary['camera']}: {summary['link']}"
                + (f"; dropped: {reasons}" if reasons else "")
            )
        for line in reasons_explained(self._summaries):
            out.print(f"dropped as {line}")

    def _parts(self) -> list[tuple[str, ...]]:
        everyone = [*self._summaries, {"camera": "all", **_total(self._summaries)}]
        return [(s["camera"], *(_spread(s["latency_ms"].get(p)) for p in PARTS)) for s in everyone]


def reasons_explained(summaries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line about each reason for which frames of these cameras were dropped."""
    from edgebox.runtime.frames import DROP_MESSAGES

    there = {reason for summary in summaries for reason in summary["dropped"]}
    return [f"{each}: {text}" for each, text in DROP_MESSAGES.items() if each in there]


async def _state_of(app: "App") -> "State":
    from edgebox.web.state_document import state_document

    return await state_document(app.box, app.machine)


def _spread(quantiles: dict[str, float] | None) -> str:
    if not quantiles:
        return "-"
    return " / ".join(f"{quantiles[name]:.0f}" for name in ("p50", "p90", "p99"))


def _rows(state: "State") -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for camera in state["cameras"]:
        share, latency = camera["on_time_share"], camera["latency_ms"]
        bandwidth_bps = camera["link"]["bandwidth_bps"]
        rows.append(
            (
                camera["id"],
                f"{camera['fps']:.1f} frames/s",
                "-" if share is None else f"{share:.1%} on time",
                "-" if latency is None else f"{latency['p50']['total']:.0f} ms",
                "-" if latency is None else f"{latency['p99']['total']:.0f} ms P99",
                "-" if bandwidth_bps is None else bandwidth_text(bandwidth_bps),
                camera["advice"].reason if camera["advice"] else "",
            )
        )
    return rows


def _live_table(state: "State") -> Table:
    box = state["box"]
    busy = ", ".join(f"{e['id']} {e['utilisation']:.0%} busy" for e in box["executors"])
    made = Table(box=None, header_style="dim", caption=f"{busy}; {box['queue_length']} waiting")
    for heading in ("camera", "rate", "last minute", "latency", "", "link", "why this size"):
        made.add_column(heading, no_wrap=heading != "why this size")
    for row in _rows(state):
        made.add_row(*row)
    return made


def _summary_row(summary: dict[str, Any]) -> tuple[str, ...]:
    total = summary["latency_ms"].get("total", {})
    return (
        summary["camera"],
        *(str(summary[key]) for key in ("captured", "sent", "accepted", "on_time", "late")),
        str(sum(summary["dropped"].values())),
        f"{total['p50']:.0f}" if total else "-",
        f"{total['p99']:.0f}" if total else "-",
        "-" if summary["width_sent_mean_px"] is None else f"{summary['width_sent_mean_px']:.0f}",
    )


def _total(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Add the cameras up; latencies are those of all answered frames together, right to 1 %."""
    total: dict[str, Any] = {
        key: sum(summary[key] for summary in summaries)
        for key in ("captured", "sent", "accepted", "on_time", "late")
    }
    for key in ("dropped", "detections", "variants"):
        total[key] = dict(_added(summary[key] for summary in summaries))
    total["latency_ms"] = {
        part: Histogram(
            SUMMARY_BUCKETS,
            sum((Counter(s["latency_histogram"][part]) for s in summaries), Counter()),
        ).quantiles_ms(QUANTILES)
        for part in (PARTS if any(s["latency_ms"] for s in summaries) else ())
    }
    widths = [
        (s["width_sent_mean_px"], s["sent"])
        for s in summaries
        if s["width_sent_mean_px"] is not None
    ]
    sent = sum(n for _, n in widths)
    total["width_sent_mean_px"] = sum(px * n for px, n in widths) / sent if sent else None
    return total


def _added(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    return sum(map(Counter, counts), Counter())
