"""The titles of problems: each says what it means, as `GET /v1/problems` lists it."""

from edgebox.domain.errors import EdgeboxError
from edgebox.runtime.refusals import REFUSALS
from edgebox.web.api_discovery import kinds_of
from edgebox.web.server import ROUTES


def test_only_a_failure_of_the_box_is_titled_as_one() -> None:
    titles = {kind.code: kind.title for kind in kinds_of(ROUTES)}
    titles |= {kind.code: kind.title for kind in REFUSALS}
    assert [code for code, title in titles.items() if title == EdgeboxError.title] == ["internal"]
