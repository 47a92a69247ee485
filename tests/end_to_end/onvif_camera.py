"""A small ONVIF camera: WS-Discovery over UDP, and a device and media service over SOAP."""

import asyncio
import base64
import contextlib
import hashlib
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

MEDIA = "http://www.onvif.org/ver10/media/wsdl"
DEVICE = "http://www.onvif.org/ver10/device/wsdl"
_ENVELOPE = (
    '<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope" xmlns:d="{device}"'
    ' xmlns:m="{media}" xmlns:t="http://www.onvif.org/ver10/schema"'
    ' xmlns:f="http://www.onvif.org/ver10/error"><e:Body>{body}</e:Body></e:Envelope>'
)
_FAULT = (
    "<e:Fault><e:Code><e:Value>e:Sender</e:Value><e:Subcode><e:Value>f:NotAuthorized</e:Value>"
    "</e:Subcode></e:Code><e:Reason><e:Text xml:lang='en'>Sender not Authorized</e:Text>"
    "</e:Reason></e:Fault>"
)
_MATCH = (
    '<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"'
    ' xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"><e:Body><d:ProbeMatches>'
    "<d:ProbeMatch><d:Types>NetworkVideoTransmitter</d:Types>"
    "<d:Scopes>onvif://www.onvif.org/name/Front%20door</d:Scopes>"
    "<d:XAddrs>{address}</d:XAddrs></d:ProbeMatch></d:ProbeMatches></e:Body></e:Envelope>"
)
CLOCK_OFF = timedelta(hours=3)
"""The camera's clock is wrong, as many are; a login must have its time."""


def match(address: str) -> bytes:
    """Return the answer to a probe."""
    return _MATCH.format(address=address).encode()


class Camera:
    """It answers to one user."""

    def __init__(self, user: str, password: str) -> None:
        self.heard: list[str] = []
        self.url = ""
        self.streams = "rtsp://own:secret@127.0.0.1:8554/"
        """What the addresses of its streams begin with."""
        self.broken: dict[str, str] = {}
        """Profiles that fail, and how: fault, sizeless, elsewhere."""
        self._user = user
        self._password = password

    async def answer(self, request: web.Request) -> web.Response:
        text = await request.text()
        self.heard.append(text)
        asked = re.search(r"<(?:[\w-]+:)?Body[^>]*>\s*<(?:[\w-]+:)?(\w+)", text)
        assert asked is not None, text
        status, body = 200, ""
        if asked[1] == "GetSystemDateAndTime":
            body = _time(datetime.now(UTC) + CLOCK_OFF)
        elif not self._may(text):
            status, body = 400, _FAULT
        elif asked[1] == "GetServices":
            body = f"<d:GetServicesResponse>{self._service(MEDIA)}</d:GetServicesResponse>"
        elif asked[1] == "GetProfiles":
            profiles = _profile("sub", 640, 360), _profile("main", 1920, 1080)
            body = f"<m:GetProfilesResponse>{''.join(profiles)}</m:GetProfilesResponse>"
            for name, how in self.broken.items():
                if how == "sizeless":
                    body = re.sub(
                        rf'(token="v{name}".*?)<t:Resolution>.*?</t:Resolution>', r"\1", body
                    )
        elif asked[1] == "GetStreamUri":
            token = re.search(r"ProfileToken>(\w+)<", text)
            assert token is not None
            fault = self.broken.get(token[1])
            status, body = (
                200,
                _stream_uri(
                    "rtsp://127.0.0.2/x" if fault == "elsewhere" else f"{self.streams}{token[1]}"
                ),
            )
            if fault == "fault":
                status, body = 500, re.sub("(Sender )?[Nn]ot ?Authorized", "Incomplete", _FAULT)
        else:
            status, body = 400, _FAULT
        answer = _ENVELOPE.format(device=DEVICE, media=MEDIA, body=body)
        return web.Response(status=status, text=answer, content_type="application/soap+xml")

    def _service(self, namespace: str) -> str:
        return (
            f"<d:Service><d:Namespace>{namespace}</d:Namespace><d:XAddr>{self.url}</d:XAddr>"
            "<d:Version><t:Major>2</t:Major><t:Minor>0</t:Minor></d:Version></d:Service>"
        )

    def _may(self, text: str) -> bool:
        def said(name: str) -> str:
            found = re.search(rf":{name}(?: [^>]*)?>([^<]*)<", text)
            return found[1] if found else ""

        created = said("Created")
        if said("Username") != self._user or not created:
            return False
        off = datetime.fromisoformat(created) - datetime.now(UTC) - CLOCK_OFF
        secret = base64.b64decode(said("Nonce")) + (created + self._password).encode()
        expected = base64.b64encode(hashlib.sha1(secret).digest()).decode()  # as ONVIF has it
        return said("Password") == expected and abs(off) < timedelta(minutes=1)


def _stream_uri(url: str) -> str:
    return (
        f"<m:GetStreamUriResponse><m:MediaUri><t:Uri>{url}</t:Uri>"
        "<t:InvalidAfterConnect>false</t:InvalidAfterConnect>"
        "<t:InvalidAfterReboot>false</t:InvalidAfterReboot><t:Timeout>PT0S</t:Timeout>"
        "</m:MediaUri></m:GetStreamUriResponse>"
    )


def _time(now: datetime) -> str:
    return (
        "<d:GetSystemDateAndTimeResponse><d:SystemDateAndTime>"
        "<t:DateTimeType>Manual</t:DateTimeType><t:DaylightSavings>false</t:DaylightSavings>"
        f"<t:UTCDateTime><t:Time><t:Hour>{now.hour}</t:Hour><t:Minute>{now.minute}</t:Minute>"
        f"<t:Second>{now.second}</t:Second></t:Time><t:Date><t:Year>{now.year}</t:Year>"
        f"<t:Month>{now.month}</t:Month><t:Day>{now.day}</t:Day></t:Date></t:UTCDateTime>"
        "</d:SystemDateAndTime></d:GetSystemDateAndTimeResponse>"
    )


def _profile(name: str, width_px: int, height_px: int) -> str:
    return (
        f'<m:Profiles token="{name}" fixed="true"><t:Name>{name}</t:Name>'
        f'<t:VideoEncoderConfiguration token="v{name}"><t:Name>{name}</t:Name>'
        "<t:UseCount>1</t:UseCount><t:Encoding>H264</t:Encoding>"
        f"<t:Resolution><t:Width>{width_px}</t:Width><t:Height>{height_px}</t:Height>"
        "</t:Resolution><t:Quality>5</t:Quality><t:SessionTimeout>PT60S</t:SessionTimeout>"
        "</t:VideoEncoderConfiguration></m:Profiles>"
    )


@contextlib.asynccontextmanager
async def onvif_camera(user: str, password: str) -> AsyncIterator[tuple[Camera, tuple[str, int]]]:
    """Serve a camera meanwhile; yield it, and where it answers to probes."""
    camera = Camera(user, password)
    app = web.Application()
    app.router.add_post("/{service:.*}", camera.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    camera.url = f"http://127.0.0.1:{runner.addresses[0][1]}/onvif/service"

    class Responder(asyncio.DatagramProtocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            if b"Probe" in data and b"NetworkVideoTransmitter" in data:
                self.transport.sendto(match(camera.url), addr)

    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Responder, local_addr=("127.0.0.1", 0))
    try:
        yield camera, transport.get_extra_info("sockname")[:2]
    finally:
        transport.close()
        await runner.cleanup()
