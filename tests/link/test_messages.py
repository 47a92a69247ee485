"""The wire, literally: what docs/reference/protocol.md shows is what is read and written."""

import math
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Advice
from edgebox.domain.requests import DropReason, Outcome
from edgebox.link.from_box import Result
from edgebox.link.messages import (
    ERROR_CODES,
    Ack,
    AdviceMessage,
    BoxMessage,
    Bye,
    CameraMessage,
    DropNotice,
    ErrorMessage,
    FrameHeader,
    Hello,
    Ping,
    Pong,
    Report,
    Timing,
    TrackedDetection,
    Welcome,
    WireDetection,
    decode_from_box,
    decode_from_camera,
)
from tests.link.strategies import (
    box_messages,
    camera_messages,
    headers,
    hellos,
    json_values,
    results,
)

ADVICE = Advice(
    VariantName("street-256"),
    256,
    160,
    10.0,
    85,
    1900000,
    "256 x 160 px: the uplink carries 1.9 Mbit/s",
)
TOO_LATE = "waiting behind other work, it could no longer be answered by its deadline"
ADVICE_JSON = (
    '{"variant":"street-256","width_px":256,"height_px":160,"rate_hz":10.0,"quality":85,'
    '"bandwidth_bps":1900000,"reason":"256 x 160 px: the uplink carries 1.9 Mbit/s"}'
)
GOLDEN_BOX: list[tuple[BoxMessage, str]] = [
    (
        Welcome(
            version=1,
            camera="gate-2",
            box="edgebox/0.1.0",
            clock_ns=81723645123,
            frame_bytes_max=8388608,
            unacknowledged_max=2,
            family="street",
            labels=("person", "car"),
            advice=ADVICE,
        ),
        '{"type":"welcome","version":1,"camera":"gate-2","box":"edgebox/0.1.0",'
        '"clock_ns":81723645123,"frame_bytes_max":8388608,"unacknowledged_max":2,'
        '"family":"street","labels":["person","car"],"advice":' + ADVICE_JSON + "}",
    ),
    (
        Ack(17, 81723699001, True, ADVICE),
        '{"type":"ack","frame":17,"received_ns":81723699001,"accepted":true,'
        '"advice":' + ADVICE_JSON + "}",
    ),
    (
        Result(
            17,
            Outcome.ON_TIME,
            "street-256",
            (WireDetection("car", 0.91, (612.0, 300.5, 702.1, 358.0)),),
            Timing(21.4, 3.1, 7.9, 0.6, 33.0, 2),
            ADVICE,
        ),
        '{"type":"result","frame":17,"outcome":"on_time","variant":"street-256",'
        '"detections":[{"label":"car","score":0.91,"box":[612.0,300.5,702.1,358.0]}],'
        '"timing_ms":{"network":21.4,"queue":3.1,"inference":7.9,"return":0.6,"total":33.0,'
        '"batch_size":2},"advice":' + ADVICE_JSON + "}",
    ),
    (
        Result(
            17,
            Outcome.LATE,
            "street-256",
            (
                TrackedDetection("car", 0.91, (1.0, 2.0, 3.0, 4.0), {"type": {"score": 0.5}}, 7),
                TrackedDetection("bus", 0.5, (1.0, 2.0, 3.0, 4.0)),
            ),
            Timing(21.4, 3.1, 7.9, 0.6, 33.0, 2),
            ADVICE,
        ),
        '{"type":"result","frame":17,"outcome":"late","variant":"street-256","detections":['
        '{"label":"car","score":0.91,"box":[1.0,2.0,3.0,4.0],"stages":{"type":{"score":0.5}},'
        '"track":7},{"label":"bus","score":0.5,"box":[1.0,2.0,3.0,4.0],"track":null}],'
        '"timing_ms":{"network":21.4,"queue":3.1,"inference":7.9,"return":0.6,"total":33.0,'
        '"batch_size":2},"advice":' + ADVICE_JSON + "}",
    ),
    (
        DropNotice(18, DropReason.QUEUE, TOO_LATE, ADVICE),
        '{"type":"drop","frame":18,"reason":"queue",'
        f'"message":"{TOO_LATE}","advice":' + ADVICE_JSON + "}",
    ),
    (AdviceMessage(ADVICE), '{"type":"advice","advice":' + ADVICE_JSON + "}"),
    (
        AdviceMessage(ADVICE, 150.0),
        '{"type":"advice","advice":' + ADVICE_JSON + ',"slo_ms":150.0}',
    ),
    (Ping(5, 81723699001), '{"type":"ping","id":5,"box_ns":81723699001}'),
    (
        ErrorMessage("bad_hello", "no", True),
        '{"type":"error","code":"bad_hello","message":"no","fatal":true}',
    ),
    (Bye("shutdown"), '{"type":"bye","reason":"shutdown"}'),
]
GOLDEN_CAMERA: list[tuple[CameraMessage, str]] = [
    (
        Hello(
            camera="gate-2",
            width_px=1280,
            height_px=720,
            instance="6f1c2a",
            family="street",
            agent="my-camera/1.0",
        ),
        '{"type":"hello","camera":"gate-2","width_px":1280,"height_px":720,"versions":[1],'
        '"instance":"6f1c2a","slo_ms":300.0,"rate_hz":10.0,"app":"default","family":"street",'
        '"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"my-camera/1.0"}',
    ),
    (
        Hello("gate-2", 1280, 720, slo_ms=100.0, later=((300.0, 0.3),)),
        '{"type":"hello","camera":"gate-2","width_px":1280,"height_px":720,"versions":[1],'
        '"slo_ms":[[100.0,1.0],[300.0,0.3]],"rate_hz":10.0,"app":"default","min_accuracy":0.0,'
        '"min_rate_hz":0.0}',
    ),
    (Pong(5, 5512345), '{"type":"pong","id":5,"camera_ns":5512345}'),
    (
        Report(captured=400, sent=390, skipped={"window": 8, "infeasible": 2}, on_time=380, late=3),
        '{"type":"report","captured":400,"sent":390,"skipped":{"window":8,"infeasible":2},'
        '"on_time":380,"late":3}',
    ),
]


