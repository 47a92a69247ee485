"""Computes the accuracy of each variant of a family from their detections on the same pictures.

Against labels: mAP. Without: F1 at IoU 0.5 against what the largest variant finds, as in Jellyfish
(section 7.1); both sides count detections with scores from `SHOWN_SCORE_MIN` on.
Limits: it neither runs models (inference_run.py) nor stores results.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import AccuracyReport, ExecutorId, Variant, VariantName
from edgebox.inference.accuracy import coco_tool
from edgebox.inference.accuracy.inference_run import Fetch, Predictions
from edgebox.inference.accuracy.labelled import Dataset, fitted
from edgebox.inference.accuracy.pruning import VariantTradeOff, dominated
from edgebox.inference.family import Family
from edgebox.media.sources import read_picture
from edgebox.vision.average_precision import (
    SIZES,
    ImageTruth,
    PictureMatches,
    Precision,
    as_boxes,
    match_picture,
    resamples,
)
from edgebox.vision.detections import SHOWN_SCORE_MIN, Detections

SCORE_LISTED = 0.001
"""mAP ranks detections by score, so it needs nearly all of them."""
F1_IOU = 0.5
RESAMPLES = 100
_CHECKED_MAX = 500
"""Largest number of pictures for COCO's tool, which is slow."""
_SAME = 5e-5
_SEED = 0

Share = Callable[[float], None]


@dataclass(frozen=True)
class VariantAccuracy:
    """One variant's accuracy, also on bootstrap resamples of the pictures."""

    accuracy: float
    resampled: NDArray[np.float64]  #: (resamples,)
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """The standard error over the pictures."""
        return float(self.resampled.std(ddof=1))


class Evaluator(Protocol):
    """Collects variants' detections and computes their accuracy."""

    kind: Literal["mAP", "F1"]
    source: str
    """Description of the pictures."""
    score_min: float
    """Lower limit of the scores that it uses."""
    planned: int
    """Planned number of pictures."""
    pictures: int
    """Number of pictures so far."""
    remarks: list[str]
    problems: list[str]
    """Pictures that could not be evaluated, and why."""

    def fetches(self) -> Iterable[Fetch]:
        """Yield the pictures to evaluate."""

    def take(self, prediction: Predictions) -> None:
        """Match one picture for every variant."""

    def measured(self, progress: Share) -> dict[VariantName, VariantAccuracy]:
        """Return the accuracy of every variant on the pictures so far.

        Raises:
            InvalidInputError: the pictures give no accuracy.
        """


class LabelEvaluator:
    """Evaluates against labels: mAP."""

    kind: Literal["mAP", "F1"] = "mAP"
    score_min = SCORE_LISTED

    def __init__(self, dataset: Dataset, family: Family, limit: int | None = None) -> None:
        """Evaluate all pictures of a dataset, or a fixed sample of `limit` of them.

        Raises:
            InvalidInputError: the dataset and the family have nothing in common.
        """
        _refuse_embeddings(family)
        if family.task != "detect":
            raise InvalidInputError(
                f"{family.name} is a classifier: labelled boxes cannot evaluate it; use --frames"
            )
        fit = fitted(dataset, family.labels)
        self.source = dataset.name
        self.planned = min(limit or len(dataset.pictures), len(dataset.pictures))
        # Also without a limit, so that an interrupted run has used a sample.
        self._order = random.Random(_SEED).sample(fit.dataset.pictures, self.planned)
        self.pictures = 0
        self.remarks = list(fit.dataset.remarks)
        self.problems: list[str] = []
        self._classes = len(family.labels)
        self._known = np.array(sorted(fit.labels))
        self._matches: dict[VariantName, list[PictureMatches]] = {
            variant.name: [] for variant in family.variants
        }
        self._checked = family.variants[-1].name if coco_tool.installed() else None
        self._kept: list[tuple[ImageTruth, Detections]] = []
        """Pictures for COCO's tool."""

    def fetches(self) -> Iterable[Fetch]:
        """Yield the pictures to evaluate."""
        return (partial(read_picture, picture.path) for picture in self._order)

    def take(self, prediction: Predictions) -> None:
        """Match one picture for every variant."""
        if prediction.problem:
            self.problems.append(prediction.problem)
            return
        try:
            truth = self._order[prediction.number].truth_at(*prediction.size_px)
        except InvalidInputError as error:
            self.problems.append(str(error))
            return
        self.pictures += 1
        for name, detections in prediction.found.items():
            counted = detections.select(np.isin(detections.labels, self._known))
            self._matches[name].append(match_picture(truth, counted, self._classes))
            if name == self._checked and len(self._kept) < _CHECKED_MAX:
                self._kept.append((truth, counted))

    def measured(self, progress: Share = lambda share: None) -> dict[VariantName, VariantAccuracy]:
        """Return the accuracy of every variant on the pictures so far.

        Raises:
            InvalidInputError: there were none.
        """
        _insist_on_pictures(self)
        weights = _weights(self.pictures)
        out = {}
        for at, (name, matches) in enumerate(self._matches.items()):
            progress(at / len(self._matches))
            precision = Precision(matches, self._classes)
            report = precision.report()
            details = {"mAP50": report.mean_at(0.5), "mAP75": report.mean_at(0.75)}
            for size in list(SIZES)[1:]:
                value = report.mean_of_size(size)
                if value is not None:
                    details[size] = value
            resampled = np.array([precision.report(row, sizes=1).mean for row in weights])
            out[name] = VariantAccuracy(report.mean, resampled, details)
        if self._checked is not None:
            self.remarks.append(self._second_opinion(self._checked))
        progress(1.0)
        return out

    def _second_opinion(self, name: VariantName) -> str:
        """Return a remark that compares COCO's tool with edgebox on the first pictures."""
        truths, found = zip(*self._kept, strict=True)
        tools = coco_tool.coco_figures(truths, found, self._classes)["mAP"] or 0.0
        ours = Precision(self._matches[name][: len(truths)], self._classes).report().mean
        if abs(ours - tools) < _SAME:
            return f"pycocotools agrees: {name} has an mAP of {tools:.4f} on {len(truths)} pictures"
        return (
            f"pycocotools says that {name} has an mAP of {tools:.4f} on {len(truths)} pictures, "
            f"edgebox says {ours:.4f}: please report it"
        )


