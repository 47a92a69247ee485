"""The configuration as it is shown: every key, what is in force, and no secrets."""

from dataclasses import replace
from pathlib import Path

from edgebox.config import Config, keys, load
from edgebox.web.configuration import MASK, _masked, shown


def test_every_key_is_shown_with_what_is_in_force(tmp_path: Path) -> None:
    config = load(None, {"server.port": 0, "storage.path": str(tmp_path / "a.sqlite3")})
    by_key = {row["key"]: row for row in shown(config)}
    assert list(by_key) == [f"{info.section}.{info.name}" for info in keys()]
    assert (by_key["server.port"]["value"], by_key["server.port"]["origin"]) == (0, "option")
    assert by_key["server.port"]["default"] == 8787
    assert by_key["storage.path"]["value"] == str(tmp_path / "a.sqlite3")
    assert by_key["limits.silent_s"]["origin"] == "default"
    assert by_key["limits.silent_s"]["value"] == by_key["limits.silent_s"]["default"] == 30.0


def test_what_is_left_empty_is_shown_filled_in() -> None:
    by_key = {row["key"]: row for row in shown(Config())}
    assert by_key["storage.path"]["value"].endswith("edgebox.sqlite3")
    assert by_key["inference.models"]["value"].endswith("models")


def test_a_secret_is_masked_unless_it_is_not_set() -> None:
    secret = replace(next(iter(keys())), secret=True)
    assert _masked(secret, "sesame") == MASK
    assert _masked(secret, "") == ""
