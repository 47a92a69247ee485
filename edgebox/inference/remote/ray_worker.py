"""What runs in a Ray worker: an ordinary executor, held by an actor.

Imported by the workers of a cluster, where edgebox is installed as well. Nothing here imports Ray:
`ray_process` makes an actor of the class.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from edgebox import __version__
from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor import BUILD_LIMIT_S
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.family import MANIFEST, Family
from edgebox.inference.null_executor import NullExecutor
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.remote.ray_messages import Buffer, decode_inputs, encode_result
from edgebox.inference.sessions import runtime_version
from edgebox.inference.zoo import load_family

Reply = tuple[bytes, list[bytes]]
"""Header (JSON) and buffers of a message, as Ray carries them."""


@dataclass(frozen=True, slots=True)
class FamilyFiles:
    """The files of a family, as a cluster keeps them once for all workers."""

    contents: Mapping[str, bytes]
    """By file name."""


def order_of(family: Family) -> dict[str, Any]:
    """Return what identifies a family: its folder on the box, and the SHA-256 of each file.

    Raises:
        ModelError: it was not read from a folder.
    """
    if family.manifest is None:
        raise ModelError(f"{family.name} has no folder whose files could be sent to workers")
    files = (family.manifest, *family.model_files)
    return {
        "name": family.name,
        "folder": str(family.manifest.path.parent.absolute()),
        "sha256": {file.path.name: file.sha256 for file in files},
    }


def read_files(order: Mapping[str, Any]) -> FamilyFiles:
    """Read the files that an order names, on the box.

    Raises:
        OSError: one cannot be read.
    """
    folder = Path(order["folder"])
    return FamilyFiles({name: (folder / name).read_bytes() for name in order["sha256"]})


def verify(order: Mapping[str, Any], files: FamilyFiles) -> None:
    """Compare files with what the box serves.

    Raises:
        ModelError: one differs or is missing.
    """
    for name, wanted in order["sha256"].items():
        content = files.contents.get(name)
        if content is None:
            raise ModelError(f"{name} of the family {order['name']} did not reach the worker")
        if (digest := sha256(content).hexdigest()) != wanted:
            raise ModelError(
                f"{name} of the family {order['name']} has sha256 {digest}, but the box serves "
                f"{wanted}: the file was changed since the box started. Start the box again"
            )


class RayWorker:
    """One executor of a box, on a node of a cluster. Every answer is a message."""

    def __init__(self) -> None:
        """Start without an executor."""
        self._executor: OnnxExecutor | NullExecutor | None = None
        self._held: list[Family] = []

    def open(self, order: Mapping[str, Any], *families: FamilyFiles) -> Reply:
        """Open the executor; answer what became of it, or an error."""
        try:
            return _reply(self._open(order, families))
        except EdgeboxError as error:
            return _reply({"error": str(error)})

    def add(self, order: Mapping[str, Any], *families: FamilyFiles) -> Reply:
        """Open further families, while batches run; answer nothing, or an error."""
        try:
            with _unpacked(order, families) as held:
                for family in held:
                    if isinstance(self._executor, OnnxExecutor):
                        self._executor.add_family(family)
                        self._held.append(family)
        except EdgeboxError as error:
            return _reply({"error": str(error)})
        return _reply({})

    def drop(self, order: Mapping[str, Any]) -> Reply:
        """Hold families no more, while batches run; answer nothing."""
        gone = [each["sha256"] for each in order["families"]]
        for family in [each for each in self._held if order_of(each)["sha256"] in gone]:
            if isinstance(self._executor, OnnxExecutor):
                self._executor.drop_family(family)
            self._held.remove(family)
        return _reply({})

    def run(self, header: bytes, *buffers: Buffer) -> Reply:
        """Run a batch; answer its result, or an error."""
        order = orjson.loads(header)
        try:
            message = encode_result(self._run(order, buffers))
        except EdgeboxError as error:
            return _reply({"error": str(error)})
        return _reply(message.header, message.buffers)

    def _open(self, order: Mapping[str, Any], families: Sequence[FamilyFiles]) -> dict[str, Any]:
        if order["version"] != __version__:
            raise ModelError(
                f"the worker has edgebox {__version__}, but the box is {order['version']}: install "
                "the same version on all nodes of the cluster"
            )
        if "wait_ns" in order:
            self._executor = NullExecutor(ExecutorId(order["id"]), batch_ns=order["wait_ns"])
            return {"device": "none", "provider": "NullExecutor", "note": "", "failed": {}}
        with _unpacked(order, families) as held:
            # Sessions have read their files once they are open.
            executor = OnnxExecutor(
                ExecutorId(order["id"]),
                held,
                providers=order["provider"],
                cpu_threads=order["threads"],
                score_floor=order["score_floor"],
            )
        self._executor = executor
        self._held += held
        return {
            "device": executor.device,
            "provider": f"{executor.provider} {runtime_version()}",
            "note": executor.note,
            "failed": {name: str(error) for name, error in executor.failed.items()},
        }

    def _run(self, order: Mapping[str, Any], buffers: Sequence[Buffer]) -> BatchResult:
        assert self._executor is not None, "it was not opened"
        inputs = decode_inputs(order["inputs"], buffers)
        future = self._executor.submit(order["variant"], inputs, order["batch_size"])
        result = future.result(BUILD_LIMIT_S)
        return replace(result, detections=result.detections[: len(inputs)])


@contextmanager
def _unpacked(order: Mapping[str, Any], files: Sequence[FamilyFiles]) -> Iterator[list[Family]]:
    """Keep the files of the families that an order names in a folder, and read them from there.

    Raises:
        ModelError: a file is missing, or is not what the box serves.
    """
    with tempfile.TemporaryDirectory(prefix="edgebox-") as folder:
        yield [
            _read(each, found, Path(folder) / str(number))
            for number, (each, found) in enumerate(zip(order["families"], files, strict=True))
        ]


def _read(order: Mapping[str, Any], files: FamilyFiles, folder: Path) -> Family:
    """Write a family's files, verified, and read the family from them."""
    verify(order, files)
    folder.mkdir(exist_ok=True)
    for name, content in files.contents.items():
        (folder / Path(name).name).write_bytes(content)
    assert (folder / MANIFEST).exists()
    return load_family(folder)


def _reply(header: Mapping[str, Any], buffers: Sequence[Buffer] = ()) -> Reply:
    return orjson.dumps(header), [bytes(each) for each in buffers]
