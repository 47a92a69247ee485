"""Decides what the configuration file means: TOML in, typed parameters out, all errors at once.

Every key is declared once, with its default, range and explanation; the example file and the
reference in docs/ are tested against these declarations.
"""

import itertools
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from edgebox.config.access_section import AccessParameters
from edgebox.config.camera_section import PATHS as CAMERA_PATHS
from edgebox.config.camera_section import URLS as CAMERA_URLS
from edgebox.config.camera_section import CameraParameters, camera_contradictions, in_folder
from edgebox.config.default_family import stored_default
from edgebox.config.detector_section import ZmqDetectorParameters, detector_contradictions
from edgebox.config.executor_section import MOVED, ExecutorParameters
from edgebox.config.executor_section import PATHS as EXECUTOR_PATHS
from edgebox.config.executor_section import contradictions as executor_contradictions
from edgebox.config.fleet_section import PATHS as FLEET_PATHS
from edgebox.config.fleet_section import FleetParameters, fleet_contradictions
from edgebox.config.host_names import wrong_hosts
from edgebox.config.inference_section import InferenceParameters
from edgebox.config.keys import KeyInfo, as_toml, converted, expected, is_tables, nearest, repeated
from edgebox.config.keys import key as _key
from edgebox.config.log_section import LogParameters
from edgebox.config.notification_sections import (
    PATHS,
    DetectionParameters,
    EventParameters,
    MqttParameters,
    WebhookParameters,
    contradictions,
)
from edgebox.config.pipeline_section import PipelineParameters
from edgebox.config.pipeline_section import contradictions as pipeline_contradictions
from edgebox.config.scheduling_sections import PlannerSection, SchedulerSection
from edgebox.config.storage_section import StorageParameters
from edgebox.config.tracking_sections import (
    LineParameters,
    TrackingParameters,
    ZoneParameters,
    tracking_contradictions,
)
from edgebox.domain.errors import ConfigError
from edgebox.domain.field_reader import FieldReader, Notation, dotted
from edgebox.domain.home_folder import expanded
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

_NOTATION = Notation(lambda path: f"{dotted(path)}: ", show=as_toml, collects=True)


@dataclass(frozen=True, slots=True)
class ServerParameters:
    """Where the box listens."""

    host: str = _key(
        "127.0.0.1",
        "Address to listen on; 0.0.0.0 lets other machines in",
    )
    port: int = _key(8787, "Port to listen on; 0 takes any free one", low=0, high=65535)
    allowed_hosts: tuple[str, ...] = _key(
        (),
        "Host names accepted in requests, in addition to IP addresses, localhost and this "
        "machine's own names; .example.com includes all subdomains. Empty: if the box "
        "listens for other machines, it also accepts names without a dot and those ending "
        "in .local, .lan, .home, .internal or .home.arpa",
    )
    trusted_proxies: tuple[str, ...] = _key(
        (),
        "Addresses or networks of reverse proxies whose X-Forwarded-Host, -For and -Proto are "
        "trusted",
    )
    name: str = _key("edgebox", "Name of this box on the page and in announcements")
    announce: bool = _key(
        False,
        "Announce the box in the local network by mDNS (extra mdns), so that cameras there find it",
    )
    tls: str = _key(
        "off",
        "TLS on the port: off; self-signed, with a certificate that the box makes once and keeps "
        "beside the database (extra tls); files, with the two files below",
        choices=("off", "self-signed", "files"),
    )
    tls_certificate: str = _key(
        "",
        "The certificate, with those that lead to its authority, as PEM; relative to this file",
        may_be_empty=True,
    )
    tls_key: str = _key("", "Its private key, as PEM; relative to this file", may_be_empty=True)


