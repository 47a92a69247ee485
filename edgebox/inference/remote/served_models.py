"""How a server runs the families of this box: another edgebox, or any other server.

Another edgebox is given pictures as they arrived, and says what it found on them. Any other server
is given tensors, whose outputs are decoded here. Both are compared with the family before they are
used.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import orjson

from edgebox import __version__
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import Variant, VariantName
from edgebox.domain.requests import DropReason
from edgebox.inference.encoded_pictures import Refused, decode_inputs
from edgebox.inference.executor_thread import BatchJob
from edgebox.inference.family import Family
from edgebox.inference.family_prints import family_print, reading_print
from edgebox.inference.output_reading import read_outputs
from edgebox.inference.remote.binary_tensors import InputTensor, infer_request
from edgebox.inference.remote.found_elsewhere import found_by_edgebox, tensor
from edgebox.inference.remote.http_connection import ServerConnection
from edgebox.inference.remote.server_answers import (
    Found,
    OverloadedError,
    RefusedError,
    answers_read,
    document,
    infer,
    model_path,
    plain,
)
from edgebox.inference.tensors import EncodedPicture, InputTensors
from edgebox.inference.zoo import GraphTensor, read_graph
from edgebox.media.jpeg import encode
from edgebox.vision.detections import Detections

JPEG_QUALITY = 92
"""Of crops, which are cut here, and of the pictures that are measured with."""
_DATATYPES = {
    "tensor(bool)": "BOOL", "tensor(uint8)": "UINT8", "tensor(int8)": "INT8",
    "tensor(int32)": "INT32", "tensor(int64)": "INT64", "tensor(float16)": "FP16",
    "tensor(float)": "FP32", "tensor(double)": "FP64",
}  # fmt: skip
_REQUEST_PICTURES = 3
"""JPEGs of one request, in multiples of the largest: another edgebox takes bodies of four."""
_NO_MODEL = "the server has no model {!r}"
_BINARY = "binary_tensor_data"
"""The protocol's extension that tensors travel by. Some servers have it and do not say so."""


def served_by(
    server: ServerConnection, model_pattern: str, score_floor: float
) -> "EdgeboxModels | TensorModels":
    """Ask a server what it is.

    Raises:
        ModelError: it cannot be reached, or is an edgebox of another version.
    """
    reply = server.ask("GET", "/v2")
    if reply.status == 404:  # not every server offers this
        return TensorModels(server, model_pattern, score_floor, "a server")
    about = document(reply)
    name, version = plain(about.get("name", "a server")), plain(about.get("version", ""))
    if name != "edgebox":
        binary = _BINARY in (about.get("extensions") or [])
        said = f"{name} {version}".strip()
        return TensorModels(server, model_pattern, score_floor, said, says_binary=binary)
    if _release(version) != _release(__version__):
        raise ModelError(
            f"{server.address.url} is edgebox {version}, and this is {__version__}: install the "
            "same release on both"
        )
    return EdgeboxModels(server, score_floor, f"edgebox {version}")


def _release(version: str) -> list[str]:
    return version.split(".")[:2]


