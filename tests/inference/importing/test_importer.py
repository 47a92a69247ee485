"""Importing as a whole: what is refused leaves nothing behind, what is taken can be served."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from edgebox.domain.errors import ModelError
from edgebox.inference.importing import importer, serving
from edgebox.inference.importing.importer import ImportOptions, assumed_accuracy, import_family
from edgebox.inference.importing.labels import read_labels
from edgebox.inference.importing.recognition import UncertainLayoutError
from edgebox.inference.zoo import imported_folders, load_family, load_zoo
from edgebox.vision.coco import COCO80
from tests.inference.importing.planted import LABELS, Raw, Tiny, write
from tests.inference.importing.zoo_of_layouts import DETECTORS, layout

NAMED = ImportOptions(labels=LABELS)


def written(folder: Path, tiny: Tiny, name: str = "tiny.onnx") -> Path:
    path = folder / name
    path.write_bytes(write(tiny))
    return path


def tiny_of(name: str, **changes: object) -> Tiny:
    tiny = DETECTORS[name][0]()
    for key, value in changes.items():
        setattr(tiny, key, value)
    return tiny


def refused(tmp_path: Path, import_options: ImportOptions, *tinies: Tiny) -> str:
    paths = [written(tmp_path, tiny, f"t{at}.onnx") for at, tiny in enumerate(tinies)]
    with pytest.raises(ModelError) as caught:
        import_family(paths, tmp_path / "data" / "models", import_options)
    assert not (tmp_path / "data").exists()
    return str(caught.value)


def with_output(tiny: Tiny, name: str, shape: tuple[int, ...]) -> Tiny:
    tiny.outputs.append(Raw(name, np.zeros(shape, np.float32)))
    return tiny


# -- what is refused ------------------------------------------------------------------------


def test_a_segmentation_model(tmp_path: Path) -> None:
    tiny = with_output(tiny_of("yolov8"), "output1", (32, 16, 24))
    assert "is a segmentation model" in refused(tmp_path, ImportOptions(), tiny)


def test_a_model_that_says_it_segments(tmp_path: Path) -> None:
    tiny = tiny_of("yolov8", metadata={"task": "segment"})
    assert "is a model for 'segment'" in refused(tmp_path, ImportOptions(), tiny)


def test_a_map_over_the_picture(tmp_path: Path) -> None:
    tiny = Tiny([Raw("out", np.zeros((21, 64, 96), np.float32))])
    assert "is a map over the picture: this is a segmentation model" in refused(
        tmp_path, ImportOptions(), tiny
    )


def test_outputs_nobody_knows(tmp_path: Path) -> None:
    tiny = Tiny([Raw("out", np.zeros((3, 4, 5, 6), np.float32))])
    assert "fit no layout edgebox knows (yolov5, " in refused(tmp_path, ImportOptions(), tiny)


@pytest.mark.parametrize("name", ["yolov8", "rfdetr"])
def test_labels_of_the_wrong_length(tmp_path: Path, name: str) -> None:
    import_options = ImportOptions(labels=(*LABELS, "boat", "cat"))
    message = refused(tmp_path, import_options, tiny_of(name))
    assert "there are 5 labels, but the model scores 3 classes" in message


def test_fewer_labels_than_were_found(tmp_path: Path) -> None:
    message = refused(tmp_path, ImportOptions(labels=("a", "b")), tiny_of("end_to_end"))
    assert "there are 2 labels, but the model found the label 2" in message


def test_a_batch_axis_that_lies_is_not_used(tmp_path: Path) -> None:
    path = written(tmp_path, tiny_of("yolov8", lies=True))
    result = import_family([path], tmp_path / "models", NAMED)
    assert result.family.batch_size_fixed == 1
    (remark,) = [each for each in result.remarks if "the batch axis lies" in each]
    assert remark.startswith("imported for single pictures: the batch axis lies: 3 pictures at")


def test_a_fixed_batch_whose_pictures_are_not_kept_apart(tmp_path: Path) -> None:
    message = refused(tmp_path, NAMED, tiny_of("yolov8", lies=True, batch=2))
    assert "2 pictures at once are not what they are one by one" in message
    assert "Export the model for single pictures" in message


def test_a_batch_that_is_merged_into_one(tmp_path: Path) -> None:
    path = written(tmp_path, tiny_of("yolox"))
    model = ModelProto.FromString(path.read_bytes())
    (last,) = [node for node in model.graph.node if node.output[0] == "output"]
    dims = helper.make_tensor("merging", TensorProto.INT64, [3], [1, -1, 8])
    model.graph.initializer.append(dims)
    last.op_type = "Reshape"
    last.input.append("merging")
    path.write_bytes(model.SerializeToString())
    result = import_family([path], tmp_path / "models", NAMED)
    assert result.family.batch_size_fixed == 1
    assert any("merged into one" in remark for remark in result.remarks)
    assert "batches of 1 only" in " ".join(result.remarks)


def test_sizes_it_does_not_have(tmp_path: Path) -> None:
    import_options = ImportOptions(labels=LABELS, sizes_px=((320, 320),))
    assert "takes 96 × 64 px only" in refused(tmp_path, import_options, tiny_of("yolov8"))


def test_a_size_it_only_says_it_has(tmp_path: Path) -> None:
    # Its rows are those of 96 × 64 px, whatever is put in.
    tiny = tiny_of("yolox", width="w", height="h", metadata={"imgsz": "[64, 96]"})
    import_options = ImportOptions(labels=LABELS, sizes_px=((96, 64), (320, 320)))
    assert "gives other outputs at 320 × 320 px" in refused(tmp_path, import_options, tiny)


def test_a_layout_it_has_not(tmp_path: Path) -> None:
    import_options = ImportOptions(labels=LABELS, layout=layout("rfdetr"))
    message = refused(tmp_path, import_options, tiny_of("yolov8"))
    assert "has not the outputs of the layout 'rfdetr'; it has output0 [1, 7, 126]" in message


@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", "", "CON:", "a" * 65, "a\n", "é"])
def test_names_that_could_lead_elsewhere(tmp_path: Path, name: str) -> None:
    assert "a family cannot be called" in refused(
        tmp_path, ImportOptions(name=name), tiny_of("yolov8")
    )


def test_inputs_nobody_knows(tmp_path: Path) -> None:
    path = written(tmp_path, tiny_of("yolov8"))
    model = ModelProto.FromString(path.read_bytes())
    for name, dims in (("scale_factor", [1, 3, 5]), ("im", [1, 4, 64, 96])):
        other = ModelProto.FromString(path.read_bytes())
        other.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        path.with_name(f"{name}.onnx").write_bytes(other.SerializeToString())
    with pytest.raises(ModelError, match=r"an input 'scale_factor' .* does not know how to feed"):
        import_family([tmp_path / "scale_factor.onnx"], tmp_path / "models", NAMED)
    with pytest.raises(ModelError, match="has 2 inputs for pictures"):
        import_family([tmp_path / "im.onnx"], tmp_path / "models", NAMED)
    model.graph.input[0].type.tensor_type.shape.dim[3].dim_value = 100_000
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="sides are at most 4096 px"):
        import_family([path], tmp_path / "models", NAMED)


def test_a_graph_that_came_out_wrong_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = serving.served_model

    def other_scores(*arguments: object, **options: object) -> ModelProto:
        model = honest(*arguments, **options)  # type: ignore[arg-type]
        values = next(t for t in model.graph.initializer if list(t.dims) == [1, 7, 126])
        values.raw_data = (np.frombuffer(values.raw_data, np.float32) * 0.9).tobytes()
        return model

    monkeypatch.setattr(importer, "served_model", other_scores)
    message = refused(tmp_path, NAMED, tiny_of("yolov8"))
    assert "the imported graph does not find what the original finds" in message


# -- what is not certain ---------------------------------------------------------------------------


def test_what_is_not_certain_is_asked(tmp_path: Path) -> None:
    tiny = tiny_of("rfdetr")
    for raw, name in zip(tiny.outputs, ("a", "b"), strict=True):
        raw.name = name
    path = written(tmp_path, tiny)
    with pytest.raises(UncertainLayoutError, match="its layout is not certain") as caught:
        import_family([path], tmp_path / "models", NAMED)
    names = [each.name for each in caught.value.candidates]
    assert "rfdetr" in names
    assert "--layout" in str(caught.value)
    result = import_family(
        [path], tmp_path / "models", NAMED, ask=lambda path, possible: layout("rfdetr")
    )
    assert result.candidate.name == "rfdetr"
    found = next(each for each in caught.value.candidates if each.name == "rfdetr")
    assert found.summary().startswith("person 0.8")
    assert "rfdetr (would find person 0.8" in str(caught.value)


def test_what_an_untrained_model_does_is_unusual_not_impossible(tmp_path: Path) -> None:
    tiny = tiny_of("rfdetr")
    tiny.outputs[1].values[:] += 9.0
    result = import_family([written(tmp_path, tiny)], tmp_path / "models", NAMED)
    assert result.candidate.name == "rfdetr"
    assert any("although every other row would be sure" in remark for remark in result.remarks)


def test_a_model_that_finds_nothing_is_taken_with_a_warning(tmp_path: Path) -> None:
    tiny = tiny_of("nms_rows")
    tiny.outputs[0].values = np.zeros((0, 7), np.float32)
    tiny.outputs[0].follows = None
    result = import_family([written(tmp_path, tiny)], tmp_path / "models", NAMED)
    assert (result.candidate.name, result.compared) == ("nms_rows", 0)
    assert any("nothing was found on the pictures" in remark for remark in result.remarks)


def test_feature_maps_beside_boxes_are_no_masks(tmp_path: Path) -> None:
    tiny = with_output(tiny_of("hf_rtdetr"), "encoder_last_hidden_state", (256, 16, 24))
    result = import_family([written(tmp_path, tiny)], tmp_path / "models", NAMED)
    assert result.candidate.name == "hf_rtdetr"
    masks = with_output(tiny_of("rfdetr"), "masks", (20, 4, 6))
    assert "is a segmentation model" in refused(tmp_path, NAMED, masks)


def test_a_classifier_with_free_sides_gets_the_usual_one(tmp_path: Path) -> None:
    values = np.array([0.0, 2.0, 1.0], np.float32)
    raw = Raw("logits", values)
    tiny = Tiny([raw], layout("classifier").preprocessing, width="w", height="h")
    family = import_family([written(tmp_path, tiny)], tmp_path / "models", NAMED).family
    assert [(v.name, v.width_px, v.height_px) for v in family.variants] == [("tiny-224", 224, 224)]


# -- what is taken --------------------------------------------------------------------------


def test_one_file_with_free_sides_is_several_variants(tmp_path: Path) -> None:
    path = tmp_path / "Street Cam!.onnx"
    path.write_bytes(write(tiny_of("end_to_end", width="w", height="h")))
    import_options = ImportOptions(labels=LABELS, sizes_px=((96, 64), (128, 128)), licence="MIT")
    result = import_family([path], tmp_path / "models", import_options)
    family = result.family
    assert result.folder == tmp_path / "models" / "street-cam"
    assert [v.name for v in family.variants] == ["street-cam-96x64", "street-cam-128"]
    assert [v.accuracy for v in family.variants] == sorted({v.accuracy for v in family.variants})
    assert family.accuracy_assumed == {v.name for v in family.variants}
    assert len(family.model_files) == 1
    assert family.licence == "MIT"
    assert family.origin is not None
    assert (family.origin.layout, family.origin.sources) == ("end_to_end", (path.name,))
    assert load_zoo(imported_folders(tmp_path / "models")).problems == ()
    assert [entry.name for entry in (tmp_path / "models").iterdir()] == ["street-cam"]


def test_several_files_are_one_family(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, tiny_of("yolov8"), "a.onnx"),
        written(tmp_path, tiny_of("yolov5", batch=1), "b.onnx"),
    ]
    family = import_family(
        paths, tmp_path / "models", ImportOptions(name="both", labels=LABELS)
    ).family
    assert [v.name for v in family.variants] == ["both-96x64", "both-96x64-2"]
    assert len(family.model_files) == 2
    assert family.batch_size_fixed == 1
    assert load_family(tmp_path / "models" / "both") == family


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    other = tiny_of("yolov8", metadata={"names": "['x', 'y', 'z']"})
    assert "finds other labels than" in refused(tmp_path, ImportOptions(), tiny_of("yolov5"), other)
    assert "lays pictures into its input in another way" in refused(
        tmp_path, NAMED, tiny_of("yolov5"), tiny_of("rfdetr")
    )


def test_a_name_is_given_once(tmp_path: Path) -> None:
    path = written(tmp_path, tiny_of("yolov8"))
    import_family([path], tmp_path / "models", NAMED)
    before = (tmp_path / "models" / "tiny" / "family.toml").read_bytes()
    with pytest.raises(ModelError, match="remove it first: edgebox models remove tiny"):
        import_family([path], tmp_path / "models", NAMED)
    with pytest.raises(ModelError, match=r"'street' already; choose another --name$"):
        import_options = ImportOptions(name="street", labels=LABELS)
        import_family([path], tmp_path / "models", import_options, taken=["street"])
    assert (tmp_path / "models" / "tiny" / "family.toml").read_bytes() == before


def test_what_a_killed_import_left_goes_with_the_next(tmp_path: Path) -> None:
    models = tmp_path / "models"
    for name, age_s in ((".importing-old", 7200), (".importing-now", 0)):
        (models / name).mkdir(parents=True)
        (models / name / "family.toml").write_text("")
        then_s = time.time() - age_s
        os.utime(models / name, (then_s, then_s))
    assert imported_folders(models) == []
    import_family([written(tmp_path, tiny_of("yolov8"))], models, NAMED)
    assert sorted(each.name for each in models.iterdir()) == [".importing-now", "tiny"]


def test_cocos_91_columns_are_its_80_labels(tmp_path: Path) -> None:
    tiny = tiny_of("rfdetr")
    values = np.full((20, 91), -8.0, np.float32)
    follows = np.zeros_like(values)
    values[:, [1, 90]] = -7.0
    values[3, 90], values[4, 1] = 2.0, 1.0
    tiny.outputs[1] = Raw("labels", values, follows)
    result = import_family([written(tmp_path, tiny)], tmp_path / "models", ImportOptions())
    assert result.family.labels == COCO80
    assert result.candidate.summary().startswith(f"{COCO80[79]} 0.8")
    assert any("91 classes are taken to be COCO's" in remark for remark in result.remarks)


@pytest.mark.parametrize(("classes", "name"), [(91, "hf_deformable"), (80, "hf_rtdetr")])
def test_the_number_of_cocos_classes_tells_two_layouts_apart(
    tmp_path: Path, classes: int, name: str
) -> None:
    tiny = tiny_of("hf_rtdetr")
    values = np.full((20, classes), -8.0, np.float32)
    values[0, 3] = 2.0
    tiny.outputs[0] = Raw("logits", values)
    result = import_family([written(tmp_path, tiny)], tmp_path / "models", ImportOptions())
    assert result.candidate.name == name
    assert result.family.labels == COCO80


def test_a_missing_file_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    steps: list[str] = []
    there = written(tmp_path, tiny_of("yolov8"))
    with pytest.raises(ModelError, match=r"nowhere\.onnx: there is no such file"):
        import_family(
            [there, tmp_path / "nowhere.onnx"],
            tmp_path / "models",
            ImportOptions(),
            progress=lambda text, share: steps.append(text),
        )
    assert steps == []


def test_labels_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("car\n\nbus \n\n\n")
    assert read_labels(str(file)) == ("car", "class 1", "bus")
    assert read_labels("coco80") == COCO80
    with pytest.raises(ModelError, match="there is no such file"):
        read_labels(str(tmp_path / "nowhere"))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ModelError, match="not a text file"):
        read_labels(str(file))


def test_assumed_accuracy_rises_with_cost() -> None:
    sides = [assumed_accuracy(side * side, 1.0) for side in (128, 320, 640, 1280)]
    assert sides == sorted(set(sides))
    assert assumed_accuracy(640 * 640, 4.0) > assumed_accuracy(640 * 640, 1.0)
    assert all(0.0 < accuracy < 1.0 for accuracy in sides)