@pytest.mark.parametrize(("message", "text"), GOLDEN_BOX, ids=lambda value: type(value).__name__)
def test_golden_box_messages(message: BoxMessage, text: str) -> None:
    assert message.encode().decode() == text
    assert decode_from_box(text) == message


@pytest.mark.parametrize(("message", "text"), GOLDEN_CAMERA, ids=lambda value: type(value).__name__)
def test_golden_camera_messages(message: CameraMessage, text: str) -> None:
    assert message.encode().decode() == text
    assert decode_from_camera(text) == message


def test_golden_frame_header() -> None:
    header = FrameHeader(
        frame=17,
        captured_ns=0x0102030405060708,
        sent_ns=0x0102030405060709,
        width_px=1280,
        height_px=720,
        captured_total=20,
    )
    data = bytes.fromhex("46 01 2000 11000000 0807060504030201 0907060504030201 0005 d002 14000000")
    assert header.encode() == data
    decoded, jpeg = FrameHeader.decode(data + b"\xff\xd8")
    assert decoded == header
    assert bytes(jpeg) == b"\xff\xd8"


def test_the_smallest_hello_takes_the_defaults_of_the_table() -> None:
    hello = decode_from_camera(
        '{"type":"hello","versions":[1,2],"camera":"a","width_px":1,"height_px":1,"new":[]}'
    )
    assert hello == Hello("a", 1, 1, (1, 2), None, 300.0, 10.0, "default", None, 0.0, 0.0, None, "")
    assert isinstance(hello, Hello)
    assert hello.common_version() == 1


