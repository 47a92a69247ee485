"""Owns the files of cascades: JSON in the models folder, with what they were fitted for.

A cascade depends on the weights and input sizes of both of its models. Each is kept as a
fingerprint, so that a model that has changed is an error and not a wrong decision.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson

from edgebox.domain.cascades import Cascade, CascadeCurve, CascadeName, CascadePoint, Decider
from edgebox.domain.errors import InvalidInputError, ModelError
from edgebox.domain.field_reader import FieldReader, Notation, dotted, parse_object
from edgebox.domain.model_family import Variant, VariantName
from edgebox.inference.family import Family
from edgebox.storage.whole_file import write_whole
from edgebox.vision.cascade_decider import FEATURES

SUFFIX = ".cascade.json"
_VERSION = 1
_POINTS_MAX = 1000


@dataclass(frozen=True, slots=True)
class CascadeModel:
    """One of a cascade's two models."""

    family: str
    variant: VariantName
    fingerprint: str
    """Checksum of its weights and its input."""

    @classmethod
    def of(cls, family: Family, variant: VariantName) -> "CascadeModel":
        """Return what identifies a variant of a family."""
        return cls(family.name, variant, variant_fingerprint(family, variant))


@dataclass(frozen=True, slots=True)
class StoredCascade:
    """A fitted cascade, and how it was fitted."""

    name: CascadeName
    small: CascadeModel
    large: CascadeModel
    decider: Decider
    curve: CascadeCurve
    score_shown: float
    """Detections that score less are not part of an answer."""
    source: str
    """Where the pictures came from."""
    pictures: int
    calibration_error: float
    """Mean distance of expected from measured loss on held-out pictures."""
    made_at_ms: int
    """Unix time."""


def variant_fingerprint(family: Family, variant: VariantName) -> str:
    """Return the fingerprint of a variant: its file, input size and way of decoding."""
    of, file = family.variant(variant), family.files[variant]
    return f"{file.sha256[:16]} {of.width_px}x{of.height_px} {family.decoder}"


def cascade_path(models: Path, name: str) -> Path:
    """Return where a cascade of this name is kept."""
    return models / f"{name}{SUFFIX}"


def write_cascade(models: Path, cascade: StoredCascade) -> Path:
    """Write a cascade's file, in place of one of the same name.

    Raises:
        ModelError: it cannot be written.
    """
    path, decider = cascade_path(models, cascade.name), cascade.decider
    document = {
        "version": _VERSION,
        "name": cascade.name,
        "small": _model_json(cascade.small),
        "large": _model_json(cascade.large),
        "score_shown": cascade.score_shown,
        "source": cascade.source,
        "pictures": cascade.pictures,
        "calibration_error": cascade.calibration_error,
        "made_at_ms": cascade.made_at_ms,
        "decider": {
            "features": list(FEATURES),
            "weights": list(decider.weights),
            "bias": decider.bias,
        },
        "curve": [[each.threshold, each.share, each.loss] for each in cascade.curve.points],
    }
    content = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    try:
        models.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def read_cascade(models: Path, name: str) -> StoredCascade:
    """Read a cascade's file.

    Raises:
        ModelError: it is missing or no such file; the message names file and key.
    """
    path = cascade_path(models, name)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        there = sorted(each.name.removesuffix(SUFFIX) for each in models.glob(f"*{SUFFIX}"))
        known = f"there are: {', '.join(there)}" if there else "there is none yet"
        raise ModelError(
            f"{path}: there is no cascade {name!r} ({known}); make it with edgebox models cascade "
            f"SMALL LARGE --frames FOLDER --name {name}"
        ) from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return _read(parse_object(text, "a cascade"), path, name)
    except InvalidInputError as error:
        raise ModelError(f"{path}: {error}") from None


def as_served(
    cascade: StoredCascade,
    large: Variant,
    *,
    share: float | None,
    threshold: float | None,
    continues: bool = False,
) -> Cascade:
    """Return what a pipeline's stage must know of a cascade.

    Args:
        cascade: as it was read.
        large: the variant of its large model.
        share: of the pictures that is to be sent on; None: by the threshold.
        threshold: pictures with a greater expected loss are sent on; None: by the share. Without
            both, the plan decides.
        continues: whether the large model is the second part of the small one's network.
    """
    return Cascade(
        cascade.name,
        cascade.small.variant,
        cascade.large.variant,
        (large.width_px, large.height_px),
        cascade.decider,
        cascade.score_shown,
        cascade.curve,
        threshold,
        share,
        continues,
    )


def insist_on_models(cascade: StoredCascade, families: Iterable[Family]) -> None:
    """Check that both models are there, and that they are those that the cascade was fitted for.

    Raises:
        ModelError: one is missing or has changed.
    """
    known = {family.name: family for family in families}
    for which, model in (("small", cascade.small), ("large", cascade.large)):
        family = next((of for name, of in known.items() if name == model.family), None)
        if family is None or model.variant not in {v.name for v in family.variants}:
            raise ModelError(
                f"cascade {cascade.name!r} was fitted with {model.variant} of the family "
                f"{model.family} as its {which} model, which this box does not have"
            )
        if variant_fingerprint(family, model.variant) != model.fingerprint:
            raise ModelError(
                f"cascade {cascade.name!r} was fitted with another {model.variant} than this box "
                f"has: run edgebox models cascade {cascade.small.variant} {cascade.large.variant} "
                f"--frames FOLDER --name {cascade.name} again"
            )


def _model_json(model: CascadeModel) -> dict[str, str]:
    return {
        "family": model.family,
        "variant": model.variant,
        "fingerprint": model.fingerprint,
    }


def _read(fields: dict[str, object], path: Path, name: str) -> StoredCascade:
    notation = Notation(locate=lambda at: f"{path}: {dotted(at)} ", error=ModelError)
    top = FieldReader((), fields, notation)
    if top.raw("version") != _VERSION:
        raise top.wrong(
            "version",
            f"must be {_VERSION}, that of this version of edgebox (fit the cascade again)",
            top.raw("version"),
        )
    of = top.inner("decider")
    if of.raw("features") != list(FEATURES):
        raise of.wrong("features", "are not those of this version of edgebox: fit it again")
    length = len(FEATURES)
    decider = Decider(
        tuple(of.numbers("weights", -1e6, 1e6, length=length)),
        of.number("bias", -1e6, 1e6),
    )
    points = []
    for at, row in enumerate(top.items("curve", _POINTS_MAX)):
        numbers = FieldReader(("curve",), {str(at): row}, notation).numbers(str(at), 0, 1, length=3)
        points.append(CascadePoint(*numbers))
    return StoredCascade(
        CascadeName(name),
        _read_model(top.inner("small")),
        _read_model(top.inner("large")),
        decider,
        CascadeCurve(tuple(points)),
        top.number("score_shown", 0, 1),
        top.text("source"),
        top.count("pictures"),
        top.number("calibration_error", 0, 1),
        top.count("made_at_ms"),
    )


def _read_model(of: FieldReader) -> CascadeModel:
    return CascadeModel(
        of.nonempty("family"), VariantName(of.nonempty("variant")), of.nonempty("fingerprint")
    )
