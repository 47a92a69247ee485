"""`edgebox models cascade` as its users meet it."""

from pathlib import Path

from edgebox.inference.cascade_file import read_cascade
from tests.end_to_end.program import edgebox, within_this_process


async def test_a_cascade_is_fitted_and_stored(tmp_path: Path) -> None:
    wanted = ("models", "cascade", "street-128", "street/street-320", "--frames", "scene:7")
    ended = await edgebox(tmp_path, *wanted, "--limit", "40", "--json")
    document = ended.json()
    assert (document["name"], document["pictures"]) == ("street-128-street-320", 40)
    stored = read_cascade(tmp_path / "edgebox" / "models", document["name"])
    assert (stored.small.variant, stored.large.variant) == ("street-128", "street-320")
    assert document["file"] == str(tmp_path / "edgebox" / "models" / f"{stored.name}.cascade.json")
    agreement = [row["agreement"] for row in document["shares"]]
    assert agreement == sorted(agreement)
    assert agreement[0] < agreement[-1] == 1
    thresholds = [row["threshold"] for row in document["shares"]]
    assert thresholds == sorted(thresholds, reverse=True)


def test_models_that_do_not_fit_are_one_error(tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        command = ("models", "cascade", *arguments, "--frames", "scene:7")
        ended = within_this_process(tmp_path, *command)
        assert ended.code == 1
        return " ".join(ended.err.split())

    assert "both models are street-608" in said("street", "street-608")
    assert "there is no model family or variant 'streets'" in said("streets", "street")
    assert "the task of vehicles is classify" in said("street-128", "vehicles")
    assert "--name: must be" in said("street-128", "street", "--name", "a/b")
    assert "name the small model first" in said("street-608", "street-128")
    few = said("street-128", "street", "--limit", "39")
    assert few == "edgebox models cascade: a cascade needs at least 40 pictures, not 39"


def test_an_error_has_the_words_of_its_message(tmp_path: Path) -> None:
    wanted = ("models", "cascade", "street-128", "street", "--frames", "scene:x")
    ended = within_this_process(tmp_path, *wanted)
    assert "scene:x: a scene's seed must be a whole number" in ended.err


def test_an_exit_is_fitted_against_the_second_part(tmp_path: Path) -> None:
    wanted = ("models", "cascade", "street-exit-128", "street-rest-128", "--frames", "scene:7")
    ended = within_this_process(tmp_path, *wanted, "--limit", "40", "--json")
    document = ended.json()
    agreement = [row["agreement"] for row in document["shares"]]
    assert agreement == sorted(agreement)
    assert 0 < agreement[0] < agreement[-1] == 1
