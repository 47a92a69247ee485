"""Writes the systemd units of a box and of cameras. Pure, but for reading the templates.

A unit of the whole system runs as the user edgebox and is confined to what its work needs; one of
a user runs as that user, whose service manager can confine it little.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from edgebox.domain.errors import InvalidInputError

USER = "edgebox"
STATE = Path("/var/lib/edgebox")
"""Folder of the system's unit; systemd makes it."""
CONFIGURATION = """\
# The configuration of this box; docs/reference/config.md has every key with its default.

[server]
# 0.0.0.0 lets other machines in.
host = "127.0.0.1"
"""
_HOMES = (Path("/home"), Path("/root"))
_USB = re.compile(r"webcam(:\d+)?|/dev/video\d+")
_CONFINED = """\
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
KeyringMode=private
LockPersonality=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
UMask=0077"""


@dataclass(frozen=True, slots=True)
class Host:
    """What decides how far a unit can be confined."""

    program: tuple[str, ...]
    """How edgebox is run: its file, or Python with its module."""
    prefix: Path
    """Where it is installed."""
    gpu: bool
    """Whether there are devices of NVIDIA's that a box may use."""
    groups: tuple[str, ...]
    """Of the groups that may use devices, those that exist."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit's file and what it says."""

    name: str
    text: str


def box_unit(host: Host, config: Path, arguments: Sequence[str], *, system: bool) -> Unit:
    """Return the unit of a box.

    Args:
        host: this machine.
        config: its configuration file.
        arguments: further ones of `edgebox serve`.
        system: of the whole system, else of a user.
    """
    command = [*host.program, "serve", "--config", str(config), *arguments]
    devices = _ANY_DEVICES if host.gpu else [_WEBCAMS, _GRAPHICS]
    return _unit("edgebox.service", "edgebox", command, host=host, devices=devices, system=system)


def camera_unit(
    host: Host, camera: str, source: str, arguments: Sequence[str], *, system: bool
) -> Unit:
    """Return the unit of a camera.

    Args:
        host: this machine.
        camera: the camera's name at the box.
        source: of its pictures.
        arguments: further ones of `edgebox camera`.
        system: of the whole system, else of a user.
    """
    command = [*host.program, "camera", source, *arguments]
    devices = [_WEBCAMS] if _USB.fullmatch(source) else []
    name = f"edgebox-camera-{camera}"
    return _unit(
        "edgebox-camera.service", name, command,
        host=host, devices=devices, system=system, camera=camera,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Devices:
    """A kind of devices that a unit may use."""

    group: str
    """Of users that may open them."""
    kind: str = ""
    """As the kernel calls it; empty: any."""
    module: str = ""
    """Of the kernel, which makes the kind known."""


_WEBCAMS = _Devices("video", "video4linux", "videodev")
_GRAPHICS = _Devices("render", "drm", "drm")
"""Those that decode video."""
_ANY_DEVICES = [_Devices("video"), _Devices("render")]


def _device_lines(devices: Sequence[_Devices], groups: Sequence[str]) -> list[str]:
    """Return what confines a unit to its devices, where these groups of users exist."""
    if not devices:
        return ["PrivateDevices=yes", "PrivateUsers=yes"]
    kinds = [f"DeviceAllow=char-{each.kind} rw" for each in devices if each.kind]
    members = [each.group for each in devices if each.group in groups]
    return [
        *(["DevicePolicy=closed", *kinds] if kinds else []),
        *([f"SupplementaryGroups={' '.join(members)}"] if members else []),
    ]


def _module_lines(devices: Sequence[_Devices]) -> list[str]:
    """Return what loads the modules of devices first: systemd allows no kind that is unknown.

    A device that is plugged in later can be used then.
    """
    modules = " ".join(f"modprobe@{each.module}.service" for each in devices if each.module)
    return [f"{key}={modules}" for key in ("After", "Wants")] if modules else []


def _unit(
    template: str,
    name: str,
    command: Sequence[str],
    *,
    host: Host,
    devices: Sequence[_Devices],
    system: bool,
    camera: str = "",
) -> Unit:
    text = files("edgebox.app").joinpath("units", template).read_text("utf-8")
    environment = "ORT_DISABLE_TELEMETRY=1 PYTHONUNBUFFERED=1"
    confinement = ["NoNewPrivileges=yes", "UMask=0077"]
    if system:
        environment += f" XDG_DATA_HOME={STATE.parent} XDG_CACHE_HOME={STATE}/cache"
        # A program in a home folder has to be read there.
        at_home = any(host.prefix.is_relative_to(home) for home in _HOMES)
        confinement = [
            f"User={USER}", f"StateDirectory={STATE.name}", "StateDirectoryMode=0700",
            f"ProtectHome={'read-only' if at_home else 'yes'}",
            *_device_lines(devices, host.groups), _CONFINED,
        ]  # fmt: skip
    filled = Template(text).substitute(
        name=name,
        camera=camera,
        command=" ".join(map(quoted, command)),
        environment=environment,
        modules="".join(f"{line}\n" for line in _module_lines(devices) if system),
        confinement="\n".join(confinement) + "\n",
        wanted_by="multi-user.target" if system else "default.target",
    )
    return Unit(f"{name}.service", filled)


def quoted(word: str) -> str:
    """Return a word of a command line as systemd reads it: `%` and `$` stand for themselves.

    Raises:
        InvalidInputError: it has a character, as a line break, that no unit can have.
    """
    if not word.isprintable():
        raise InvalidInputError(f"{word!r}: has a character that cannot be in a unit")
    plain = word.replace("%", "%%").replace("$", "$$")
    if re.fullmatch(r"[\w@%+=:,./$?&~\[\]-]+", plain):
        return plain
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True, slots=True)
class UnitContext:
    """What a unit's file says of the process that it starts."""

    environment: dict[str, str]
    user: str
    """Empty: that of the service manager."""
    command: tuple[str, ...]


def context_of(text: str) -> UnitContext:
    """Read a unit that `edgebox service install` wrote."""
    lines = [line.partition("=") for line in text.split("\n") if not line.startswith("#")]
    words = [word for key, _, value in lines if key == "Environment" for word in value.split()]
    return UnitContext(
        environment=dict(word.split("=", 1) for word in words),
        user=next((value for key, _, value in lines if key == "User"), ""),
        command=next(
            (
                tuple(word.replace("%%", "%").replace("$$", "$") for word in shlex.split(value))
                for key, _, value in lines
                if key == "ExecStart"
            ),
            (),
        ),
    )
