"""Model families on disk: `Family`, read from a manifest; errors name every mistake.

Limits: it checks the manifest for consistency; zoo.py checks the model file.
"""

import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Literal

from edgebox.domain.accuracy_by_side import read_accuracy_by_side
from edgebox.domain.errors import InvalidInputError, ModelError
from edgebox.domain.field_reader import FieldReader, Notation, dotted
from edgebox.domain.model_family import AccuracyReport, FamilyName, Variant, VariantName
from edgebox.inference.family_prints import served_print
from edgebox.inference.features import FeatureSpec, read_features
from edgebox.vision.coco import COCO80
from edgebox.vision.decoding import (
    CLASS_LOGITS,
    DECODER_NAMES,
    DECODERS,
    EMBEDDING,
    Decoder,
    checked,
    class_logits_decoder,
    embedding_decoder,
)
from edgebox.vision.letterbox import Fit

MANIFEST = "family.toml"

Task = Literal["detect", "classify", "embed"]
TASKS: tuple[Task, ...] = ("detect", "classify", "embed")
EMBEDDING_LABEL = "embedding"
"""The only label of an embedding model whose manifest names none."""

_LABEL_SETS = {"coco80": COCO80}
_TOP_KEYS = {
    "name", "task", "file", "sha256", "licence", "description", "labels", "attributes",
    "embedding_length", "input", "output", "import", "variants", "keep_all", "features", "after",
    "synthetic",
}  # fmt: skip
_INPUT_KEYS = {
    "layout", "dtype", "order", "fit", "fill", "size_multiple_px", "scale", "mean", "std",
}  # fmt: skip
_IMPORT_KEYS = {"layout", "sources", "remarks"}
_VARIANT_KEYS = {
    "name", "width_px", "height_px", "accuracy", "accuracy_assumed", "accuracy_by_side",
    "map50", "map75", "file", "sha256",
}  # fmt: skip
FITS: Mapping[str, Fit] = {
    "letterbox_top_left": "top_left",
    "letterbox_centre": "centre",
    "stretch": "stretch",
    "cover": "cover",
}
"""Values by their names in manifests."""
_PLAIN = (1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
_SIDE_MAX_PX = 8192
_EMBEDDING_LENGTH_MAX = 65_536


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The input format of a model. A float32 pixel becomes (value * scale - mean) / std."""

    layout: Literal["nhwc", "nchw"]
    dtype: Literal["uint8", "float32"]
    order: Literal["rgb", "bgr"]
    fit: Fit
    """Where the picture goes on the canvas."""
    fill: int
    """Grey of the canvas where no picture is."""
    size_multiple_px: int
    scale: float = 1.0
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """In the channel order of `order`."""
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def shape(self, batch_size: int, width_px: int, height_px: int) -> tuple[int, int, int, int]:
        """Return the shape of an input tensor."""
        if self.layout == "nhwc":
            return (batch_size, height_px, width_px, 3)
        return (batch_size, 3, height_px, width_px)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One question that a classifier answers: its type, its colour."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a family."""

    path: Path
    sha256: str

    def check(self) -> None:
        """Read the file and hold it against its checksum; blocks.

        Raises:
            ModelError: it is missing, or not what was described.
        """
        manifest, name = self.path.parent / MANIFEST, self.path.name
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            raise ModelError(f"{manifest}: file names {name!r}, which is missing") from None
        except OSError as error:
            raise ModelError(f"{manifest}: file: {error}") from None
        digest = sha256(content).hexdigest()
        if digest != self.sha256:
            raise ModelError(
                f"{manifest}: sha256 does not match {name} (its sha256 is {digest}): "
                "the file is damaged, incomplete or not the one the manifest describes"
            )


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of an imported family."""

    layout: str
    """Its row in the importer's table of layouts."""
    sources: tuple[str, ...]
    """Names of the files it was made from."""
    remarks: tuple[str, ...]
    """Remarks of the importer."""


@dataclass(frozen=True)
class Family:
    """Networks that find the same things, and the input sizes they are offered at."""

    name: FamilyName
    task: Task
    """What a classifier and an embedding model find are boxes around the whole picture."""
    licence: str
    description: str
    labels: tuple[str, ...]
    """With attributes, those of all attributes in order; then a name may come twice."""
    input: InputSpec
    decoder: str
    variants: tuple[Variant, ...]
    """In rising order of pixels."""
    files: Mapping[VariantName, ModelFile]
    """The file of each variant; variants of one file share its session and weights."""
    accuracy_assumed: frozenset[VariantName] = frozenset()
    """Variants whose accuracy was never measured: their order is estimated from their cost."""
    origin: Origin | None = None
    """None: the manifest was written by hand."""
    batch_size_fixed: int | None = None
    """The only batch size the graphs take; None: any."""
    attributes: tuple[Attribute, ...] = ()
    """What a classifier says of a picture, if it is more than one thing; `labels` has all labels
    of the first, then those of the second..."""
    embedding_length: int | None = None
    """Numbers of an embedding; None: it gives none."""
    keep_all: bool = False
    """Offer every variant, whatever was found out about it."""
    synthetic: bool = False
    """It was trained on made-up pictures, and is not for real cameras."""
    manifest: ModelFile | None = None
    """The manifest that it was read from; None: it was not read from one."""
    accuracy_reports: Mapping[VariantName, AccuracyReport] = field(default_factory=dict)
    """Accuracy reports of `edgebox profile` on this box; variants carry that accuracy."""
    features: tuple[FeatureSpec, ...] = ()
    """Tensors that the graph gives a second part beside its answer, or is given as one."""
    after: FamilyName | None = None
    """The family whose features it is given, as the second part of a network; None: it is given
    pictures."""

    @property
    def features_given(self) -> int:
        """How many of its graph's outputs, the last ones, are for a second part."""
        return len(self.features) if self.after is None else 0

    @property
    def model_files(self) -> tuple[ModelFile, ...]:
        """Every file once, in the order of the variants."""
        return tuple(dict.fromkeys(self.files[variant.name] for variant in self.variants))

    @property
    def sha256(self) -> str:
        """The checksum of the file, or of the checksums of several."""
        digests = [file.sha256 for file in self.model_files]
        return digests[0] if len(digests) == 1 else sha256("".join(digests).encode()).hexdigest()

    @cached_property
    def served_print(self) -> str:
        """A fingerprint of all that another box must have alike to use its answers."""
        return served_print(self)

    @cached_property
    def offered(self) -> tuple[Variant, ...]:
        """The variants that the planner may give to cameras, in rising order of pixels."""
        return tuple(v for v in self.variants if self.keep_all or not self.dominated(v.name))

    @cached_property
    def attribute_names(self) -> tuple[str, ...]:
        """The attribute of each label; empty: the family has none."""
        return tuple(each.name for each in self.attributes for _ in each.labels)

    @cached_property
    def decode(self) -> Decoder:
        """What reads the outputs of this family's models."""
        return checked(self._decode, len(self.labels))

    @property
    def _decode(self) -> Decoder:
        if self.decoder == CLASS_LOGITS:
            parts = [len(each.labels) for each in self.attributes] or [len(self.labels)]
            return class_logits_decoder(parts)
        if self.decoder == EMBEDDING:
            assert self.embedding_length is not None  # `read_manifest` insists
            return embedding_decoder(self.embedding_length)
        return DECODERS[self.decoder]

    def dominated(self, name: VariantName) -> str:
        """Return why a variant is dominated; empty: it is not, or was not measured."""
        found = self.accuracy_reports.get(name)
        return "" if found is None else found.dominated

    def with_reports(self, accuracy_reports: Mapping[VariantName, AccuracyReport]) -> "Family":
        """Return this family with what was found out about its variants."""
        known = {
            v.name: accuracy_reports[v.name] for v in self.variants if v.name in accuracy_reports
        }
        return replace(
            self,
            variants=tuple(
                replace(v, accuracy=known[v.name].accuracy) if v.name in known else v
                for v in self.variants
            ),
            accuracy_assumed=self.accuracy_assumed - set(known),
            accuracy_reports=known,
        )

    def insist_on_pictures(self) -> None:
        """Check that the family is given pictures.

        Raises:
            InvalidInputError: it is the second part of a network.
        """
        if self.after is not None:
            raise InvalidInputError(
                f"{self.name} is given features of {self.after}, not pictures: use it in a "
                f"pipeline, in a stage with a cascade after one of {self.after}"
            )

    def batch_sizes(self, largest: int) -> tuple[int, ...]:
        """Return the batch sizes worth offering: powers of two up to `largest`, or the fixed."""
        if self.batch_size_fixed is not None:
            return (self.batch_size_fixed,)
        return tuple(1 << power for power in range(largest.bit_length()))

    def variant(self, name: VariantName) -> Variant:
        """Return one variant by name.

        Raises:
            ModelError: the family has no such variant.
        """
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise ModelError(f"family {self.name!r} has no variant {name!r}")


def _notation(file: Path) -> Notation:
    return Notation(
        lambda path: f"{file}: {dotted(path)} ",
        ModelError,
        show=repr,
        word=lambda word: f'"{word}"',
        object="a table",
        missing="is missing; it must be {}",
        unknown="is not a known key (known: {})",
    )


def read_manifest(file: Path) -> Family:
    """Read a family.toml.

    Raises:
        ModelError: the first mistake, with the file and the key.
    """
    try:
        content = file.read_bytes()
        values = tomllib.loads(content.decode())
    except FileNotFoundError:
        raise ModelError(f"{file}: no such file; a family folder needs a {MANIFEST}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{file}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"{file}: is not valid TOML: {error}") from None
    top = FieldReader((), values, _notation(file))
    top.refuse_unknown(sorted(_TOP_KEYS))
    name = FamilyName(top.nonempty("name"))
    task = top.choice("task", TASKS)
    spec = _read_input(_table(top, "input", _INPUT_KEYS))
    output = _table(top, "output", ("decoder",))
    variants, tables = _read_variants(top, name, spec.size_multiple_px)
    common = _read_file(file, top) if any("file" not in t for t in tables.values()) else None
    attributes = _read_attributes(top)
    family = Family(
        name=name,
        task=next(each for each in TASKS if each == task),
        licence=top.nonempty("licence"),
        description=_read_description(top),
        labels=_read_labels(top, task, attributes),
        input=spec,
        decoder=output.choice("decoder", DECODER_NAMES),
        variants=variants,
        files={
            variant: _read_file(file, table) if common is None or "file" in table else common
            for variant, table in tables.items()
        },
        accuracy_assumed=frozenset(
            v for v, table in tables.items() if table.flag("accuracy_assumed", False)
        ),
        origin=_read_origin(top),
        attributes=attributes,
        embedding_length=_read_embedding_length(top, task),
        keep_all=top.flag("keep_all", False),
        synthetic=top.flag("synthetic", False),
        manifest=ModelFile(file, sha256(content).hexdigest()),
        features=read_features(top, spec.size_multiple_px),
        after=FamilyName(top.nonempty("after")) if "after" in top else None,
    )
    _check_task(top, output, family)
    return family


def _check_task(top: FieldReader, output: FieldReader, family: Family) -> None:
    """Refuse what does not fit a family's task.

    Raises:
        ModelError: attributes or a decoder of another task.
    """
    if family.attributes and family.task != "classify":
        raise top.wrong("attributes", 'are for families with task = "classify"')
    wanted = {CLASS_LOGITS: "classify", EMBEDDING: "embed"}.get(family.decoder)
    if wanted not in (None, family.task):
        raise output.wrong("decoder", f'{family.decoder!r} is for families with task = "{wanted}"')
    if family.after is not None and not family.features:
        raise top.wrong("features", f'is missing: which tensors of "{family.after}" it is given')
    if family.features and family.task != "detect":
        raise top.wrong("features", 'are for families with task = "detect"')
    if family.task == "embed" and family.decoder != EMBEDDING:
        raise output.wrong("decoder", f'must be "{EMBEDDING}" where task is "embed"')


def _table(of: FieldReader, key: str, known: Collection[str]) -> FieldReader:
    table = of.inner(key)
    table.refuse_unknown(sorted(known))
    return table


def _read_file(manifest: Path, table: FieldReader) -> ModelFile:
    path = manifest.parent / table.nonempty("file")
    if path.parent != manifest.parent or path.name in ("", ".", ".."):
        raise table.wrong(
            "file", f"must name a file in the same folder, not {path.name!r} elsewhere"
        )
    digest = table.nonempty("sha256").lower()
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise table.wrong("sha256", f"must be 64 hexadecimal digits, not {digest!r}")
    return ModelFile(path, digest)


def _read_description(top: FieldReader) -> str:
    text = top.raw("description")
    if text is not None and not isinstance(text, str):
        raise top.wrong("description", "must be a text", text)
    return text or ""


def _read_origin(top: FieldReader) -> Origin | None:
    if "import" not in top:
        return None
    table = _table(top, "import", _IMPORT_KEYS)
    sources, remarks = table.texts("sources"), table.texts("remarks")
    return Origin(table.nonempty("layout"), tuple(sources), tuple(remarks))


def _read_embedding_length(top: FieldReader, task: str) -> int | None:
    if task == "embed":
        return top.integer("embedding_length", 1, _EMBEDDING_LENGTH_MAX)
    if "embedding_length" in top:
        raise top.wrong("embedding_length", 'is for families with task = "embed"')
    return None


def _read_attributes(top: FieldReader) -> tuple[Attribute, ...]:
    if "attributes" not in top:
        return ()
    found: list[Attribute] = []
    for table in top.objects("attributes"):
        table.refuse_unknown(("labels", "name"))
        attribute = Attribute(table.nonempty("name"), _read_names(table, ""))
        if any(attribute.name == other.name for other in found):
            raise table.wrong("name", f"is used twice: {attribute.name!r}")
        found.append(attribute)
    if not found:
        raise top.wrong("attributes", "must be [[attributes]] tables, or be left out")
    return tuple(found)


def _read_labels(top: FieldReader, task: str, attributes: tuple[Attribute, ...]) -> tuple[str, ...]:
    if attributes:
        if "labels" in top:
            raise top.wrong("labels", "must be left out: each of [[attributes]] has its own")
        return tuple(label for each in attributes for label in each.labels)
    if task == "embed" and "labels" not in top:
        return (EMBEDDING_LABEL,)
    return _read_names(top, " or one of " + ", ".join(f'"{name}"' for name in _LABEL_SETS))


def _read_names(table: FieldReader, otherwise: str) -> tuple[str, ...]:
    """Return the labels that a table names; `otherwise` says what else may be given."""
    labels = table.raw("labels")
    if labels is None:
        raise table.wrong("labels", f"is missing: a list of names{otherwise}")
    if otherwise and isinstance(labels, str) and labels in _LABEL_SETS:
        return _LABEL_SETS[labels]
    listed = isinstance(labels, list) and labels and all(isinstance(x, str) and x for x in labels)
    if not listed or not isinstance(labels, list):
        raise table.wrong("labels", f"must be a list of names{otherwise}, not {labels!r}")
    if len(set(labels)) != len(labels):
        raise table.wrong("labels", "must not name a label twice")
    return tuple(labels)


def _read_input(table: FieldReader) -> InputSpec:
    spec = InputSpec(
        layout="nhwc" if table.choice("layout", ("nhwc", "nchw")) == "nhwc" else "nchw",
        dtype="uint8" if table.choice("dtype", ("uint8", "float32")) == "uint8" else "float32",
        order="rgb" if table.choice("order", ("rgb", "bgr")) == "rgb" else "bgr",
        fit=FITS[table.choice("fit", tuple(FITS), "letterbox_top_left")],
        fill=table.integer("fill", 0, 255, 114),
        size_multiple_px=table.integer("size_multiple_px", 1, 1024, 32),
        scale=table.number("scale", 1e-6, 1e6, 1.0),
        mean=_triple(table, "mean", -1e6, 0.0),
        std=_triple(table, "std", 1e-6, 1.0),
    )
    if spec.dtype == "uint8" and (spec.scale, spec.mean, spec.std) != _PLAIN:
        raise table.wrong("dtype", 'must be "float32" where scale, mean or std is given')
    return spec


def _triple(table: FieldReader, key: str, low: float, default: float) -> tuple[float, float, float]:
    first, second, third = table.numbers(key, low, math.inf, length=3, default=[default] * 3)
    return first, second, third


def _read_variants(
    top: FieldReader, family: FamilyName, multiple_px: int
) -> tuple[tuple[Variant, ...], dict[VariantName, FieldReader]]:
    """Return the variants in rising order of pixels, and each one's table."""
    entries = top.raw("variants")
    if not isinstance(entries, list) or not entries:
        raise top.wrong("variants", "is missing; at least one [[variants]] table is needed")
    variants: list[Variant] = []
    tables: dict[VariantName, FieldReader] = {}
    for table in top.objects("variants"):
        table.refuse_unknown(sorted(_VARIANT_KEYS))
        variant = Variant(
            name=VariantName(table.nonempty("name")),
            family=family,
            width_px=table.integer("width_px", 1, _SIDE_MAX_PX),
            height_px=table.integer("height_px", 1, _SIDE_MAX_PX),
            accuracy=table.number("accuracy", 0.0, 1.0),
            accuracy_by_side=read_accuracy_by_side(table),
        )
        for key, side_px in (("width_px", variant.width_px), ("height_px", variant.height_px)):
            if side_px % multiple_px:
                raise table.wrong(
                    key, f"must be a multiple of input.size_multiple_px ({multiple_px}): {side_px}"
                )
        if any(variant.name == other.name for other in variants):
            raise table.wrong("name", f"is used twice: {variant.name!r}")
        variants.append(variant)
        tables[variant.name] = table
    return tuple(sorted(variants, key=lambda v: (v.pixels, v.width_px, v.name))), tables
