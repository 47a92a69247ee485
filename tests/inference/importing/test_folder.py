"""The folders of imports that are under way."""

import os
import time
import tomllib
from pathlib import Path

from edgebox.inference.family import MANIFEST
from edgebox.inference.importing.folder import (
    UNFINISHED,
    ImportedFamily,
    unfinished,
    write_family,
)
from edgebox.inference.importing.layouts import LAYOUTS


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


def test_a_name_that_is_no_utf_8_is_written_all_the_same(tmp_path: Path) -> None:
    name = os.fsdecode(b"b\xfcro.onnx")
    family = ImportedFamily(
        name="office",
        layout=LAYOUTS[0],
        licence="",
        description="",
        labels=("desk",),
        sources=(name,),
        remarks=(),
        files={},
        variants=(),
    )
    write_family(tmp_path, family)
    manifest = tomllib.loads((tmp_path / MANIFEST).read_text(encoding="utf-8"))
    assert manifest["import"]["sources"] == ["b?ro.onnx"]
