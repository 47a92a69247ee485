"""The section that says which other boxes there are, to which cameras may be sent."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from edgebox.config.keys import key, one_too_many

PATHS = {"fleet": ("secret_file",)}
"""Paths that are relative to the file."""
SECRET_LENGTH_MIN = 16


@dataclass(frozen=True, slots=True)
class FleetParameters:
    """Other boxes to which cameras may be sent. They all need the same secret."""

    boxes: tuple[str, ...] = key(
        (),
        'Addresses of the others, such as "http://box-2:8787"; this box may be among them. A name '
        "with several addresses stands for a box at each of them",
    )
    discover: bool = key(
        False, "Also find boxes that announce themselves in the local network (extra mdns)"
    )
    address: str = key(
        "",
        "Where cameras and the other boxes reach this box; empty: as it finds out itself",
        may_be_empty=True,
    )
    secret_file: str = key(
        "",
        "File with the secret that all boxes of the fleet share, at least 16 characters; relative "
        "to this file",
        may_be_empty=True,
    )
    secret_env: str = key("", "Or the environment variable with the secret", may_be_empty=True)

    @property
    def is_on(self) -> bool:
        """Say whether there is a fleet."""
        return bool(self.boxes) or self.discover


def fleet_contradictions(of: FleetParameters) -> Iterator[str]:
    """Yield what is wrong although each key alone is right."""
    for name, address in [*(("boxes", each) for each in of.boxes), ("address", of.address)]:
        if address and not _is_address(address):
            yield (
                f'fleet.{name}: must be an address like "http://box-2:8787", not "{address[:80]}"'
            )
    has_secret = bool(of.secret_file or of.secret_env)
    if of.secret_file and of.secret_env:
        yield one_too_many("fleet.secret_env", "secret_file")
    if has_secret and not of.is_on:
        yield (
            "fleet.boxes: a box with a secret, but without other boxes, is in no fleet: name them, "
            "or set fleet.discover"
        )
    if of.is_on and not has_secret:
        yield (
            "fleet.secret_file: the boxes of a fleet need a secret that they share: write "
            "`openssl rand -hex 32` to a file and copy it to each of them"
        )


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = parts.path in ("", "/") and not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port is not None and plain
