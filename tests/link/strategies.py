"""What the link's property tests draw from: messages, clocks, links."""

from hypothesis import strategies as st

from edgebox.domain.cascades import CascadeOutcome
from edgebox.domain.field_reader import INSTANT_MAX_NS, INTEGER_MAX
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.pipelines import CROPS_MAX, CropOrder, PipelineStage, StageName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import DropReason, Outcome, StagePlacement
from edgebox.link.deadlines import LaterDeadlines
from edgebox.link.messages import (
    FRAME_NUMBER_MAX,
    Ack,
    AdviceMessage,
    BoxMessage,
    BoxPong,
    Bye,
    CameraMessage,
    CameraPing,
    DropNotice,
    ErrorMessage,
    FrameHeader,
    Hello,
    Ping,
    Pong,
    Report,
    Result,
    Timing,
    TrackedDetection,
    Welcome,
    WireDetection,
)
from edgebox.link.placement_offer import CropFit, OfferedStage, PlacementOffer

characters = st.characters(exclude_categories=("C", "Z"), include_characters=" ")
printable = st.text(characters, max_size=64)
filled = st.text(characters, min_size=1, max_size=64)
names = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)
frames = st.integers(0, FRAME_NUMBER_MAX)
instants = st.integers(0, INSTANT_MAX_NS)
counts = st.integers(0, INTEGER_MAX)
sides = st.integers(1, 65535)
times = st.floats(-1e6, 1e6)

advices = st.builds(
    Advice,
    variant=filled.map(VariantName),
    width_px=sides,
    height_px=sides,
    rate_hz=st.floats(0.001, 1000),
    quality=st.integers(1, 100),
    bandwidth_bps=counts,
    reason=printable,
)
boxes = st.tuples(*[st.floats(-1e5, 1e5)] * 4)
staged = st.dictionaries(filled, st.fixed_dictionaries({"variant": filled}), max_size=2)
results = st.builds(
    Result,
    frame=frames,
    outcome=st.sampled_from((Outcome.ON_TIME, Outcome.LATE)),
    variant=filled,
    detections=st.lists(
        st.builds(WireDetection, label=printable, score=st.floats(0, 1), box=boxes, stages=staged)
        | st.builds(
            TrackedDetection,
            label=printable,
            score=st.floats(0, 1),
            box=boxes,
            stages=staged,
            track=st.none() | st.integers(1, INTEGER_MAX),
        ),
        max_size=4,
    ).map(tuple),
    timing=st.builds(Timing, times, times, times, times, times, st.integers(1, 64)),
    advice=advices,
    placement=st.sampled_from(StagePlacement),
    cascade=st.none() | st.sampled_from(CascadeOutcome),
)
offers = st.builds(
    PlacementOffer,
    sha256=st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    variants=st.lists(filled.map(VariantName), min_size=1, max_size=3).map(tuple),
    stages=st.lists(
        st.builds(
            OfferedStage,
            stage=st.builds(
                PipelineStage,
                name=filled.map(StageName),
                family=st.just(FamilyName("")),
                labels=st.lists(filled, max_size=3).map(tuple),
                score_min=st.floats(0, 1),
                side_min_px=sides,
                region=st.none() | st.tuples(*[st.floats(0, 1)] * 4),
                margin=st.floats(0, 10),
                crops_max=st.integers(1, CROPS_MAX),
                order=st.sampled_from(CropOrder),
            ),
            width_px=sides,
            height_px=sides,
            fit=st.sampled_from(CropFit),
        ),
        max_size=2,
    ).map(tuple),
)
box_messages: st.SearchStrategy[BoxMessage] = st.one_of(
    st.builds(
        Welcome,
        version=st.integers(1, 255),
        camera=names,
        box=printable,
        clock_ns=instants,
        frame_bytes_max=st.integers(1, INTEGER_MAX),
        unacknowledged_max=st.integers(1, 100),
        family=printable,
        labels=st.lists(printable, max_size=4).map(tuple),
        advice=advices,
        slo_ms=st.none() | st.floats(1, 60_000),
        pipeline=st.none() | names,
        placement=st.none() | offers,
    ),
    st.builds(Ack, frames, instants, st.booleans(), advices),
    results,
    st.builds(DropNotice, frames, st.sampled_from(DropReason), printable, advices),
    st.builds(AdviceMessage, advices, st.none() | st.floats(1, 60_000)),
    st.builds(Ping, counts, instants),
    st.builds(BoxPong, counts),
    st.builds(ErrorMessage, printable, printable, st.booleans()),
    st.builds(Bye, printable),
)


@st.composite
def later_than(draw: st.DrawFn, first_ms: float) -> LaterDeadlines:
    """Up to three deadlines after the first, their worth falling from below 1."""
    after_ms = draw(st.lists(st.floats(1, 1000), max_size=3))
    worths = draw(
        st.lists(st.floats(0.01, 0.99), unique=True, min_size=len(after_ms), max_size=len(after_ms))
    )
    instants = [first_ms + sum(after_ms[: at + 1]) for at in range(len(after_ms))]
    return tuple(zip(instants, sorted(worths, reverse=True), strict=True))


hellos = st.builds(
    Hello,
    camera=names,
    width_px=sides,
    height_px=sides,
    versions=st.lists(st.integers(0, 99), min_size=1, max_size=16).map(tuple),
    instance=st.none() | filled,
    slo_ms=st.floats(1, 60_000),
    rate_hz=st.floats(0.001, 1000),
    app=names,
    family=st.none() | filled,
    min_accuracy=st.floats(0, 1),
    min_rate_hz=st.just(0.0) | st.floats(0, 0.001),
    site=st.none() | names,
    pipeline=st.none() | names,
    placement=st.booleans(),
    agent=printable,
) | st.floats(1, 50_000).flatmap(
    lambda ms: st.builds(Hello, names, sides, sides, slo_ms=st.just(ms), later=later_than(ms))
)
camera_messages: st.SearchStrategy[CameraMessage] = st.one_of(
    hellos,
    st.builds(Pong, counts, instants),
    st.builds(CameraPing, counts),
    st.builds(
        Report,
        captured=st.none() | counts,
        sent=st.none() | counts,
        skipped=st.dictionaries(printable, counts, max_size=5),
        on_time=st.none() | counts,
        late=st.none() | counts,
    ),
    st.builds(ErrorMessage, printable, printable, st.booleans()),
    st.builds(Bye, printable),
)
headers = st.tuples(instants, instants, frames, sides, sides, frames).map(
    lambda drawn: FrameHeader(
        frame=drawn[2],
        captured_ns=min(drawn[:2]),
        sent_ns=max(drawn[:2]),
        width_px=drawn[3],
        height_px=drawn[4],
        captured_total=drawn[5],
    )
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
