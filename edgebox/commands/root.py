"""The `edgebox` command. Thin: reads flags, calls, prints.

Imports what a command needs when it runs, so that a camera never loads the server's libraries.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import click
from rich.markup import escape

from edgebox import __version__
from edgebox.commands.console import (
    HEALTH_STYLES,
    clear_errors,
    out,
    print_json,
    progress_bar,
    table,
    tell,
)
from edgebox.commands.lazy_group import LazyGroup, importing
from edgebox.commands.serve_options import SERVE, ServeOptions, overrides
from edgebox.commands.shared_options import CONFIG, JSON
from edgebox.config.log_section import LogParameters

_DIFFERENCES_SHOWN = 10
_KEEPERS = ("backup", "restore", "serve", "demo", "models", "profile", "tokens")
"""Commands that write a box's files: its database, journals, models, tokens."""
_SERVERS = ("serve", "demo")
"""Commands that end in an order of their own."""
_PRIVATE = 0o077
"""Nobody but the user may read or write what is made: files have mode 0600, folders 0700."""
_STOP_S = 8.0
"""Time limit for stopping a box; Docker kills it after 10 s."""


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="edgebox")
@click.pass_context
def main(context: click.Context) -> None:
    """An edge inference server: every frame is answered within its deadline."""
    if context.invoked_subcommand in _KEEPERS:
        os.umask(_PRIVATE)
        if context.invoked_subcommand not in _SERVERS:
            _clean_up_when_ended(context)