class EdgeboxModels:
    """The models of another edgebox."""

    takes_encoded = True

    def __init__(self, server: ServerConnection, score_floor: float, description: str) -> None:
        """Use what a server offers, which has been reached."""
        self._server = server
        self._score_floor = score_floor
        self.description = description
        self._bytes_max = 0
        """Of one JPEG; 0: not known."""

    def check(self, family: Family, server: ServerConnection) -> None:
        """Compare a family's fingerprint, labels and variants, over a connection that nobody uses.

        Raises:
            ModelError: it cannot run there.
        """
        reply = server.ask("GET", f"{model_path(family.name)}/config")
        if reply.status == 404:
            raise ModelError(
                f"the server has no model family {family.name!r}: copy its folder there"
            )
        parameters = document(reply).get("parameters", {})
        self._bytes_max = _number(parameters, "frame_bytes_max")
        theirs = parameters.get("fingerprint", {}).get("string_value", "none")
        if theirs != family_print(family):
            raise ModelError(
                f"the server has another family of this name (there {plain(theirs)}, here "
                f"{family_print(family)}): copy the folder of one to the other"
            )
        reading = parameters.get("reading", {}).get("string_value")
        if reading not in (None, reading_print(family)):  # None: a box that does not say it yet
            raise ModelError(
                f"the server's family.toml of {family.name} says otherwise how pictures become "
                "inputs, or outputs detections: copy the folder of one to the other"
            )
        # The fingerprint is of files and sizes. Labels are in the manifest, and travel as numbers.
        labels = parameters.get("labels", {}).get("string_value")
        if labels is not None and tuple(orjson.loads(labels)) != family.labels:
            raise ModelError(
                f"the server has other labels for the family {family.name!r}: copy the family.toml "
                "of one box to the other"
            )
        index = document(server.ask("POST", "/v2/repository/index"), list)
        there = {each.get("name") for each in index}
        if missing := [v.name for v in family.variants if v.name not in there]:
            raise ModelError(
                f"the server does not offer {', '.join(missing)}; with keep_all = true in "
                "family.toml it offers all variants"
            )

    def encode(self, family: Family, variant: Variant, job: BatchJob) -> None:
        """Encode what is no JPEG yet, before a batch is timed."""
        job.inputs = [
            EncodedPicture(encode(each, JPEG_QUALITY), each.shape[1], each.shape[0])
            if isinstance(each, np.ndarray)
            else each
            for each in job.inputs
        ]

    def run(self, family: Family, variant: Variant, job: BatchJob, left_s: float) -> Found:
        """Send the pictures; the server batches them with those of its own cameras.

        One that is too large for the server costs itself alone. They travel in as many requests as
        the server's limit of bodies needs, which as a rule is one. Of several, those stay answered
        that the server took before it had too much to do.

        Raises:
            OverloadedError: the server has too much to do.
            ModelError: it refuses the batch, does not answer, or answers something else.
        """
        began_s = time.monotonic()
        pictures = [each for each in job.inputs if isinstance(each, EncodedPicture)]
        jpegs = [each.jpeg for each in pictures]
        found = [Detections.empty() for _ in pictures]
        refused: dict[int, Refused] = {}
        rows: list[int] = []
        for row, jpeg in enumerate(jpegs):
            if 0 < self._bytes_max < len(jpeg):
                said = f"{len(jpeg)} bytes are more than the {self._bytes_max} that the other"
                text = f"{said} box takes (limits.frame_bytes_max there)"
                refused[row] = Refused(DropReason.FAILED, text)
            else:
                rows.append(row)
        parts = _parts(rows, jpegs, _REQUEST_PICTURES * self._bytes_max)
        for number, part in enumerate(parts):
            past_s = time.monotonic() - began_s
            of_part = [pictures[row] for row in part]
            try:
                answers, dropped = self._ask(family, variant, of_part, left_s - past_s)
            except OverloadedError as error:
                if number == 0:
                    raise
                unanswered = chain.from_iterable(parts[number:])
                refused |= dict.fromkeys(unanswered, Refused(DropReason.OVERLOAD, str(error)))
                raise OverloadedError(str(error), (found, refused)) from None
            for at, row in enumerate(part):
                found[row] = answers[at]
                if at in dropped:
                    refused[row] = dropped[at]
        return found, refused

    def _ask(
        self,
        family: Family,
        variant: Variant,
        pictures: Sequence[EncodedPicture],
        left_s: float,
    ) -> Found:
        names = ["boxes", "scores", "labels", "counts", "outcomes"]
        if family.embedding_length is not None:
            names.append("embeddings")
        parameters = {
            "deadline_ms": min(60_000.0, max(1.0, left_s * 1e3)),
            "score_min": self._score_floor,
            "partial": True,
        }
        inputs = [InputTensor.of_elements("image", [each.jpeg for each in pictures])]
        request = infer_request(inputs, names, parameters)
        answer = infer(self._server, variant.name, request)
        if answer.fingerprint not in ("", family.served_print):
            raise ModelError(
                f"the server has another family named {family.name!r} since the last comparison: "
                "copy the folder of one to the other"
            )
        with answers_read(f"{self._server.address.host}, {variant.name}"):
            return found_by_edgebox(answer.outputs, family, pictures)


def _parts(
    rows: Sequence[int], pictures: Sequence[bytes | memoryview], bytes_max: int
) -> list[list[int]]:
    """Return rows in parts whose pictures have so many bytes together at most, if not 0."""
    parts: list[list[int]] = []
    room = 0
    for row in rows:
        size = len(pictures[row])
        if not parts or (bytes_max and size > room):
            parts.append([])
            room = bytes_max
        parts[-1].append(row)
        room -= size
    return parts


def _number(parameters: Mapping[str, Any], name: str) -> int:
    """Return a number of a model's configuration; 0: there is none."""
    text = str(parameters.get(name, {}).get("string_value", ""))
    return int(text) if text.isascii() and text.isdigit() else 0


