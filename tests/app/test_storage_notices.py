"""People hear when the database cannot be written, why, and when it can be again."""

from dataclasses import dataclass

from edgebox.app.storage_notices import StorageNotices
from edgebox.storage.rows import Level


@dataclass
class Storage:
    last_error: str = ""
    damage: str = ""
    lost_rows: int = 0


class Told(list[tuple[str, str]]):
    def publish(self, level: Level, text: str) -> None:
        self.append((level, text))


def test_each_reason_is_told_once_and_so_is_its_end() -> None:
    storage, told = Storage(), Told()
    notices = StorageNotices(storage, told.publish)
    for why in ("", "disk full", "disk full", "read-only", "", ""):
        storage.last_error = why
        notices.look()
    assert told == [
        ("error", "the database cannot be written (disk full); serving goes on"),
        ("error", "the database cannot be written (read-only); serving goes on"),
        ("info", "the database is written again; nothing is lost"),
    ]


def test_rows_that_were_lost_are_counted_from_one_failure_to_the_next() -> None:
    storage, told = Storage(), Told()
    notices = StorageNotices(storage, told.publish)
    for lost in (3, 3, 7):
        storage.last_error = "disk full"
        notices.look()
        storage.last_error, storage.lost_rows = "", lost
        notices.look()
    assert [text for level, text in told if level == "info"] == [
        "the database is written again; 3 rows that waited are lost",
        "the database is written again; nothing is lost",
        "the database is written again; 4 rows that waited are lost",
    ]


def test_each_damage_is_told_once() -> None:
    storage, told = Storage(), Told()
    notices = StorageNotices(storage, told.publish)
    for damage in ("", "set aside", "set aside", "", "mended", ""):
        storage.damage = damage
        notices.look()
    assert told == [("error", "set aside"), ("error", "mended")]