def test_all_errors_of_a_hello_come_at_once() -> None:
    text = (
        '{"type":"hello","versions":[true],"camera":"a b","slo_ms":"fast","rate_hz":0,'
        '"width_px":1280.0,"min_accuracy":1.5,"min_rate_hz":-1,"instance":""}'
    )
    with pytest.raises(InvalidInputError) as caught:
        decode_from_camera(text)
    assert str(caught.value).split("; ") == [
        "hello.versions must be an array of 1 to 16 integers, not [true]",
        "hello.camera must be 1 to 64 letters, digits, '.', '_' or '-', not \"a b\"",
        "hello.width_px must be an integer from 1 to 65535, not 1280.0",
        "hello.height_px is missing: it must be an integer from 1 to 65535",
        'hello.instance must be a text of 1 to 64 printable characters, not ""',
        'hello.slo_ms must be a number from 1 to 60000, not "fast"',
        "hello.rate_hz must be a number above 0 and at most 1000, not 0",
        "hello.min_accuracy must be a number from 0 to 1, not 1.5",
        "hello.min_rate_hz must be a number from 0 to 1000, not -1",
    ]


def test_a_least_rate_above_the_rate_is_refused() -> None:
    hello = Hello("a", 1, 1, rate_hz=5.0, min_rate_hz=5.0)
    assert decode_from_camera(hello.encode()) == hello
    with pytest.raises(InvalidInputError) as caught:
        decode_from_camera(replace(hello, min_rate_hz=6.0).encode())
    assert str(caught.value) == "hello.min_rate_hz must not be above rate_hz (5), not 6"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, 10**400, "300", [], {}])
