"""`edgebox fleet`, where there is no box; with boxes: tests/end_to_end/test_fleet.py."""

import pytest

from edgebox.client import SubscriptionRefusedError, get_document
from tests.end_to_end.running import free_port


async def test_a_box_that_is_not_there_is_told_of_in_plain_words() -> None:
    server = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(SubscriptionRefusedError) as raised:
        await get_document(server, "fleet")
    assert str(raised.value) == f"{server}: it cannot be reached: connection refused"
