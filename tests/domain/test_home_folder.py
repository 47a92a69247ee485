"""Paths with `~`, where there is such a home folder and where there is none."""

from pathlib import Path

import pytest

from edgebox.domain.errors import ConfigError, InvalidInputError
from edgebox.domain.home_folder import expanded, given_path

NOBODY = "~nobody-of-this-name/clip.mp4"


def test_a_home_folder_takes_the_place_of_its_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/a") == given_path(Path("~/a")) == tmp_path / "a"
    assert expanded("b/~") == given_path("b/~") == Path("b/~")


def test_who_has_none_is_told_in_the_error_that_the_caller_promises() -> None:
    with pytest.raises(ConfigError, match="no user 'nobody-of-this-name'"):
        expanded(NOBODY)
    with pytest.raises(InvalidInputError, match="no user 'nobody-of-this-name'"):
        given_path(NOBODY)


def test_a_user_without_a_home_folder_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    with pytest.raises(ConfigError, match=r"~/a: this user has no home folder: set HOME, or for"):
        expanded("~/a")
    with pytest.raises(InvalidInputError, match=r"^~/a: this user has no home folder: set HOME$"):
        given_path("~/a")