def _clean_up_when_ended(context: click.Context) -> None:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does: what is unfinished is deleted."""
    if threading.current_thread() is not threading.main_thread():
        return  # a program runs the command, and its signals are its own
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
            context.call_on_close(partial(signal.signal, number, signal.SIG_DFL))


@main.command()
@CONFIG
@SERVE
@JSON
def serve(*, config_file: Path | None, as_json: bool, **given: Unpack[ServeOptions]) -> None:
    """Run the box until Ctrl-C.

    With --json, one document is printed once the box is ready. The exit code is 75 when another
    box serves with the database, or no executor is left and only another start can help, and 78
    when the configuration or the installation is wrong and no other start can help.
    """
    with importing():
        from edgebox.commands.logs import logging_to_stderr
        from edgebox.config.config_file import load
        from edgebox.runtime.threads import certain_end

    with certain_end(), clear_errors("serve"):
        config = load(config_file, overrides(given))
    with importing():  # which takes a second; a mistake in the configuration has been told
        from edgebox.app.composition import App
        from edgebox.inference.onnx_runtime import onnx_runtime
    with (
        logging_to_stderr(config.log),
        certain_end(),
        clear_errors("serve"),
        contextlib.ExitStack() as ending,
    ):
        onnx_runtime()
        with progress_bar(as_json) as progress:
            app = App(config, on_progress=progress)
            run_loop(_serve(app, as_json, ending))


async def _serve(app: Any, as_json: bool, ending: contextlib.ExitStack) -> None:
    """Run a box to its end; from where it begins to stop, `ending` bounds how long that takes."""
    from edgebox.app.service_manager import ServiceManager

    stopping = stop_on_signals()
    manager = ServiceManager(os.environ)
    await app.listen()
    try:
        await _run_until_end(app, as_json, stopping, manager, ending)
        manager.notify(STOPPING="1", STATUS=str(app.failure or "stopping"))
    finally:  # whatever went wrong: the threads of an open database keep the process alive
        await app.stop()
    counts = app.box.metrics.total()
    if not as_json:
        tell(
            f"stopped: {counts.captured} frames captured, {counts.on_time} answered on time, "
            f"{counts.late} late, {sum(counts.dropped.values())} dropped"
        )
    if app.failure is not None:
        raise app.failure


async def _run_until_end(
    app: Any, as_json: bool, stopping: asyncio.Event, manager: Any, ending: contextlib.ExitStack
) -> None:
    """Start a box that listens, and serve until it is told to stop or has failed."""
    from edgebox.runtime.threads import leave_within

    administrator = await app.access.ensure_administrator()
    informing = asyncio.create_task(manager.run(lambda: _state_of(app.box)))
    write_journal_on_signal(app)
    if not as_json:
        tell(f"[bold]edgebox {__version__}[/] starting; the page: [cyan]{app.url}[/]")
    with contextlib.ExitStack() as untold:
        if administrator is not None:
            token = f"the administrator's token, shown only now: [bold]{administrator}[/]"
            # The document has it, but for a start that fails or is ended.
            untold.callback(tell, token) if as_json else tell(token)
        start = asyncio.create_task(app.start())
        stop = asyncio.create_task(stopping.wait())
        await asyncio.wait({start, stop}, return_when="FIRST_COMPLETED")
        if not start.done():
            ending.callback(leave_within(_STOP_S, 1).cancel)
            start.cancel()
            await asyncio.gather(start, return_exceptions=True)
        else:
            start.result()
            _print_ready(app, as_json, administrator)
            untold.pop_all()
            failed = asyncio.create_task(app.failed.wait())
            await asyncio.wait({stop, failed}, return_when="FIRST_COMPLETED")
            failed.cancel()
            status = 1 if app.failure is None else app.failure.exit_code
            ending.callback(leave_within(_STOP_S, status).cancel)
    informing.cancel()


def _state_of(box: Any) -> tuple[bool, str]:
    """Return whether a box may be called ready, and its state in a few words."""
    cameras = f"{box.connected} camera{'s' if box.connected != 1 else ''} connected"
    return box.ready, box.unserved_because() or cameras


def _print_ready(app: Any, as_json: bool, administrator: str | None) -> None:
    from edgebox.inference.doctor import executor_text

    executors = app.box.driver.executors
    if as_json:
        print_json(
            {
                "url": app.url,
                "urls_elsewhere": _urls_elsewhere(app),
                "administrator_token": administrator,
                "fingerprint": app.fingerprint,
                "ready_s": round(app.ready_s, 2),
                "profiled": app.profiled,
                "executors": [
                    {
                        "id": e.id,
                        "provider": e.provider,
                        "device": e.device,
                        "note": e.note,
                        "threads": e.cpu_threads,
                        "cores": e.cores,
                        "families": e.families,
                    }
                    for e in executors
                ],
                "families": list(app.box.families),
                "family": app.box.models.default_family,
                "only_synthetic": app.box.models.only_synthetic,
            }
        )
        return
    tell(f"[green]ready[/] in {app.ready_s:.1f} s: [cyan]{app.url}[/]")
    for executor in executors:
        tell(
            f"  {executor.id}: {executor.device} ({executor.provider})"
            f"{executor_text(executor) if len(executors) > 1 or executor.cores else ''}"
        )
        if executor.note:
            tell(f"  [yellow]{executor.note}[/]")
    _print_model(app.box.models, tell)
    stream = app.url.replace("http", "ws", 1)
    pinned = "" if app.fingerprint is None else f" --fingerprint {app.fingerprint}"
    pairing = "" if app.access.is_open else f" --pair {app.access.begin_pairing(None).shown}"
    tell(f"  a first camera: edgebox camera scene: --server {stream}{pairing}{pinned}")
    for url in _urls_elsewhere(app):
        tell(f"  from other machines: [cyan]{url}[/]")
    if app.config.server.host == "127.0.0.1":
        tell("  only this machine can connect; --host 0.0.0.0 lets others in")
    tell("  Ctrl-C stops")


def _urls_elsewhere(app: Any) -> list[str]:
    """Return the URLs of the page on other machines, where they are not the one on this machine."""
    from edgebox.web.addresses import reachable_at

    urls = [
        app.url.replace("//127.0.0.1:", f"//{at}:") for at in reachable_at(app.config.server.host)
    ]
    return [url for url in urls if url != app.url]


def _print_model(models: Any, tell: Any) -> None:
    """Print which model cameras get, and what helps where it is not for real cameras."""
    family, pipeline = models.of(None, None)
    default = models.families[family]
    through = "" if pipeline is None else f", through the pipeline {pipeline.name}"
    tell(f"  cameras that name no model get {default.name}{through}")
    if not default.synthetic:
        return
    tell(
        f"  [yellow]{default.name} was trained on synthetic drawings and is not for real cameras[/]"
    )
    families = models.families.values()
    real = [each.name for each in families if each.task == "detect" and not each.synthetic]
    helps = f"default {real[0]}" if real else "get deimv2-atto --default"
    tell(f"  a model for real cameras: edgebox models {helps}")


@main.command()
@CONFIG
@click.option("--port", type=int, default=None, help="Port of the page.  [default: 8787 or free]")
@click.option(
    "--rate-hz",
    type=click.FloatRange(0, 60, min_open=True),
    default=8.0,
    show_default=True,
    help="Frames per second and camera.",
)
@click.option("--duration", type=click.FloatRange(0, min_open=True), help="Seconds to run.")
@JSON
def demo(
    config_file: Path | None,
    port: int | None,
    rate_hz: float,
    duration: float | None,
    as_json: bool,
) -> None:
    """Run a box and four simulated cameras on this machine, to look at in a browser."""
    with importing():
        from edgebox.commands.demo import Demo, demo_config
        from edgebox.commands.logs import logging_to_stderr
        from edgebox.inference.onnx_runtime import onnx_runtime
        from edgebox.runtime.threads import certain_end

    with logging_to_stderr(LogParameters(level="error")), certain_end(), clear_errors("demo"):
        config = demo_config(config_file, port)
        onnx_runtime()
        show = Demo(config, rate_hz=rate_hz, duration_s=duration, quiet=as_json)
        run_loop(show.run())
        if as_json:
            print_json(show.summary())
        else:
            show.print_summary()


@main.command()
@CONFIG
@SERVE
@JSON
def doctor(*, config_file: Path | None, as_json: bool, **given: Unpack[ServeOptions]) -> None:
    """Check this installation: report what works, what is missing, and how to fix it.

    It looks at what edgebox serve would use with the same options.
    """
    from edgebox.app.configured_pipelines import make_pipelines
    from edgebox.app.executor_setup import open_executors
    from edgebox.app.family_folders import check_default, served_folders
    from edgebox.config.config_file import load
    from edgebox.inference.doctor import examine
    from edgebox.inference.findings import Health, to_json
    from edgebox.web.page_folder import PAGE

    with clear_errors("doctor"):
        config = load(config_file, overrides(given))
        families = served_folders(config)
    findings = examine(
        families=families,
        opening=lambda families: open_executors(config, families),
        pipelines=lambda families: make_pipelines(config, families),
        default=lambda zoo: check_default(config, zoo),
        page_built=(PAGE / "index.html").is_file(),
        storage_file=config.storage.file,
        host=config.server.host,
        port=config.server.port,
    )
    failed = any(finding.health is Health.FAIL for finding in findings)
    if as_json:
        print_json({"healthy": not failed, "findings": to_json(findings)})
    else:
        for finding in findings:
            mark, colour = HEALTH_STYLES[finding.health]
            out.print(f"[{colour}]{mark}[/] [bold]{finding.check}[/]: ", end="")
            out.print(finding.found, markup=False)
            if finding.mend:
                out.print(f"  [{colour}]mend:[/] ", end="")
                out.print(finding.mend, markup=False)
    raise SystemExit(1 if failed else 0)


@main.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--request", type=int, help="Print what happened to this request.")
@click.option("--camera", "camera_name", help="Print what happened to this camera.")
@JSON
def replay(file: Path, request: int | None, camera_name: str | None, as_json: bool) -> None:
    """Repeat every decision of a journal and report whether it is the same.

    A box writes its journal on SIGUSR1 and on a defect, and serves it at /v1/journal. The exit
    code is 1 when a decision differs.
    """
    from edgebox.runtime.replay import replay_file, to_json

    with clear_errors("replay"):
        replayed_file = replay_file(file, request, camera_name)
    if as_json:
        print_json(to_json(replayed_file))
    else:
        _print_replay(replayed_file)
    raise SystemExit(1 if replayed_file.replay.differing else 0)


def _print_replay(replayed_file: Any) -> None:
    replayed, header = replayed_file.replay, replayed_file.header
    out.print(
        f"{replayed.entries} calls in {(replayed.ended_ns - replayed.began_ns) / 1e9:.1f} s of "
        f"edgebox {header.edgebox}, policy {header.policy}: {len(replayed.requests)} requests",
        soft_wrap=True,
    )
    for title, counts in (
        ("Events of the scheduler", replayed.events),
        ("What it ordered", replayed.actions),
        ("How requests ended", replayed.endings),
    ):
        if counts:
            cells = [(name, str(count)) for name, count in counts.most_common()]
            out.print(table(title, ("", "times"), cells))
    for story in replayed_file.stories:
        out.print(f"[bold]{story[0]}[/]", *map(escape, story[1:]), sep="\n  ", soft_wrap=True)
    if replayed.differing:
        out.print(f"[red]✗[/] {replayed.differing} calls gave other orders than were recorded:")
        for difference in replayed.differences[:_DIFFERENCES_SHOWN]:
            out.print(difference, markup=False, soft_wrap=True)
        out.print("edgebox has a defect, or the file was changed: please report it with the file")
    else:
        out.print("[green]✓[/] every order came out as it was recorded")


def write_journal_on_signal(app: Any) -> None:
    """Write the journal of a box to a file whenever SIGUSR1 comes."""
    written: set[asyncio.Task[Any]] = set()

    def write() -> None:
        task = asyncio.create_task(app.write_journal())
        written.add(task)
        task.add_done_callback(written.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, write)


def stop_on_signals() -> asyncio.Event:
    """Return an event that the first SIGINT, SIGTERM or SIGHUP sets."""
    stopping = asyncio.Event()
    from edgebox.camera.shutdown import on_end_signals

    on_end_signals(stopping.set)
    return stopping


def run_loop(work: Any) -> Any:
    """Run a coroutine on a new event loop: uvloop's, or asyncio's own where uvloop is missing."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)
