"""The live frames on the page's socket, when models change."""

import struct
from dataclasses import replace

import orjson

from edgebox.domain.model_family import FamilyName
from edgebox.runtime.box import Box
from edgebox.runtime.frames import PendingFrame
from edgebox.runtime.model_choice import ModelChoice
from edgebox.web.live_frame import live_frame_message
from tests.runtime.staged import STREET, answer, detections
from tests.scheduling.scene import request
from tests.web.sites import box_that_waits

OTHER = replace(STREET, name=FamilyName("other"), labels=("ship",))


def box_that_shows_a_frame() -> tuple[Box, PendingFrame]:
    box = box_that_waits()
    box.offer(ModelChoice({each.name: each for each in (STREET, OTHER)}, STREET.name))
    frame = PendingFrame(
        request(1, 300.0),
        b"a picture",
        640,
        360,
        0,
        lambda frame, ending: None,
        number=1,
        family=STREET.name,
    )
    box.shown.add_viewer()
    box.shown.answered(frame, answer(detections((2, 0.9))))
    return box, frame


async def test_a_frame_has_the_labels_of_its_own_model() -> None:
    box, frame = box_that_shows_a_frame()
    message = live_frame_message(box, frame.request.camera)
    assert message is not None
    (length,) = struct.unpack_from("<I", message)
    header = orjson.loads(message[4 : 4 + length])
    assert [each["label"] for each in header["detections"]] == [STREET.labels[2]]
    assert message[4 + length :] == b"a picture"


async def test_a_frame_whose_model_was_removed_since_is_not_shown() -> None:
    box, frame = box_that_shows_a_frame()
    box.offer(ModelChoice({OTHER.name: OTHER}, OTHER.name))
    assert live_frame_message(box, frame.request.camera) is None
