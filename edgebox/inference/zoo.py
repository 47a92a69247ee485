"""The model families a box can run: finds their folders, checks each against its file.

A broken family never stops the others: it becomes a `problem` that names file and key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.inference.family import MANIFEST, Family, ModelFile, read_manifest
from edgebox.inference.features import graph_mistake, part_mistake
from edgebox.inference.onnx_runtime import onnx_runtime
from edgebox.inference.sessions import brief
from edgebox.vision.decoding import CLASS_LOGITS, EMBEDDING

_DTYPES = {"uint8": "tensor(uint8)", "float32": "tensor(float)"}
_NUMBERS = {
    *("tensor(bool)", "tensor(float16)", "tensor(float)", "tensor(double)"),
    *(f"tensor({kind}{bits})" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
}
"""Types of outputs that decoders read."""
_OUTPUTS = {"boxes_scores_labels": 3, "yolox": 1, CLASS_LOGITS: 1, EMBEDDING: 1}
_LABELS_COLUMN = {"yolox": 5, CLASS_LOGITS: 0}
"""Decoders whose one output ends in one column per label: columns before them."""


@dataclass(frozen=True, slots=True)
class GraphTensor:
    """An input or an output of a model, as ONNX Runtime describes it."""

    name: str
    type: str
    """"tensor(float)" and the like."""
    shape: tuple[int | str | None, ...]
    """An axis of any length has a name or none."""


Graph = tuple[tuple[GraphTensor, ...], tuple[GraphTensor, ...]]
"""Inputs and outputs of a model."""


@dataclass(frozen=True, slots=True)
class Zoo:
    """The families that can run, and what is wrong with those that cannot."""

    families: tuple[Family, ...]
    problems: tuple[ModelError, ...]

    def family(self, name: str) -> Family:
        """Return one family by name.

        Raises:
            ModelError: there is no such family; the message lists those there are.
        """
        for family in self.families:
            if family.name == name:
                return family
        known = ", ".join(family.name for family in self.families) or "none"
        left_out = "".join(f"; left out: {problem}" for problem in self.problems)
        raise ModelError(f"there is no model family {name!r} (families: {known}){left_out}")


def bundled_folders() -> list[Path]:
    """Return the family folders that come with edgebox: in the wheel, else in the source tree."""
    package = Path(__file__).resolve().parent.parent
    for root in (package / "families", package.parent / "models"):
        folders = sorted(manifest.parent for manifest in root.glob(f"*/{MANIFEST}"))
        if folders:
            return folders
    return []


def imported_folders(models: Path) -> list[Path]:
    """Return the family folders in the folder that imports go to; hidden ones are unfinished."""
    return sorted(
        manifest.parent
        for manifest in models.glob(f"*/{MANIFEST}")
        if not manifest.parent.name.startswith(".")
    )


def load_zoo(folders: Sequence[Path]) -> Zoo:
    """Load the families in these folders; the first to use a name keeps it.

    A folder that is given twice, also by another path, is loaded once: the configuration may name a
    bundled one. Opens every model once on the CPU, so it takes about 50 ms for a small family.
    """
    families: list[Family] = []
    problems: list[ModelError] = []
    names: dict[FamilyName, Path] = {}
    variants: dict[VariantName, Path] = {}
    for folder in {folder.resolve(): folder for folder in folders}.values():
        try:
            family = load_family(folder)
            manifest = folder / MANIFEST
            if family.name in names:
                raise ModelError(
                    f"{manifest}: name {family.name!r} is already taken by {names[family.name]}"
                )
            for variant in family.variants:
                if variant.name in variants:
                    raise ModelError(
                        f"{manifest}: variants: the name {variant.name!r} is already taken by "
                        f"{variants[variant.name]}"
                    )
        except ModelError as error:
            problems.append(error)
            continue
        names[family.name] = manifest
        variants.update((variant.name, manifest) for variant in family.variants)
        families.append(family)
    mistakes = _check_parts(families, names)
    whole = [family for family in families if family.name not in mistakes]
    return Zoo(tuple(whole), (*problems, *mistakes.values()))


def _check_parts(
    families: Sequence[Family], manifests: Mapping[FamilyName, Path]
) -> dict[FamilyName, ModelError]:
    """Return why second parts cannot follow their first parts, by name."""
    known = {family.name: family for family in families}
    out: dict[FamilyName, ModelError] = {}
    for family in families:
        if family.after is None:
            continue
        first, manifest = known.get(family.after), manifests[family.name]
        if first is None or first.after is not None or not first.features:
            there = (
                "there is no such family, or it was left out"
                if first is None
                else "it gives no features"
            )
            why = (
                f"after: {family.after!r}: {there}; it must be one whose manifest has [[features]]"
            )
        elif mistake := part_mistake(first.features, family.features):
            why = f"features: do not fit those of {first.name!r}: {mistake}"
        elif first.labels != family.labels:
            why = f"labels: must be those of {first.name!r}, in the same order"
        else:
            continue
        out[family.name] = ModelError(f"{manifest}: {why}")
    return out


def load_family(folder: Path) -> Family:
    """Load one family: its manifest, its file's checksum, its graph's inputs and outputs.

    Raises:
        ModelError: what is wrong first, with the file and the key.
    """
    manifest = folder / MANIFEST
    family = read_manifest(manifest)
    fixed = None
    for file in family.model_files:
        file.check()
        fixed = _check_graph(manifest, family, file, fixed)
    return replace(family, batch_size_fixed=fixed)


def _check_graph(manifest: Path, family: Family, file: ModelFile, fixed: int | None) -> int | None:
    """Compare a manifest with a graph; return the only batch size it and those before it take."""
    path = file.path
    inputs, outputs = read_graph(file)
    if family.after is not None:
        if mistake := graph_mistake(family.features, inputs, "inputs"):
            raise ModelError(f"{manifest}: features: {path.name} does not fit: {mistake}")
        _check_outputs(manifest, family, path, outputs)
        return _one_batch_size(manifest, path, inputs[0].shape[0], fixed)
    if len(inputs) != 1:
        raise ModelError(f"{path}: has {len(inputs)} inputs; edgebox feeds exactly one")
    tensor = inputs[0]
    if tensor.type != _DTYPES[family.input.dtype]:
        raise ModelError(
            f"{manifest}: input.dtype is {family.input.dtype!r}, but {tensor.name!r} of "
            f"{path.name} is {tensor.type}"
        )
    shape = list(tensor.shape)
    if len(shape) != 4:
        raise ModelError(f"{path}: input {tensor.name!r} has shape {shape}, not 4 axes")
    for variant in family.variants:
        if family.files[variant.name] != file:
            continue
        wanted = family.input.shape(1, variant.width_px, variant.height_px)
        for axis in (1, 2, 3):
            if isinstance(shape[axis], int) and shape[axis] != wanted[axis]:
                raise ModelError(
                    f"{manifest}: variant {variant.name!r} ({variant.width_px} × "
                    f"{variant.height_px} px, {family.input.layout}) does not fit the input "
                    f"{shape} of {path.name}"
                )
    _check_outputs(manifest, family, path, outputs)
    return _one_batch_size(manifest, path, shape[0], fixed)


def _one_batch_size(
    manifest: Path, path: Path, size: int | str | None, fixed: int | None
) -> int | None:
    """Return the only batch size of a family's files so far; None: they take any."""
    if not isinstance(size, int) or size < 1:
        return fixed
    if fixed not in (None, size):
        raise ModelError(
            f"{manifest}: {path.name} only takes batches of {size}, another file of {fixed}"
        )
    return size


