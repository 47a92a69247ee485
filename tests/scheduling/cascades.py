"""A cascade of two variants of the small box, whose decider sends on what has few objects."""

from edgebox.domain.cascades import Cascade, CascadeCurve, CascadeName, CascadePoint, Decider
from edgebox.domain.pipelines import Pipeline, StageName
from edgebox.vision.cascade_decider import FEATURES
from tests.scheduling.pipelines import pipeline, stage
from tests.scheduling.scene import name

SMALL_PX, LARGE_PX = 128, 416
REFINE = StageName("refine")
CURVE = CascadeCurve(
    (CascadePoint(0.9, 0.0, 0.4), CascadePoint(0.5, 0.5, 0.1), CascadePoint(0.0, 1.0, 0.0))
)


def cascade(threshold: float | None = 0.5) -> Cascade:
    """Return a cascade that expects a loss of .95 of an empty picture, else of .05 at most."""
    weights = [0.0] * len(FEATURES)
    weights[FEATURES.index("log_shown")] = -9.0
    return Cascade(
        CascadeName("test"),
        name(SMALL_PX),
        name(LARGE_PX),
        (LARGE_PX, LARGE_PX),
        Decider(tuple(weights), 3.0),
        0.3,
        CURVE,
        threshold,
    )


def cascade_pipeline(threshold: float | None = 0.5) -> Pipeline:
    """Return a pipeline of the small variant and, for pictures it is unsure about, the large."""
    return pipeline(
        stage("find", variant=name(SMALL_PX)),
        stage("refine", "find", variant=name(LARGE_PX), cascade=cascade(threshold)),
    )


def read_after_cascade(threshold: float | None = 0.5) -> Pipeline:
    """Return the same with a stage that looks at the objects, whichever of the two found them."""
    return pipeline(
        *cascade_pipeline(threshold).stages, stage("read", "find", "refine", variant=name(SMALL_PX))
    )
