"""The table of a request's stages: where it may go from where, and that it always ends."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import DropReason
from edgebox.scheduling.ledger import LiveRequest
from edgebox.scheduling.request_stages import TRANSITIONS, Cause, Stage
from tests.scheduling.scene import request

DOCUMENT = Path(__file__).parents[2] / "docs/explanation/scheduling.md"


def new() -> LiveRequest:
    return LiveRequest(request(1, 100), VariantName("s-128"))


@given(st.lists(st.sampled_from(Cause)))
def test_in_whatever_order_causes_come_only_rows_of_the_table_move_a_request(
    causes: list[Cause],
) -> None:
    live = new()
    for cause in causes:
        before = live.stage, live.reason
        row = TRANSITIONS.get((live.stage, cause))
        if row is None:
            with pytest.raises(InvariantViolation, match=f"that is {live.stage} cannot be {cause}"):
                live.move(cause)
            assert (live.stage, live.reason) == before
        else:
            live.move(cause)
            assert (live.stage, live.reason) == (row.to, row.reason)
            assert live.reason is None or live.stage is Stage.ENDED


def test_every_stage_can_be_reached_and_leads_to_the_end() -> None:
    follows = {s: {row.to for (at, _), row in TRANSITIONS.items() if at is s} for s in Stage}
    assert follows[Stage.ENDED] == set()
    assert {to for stages in follows.values() for to in stages} == set(Stage) - {Stage.RECEIVED}
    assert all(Stage.ENDED in follows[stage] for stage in Stage if stage is not Stage.ENDED)
    assert {cause for _, cause in TRANSITIONS} == set(Cause)


def test_every_reason_for_a_drop_at_the_box_has_a_row() -> None:
    reasons = {row.reason for row in TRANSITIONS.values() if row.reason is not None}
    assert reasons == set(DropReason) - {DropReason.SENDER, DropReason.PLAN}


def test_the_documents_table_is_the_codes() -> None:
    text = DOCUMENT.read_text()
    rows = re.findall(r"^\| ([a-z, ]+) \| ([a-z ]+) \| ([a-z]+) \|(.*)\|$", text, re.MULTILINE)
    documented = {
        (stage, cause, to, reason.strip())
        for stages, cause, to, reason in rows
        if to in set(Stage)
        for stage in stages.split(", ")
    }
    assert documented == {
        (str(stage), str(cause), str(row.to), f"`{row.reason}`" if row.reason else "")
        for (stage, cause), row in TRANSITIONS.items()
    }