def _check_outputs(
    manifest: Path, family: Family, path: Path, outputs: Sequence[GraphTensor]
) -> None:
    wanted = _OUTPUTS[family.decoder]
    if given := family.features_given:
        said, outputs = outputs[: len(outputs) - given], outputs[-given:]
        if mistake := graph_mistake(family.features, outputs, "last outputs"):
            raise ModelError(f"{manifest}: features: {path.name} does not fit: {mistake}")
        outputs = said
    if len(outputs) != wanted:
        raise ModelError(
            f"{manifest}: output.decoder {family.decoder!r} reads {wanted} outputs, but "
            f"{path.name} has {len(outputs)} ({', '.join(o.name for o in outputs)})"
        )
    for output in outputs:
        if output.type not in _NUMBERS:
            raise ModelError(
                f"{manifest}: output.decoder {family.decoder!r} reads numbers, but {output.name!r} "
                f"of {path.name} is {output.type}"
            )
    before = _LABELS_COLUMN.get(family.decoder)
    columns = outputs[0].shape[-1] if outputs[0].shape else None
    if before is not None and isinstance(columns, int) and columns != before + len(family.labels):
        raise ModelError(
            f"{manifest}: labels has {len(family.labels)} names, but {path.name} scores "
            f"{columns - before} classes"
        )
    length = family.embedding_length
    if length is not None and isinstance(columns, int) and columns != length:
        raise ModelError(
            f"{manifest}: embedding_length is {length}, but {path.name} gives embeddings of "
            f"length {columns}"
        )


@lru_cache(maxsize=256)
def read_graph(file: ModelFile) -> Graph:
    """Return a model's inputs and outputs; nothing is optimised, so it is quick.

    A file whose path and checksum are known is not opened again: families are loaded often.
    """
    ort = onnx_runtime()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(str(file.path), options, ["CPUExecutionProvider"])
    except Exception as error:  # its exception classes share no base but Exception
        raise ModelError(
            f"{file.path}: is not a model ONNX Runtime can open: {brief(error)}"
        ) from error
    inputs, outputs = (
        tuple(GraphTensor(each.name, each.type, tuple(each.shape)) for each in tensors)
        for tensors in (session.get_inputs(), session.get_outputs())
    )
    return inputs, outputs