class TensorModels:
    """The models of a server that is given tensors."""

    takes_encoded = False

    def __init__(
        self,
        server: ServerConnection,
        model_pattern: str,
        score_floor: float,
        description: str,
        *,
        says_binary: bool = True,
    ) -> None:
        """Use what a server offers, which has been reached.

        Args:
            server: the connection to it.
            model_pattern: its name for the model of a variant.
            score_floor: detections below it are left out.
            description: what it is, in a person's words.
            says_binary: it says that it takes binary tensors, or does not say what it takes.
        """
        self._server = server
        self._says_binary = says_binary
        self._pattern = model_pattern
        self._score_floor = score_floor
        self.description = description
        self._has_timeout = description.startswith("triton")
        self._tensors = InputTensors()
        self._io: dict[VariantName, tuple[GraphTensor, Sequence[GraphTensor]]] = {}
        """The input, and the outputs in the order of the graph."""
        self._versions: dict[VariantName, str] = {}
        """Versions of the models, by the answers since their metadata were compared."""

    def check(self, family: Family, server: ServerConnection) -> None:
        """Compare inputs and outputs of every variant: names, types and shapes.

        Raises:
            ModelError: it cannot run there.
        """
        graphs = {file: read_graph(file) for file in family.model_files}
        for variant in family.variants:
            inputs, outputs = graphs[family.files[variant.name]]
            name = self._model(variant)
            reply = server.ask("GET", model_path(name))
            if reply.status == 404:
                raise ModelError(_NO_MODEL.format(name))
            metadata = document(reply)
            _compare(name, "input", inputs, metadata.get("inputs") or [])
            _compare(name, "output", outputs, metadata.get("outputs") or [])
            self._io[variant.name] = inputs[0], outputs

    def encode(self, family: Family, variant: Variant, job: BatchJob) -> None:
        """Pictures are laid into tensors when the batch runs, as on this box's own executors."""

    def run(self, family: Family, variant: Variant, job: BatchJob, left_s: float) -> Found:
        """Send a tensor, `left_s` before the batch's last deadline, and decode the outputs.

        Raises:
            OverloadedError: the server has too much to do.
            ModelError: it refuses the batch, does not answer, or answers something else.
        """
        decoded = decode_inputs(job.inputs, family.input, variant)
        canvases = [each for each in decoded.inputs if isinstance(each, np.ndarray)]
        canvas = self._tensors.fill(family.input, variant, canvases, job.batch_size)
        given, wanted = self._io[variant.name]
        parameters: dict[str, object] = {}
        if self._has_timeout:
            parameters["timeout"] = max(1, round(left_s * 1e6))
        inputs = [InputTensor.of_array(given.name, _DATATYPES[given.type], canvas)]
        name = self._model(variant)
        request = infer_request(inputs, [each.name for each in wanted], parameters)
        try:
            answer = infer(self._server, name, request)
        except RefusedError as error:
            if self._says_binary:
                raise
            raise RefusedError(
                f"the server does not say that it takes binary tensors ({_BINARY}), and this box "
                f"sends no others. {error}"
            ) from None
        with answers_read(f"{self._server.address.host}, {name}"):
            if answer.version != self._versions.setdefault(variant.name, answer.version):
                self.check(family, self._server)
                self._versions[variant.name] = answer.version
            outputs = [
                tensor(
                    answer.outputs, of.name, _DATATYPES[of.type], (job.batch_size, *_sizes(of)[1:])
                )
                for of in wanted
            ]
            own = [array[: len(job.inputs)] for array in outputs]
            found, refused = read_outputs(family, variant, own, self._score_floor)
        return decoded.in_pictures(found), {**refused, **decoded.refused}

    def _model(self, variant: Variant) -> str:
        return self._pattern.format(family=variant.family, variant=variant.name)


def _sizes(tensor: GraphTensor) -> list[int]:
    """Return the sizes of a tensor's axes; -1: any."""
    return [size if isinstance(size, int) and size > 0 else -1 for size in tensor.shape]


def _compare(model: str, kind: str, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    """Compare the tensors of a graph with those of a server's metadata.

    Raises:
        ModelError: they differ.
    """
    known = {str(each.get("name")): each for each in theirs}
    if not known:
        raise ModelError(
            f"{model}: the server does not say which {kind}s the model has: its metadata must name "
            "them, with datatypes and shapes"
        )
    if kind == "input" and len(known) != len(ours):
        raise ModelError(f"{model}: the server wants {len(known)} inputs, the family has one")
    for each in ours:
        there = known.get(each.name)
        if there is None:
            names = plain(", ".join(known)) or "none"
            raise ModelError(f"{model}: the server has no {kind} {each.name!r}; it has {names}")
        datatype, said = _DATATYPES.get(each.type, each.type), there.get("datatype")
        if datatype != said:
            types = f"{datatype} here and {plain(said)} there"
            raise ModelError(f"{model}: {kind} {each.name!r} is {types}")
        here = _sizes(each)
        shape = [int(size) for size in there.get("shape", [])]
        if len(shape) != len(here) or any(
            -1 not in pair and pair[0] != pair[1] for pair in zip(here, shape, strict=True)
        ):
            raise ModelError(
                f"{model}: {kind} {each.name!r} has shape {here} here, {plain(shape)} there"
            )
