"""The configuration as it is shown: every key, what is in force, and no secrets."""

from dataclasses import replace
from pathlib import Path

from edgebox.config.config_file import Config, keys, load
from edgebox.web.configuration import MASK, _masked, shown


def test_every_key_is_shown_with_what_is_in_force(tmp_path: Path) -> None:
    config = load(None, {"server.port": 0, "storage.path": str(tmp_path / "a.sqlite3")})
    by_key = {row["key"]: row for row in shown(config)}
    plain = [info for info in keys() if not info.repeated]
    assert list(by_key) == [f"{info.section}.{info.name}" for info in plain]
    assert (by_key["server.port"]["value"], by_key["server.port"]["origin"]) == (0, "option")
    assert by_key["server.port"]["default"] == 8787
    assert by_key["storage.path"]["value"] == str(tmp_path / "a.sqlite3")
    assert by_key["limits.silent_s"]["origin"] == "default"
    assert by_key["limits.silent_s"]["value"] == by_key["limits.silent_s"]["default"] == 30.0


def test_what_is_left_empty_is_shown_filled_in() -> None:
    by_key = {row["key"]: row for row in shown(Config())}
    assert by_key["storage.path"]["value"].endswith("edgebox.sqlite3")
    assert by_key["inference.models"]["value"].endswith("models")


def test_sections_that_repeat_are_shown_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "edgebox.toml"
    path.write_text(
        """
        [mqtt]
        host = "broker"
        [[webhooks]]
        url = "https://hooks.example:8443/services/T0/B1?token=sesame"
        [[webhooks]]
        url = "http://plain.example"
        name = "plain"
        queue_max = 7
        """,
        encoding="utf-8",
    )
    rows = shown(load(path))
    by_key = {row["key"]: row for row in rows}
    names = [info.name for info in keys() if info.section == "webhooks"]
    assert [row["key"] for row in rows if row["key"].startswith("webhooks")] == [
        f"webhooks[{number}].{name}" for number in (0, 1) for name in names
    ]
    assert not any(row["key"].startswith("detections") for row in rows)
    assert (by_key["mqtt.host"]["value"], by_key["mqtt.host"]["origin"]) == ("broker", "file")
    assert by_key["mqtt.port"]["origin"] == "default"
    first, second = by_key["webhooks[0].url"], by_key["webhooks[1].url"]
    assert first["value"] == f"https://hooks.example:8443/{MASK}"
    assert second["value"] == "http://plain.example"
    assert first["secret"] and first["origin"] == "file" and first["default"] == ""
    assert by_key["webhooks[0].name"]["value"] == "hooks.example:8443"
    assert by_key["webhooks[0].name"]["origin"] == "default"
    assert by_key["webhooks[1].queue_max"]["value"] == 7
    assert by_key["webhooks[1].queue_max"]["default"] == 1000
    assert "sesame" not in str(rows) and "T0" not in str(rows)


def test_a_secret_is_masked_unless_it_is_not_set() -> None:
    secret = replace(next(iter(keys())), secret="all")
    assert _masked(secret, "sesame") == MASK
    assert _masked(secret, "") == ""
