"""The folders of imports that are under way."""

import os
import time
from pathlib import Path

from edgebox.inference.importing.folder import UNFINISHED, unfinished


def test_old_unfinished_folders_go_and_one_that_vanishes_meanwhile_harms_nobody(
    tmp_path: Path,
) -> None:
    forgotten = tmp_path / f"{UNFINISHED}old"
    forgotten.mkdir()
    a_day_ago = time.time() - 86_400
    os.utime(forgotten, (a_day_ago, a_day_ago))
    # It is listed, and is not there when it is looked at.
    (tmp_path / f"{UNFINISHED}gone").symlink_to("nowhere")
    with unfinished(tmp_path) as folder:
        assert folder.is_dir()
    assert not forgotten.exists()
