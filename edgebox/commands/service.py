"""`edgebox service`: a box or a camera as a service of systemd. Thin: looks, writes, prints."""

import grp
import os
import pwd
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from edgebox.app.service_units import (
    CONFIGURATION,
    STATE,
    USER,
    Host,
    Unit,
    UnitContext,
    box_unit,
    camera_unit,
    context_of,
)
from edgebox.commands.camera import camera as camera_command
from edgebox.commands.camera import check_options, files_in, host_name
from edgebox.commands.console import clear_errors, err, out, print_json
from edgebox.commands.lazy_group import Group
from edgebox.commands.shared_options import JSON
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.home_folder import expanded

_SYSTEM_UNITS = Path("/etc/systemd/system")
_SYSTEM_CONFIG = Path("/etc/edgebox/edgebox.toml")
_DEVICE_GROUPS = ("video", "render")
"""JetPack and some distributions let only these use the GPU."""
_GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/nvgpu")
_SCOPE = click.option(
    "--system/--user",
    "system",
    default=None,
    help="A service of the whole system, or of this user.  [default: of the system for root]",
)
_ROOT = click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("/"),
    help="Folder that stands for / in what is written, as for an image.",
)


@click.group(cls=Group)
def service() -> None:
    """Run a box or a camera as a service of systemd."""


@service.command()
@_SCOPE
@click.option("--camera", "source", metavar="SOURCE", help="A camera with this source, not a box.")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The box's configuration; made if it is missing.  "
    "[default: /etc/edgebox/edgebox.toml, or ~/.config/edgebox/edgebox.toml]",
)
@click.option("--dry-run", is_flag=True, help="Print what would be written; write nothing.")
@_ROOT
@JSON
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def install(
    *,
    system: bool | None,
    source: str | None,
    config: Path | None,
    dry_run: bool,
    root: Path,
    as_json: bool,
    arguments: tuple[str, ...],
) -> None:
    """Write the unit of a box, or of a camera, and say what to do next.

    ARGUMENTS behind -- are those of edgebox serve, or of edgebox camera.
    """
    with clear_errors("service install"):
        system = os.geteuid() == 0 if system is None else system
        host = _host()
        config = (config or _config(system)).absolute()
        if source is None:
            _check_serve(arguments)
            unit = box_unit(host, config, arguments, system=system)
            written = {config: CONFIGURATION} if not _below(root, config).exists() else {}
        else:
            if config_given := [word for word in arguments if word.startswith("--config")]:
                raise InvalidInputError(f"{config_given[0]}: a camera has no configuration")
            context = camera_command.make_context("camera", [source, *arguments])
            name = context.params["name"] or host_name()
            _check_camera({**context.params, "name": name}, root)
            if context.params["name"] is None:
                arguments = (*arguments, "--name", name)
            unit = camera_unit(host, name, source, arguments, system=system)
            written = {}
        written[_units(system) / unit.name] = unit.text
        if not dry_run:
            for path, text in written.items():
                _write(_below(root, path), text)
    steps = _next_steps(unit, system, source is None)
    if as_json:
        files = [{"path": str(path), "text": text} for path, text in written.items()]
        print_json({"unit": unit.name, "written": not dry_run, "files": files, "next": steps})
    elif dry_run:
        for path, text in written.items():
            out.print(f"# {path}\n{text}", markup=False, soft_wrap=True)
    else:
        lines = [*(f"wrote {path}" for path in written), "next:", *(f"  {step}" for step in steps)]
        err.print("\n".join(lines), markup=False, soft_wrap=True)


@service.command("doctor")
@_SCOPE
@_ROOT
@JSON
def doctor(*, system: bool | None, root: Path, as_json: bool) -> None:
    """Run edgebox doctor as the installed box runs: as its user, with its environment."""
    with clear_errors("service doctor"):
        system = os.geteuid() == 0 if system is None else system
        path = _below(root, _units(system) / "edgebox.service")
        try:
            context = context_of(path.read_text("utf-8"))
        except OSError as error:
            raise InvalidInputError(
                f"{path}: {error.strerror}; edgebox service install writes it"
            ) from None
        command = [sys.executable, "-m", "edgebox", "doctor", *_serve_options(context)]
        command += ["--json"] if as_json else []
        environment = {"PATH": os.environ.get("PATH", os.defpath), **context.environment}
        status = _run_as(context, command, environment)
    raise SystemExit(status)