class ReferenceModelEvaluator:
    """Evaluates against the detections of the largest variant: F1."""

    kind: Literal["mAP", "F1"] = "F1"
    score_min = SHOWN_SCORE_MIN

    def __init__(self, family: Family, source: str, fetches: Iterable[Fetch], planned: int) -> None:
        """Evaluate a family's variants on some pictures.

        Raises:
            InvalidInputError: it gives embeddings, which have no right or wrong.
        """
        _refuse_embeddings(family)
        self.source = source
        self.planned = planned
        self.pictures = 0
        self.objects = 0
        """Detections of the largest variant so far."""
        self.remarks: list[str] = []
        self.problems: list[str] = []
        self._fetches = fetches
        self._family = family
        #: hits, detections and objects of each picture
        self._counts: dict[VariantName, list[tuple[int, int, int]]] = {
            variant.name: [] for variant in family.variants
        }

    def fetches(self) -> Iterable[Fetch]:
        """Yield the pictures to evaluate."""
        return self._fetches

    def take(self, prediction: Predictions) -> None:
        """Match one picture for every variant."""
        if prediction.problem:
            self.problems.append(prediction.problem)
            return
        self.pictures += 1
        found = prediction.found
        largest = found[self._family.variants[-1].name].above(SHOWN_SCORE_MIN)
        truth = ImageTruth(as_boxes(largest.boxes), largest.labels, np.zeros(len(largest), bool))
        self.objects += len(largest)
        for name, detections in found.items():
            shown = detections.above(SHOWN_SCORE_MIN)
            matched = match_picture(truth, shown, len(self._family.labels), (F1_IOU,))
            hits = int(matched.hits[0].sum())
            self._counts[name].append((hits, len(shown), len(largest)))

    def measured(self, progress: Share = lambda share: None) -> dict[VariantName, VariantAccuracy]:
        """Return the accuracy of every variant on the pictures so far.

        Raises:
            InvalidInputError: there were none, or the largest variant found nothing on them.
        """
        _insist_on_pictures(self)
        if not self.objects:
            raise InvalidInputError(
                f"{self._family.variants[-1].name} found nothing on {self.pictures} pictures: "
                "there is nothing to compare with; take pictures that show something"
            )
        weights = _weights(self.pictures)
        out = {}
        for name, rows in self._counts.items():
            counts = np.array(rows, np.int64)  #: (pictures, 3)
            hits, shown, objects = counts.sum(axis=0)
            drawn = weights @ counts  #: (resamples, 3)
            details = {"precision": hits / max(1, shown), "recall": hits / objects}
            out[name] = VariantAccuracy(
                float(_f1(counts.sum(axis=0, keepdims=True))[0]),
                _f1(drawn),
                {key: float(value) for key, value in details.items()},
            )
        progress(1.0)
        return out


def _refuse_embeddings(family: Family) -> None:
    if family.task == "embed":
        raise InvalidInputError(
            f"{family.name} gives embeddings: pictures alone do not say how good they are"
        )


def _f1(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 2 TP / (2 TP + FP + FN) of (n, 3) hits, detections and objects; 1 where none."""
    hits, shown, objects = counts.T
    both = shown + objects
    return np.where(both > 0, 2.0 * hits / np.maximum(both, 1), 1.0)


def _insist_on_pictures(evaluator: Evaluator) -> None:
    if not evaluator.pictures:
        first = f": {evaluator.problems[0]}" if evaluator.problems else ""
        raise InvalidInputError(f"{evaluator.source}: no picture could be evaluated{first}")


def _weights(pictures: int) -> NDArray[np.int64]:
    return resamples(np.random.default_rng(_SEED), pictures, RESAMPLES)


def accuracy_reports(
    evaluator: Evaluator,
    variants: Sequence[Variant],
    measured: Mapping[VariantName, VariantAccuracy],
    took_ns: Mapping[VariantName, Mapping[ExecutorId, int]],
    now_ms: int,
    *,
    keep_all: bool = False,
) -> dict[VariantName, AccuracyReport]:
    """Return the accuracy reports of a measurement.

    Args:
        evaluator: the evaluator.
        variants: the family's variants.
        measured: the accuracy of every variant.
        took_ns: P50 of a batch of one, by executor; variants are compared with it.
        now_ms: Unix time.
        keep_all: mark no variant as dominated.
    """
    trade_offs = [
        VariantTradeOff(
            variant.name,
            variant.pixels,
            took_ns[variant.name],
            measured[variant.name].accuracy,
            measured[variant.name].resampled,
        )
        for variant in variants
    ]
    aside = {} if keep_all else dominated(trade_offs, evaluator.pictures)
    return {
        name: AccuracyReport(
            kind=evaluator.kind,
            accuracy=found.accuracy,
            error=found.error,
            source=evaluator.source,
            pictures=evaluator.pictures,
            measured_at_ms=now_ms,
            dominated=aside.get(name, ""),
            details=found.details,
        )
        for name, found in measured.items()
    }
