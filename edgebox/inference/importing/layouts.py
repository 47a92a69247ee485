"""The table of layouts: input and output formats of families of models.

Pure data. A layout is declared once and read twice: by `reading.py` in numpy and by `writing.py` as
ONNX operators, which are then compared with each other. A new family is a new row.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from edgebox.inference.family import Task
from edgebox.vision.letterbox import Fit

Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """The input format of a model: a pixel becomes (value / divisor - mean) / std."""

    order: Literal["rgb", "bgr"] = "rgb"
    fit: Fit = "centre"
    fill: int = 114
    """Grey of the canvas where no picture is."""
    divisor: float = 255.0
    mean: Triple = (0.0, 0.0, 0.0)
    """In the channel order of `order`."""
    std: Triple = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Output:
    """One output tensor as a layout expects it.

    An axis is a length, "n" (pictures), "a" (one row per cell and anchor of the grids), "q" (any
    number of rows), "c" (classes) or a sum such as "5+c". Rows are always the axis before the
    columns, unless `columns_first`. Rows "a" may come as several tensors, one for each grid, and
    those of a grid as a map [n, columns, h, w].
    """

    axes: tuple[str | int, ...]
    names: str = ""
    """A regular expression of the names it usually has; empty: any."""
    columns_first: bool = False
    whole: bool = False
    """Its numbers are whole ones, of whatever type."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some columns of one output; `stop` None: to the end; negative ones count from the end."""

    output: int
    start: int = 0
    stop: int | None = None


BoxForm = Literal["xyxy", "cxcywh", "grid", "squashed", "bins", "whole picture", "none"]
"""grid: YOLOX's offsets from cells and logarithms of sizes; squashed: FastestDet's, whose tanh is
the offset from the cell and whose sigmoid is the share of the input's sides; bins: distances to the
four sides as distributions (Li et al. 2020, generalized focal loss); whole picture: a
classifier's; none: the output is an embedding of the picture, and its columns are its numbers."""


@dataclass(frozen=True, slots=True)
class Head:
    """Meaning of the outputs."""

    outputs: tuple[Output, ...]
    scores: Part
    boxes: Part | None = None
    """None: only for boxes of the whole picture, or none."""
    box_form: BoxForm = "cxcywh"
    relative: bool = False
    """Boxes are shares of the input's sides; otherwise input px."""
    activation: Literal["none", "sigmoid", "softmax"] = "none"
    background: bool = False
    """The last class is "nothing"."""
    pick: Literal["best", "every", "given"] = "best"
    """The best class of each row, every class of it, or the one in `labels`."""
    labels: Part | None = None
    objectness: Part | None = None
    """A factor of all scores of a row."""
    objectness_is_one: bool = False
    exponents: tuple[float, float] = (1.0, 1.0)
    """Powers of the objectness and of a class's score whose product is the score."""
    pictures: Part | None = None
    """Which picture a row belongs to, where the rows of all pictures are one list."""
    count: Part | None = None
    """How many of a picture's rows count."""
    strides: tuple[tuple[int, ...], ...] = ((8, 16, 32), (8, 16, 32, 64), (4, 8, 16, 32), (16, 32))
    """Possible grids; the first whose number of cells matches the rows is used."""
    anchors: int = 1
    """Rows per cell."""
    offset: float = 0.0
    """From a cell's corner to its reference point, in cells."""
    bins: int = 0
    """Length of each side's distribution."""
    nms_iou: float | None = None
    """Overlap above which the lesser of two boxes of a class is removed; None: none are removed."""


_TASKS: dict[str, Task] = {"whole picture": "classify", "none": "embed"}


@dataclass(frozen=True, slots=True)
class Layout:
    """One family of models."""

    name: str
    title: str
    """As people call these models."""
    preprocessing: Preprocessing
    head: Head
    inputs: frozenset[str] = field(default_factory=frozenset)
    """Further inputs it must have, by role: "sizes", "mask"."""
    rather: str = ""
    """Another layout of the same shape, which is preferred unless this one finds far more."""
    coco_classes: int | None = None
    """How many classes its models trained on COCO score, if always the same: 80 or 91."""

    @property
    def task(self) -> Task:
        """Task of such models."""
        return _TASKS.get(self.head.box_form, "detect")


