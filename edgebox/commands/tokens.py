"""`edgebox tokens`: who may use a box of this machine. Thin: reads flags, calls, prints.

Works on the box's file, whether it runs or not; a running box follows within a second or two.
"""

from datetime import datetime
from pathlib import Path

import click

from edgebox.commands.console import clear_errors, err, out, print_json, table
from edgebox.commands.lazy_group import Group
from edgebox.commands.shared_options import CONFIG, JSON
from edgebox.domain.access import Scope, Token
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.requests import CameraId
from edgebox.link.protocol import NAME_PATTERN, NAME_WANTED
from edgebox.runtime.access_control import new_token, token_document
from edgebox.storage.access_store import AccessStore, access_file
from edgebox.storage.wall_clock import wall_clock_ms


@click.group(cls=Group)
def tokens() -> None:
    """List, add and revoke the tokens of the box on this machine."""


@tokens.command("list")
@CONFIG
@JSON
def list_tokens(config_file: Path | None, as_json: bool) -> None:
    """List all tokens, without their texts."""
    with clear_errors("tokens list"):
        found = _store(config_file).load(wall_clock_ms()).tokens
    if as_json:
        print_json({"tokens": [token_document(token) for token in found]})
        return
    rows = [(t.name, t.scope.value, t.id, _day(t.created_ms), _day(t.last_used_ms)) for t in found]
    out.print(table("Tokens", ("name", "scope", "id", "made", "last used"), rows))


@tokens.command("add")
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice([scope.value for scope in Scope]),
    default=Scope.VIEWER.value,
    show_default=True,
    help="What it allows. A token of the scope camera is for the camera NAME only.",
)
@CONFIG
@JSON
def add_token(name: str, scope: str, config_file: Path | None, as_json: bool) -> None:
    """Make a token for NAME and print it; nobody can print it again.

    A camera has one token: the one that it had before ends.
    """
    with clear_errors("tokens add"):
        if scope == Scope.CAMERA and not NAME_PATTERN.fullmatch(name):
            raise InvalidInputError(f"the name of a camera has {NAME_WANTED}, not {name!r}")
        camera = CameraId(name) if scope == Scope.CAMERA else None
        token, text = new_token(name, Scope(scope), camera, wall_clock_ms())
        _store(config_file).add(token)
    if as_json:
        print_json({**token_document(token), "token": text})
        return
    err.print(f"a token of the scope {scope} for {name}, shown only now:", markup=False)
    click.echo(text)


@tokens.command("revoke")
@click.argument("token_id", metavar="ID")
@CONFIG
@JSON
def revoke_token(token_id: str, config_file: Path | None, as_json: bool) -> None:
    """Revoke the token with this ID, and end the sessions that began with it."""
    with clear_errors("tokens revoke"):
        store = _store(config_file)
        token = _found(store.load(wall_clock_ms()).tokens, token_id)
        store.remove(token.id, wall_clock_ms())
    if as_json:
        print_json(token_document(token))
        return
    err.print(f"the token of {token.name} is revoked", markup=False)


def _found(stored: tuple[Token, ...], token_id: str) -> Token:
    for token in stored:
        if token.id == token_id:
            return token
    raise InvalidInputError(
        f"there is no token with the id {token_id}; `edgebox tokens list` shows the ids"
    )


def _store(config_file: Path | None) -> AccessStore:
    from edgebox.config.config_file import load

    file = load(config_file).storage.file
    if access_file(file) == file:
        raise InvalidInputError(
            "this configuration keeps nothing (storage.path), so tokens exist in the running box "
            "only: make them on its page, under Access"
        )
    return AccessStore(access_file(file))


def _day(ms: int | None) -> str:
    return "never" if ms is None else f"{datetime.fromtimestamp(ms / 1e3):%Y-%m-%d %H:%M}"