def test_numbers_that_are_none(value: object) -> None:
    fields = {"versions": [1], "camera": "a", "width_px": 1, "height_px": 1, "slo_ms": value}
    with pytest.raises(InvalidInputError, match=r"^hello\.slo_ms must be a number from 1 to 60000"):
        Hello.decode(fields)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "has 0 bytes"),
        (FrameHeader(1, 2, 3, 4, 5, 6).encode()[:31], "has 31 bytes"),
        (b"G" + FrameHeader(1, 2, 3, 4, 5, 6).encode()[1:], "kind must be 70, not 71"),
        (b"F\x02" + FrameHeader(1, 2, 3, 4, 5, 6).encode()[2:], "version must be 1, not 2"),
        (b"F\x01\x1f\x00" + FrameHeader(1, 2, 3, 4, 5, 6).encode()[4:], "header_bytes"),
        (b"F\x01\x21\x00" + FrameHeader(1, 2, 3, 4, 5, 6).encode()[4:], "header_bytes"),
        (FrameHeader(1, 3, 2, 4, 5, 6).encode(), "sent_ns"),
        (FrameHeader(1, 2, 2**63, 4, 5, 6).encode(), "63 bits"),
        (FrameHeader(1, 2, 3, 0, 5, 6).encode(), "at least 1, not 0 × 5"),
    ],
)
def test_wrong_frame_headers(data: bytes, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        FrameHeader.decode(data)


def test_a_longer_header_of_a_later_version_is_skipped() -> None:
    plain = FrameHeader(1, 2, 3, 4, 5, 6)
    data = plain.encode()[:2] + b"\x24\x00" + plain.encode()[4:] + b"more" + b"jpeg"
    header, jpeg = FrameHeader.decode(memoryview(data))
    assert (header, bytes(jpeg)) == (plain, b"jpeg")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "must be JSON"),
        ("[1]", r"must be a JSON object, not \[1\]"),
        ('{"type":"ack"}', 'type must be one of hello, pong, ping, report, error, bye, not "ack"'),
        ('{"type":["hello"]}', r'not \["hello"\]'),
        ("{}", "not null"),
        ('{"type":"pong","id":1.5,"camera_ns":1}', "pong.id must be an integer"),
        ('{"type":"pong","id":1,"camera_ns":-1}', "pong.camera_ns must be an integer from 0"),
        ('{"type":"report","skipped":{"window":"many"}}', "report.skipped.window must be"),
        ('{"type":"report","skipped":5}', "report.skipped must be an object, not 5"),
    ],
)
def test_wrong_texts_from_a_camera(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        decode_from_camera(text)


def test_a_report_may_leave_everything_out() -> None:
    assert decode_from_camera('{"type":"report"}') == Report()


def test_an_error_names_the_place_inside_a_result() -> None:
    text = dict(GOLDEN_BOX_JSON("result"))
    text["detections"] = [
        {"label": "car", "score": 2, "box": [1, 2, 3]},
        7,
    ]
    with pytest.raises(InvalidInputError) as caught:
        decode_from_box(orjson.dumps(text))
    assert "result.detections[0].score must be a number from 0 to 1, not 2" in str(caught.value)
    wanted = "result.detections[0].box must be an array of 4 numbers, not [1,2,3]"
    assert wanted in str(caught.value)
    assert "result.detections[1] must be an object, not 7" in str(caught.value)


def GOLDEN_BOX_JSON(kind: str) -> dict[str, object]:  # noqa: N802 - reads as the table it is from
    parsed: dict[str, object]
    for _, text in GOLDEN_BOX:
        parsed = orjson.loads(text)
        if parsed["type"] == kind:
            return parsed
    raise KeyError(kind)


def test_the_table_of_errors_is_consistent() -> None:
    codes = [row.close_code for row in ERROR_CODES.values() if row.close_code is not None]
    assert len(set(codes)) == len(codes)
    assert all(4000 < code < 4100 for code in codes)
    assert [row.code for row in ERROR_CODES.values() if not row.fatal] == ["bad_message"]


@given(message=box_messages)
def test_box_messages_survive_the_wire(message: BoxMessage) -> None:
    assert decode_from_box(message.encode()) == message


@given(message=camera_messages)
def test_camera_messages_survive_the_wire(message: CameraMessage) -> None:
    assert decode_from_camera(message.encode()) == message


@given(message=results)
def test_results_survive_the_wire(message: Result) -> None:
    # One of many kinds above, so most runs there have no detections.
    assert decode_from_box(message.encode()) == message


@given(header=headers, picture=st.binary(max_size=50))
def test_headers_survive_the_wire(header: FrameHeader, picture: bytes) -> None:
    decoded, jpeg = FrameHeader.decode(header.encode() + picture)
    assert (decoded, bytes(jpeg)) == (header, picture)


@given(
    data=st.binary(max_size=80) | st.binary(max_size=60).map(lambda tail: b"F\x01\x20\x00" + tail)
)
def test_any_bytes_are_a_frame_or_an_error(data: bytes) -> None:
    try:
        header, jpeg = FrameHeader.decode(data)
    except InvalidInputError:
        return
    assert len(jpeg) <= len(data) - 32
    assert header.captured_ns <= header.sent_ns


@given(
    base=hellos.map(lambda hello: orjson.loads(hello.encode())),
    name=st.sampled_from(sorted(Hello.__dataclass_fields__)),
    value=json_values,
)
def test_any_value_in_any_field_is_a_message_or_an_error(
    base: dict[str, object], name: str, value: object
) -> None:
    try:
        message = Hello.decode({**base, name: value})
    except InvalidInputError as error:
        assert str(error).startswith(f"hello.{name}")
        return
    assert decode_from_camera(message.encode()) == message


@given(message=box_messages, path=st.lists(st.integers(0, 20), max_size=4), value=json_values)
def test_a_damaged_box_message_is_a_message_or_an_error(
    message: BoxMessage, path: list[int], value: object
) -> None:
    fields = orjson.loads(message.encode())
    place = fields
    for step in path:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = keys[step % len(keys)]
        if not isinstance(place[key], dict | list):
            place[key] = value
            break
        place = place[key]
    try:
        decode_from_box(orjson.dumps(fields))
    except (InvalidInputError, orjson.JSONEncodeError):
        return