_LETTERBOX = Preprocessing()
_STRETCH = Preprocessing(fit="stretch")
_IMAGENET = Preprocessing(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
_STRETCH_IMAGENET = replace(_IMAGENET, fit="stretch")
_COVER_IMAGENET = replace(_IMAGENET, fit="cover")
_YOLOX = Preprocessing(order="bgr", fit="top_left", divisor=1.0)
_RTMDET = replace(_YOLOX, mean=(103.53, 116.28, 123.675), std=(57.375, 57.12, 58.395))
_NANODET = replace(_RTMDET, fit="stretch")

_THREE_STRIDES = ((8, 16, 32),)
_QUERY_BOXES = Output(("n", "q", 4), r"pred_boxes")
_CORNER_ROWS = Head(
    (Output(("n", "q", 6)),),
    boxes=Part(0, 0, 4),
    box_form="xyxy",
    scores=Part(0, 4, 5),
    pick="given",
    labels=Part(0, 5, 6),
)
_DARKNET_ROWS = Head(
    (Output(("n", "a", "5+c")),),
    boxes=Part(0, 0, 4),
    objectness=Part(0, 4, 5),
    scores=Part(0, 5),
    nms_iou=0.45,
)
_TRIPLE = Head(
    (
        Output(("n", "q"), r"labels|.*class.*", whole=True),
        Output(("n", "q", 4), r".*box.*"),
        Output(("n", "q"), r".*score.*"),
    ),
    boxes=Part(1),
    box_form="xyxy",
    scores=Part(2),
    pick="given",
    labels=Part(0),
)


def _hugging_face(activation: Literal["sigmoid", "softmax"]) -> Head:
    return Head(
        (Output(("n", "q", "c"), r"logits"), _QUERY_BOXES),
        boxes=Part(1),
        relative=True,
        scores=Part(0),
        activation=activation,
        background=activation == "softmax",
        pick="best" if activation == "softmax" else "every",
    )


def _nanodet(bins: int, strides: tuple[int, ...], offset: float) -> Head:
    return Head(
        (Output(("n", "a", f"{4 * bins}+c")),),
        boxes=Part(0, -4 * bins),
        box_form="bins",
        bins=bins,
        scores=Part(0, 0, -4 * bins),
        strides=(strides,),
        offset=offset,
        nms_iou=0.6,
    )


def _scores_and_bins(strides: tuple[int, ...]) -> Head:
    return Head(
        (Output(("n", "a", "c")), Output(("n", "a", 32))),
        scores=Part(0),
        boxes=Part(1),
        box_form="bins",
        bins=8,
        strides=(strides,),
        offset=0.5,
        nms_iou=0.6,
    )


def _classes(activation: Literal["none", "softmax"]) -> Head:
    return Head(
        (Output(("n", "c")),), scores=Part(0), box_form="whole picture", activation=activation
    )


_EMBEDDING = Head((Output(("n", "c")),), scores=Part(0), box_form="none")

LAYOUTS: tuple[Layout, ...] = (
    Layout(
        "yolov5",
        "YOLOv5, YOLOv7",
        _LETTERBOX,
        replace(_DARKNET_ROWS, anchors=3, strides=((8, 16, 32), (8, 16, 32, 64), (16, 32))),
    ),
    Layout(
        "yolov6",
        "YOLOv6",
        _LETTERBOX,
        replace(_DARKNET_ROWS, objectness_is_one=True),
    ),
    Layout(
        "yolox",
        "YOLOX as it is exported",
        _YOLOX,
        replace(_DARKNET_ROWS, box_form="grid", strides=_THREE_STRIDES),
    ),
    Layout(
        "yolox_decoded",
        "YOLOX exported with its decoding",
        _YOLOX,
        replace(_DARKNET_ROWS, strides=_THREE_STRIDES),
    ),
    Layout(
        "yolov8",
        "YOLOv8, v9, 11, 12",
        _LETTERBOX,
        Head(
            (Output(("n", "4+c", "a"), columns_first=True),),
            boxes=Part(0, 0, 4),
            scores=Part(0, 4),
            nms_iou=0.7,
        ),
    ),
    Layout(
        "end_to_end",
        "YOLOv10, YOLO26, Ultralytics' exports with NMS inside",
        _LETTERBOX,
        _CORNER_ROWS,
    ),
    Layout(
        "nms_rows",
        "YOLOv7's export with NMS inside: rows of all pictures in one list",
        _LETTERBOX,
        Head(
            (Output(("q", 7)),),
            pictures=Part(0, 0, 1),
            boxes=Part(0, 1, 5),
            box_form="xyxy",
            labels=Part(0, 5, 6),
            scores=Part(0, 6, 7),
            pick="given",
        ),
    ),
    Layout(
        "nms_counted",
        "exports with NMS inside: count, boxes, scores, classes",
        _LETTERBOX,
        Head(
            (
                Output(("n", 1), r"num.*", whole=True),
                Output(("n", "q", 4), r".*box.*"),
                Output(("n", "q"), r".*score.*"),
                Output(("n", "q"), r".*(class|label).*", whole=True),
            ),
            count=Part(0),
            boxes=Part(1),
            box_form="xyxy",
            scores=Part(2),
            pick="given",
            labels=Part(3),
        ),
    ),
    Layout(
        "nms_mmdeploy",
        "MMDetection's exports with NMS inside: dets, labels",
        _RTMDET,
        Head(
            (Output(("n", "q", 5), r"dets"), Output(("n", "q"), r"labels", whole=True)),
            boxes=Part(0, 0, 4),
            box_form="xyxy",
            scores=Part(0, 4, 5),
            pick="given",
            labels=Part(1),
        ),
    ),
    Layout(
        "rtdetr",
        "RT-DETR, D-FINE, DEIM",
        _STRETCH,
        _TRIPLE,
        inputs=frozenset({"sizes"}),
    ),
    Layout(
        "rtdetr_imagenet",
        "DEIMv2 with a DINOv3 backbone: as rtdetr, pictures normalised",
        _STRETCH_IMAGENET,
        _TRIPLE,
        inputs=frozenset({"sizes"}),
        rather="rtdetr",
    ),
    Layout(
        "boxes_scores_labels",
        "detectors that give boxes, scores and labels, as those edgebox serves",
        Preprocessing(fit="top_left"),
        _TRIPLE,
        rather="nms_counted",
    ),
    Layout(
        "rtdetr_ultralytics",
        "RT-DETR of Ultralytics",
        _STRETCH,
        Head((Output(("n", "q", "4+c")),), boxes=Part(0, 0, 4), relative=True, scores=Part(0, 4)),
    ),
    Layout(
        "hf_detr",
        "DETR, YOLOS, Table Transformer of Hugging Face",
        _STRETCH_IMAGENET,
        _hugging_face("softmax"),
    ),
    Layout(
        "hf_rtdetr",
        "RT-DETR, D-FINE of Hugging Face",
        _STRETCH,
        _hugging_face("sigmoid"),
        coco_classes=80,
    ),
    Layout(
        "hf_deformable",
        "Deformable DETR, Conditional DETR of Hugging Face",
        _STRETCH_IMAGENET,
        _hugging_face("sigmoid"),
        rather="hf_rtdetr",
        coco_classes=91,
    ),
    Layout(
        "rfdetr",
        "RF-DETR",
        _STRETCH_IMAGENET,
        Head(
            (Output(("n", "q", 4), r"dets"), Output(("n", "q", "c"), r"labels")),
            boxes=Part(0),
            relative=True,
            scores=Part(1),
            activation="sigmoid",
            pick="every",
        ),
    ),
    Layout("nanodet_plus", "NanoDet-Plus", _NANODET, _nanodet(8, (8, 16, 32, 64), 0.0)),
    Layout("nanodet", "NanoDet", _NANODET, _nanodet(8, (8, 16, 32), 0.5)),
    Layout("nanodet_g", "NanoDet-g", _NANODET, _nanodet(11, (8, 16, 32), 0.5)),
    Layout(
        "nanodet_split",
        "NanoDet with scores and boxes apart",
        _NANODET,
        _scores_and_bins((8, 16, 32)),
    ),
    Layout(
        "picodet",
        "PicoDet without its decoding: scores and boxes apart",
        _STRETCH_IMAGENET,
        _scores_and_bins((8, 16, 32, 64)),
    ),
    Layout(
        "fastestdet",
        "FastestDet",
        Preprocessing(order="bgr", fit="stretch"),
        Head(
            (Output(("n", "a", "5+c")),),
            objectness=Part(0, 0, 1),
            boxes=Part(0, 1, 5),
            box_form="squashed",
            scores=Part(0, 5),
            exponents=(0.6, 0.4),
            strides=((16,),),
            nms_iou=0.45,
        ),
    ),
    Layout(
        "classifier",
        "classifiers that give logits, pictures normalised as for ImageNet",
        _COVER_IMAGENET,
        _classes("softmax"),
    ),
    Layout(
        "classifier_softmax",
        "classifiers that give probabilities, pictures normalised as for ImageNet",
        _COVER_IMAGENET,
        _classes("none"),
    ),
    Layout(
        "classifier_ultralytics",
        "classifiers of Ultralytics: probabilities, pictures from 0 to 1",
        Preprocessing(fit="cover"),
        _classes("none"),
        rather="classifier_softmax",
    ),
)


EMBEDDING_LAYOUTS: tuple[Layout, ...] = (
    Layout(
        "embedding",
        "embeddings of pictures that are normalised as for ImageNet",
        _STRETCH_IMAGENET,
        _EMBEDDING,
    ),
    Layout(
        "embedding_bgr",
        "embeddings of pictures from 0 to 255 in BGR, as OpenVINO's re-identification models",
        Preprocessing(order="bgr", fit="stretch", divisor=1.0),
        _EMBEDDING,
    ),
)
"""Only tried when a person says that a model gives embeddings: they look like any numbers."""


def layout_named(name: str) -> Layout | None:
    """Return a layout; None: there is none of this name."""
    known = (*LAYOUTS, *EMBEDDING_LAYOUTS)
    return next((layout for layout in known if layout.name == name), None)
