"""Decides how accurate the answers of a run are, those of cascades too. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from edgebox.domain.cascades import Cascade, CascadeOutcome
from edgebox.domain.model_family import Variant, VariantName
from edgebox.domain.requests import Outcome
from edgebox.simulation.report import Ended, Report
from edgebox.simulation.scenario import Scenario


def accuracy_figures(report: Report, scenario: Scenario) -> dict[str, Any]:
    """Return the accuracy-weighted goodput of a run, and what cascades did.

    The goodput is the sum of the expected accuracies of all answers on time, each second. Frames
    captured in the warm-up do not count.
    """
    assert scenario.hardware is not None
    variants = {variant.name: variant for variant in scenario.hardware.variants}
    counted_s = (scenario.duration_ns - scenario.warmup_ns) / 1e9
    counted = [each for each in report.ended if each.truly_captured_ns >= scenario.warmup_ns]
    on_time = [each for each in counted if each.outcome is Outcome.ON_TIME]
    outcomes = Counter(each.work.cascade for each in on_time if each.work and each.work.cascade)
    cascades = {spec.camera.id: spec.camera.cascade for spec in scenario.cameras}
    total = sum(answer_accuracy(e, cascades.get(e.request.camera), variants) for e in on_time)
    return {
        "accuracy_per_s": round(total / counted_s, 3),
        "answers_per_s": round(len(on_time) / counted_s, 3),
        "cascade": {outcome.value: outcomes[outcome] for outcome in CascadeOutcome},
    }


def answer_accuracy(
    ended: Ended, cascade: Cascade | None, variants: Mapping[VariantName, Variant]
) -> float:
    """Return the expected accuracy of an answer; 0 if its frame did not run.

    That of a cascade's small model is lower for pictures that are hard for it.
    """
    variant = None if ended.variant is None else variants.get(ended.variant)
    if variant is None:
        return 0.0
    if cascade is None or ended.work is None or ended.work.cascade is None:
        return variant.accuracy
    large = variants[cascade.large].accuracy
    if ended.work.cascade is CascadeOutcome.SENT_ON:
        return large
    return cascade.curve.accuracy_of(ended.work.hardness, variant.accuracy, large)
