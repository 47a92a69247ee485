"""Options that many commands have."""

import pytest

from edgebox.commands.shared_options import policy_names
from edgebox.domain.errors import InvalidInputError

KNOWN = ("edf", "adaptive")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("all", ["edf", "adaptive"]),
        ("adaptive", ["adaptive"]),
        ("adaptive, edf", ["adaptive", "edf"]),
        ("adaptive,", ["adaptive"]),
        (",adaptive,,edf,", ["adaptive", "edf"]),
        ("edf,edf", ["edf"]),
    ],
)
def test_policies_are_named_with_commas(text: str, names: list[str]) -> None:
    assert policy_names(text, KNOWN) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--policy names no policy"),
        (" , ", "--policy names no policy"),
        ("edf,best", "there is no policy 'best'"),
        ("all,edf", "there is no policy 'all'"),
    ],
)
def test_what_names_no_policy_is_one_error(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"{message}.*\(there are: edf, adaptive\)"):
        policy_names(text, KNOWN)
