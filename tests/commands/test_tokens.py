"""`edgebox tokens` speaks to programs as to people."""

from pathlib import Path

from tests.end_to_end.program import configured, within_this_process


def test_a_program_is_told_which_token_is_revoked(tmp_path: Path) -> None:
    where = ("--config", str(configured(tmp_path, tmp_path / "box.sqlite3")), "--json")
    made = within_this_process(tmp_path, "tokens", "add", "Grafana", *where).json()
    assert made.pop("token")
    revoked = within_this_process(tmp_path, "tokens", "revoke", made["id"], *where).json()
    assert revoked == made
    assert within_this_process(tmp_path, "tokens", "list", *where).json() == {"tokens": []}