@dataclass(frozen=True, slots=True)
class LimitParameters:
    """What the box accepts."""

    frame_bytes_max: int = _key(8 << 20, "Bytes of one frame's JPEG", low=1024, high=64 << 20)
    model_bytes_max: int = _key(
        512 << 20, "Bytes of a model file imported over HTTP", low=1024, high=512 << 20
    )
    cameras_max: int = _key(64, "Cameras connected at once", low=1, high=10_000)
    unacknowledged_max: int = _key(
        2, "Frames a camera may send ahead of their acks", low=1, high=64
    )
    pending_per_camera_max: int = _key(
        8, "Frames of one camera that may wait at the box; the newest win", low=1, high=1000
    )
    pending_max: int = _key(256, "Frames of all cameras that may wait", low=1, high=100_000)
    silent_s: float = _key(
        30.0, "Seconds without any message after which a camera is disconnected", low=1, high=3600
    )
    connections_max: int = _key(
        960,
        "Connections at once besides those of `cameras_max` cameras; one address may have half of "
        "them. Fewer where the system allows fewer open files",
        low=16,
        high=100_000,
    )
    requests_max: int = _key(
        512,
        "HTTP requests that are answered at once; one address may have half of them",
        low=2,
        high=100_000,
    )
    bodies_max_mb: int = _key(
        256,
        "Megabytes of requests' bodies held at once, or two of the largest body if that is more; "
        "one address may have half of them",
        low=1,
        high=1_000_000,
    )
    viewers_max: int = _key(
        128, "Pages open at once; one address may have half of them", low=2, high=10_000
    )
    header_timeout_s: float = _key(
        10.0, "Seconds within which a request's headers must arrive", low=0.1, high=3600
    )
    body_timeout_s: float = _key(
        30.0,
        "Seconds within which a request's body must arrive and its answer must be received; large "
        "ones have a second more for every 16 kB",
        low=0.1,
        high=3600,
    )
    keep_alive_s: float = _key(
        30.0, "Seconds for which an idle HTTP connection is kept", low=0.1, high=3600
    )


Origin = Literal["default", "file", "environment", "option", "stored"]


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration; `Config()` is what an empty file means."""

    server: ServerParameters = field(default_factory=ServerParameters)
    access: AccessParameters = field(default_factory=AccessParameters)
    log: LogParameters = field(default_factory=LogParameters)
    limits: LimitParameters = field(default_factory=LimitParameters)
    storage: StorageParameters = field(default_factory=StorageParameters)
    inference: InferenceParameters = field(default_factory=InferenceParameters)
    cameras: tuple[CameraParameters, ...] = repeated(CameraParameters)
    executors: tuple[ExecutorParameters, ...] = repeated(ExecutorParameters)
    pipelines: tuple[PipelineParameters, ...] = repeated(PipelineParameters)
    scheduler: SchedulerSection = field(default_factory=SchedulerSection)
    planner: PlannerSection = field(default_factory=PlannerSection)
    events: EventParameters = field(default_factory=EventParameters)
    detections: tuple[DetectionParameters, ...] = repeated(DetectionParameters)
    tracking: TrackingParameters = field(default_factory=TrackingParameters)
    zones: tuple[ZoneParameters, ...] = repeated(ZoneParameters)
    lines: tuple[LineParameters, ...] = repeated(LineParameters)
    mqtt: MqttParameters = field(default_factory=MqttParameters)
    webhooks: tuple[WebhookParameters, ...] = repeated(WebhookParameters)
    zmq_detector: ZmqDetectorParameters = field(default_factory=ZmqDetectorParameters)
    fleet: FleetParameters = field(default_factory=FleetParameters)
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False)
    """Where each key's value is from, by key path ("server.port", "webhooks[0].url"); not named:
    the default."""
    source: str = field(default="the command line", compare=False)
    """The file, for messages."""

    def scheduler_parameters(self, cores: int = 0) -> SchedulerParameters:
        """Return what the scheduling core is tuned with; `cores` of this machine, 0: unknown."""
        return SchedulerParameters(
            planning_interval_ns=self.planner.interval_ms * 1_000_000,
            camera_pending_max=self.limits.pending_per_camera_max,
            box_pending_max=self.limits.pending_max,
            concurrent_batches=self.scheduler.concurrent_batches,
            variant_per_batch=self.scheduler.variant_per_batch,
            low_quantile=self.scheduler.low_quantile,
            high_quantile=self.scheduler.high_quantile,
            sample_share=self.scheduler.sample_share,
            sample_horizon_ns=round(self.scheduler.sample_horizon_s * 1e9),
            utilisation_max=self.planner.utilisation_max,
            quality=self.planner.quality,
            cores=cores,
        )

    def planning_parameters(self) -> PlanningParameters:
        """Return what planning is tuned with."""
        return PlanningParameters(
            quantile=self.scheduler.high_quantile,
            uplink_utilisation_max=self.planner.uplink_utilisation_max,
            uplink_utilisation_max_stable=self.planner.uplink_utilisation_max_stable,
            rate_min_hz=self.planner.rate_min_hz,
            quality=self.planner.quality,
        ).using(self.planner.utilisation_max)


def keys() -> Iterator[KeyInfo]:
    """Yield every key there is, in the order of the example file."""
    several = _repeated()
    for section, declared in _declared().items():
        yield from _infos(section, section in several, declared.values())


def _infos(section: str, several: bool, declared: Iterable[Field[Any]]) -> Iterator[KeyInfo]:
    """Yield a section's own keys, then those of the tables in it."""
    inner = []
    for key in declared:
        if is_tables(key):
            inner.append(key)
            continue
        doc, secret = key.metadata["doc"], key.metadata["secret"]
        default = as_toml(key.default)
        yield KeyInfo(section, several, key.name, default, expected(key), doc, secret)
    for tables in inner:
        yield from _infos(f"{section}.{tables.name}", True, fields(tables.metadata["of"]))