def _serve_options(context: UnitContext) -> list[str]:
    """Return what stands behind `serve` in a unit, its configuration with it.

    Not how it prints: that is for whoever asks now.
    """
    command = list(context.command)
    options = command[command.index("serve") + 1 :] if "serve" in command else []
    return [word for word in options if word != "--json"]


def _run_as(context: UnitContext, command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command as the unit's user, if this one may, and return its status."""
    if not context.user:
        environment["HOME"] = str(Path.home())
        return subprocess.run(command, env=environment, check=False).returncode
    try:
        user = pwd.getpwnam(context.user)
    except KeyError:
        raise InvalidInputError(f"there is no user {context.user} yet: {_make_user()}") from None
    environment["HOME"] = user.pw_dir
    if os.geteuid() != 0:
        err.print(f"checked as you, not as {context.user}: run it as root", markup=False)
        return subprocess.run(command, env=environment, check=False).returncode
    # As systemd does at each start.
    STATE.mkdir(mode=0o700, exist_ok=True)
    os.chown(STATE, user.pw_uid, user.pw_gid)
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    try:
        return subprocess.run(
            command, env=environment, cwd="/", check=False,
            user=user.pw_uid, group=user.pw_gid, extra_groups=groups,
        ).returncode  # fmt: skip
    except PermissionError:
        raise InvalidInputError(
            f"the user {context.user} cannot run {Path(command[0]).resolve()}: install edgebox and "
            "its Python where every user may read, as in /opt/edgebox"
        ) from None


def _make_user() -> str:
    return f"useradd --system --home-dir {STATE} --shell /usr/sbin/nologin {USER}"


def _check_serve(arguments: Sequence[str]) -> None:
    from edgebox.commands.root import serve

    if any(word.startswith("--config") for word in arguments):
        raise InvalidInputError("name the configuration before --: --config FILE -- ...")
    serve.make_context("serve", list(arguments))


def _check_camera(given: Mapping[str, Any], root: Path) -> None:
    """Check the arguments of `edgebox camera`, by name, of a service of what is below a root.

    Raises:
        InvalidInputError: one is wrong, or names a file that the service would not find.
    """
    files = files_in(given)
    link = files.get("link")
    if link is not None and link.is_absolute():
        given = {**given, "link": str(_below(root, link))}
    check_options(given)
    shown = {
        each.name: each.opts[0] if isinstance(each, click.Option) else each.human_readable_name
        for each in camera_command.params
    }
    for name, path in files.items():
        if not path.is_absolute():
            raise InvalidInputError(
                f"{shown[name]} {path}: a service starts in another folder: give the whole path"
            )


def _host() -> Host:
    script = Path(sys.executable).with_name("edgebox")
    program = (str(script),) if script.exists() else (sys.executable, "-m", "edgebox")
    known = {group.gr_name for group in grp.getgrall()}
    return Host(
        program=program,
        prefix=Path(sys.prefix),
        gpu=any(Path(device).exists() for device in _GPU_DEVICES),
        groups=tuple(name for name in _DEVICE_GROUPS if name in known),
    )


def _units(system: bool) -> Path:
    return _SYSTEM_UNITS if system else _user_folder() / "systemd/user"


def _config(system: bool) -> Path:
    return _SYSTEM_CONFIG if system else _user_folder() / "edgebox/edgebox.toml"


def _user_folder() -> Path:
    return expanded(os.environ.get("XDG_CONFIG_HOME") or "~/.config")


def _below(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(
            f"{path}: cannot be written: {error.strerror}; run it as root, or with --user"
        ) from None


def _next_steps(unit: Unit, system: bool, is_box: bool) -> list[str]:
    """Return what to run after a unit is written."""
    scope = "" if system else "--user "
    steps = []
    if system and USER not in {user.pw_name for user in pwd.getpwall()}:
        steps.append(_make_user())
    if is_box:
        steps.append("edgebox service doctor" if system else "edgebox service doctor --user")
    steps.append(f"systemctl {scope}daemon-reload")
    steps.append(f"systemctl {scope}enable --now {unit.name}")
    if not system:
        steps.append("loginctl enable-linger    # to run without a login")
    steps.append(f"journalctl {scope}--unit {unit.name} --follow")
    return steps
