"""The notation of a pulled camera's settings: in requests, stored, and in the configuration."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from edgebox.config.camera_section import CameraParameters
from edgebox.config.secret_values import secret
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import FieldReader
from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import (
    Credentials,
    SourceAddress,
    SourceKind,
    read_address,
)
from edgebox.domain.source_settings import SourceSettings
from edgebox.link.from_camera import RATE_MAX_HZ, SLO_MAX_MS, SLO_MIN_MS
from edgebox.link.override_messages import RATE_MIN_HZ
from edgebox.link.protocol import NAME_PATTERN, NAME_WANTED

SECRET_LENGTH_MAX = 256
DECODER_LENGTH_MAX = 32
NAMES = (
    "url", "substream_url", "username", "password", "app", "family", "pipeline", "slo_ms",
    "rate_hz", "min_rate_hz", "min_accuracy", "decoder", "motion_gate",
)  # fmt: skip
NOTHING = SourceAddress(SourceKind.FILE, "")


def read_settings(
    camera: CameraId, fields: Mapping[str, object], before: SourceSettings | None = None
) -> SourceSettings:
    """Return settings after a change: null restores a default, absent fields stay.

    Args:
        camera: its name.
        fields: as a request or the database has them.
        before: what was set; None: a new camera, which needs a `url`.

    Raises:
        InvalidInputError: lists every wrong field; it never repeats a secret.
    """
    read = FieldReader("source", fields)
    read.refuse_unknown(NAMES)
    default = SourceSettings(camera, NOTHING)
    changes: dict[str, Any] = {name: getattr(default, name) for name in NAMES[4:] if name in fields}
    given = {name for name in NAMES if fields.get(name) is not None}
    for name in ("app", "family", "pipeline"):
        if name in given:
            changes[name] = read.text(name, pattern=NAME_PATTERN, expected=NAME_WANTED)
    for name, low, high in (
        ("slo_ms", SLO_MIN_MS, SLO_MAX_MS),
        ("rate_hz", RATE_MIN_HZ, RATE_MAX_HZ),
        ("min_rate_hz", 0, RATE_MAX_HZ),
        ("min_accuracy", 0, 1),
    ):
        if name in given:
            changes[name] = read.number(name, low, high)
    if "decoder" in given:
        changes["decoder"] = read.text("decoder", length_min=1, length_max=DECODER_LENGTH_MAX)
    if "motion_gate" in given:
        changes["motion_gate"] = read.flag("motion_gate")
    after = replace(before or default, **changes)
    after = _with_addresses(after, read, fields)
    read.finish()
    if after.address is NOTHING:
        raise InvalidInputError("source.url: is needed")
    return after


def _with_addresses(
    settings: SourceSettings, read: FieldReader, fields: Mapping[str, object]
) -> SourceSettings:
    """Return settings with the addresses and credentials of a change."""
    in_addresses: list[Credentials] = []

    def address(name: str) -> SourceAddress | None:
        text = fields[name]
        if text is None or text == "":
            return None
        try:
            found, credentials = read_address(text if isinstance(text, str) else "")
        except InvalidInputError as error:
            read.refuse(name, str(error))
            return None
        if credentials is not None:
            in_addresses.append(credentials)
        return found

    if "url" in fields:
        settings = replace(settings, address=address("url") or NOTHING)
    if "substream_url" in fields:
        settings = replace(settings, substream=address("substream_url"))
    credentials = in_addresses[0] if in_addresses else settings.credentials
    username, password = _secret(read, fields, "username"), _secret(read, fields, "password")
    if username == "" and "username" in fields:
        credentials = None
    elif username or password is not None:
        known = credentials or Credentials("")
        if not (username or known.username):
            read.refuse("username", "is needed with a password")
        credentials = Credentials(
            username or known.username, known.password if password is None else password
        )
    return replace(settings, credentials=credentials)


def read_search(fields: Mapping[str, object]) -> tuple[str | None, Credentials | None]:
    """Return which camera a search is for (None: all), and with which credentials it is asked.

    Raises:
        InvalidInputError: lists every wrong field; it never repeats a secret.
    """
    read = FieldReader("search", fields)
    read.refuse_unknown(("host", "username", "password"))
    host = read.text("host", length_min=1) if fields.get("host") is not None else None
    username, password = _secret(read, fields, "username"), _secret(read, fields, "password")
    if password and not username:
        read.refuse("username", "is needed with a password")
    if username and host is None:
        read.refuse("host", "is needed with a user name: it is told to one camera only")
    read.finish()
    return host, Credentials(username, password or "") if username else None


def _secret(read: FieldReader, fields: Mapping[str, object], name: str) -> str | None:
    """Return a text that no message repeats; None: it is absent."""
    if name not in fields:
        return None
    value = fields[name]
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > SECRET_LENGTH_MAX or not value.isprintable():
        read.refuse(name, f"must be a text of at most {SECRET_LENGTH_MAX} printable characters")
        return None
    return value


def written(settings: SourceSettings) -> dict[str, Any]:
    """Return the notation that `read_settings` reads, without the credentials: to be stored."""
    return {
        "url": _text(settings.address),
        "substream_url": None if settings.substream is None else _text(settings.substream),
        **{name: getattr(settings, name) for name in NAMES[4:]},
    }


def _text(address: SourceAddress) -> str:
    return address.text if address.kind is SourceKind.NETWORK else address.shown


def configured(parameters: CameraParameters, number: int) -> SourceSettings:
    """Return the settings of a camera in the configuration.

    Raises:
        ConfigError: its password cannot be read.
    """
    credentials = parameters.credentials
    found = secret(f"cameras[{number}].password", parameters.password_file, parameters.password_env)
    if found is not None:
        credentials = Credentials(parameters.username, found)
    address, substream = parameters.addresses
    return SourceSettings(
        camera=CameraId(parameters.name),
        address=address,
        substream=substream,
        credentials=credentials,
        app=parameters.app,
        family=parameters.family or None,
        pipeline=parameters.pipeline or None,
        slo_ms=parameters.slo_ms,
        rate_hz=parameters.rate_hz,
        min_rate_hz=parameters.min_rate_hz,
        min_accuracy=parameters.min_accuracy,
        decoder=parameters.decoder,
        motion_gate=parameters.motion_gate,
    )
