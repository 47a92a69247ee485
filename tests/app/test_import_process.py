"""The process that imports a model, as the box listens to it."""

import os
from pathlib import Path

import pytest

from edgebox.app import import_process
from edgebox.app.import_process import ImportOrder, import_in_process
from edgebox.domain.job_errors import ImportRefusedError

WORKER = """
import json, sys
sys.stdin.readline()
for line in ("loading...", "7", "null", '["a", "list"]', '"a text"'):
    print(line)
print(json.dumps({"refused": "it is no model"}))
"""


async def test_what_libraries_print_is_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "printing_worker.py").write_text(WORKER)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setattr(import_process, "_WORKER_MODULE", "printing_worker")
    order = ImportOrder(files=(Path("a.onnx"),), folder=tmp_path, models=tmp_path)
    with pytest.raises(ImportRefusedError, match="it is no model"):
        await import_in_process(order, lambda text, share: None)
