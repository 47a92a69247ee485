"""What is unfinished is removed: at the end, or by the next one if the process was killed."""

import os
import time
from pathlib import Path

import pytest

from edgebox.storage.unfinished_folder import unfinished_folder


def aged(folder: Path) -> None:
    a_day_ago_s = time.time() - 86_400
    os.utime(folder, (a_day_ago_s, a_day_ago_s))


def test_it_goes_at_the_end_also_when_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), unfinished_folder(tmp_path, ".work-") as folder:
        (folder / "half").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next(tmp_path: Path) -> None:
    for name in (".work-old", ".work-new", ".other-old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "half").write_text("half")
        if name.endswith("old"):
            aged(tmp_path / name)
    with unfinished_folder(tmp_path, ".work-"):
        pass
    assert sorted(each.name for each in tmp_path.iterdir()) == [".other-old", ".work-new"]


def test_work_that_takes_long_is_left_alone(tmp_path: Path) -> None:
    with unfinished_folder(tmp_path, ".work-") as long_work:
        aged(long_work)
        with unfinished_folder(tmp_path, ".work-"):
            assert long_work.is_dir()
