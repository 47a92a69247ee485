"""Fingerprints: stable where nothing changed, different where a profile would be wrong."""

from dataclasses import replace

from edgebox.domain.model_family import ExecutorId
from edgebox.inference.family import Family, ModelFile
from edgebox.inference.family_prints import reading_print
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.zoo import bundled_folders, load_zoo


def taken(
    family: Family, threads: int = 1, executor_id: str = "cpu/0", of: Family | None = None
) -> str:
    """Return the fingerprint of `of`, or else of the family, on an executor that holds it."""
    executor = OnnxExecutor(ExecutorId(executor_id), [family], providers="cpu", cpu_threads=threads)
    executor.close()
    return fingerprint(executor, of or family)


def test_only_what_matters_changes_it() -> None:
    street = load_zoo(bundled_folders()).family("street")
    base = taken(street)
    assert base == taken(street)
    assert base == taken(street, executor_id="cpu/1")
    assert base == taken(replace(street, description="another text"))
    resized = replace(street.variants[0], width_px=160)
    other_files = {name: ModelFile(file.path, "0" * 64) for name, file in street.files.items()}
    changed = [
        taken(street, threads=2),
        taken(street, of=replace(street, files=other_files)),
        taken(replace(street, variants=(resized, *street.variants[1:]))),
    ]
    assert len({base, *changed}) == 4
    assert "\n" not in base


def test_how_a_family_is_read_is_the_same_in_every_process_and_whatever_it_is_called() -> None:
    street = load_zoo(bundled_folders()).family("street")
    base = reading_print(street)
    assert base == "bada8f3f04658faa"
    renamed = replace(street, description="another text", labels=tuple("abcde"))
    assert reading_print(renamed) == base
    changed = [
        replace(street, input=replace(street.input, order="bgr")),
        replace(street, input=replace(street.input, fill=0)),
        replace(street, input=replace(street.input, mean=(1.0, 1.0, 1.0))),
        replace(street, decoder="yolox"),
        replace(street, labels=(*street.labels, "bicycle")),
    ]
    assert len({base, *map(reading_print, changed)}) == 1 + len(changed)


def test_what_every_answer_carries_is_computed_once_for_each_family() -> None:
    street = load_zoo(bundled_folders()).family("street")
    assert street.served_print is street.served_print
    assert replace(street, labels=street.labels[::-1]).served_print != street.served_print
