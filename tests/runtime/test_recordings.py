"""Journals as files: whole or refused with one clear line; a few are kept."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from edgebox.runtime.journal import Journal
from edgebox.runtime.recordings import KEPT, RecordingFile, file_name, write_file
from edgebox.runtime.replay import replay_file
from tests.runtime.recorded import all_lines, eventful, filed, refusal


@pytest.fixture
def journal() -> Journal:
    return eventful().journal


def test_plain_and_zipped_files_are_read(journal: Journal, tmp_path: Path) -> None:
    zipped = filed(journal, tmp_path)
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(gzip.decompress(zipped.read_bytes()))
    for path in (zipped, plain):
        replayed = replay_file(path)
        assert replayed.replay.differing == 0
        assert replayed.replay.entries == replayed.header.entries == journal.recording().entries


def test_a_folder_keeps_the_newest_files(journal: Journal, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    other = tmp_path / "new" / "edgebox.sqlite3"
    path = filed(journal, folder)
    other.write_text("mine")
    for number in range(KEPT + 3):
        (folder / f"edgebox-journal-20200101T0000{number:02}Z.jsonl.gz").write_text("")
    assert filed(journal, folder).parent == folder
    kept = sorted(file.name for file in folder.glob("*.gz"))
    assert len(kept) == KEPT
    assert kept[-1] >= path.name
    assert "edgebox-journal-20200101T000000Z.jsonl.gz" not in kept
    assert other.exists()
    assert list(folder.glob("*.part")) == []


def test_what_a_killed_box_left_goes_and_what_another_one_writes_stays(
    journal: Journal, tmp_path: Path
) -> None:
    killed, other = (tmp_path / f"edgebox-journal-20200101T000000Z.{pid}.part" for pid in (7, 8))
    killed.write_text("")
    os.utime(killed, (0, 0))
    other.write_text("")
    filed(journal, tmp_path)
    assert list(tmp_path.glob("*.part")) == [other]


def test_a_file_outlives_those_of_a_clock_that_was_ahead(journal: Journal, tmp_path: Path) -> None:
    ahead = [tmp_path / f"edgebox-journal-9020010{n}T000000Z.jsonl.gz" for n in range(KEPT)]
    before = tmp_path / "edgebox-journal-20200101T000000Z.jsonl.gz"
    for file in (*ahead, before):
        file.write_text("")
    path = filed(journal, tmp_path)
    kept = set(tmp_path.glob("*.gz"))
    assert kept == {*ahead[2:], before, path}


def test_a_folder_that_cannot_be_written_to(journal: Journal, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        write_file(journal.recording(), tmp_path / "file")


def test_names_sort_by_time() -> None:
    assert file_name() <= file_name()
    assert file_name().startswith("edgebox-journal-2")


Spoil = Callable[[list[bytes]], list[bytes]]


def changed(line: bytes, **fields: object) -> bytes:
    return orjson.dumps({**orjson.loads(line), **fields}) + b"\n"


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda lines: [], "is not a journal of edgebox"),
        (lambda lines: [b"Dear reader,\n"], "is not a journal of edgebox"),
        (lambda lines: [b"{}\n", *lines[1:]], "is not a journal of edgebox"),
        (lambda lines: [b"[1]\n"], "is not a journal of edgebox"),
        (
            lambda lines: [changed(lines[0], edgebox="9.1"), *lines[1:]],
            "is a journal of edgebox 9.1 (format 3); this is edgebox",
        ),
        (
            lambda lines: [changed(lines[0], format_version=2), *lines[1:]],
            "(format 2); this is edgebox",
        ),
        (lambda lines: [changed(lines[0], clock=3), *lines[1:]], "line 1 is no header"),
        (lambda lines: lines[:1], "line 2 is missing: the file is cut off"),
        (lambda lines: [lines[0], *lines[2:]], "line 2 is not the state"),
        (lambda lines: [lines[0], b'{"state": []}\n'], "line 2 is no state of a scheduler"),
        (lambda lines: lines[:-1], "is missing: the file is cut off"),
        (lambda lines: [*lines[:-1], lines[-1][:-9]], "is cut off"),
        (lambda lines: [*lines[:5], lines[5][:-9] + b"\n", *lines[6:]], "line 6 is cut off or"),
        (lambda lines: [*lines[:5], b"[1,2,3]\n", *lines[6:]], "line 6 event: must be"),
    ],
)
def test_damage_is_told_with_its_line(
    spoil: Spoil, says: str, journal: Journal, tmp_path: Path
) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(b"".join(spoil(list(all_lines(journal)))))
    replayed = refusal(lambda: replay_file(path))
    assert says in replayed
    assert replayed.startswith(str(path))


def test_a_damaged_file_is_closed(journal: Journal, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(b"".join(list(all_lines(journal))[:-1]))
    recording = RecordingFile(path)
    assert "is cut off" in refusal(lambda: list(recording.entries()))
    assert recording._file is None


def test_a_zipped_file_that_is_cut_off(journal: Journal, tmp_path: Path) -> None:
    path = filed(journal, tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    assert "cut off or damaged" in refusal(lambda: replay_file(path))
    path.write_bytes(path.read_bytes()[:3])
    assert "is not a journal" in refusal(lambda: replay_file(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    message = refusal(lambda: RecordingFile(tmp_path / "none"))
    assert message == f"{tmp_path / 'none'}: cannot be read: No such file or directory"