def load(path: Path | None, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read a configuration file; None: the defaults.

    Args:
        path: a TOML file; relative paths in it are relative to its folder.
        overrides: values by key path ("server.port"), which win over the file's and are checked
            like them; relative paths are relative to the current folder. All tables of a section
            that may come several times ("executors") are a list.

    Raises:
        ConfigError: every error there is, a line each.
    """
    tables = {} if path is None else _parsed(path)
    problems: list[str] = []
    read = FieldReader((), tables, _NOTATION)
    read.errors = problems
    declared, several = _declared(), _repeated()
    for name in read.names():
        if name not in declared:
            read.refuse(name, f"there is no such section{nearest(name, declared)}")
        elif name in several and not _are_tables(tables[name]):
            read.refuse(name, f"must be tables, [[{name}]]", tables.pop(name))
        elif name not in several and not isinstance(tables[name], dict):
            read.refuse(name, f"must be a table, [{name}]", tables.pop(name))
    origins: dict[str, Origin] = dict.fromkeys(_key_paths(tables), "file")
    if path is not None:
        _resolve_paths(path.parent, tables)
    origins |= _overridden(tables, overrides or {})
    if os.environ.get("XDG_DATA_HOME"):
        for key_path in ("storage.path", "inference.models"):
            origins.setdefault(key_path, "environment")
    base = Config()
    sections: dict[str, Any] = {
        name: replace(getattr(base, name), **_checked(name, known, tables.get(name, {}), problems))
        for name, known in declared.items()
        if name not in several
    }
    for name, kind in several.items():
        sections[name] = tuple(
            kind(**_checked(f"{name}[{number}]", declared[name], table, problems))
            for number, table in enumerate(tables.get(name, ()))
        )
    if "inference.family" not in origins:
        sections["inference"], origins = _with_stored_default(sections["inference"], origins)
    config = Config(**sections)
    if not problems:
        problems += camera_contradictions(config.cameras)
        problems += executor_contradictions(config.executors)
        problems += pipeline_contradictions(config.pipelines, config.inference.pipeline)
        problems += wrong_hosts(config.server.allowed_hosts, config.server.trusted_proxies)
        problems += _tls_contradictions(config.server)
        problems += contradictions(config.mqtt, config.webhooks)
        problems += tracking_contradictions(config.zones, config.lines)
        problems += detector_contradictions(config.zmq_detector, config.access.open_to)
        problems += fleet_contradictions(config.fleet)
    source = base.source if path is None else str(path)
    if problems:
        raise ConfigError("\n".join([f"{source}:", *(f"  {problem}" for problem in problems)]))
    return replace(config, origins=origins, source=source)


def _with_stored_default(
    inference: InferenceParameters, origins: dict[str, Origin]
) -> tuple[InferenceParameters, dict[str, Origin]]:
    """Return the section with the default family that `edgebox models default` stored, if any."""
    name = stored_default(inference.models_folder)
    if name is None:
        return inference, origins
    return replace(inference, family=name), {**origins, "inference.family": "stored"}


def _overridden(tables: dict[str, Any], overrides: Mapping[str, Any]) -> dict[str, Origin]:
    """Put values over those of the file; return where they are from."""
    origins: dict[str, Origin] = {}
    for key_path, value in overrides.items():
        section, _, key = key_path.partition(".")
        if key:
            tables.setdefault(section, {})[key] = value
            origins[key_path] = "option"
        else:  # all tables of a section that may come several times
            tables[section] = value
            origins |= dict.fromkeys(_key_paths({section: value}), "option")
    return origins


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not a text file in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:  # its text ends in line and column
        raise ConfigError(f"{path}: is not valid TOML: {error}") from None


def _declared() -> dict[str, dict[str, Field[Any]]]:
    """Return the fields of every section, by section and key."""
    base, several = Config(), _repeated()
    return {
        section.name: {
            key.name: key
            for key in fields(several.get(section.name) or getattr(base, section.name))
        }
        for section in fields(Config)
        if section.name not in ("origins", "source")
    }


def _repeated() -> dict[str, Any]:
    """Return the sections that may come any number of times, with what one of them is."""
    return {
        section.name: section.metadata["of"]
        for section in fields(Config)
        if "of" in section.metadata
    }


def _key_paths(tables: Mapping[str, Any]) -> Iterator[str]:
    """Yield the path of each key that is set: "server.port", "webhooks[0].url"."""
    for section, found in tables.items():
        if isinstance(found, dict):
            yield from (f"{section}.{name}" for name in found)
        elif _are_tables(found):
            for number, table in enumerate(found):
                path = f"{section}[{number}]"
                for name, value in table.items():
                    inner = f"{path}.{name}"
                    nested = value != [] and _are_tables(value)
                    yield from _key_paths({inner: value}) if nested else (inner,)


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _checked(
    section: str, known: Mapping[str, Field[Any]], table: Mapping[str, Any], problems: list[str]
) -> dict[str, Any]:
    """Return the good values of one section; what is wrong goes to `problems`."""
    read, good = FieldReader(section, table, _NOTATION), {}
    read.errors = problems
    for name, value in table.items():
        if name not in known:
            moved = MOVED.get(f"{section}.{name}")
            said = moved or f"there is no such key{nearest(name, known)}"
            if name in _repeated():
                said = f"this is no key, but tables of their own, each begins with [[{name}]]"
            read.refuse(name, said)
            continue
        if is_tables(known[name]):
            good[name] = _inner_tables(read, section, known[name], value)
            continue
        checked = converted(known[name], value)
        if checked is None:
            said = f"must be {expected(known[name])}"
            if known[name].metadata["secret"]:
                read.refuse(name, said)
            else:
                read.refuse(name, said, value)
        else:
            good[name] = checked
    return good


def _inner_tables(read: FieldReader, section: str, tables: Field[Any], value: Any) -> Any:
    """Return the good tables of an array of tables within a section."""
    if not _are_tables(value):
        name = re.sub(r"\[\d+\]", "", f"{section}.{tables.name}")
        read.refuse(tables.name, f"must be tables, [[{name}]]", value)
        return ()
    kind = tables.metadata["of"]
    known = {each.name: each for each in fields(kind)}
    return tuple(
        kind(**_checked(f"{section}.{tables.name}[{number}]", known, table, read.errors))
        for number, table in enumerate(value)
    )


def _tls_contradictions(server: ServerParameters) -> list[str]:
    named = [name for name in ("tls_certificate", "tls_key") if getattr(server, name)]
    if server.tls == "files" and len(named) < 2:
        return ['server.tls: "files" needs server.tls_certificate and server.tls_key']
    if server.tls != "files" and named:
        return [f'server.{named[0]}: it is used with server.tls = "files" only']
    return []


_TLS_PATHS = {"server": ("tls_certificate", "tls_key")}


def _resolve_paths(folder: Path, tables: Mapping[str, Any]) -> None:
    """Make the file's relative paths relative to its folder; wrong types stay, to be reported."""
    storage, inference = tables.get("storage", {}), tables.get("inference", {})
    path = storage.get("path")
    if isinstance(path, str) and path not in ("", ":memory:"):
        storage["path"] = str(folder / expanded(path))
    models = inference.get("models")
    if isinstance(models, str) and models:
        inference["models"] = str(folder / expanded(models))
    families = inference.get("families")
    if isinstance(families, list) and all(isinstance(entry, str) and entry for entry in families):
        inference["families"] = [str(folder / expanded(entry)) for entry in families]
    every = PATHS | CAMERA_PATHS | EXECUTOR_PATHS | FLEET_PATHS | _TLS_PATHS
    for section, names in every.items():
        found = tables.get(section, {})
        for table, name in itertools.product([found] if isinstance(found, dict) else found, names):
            if isinstance(table.get(name), str) and table[name]:
                table[name] = str(folder / expanded(table[name]))
    cameras = tables.get("cameras", ())
    for camera, name in itertools.product(cameras if _are_tables(cameras) else (), CAMERA_URLS):
        if isinstance(camera.get(name), str):
            camera[name] = in_folder(folder, camera[name])
