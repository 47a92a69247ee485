"""Finds network cameras by WS-Discovery; ONVIF tells their streams (extra onvif)."""

import asyncio
import importlib.util
import re
import socket
import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Any, TypedDict
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.source_address import Credentials, read_address

GROUP = ("239.255.255.250", 3702)
"""Where WS-Discovery asks all devices of the network."""
LISTEN_S = 3.0
_ASK_S = 15.0
"""So long a camera may take to tell its streams."""
_ASK_ALL_S = 45.0
_ASKED_AT_ONCE_MAX = 8
_ANSWER_BYTES_MAX = 65_536
_CAMERAS_MAX = 256
_LOOPBACK = re.compile(r"lo\d*")
_NAME = re.compile(r"onvif://www\.onvif\.org/name/(\S+)", re.IGNORECASE)
_PROBE = """<?xml version="1.0" encoding="utf-8"?>
<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"
 xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing"
 xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"
 xmlns:n="http://www.onvif.org/ver10/network/wsdl"><e:Header>
<a:MessageID>urn:uuid:{id}</a:MessageID>
<a:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</a:To>
<a:Action>http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</a:Action></e:Header>
<e:Body><d:Probe><d:Types>n:NetworkVideoTransmitter</d:Types></d:Probe></e:Body></e:Envelope>"""


class DiscoveryError(EdgeboxError):
    """Cameras cannot be looked for; the message says what to do."""

    http_status = 503
    code = "discovery"
    title = "Cameras cannot be looked for"


class NoDiscoveryError(DiscoveryError):
    """The extra onvif is not installed."""

    http_status = 501
    code = "no_discovery"
    title = "This box cannot look for cameras"


@dataclass(frozen=True, slots=True)
class OnvifCamera:
    """A camera that answered."""

    name: str
    """What it calls itself; empty: it does not say."""
    host: str
    port: int


class FoundCamera(TypedDict):
    """A camera that answered, and what it says of itself."""

    name: Annotated[str, "What it calls itself; empty: it does not say"]
    host: str
    port: int
    why: Annotated[str, "Why it does not tell its streams; empty: it does"]
    streams: Annotated[list["FoundStream"], "The largest first"]


class FoundStream(TypedDict):
    """A stream of a camera that was found."""

    url: Annotated[str, "Its address, without user and password"]
    codec: str
    width_px: int
    height_px: int


def check_installed() -> None:
    """Raise NoDiscoveryError if the extra is missing."""
    if importlib.util.find_spec("onvif") is None:
        raise NoDiscoveryError(
            "looking for cameras needs the extra onvif: pip install 'edgebox[onvif]'"
        )


async def search(
    credentials: Credentials | None,
    host: str | None = None,
    *,
    listen_s: float = LISTEN_S,
    group: tuple[str, int] = GROUP,
) -> list[FoundCamera]:
    """Return the cameras that answer in the local network, with their streams.

    Not for a loop that serves: the library blocks.

    Args:
        credentials: are sent, hashed, to every camera that is asked; None: none are.
        host: only the camera at this address is asked and returned; None: all are.
        listen_s: how long to listen for answers.
        group: whom to ask, (address, port).

    Raises:
        DiscoveryError: the extra is missing, or the network does not let it.
    """
    check_installed()
    cameras = await find_cameras(listen_s, group)
    until_s = time.monotonic() + _ASK_ALL_S
    at_once = asyncio.Semaphore(_ASKED_AT_ONCE_MAX)

    async def asked(camera: OnvifCamera) -> FoundCamera:
        streams: list[FoundStream] = []
        why = ""
        async with at_once:
            try:
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    raise DiscoveryError("it was not asked: others took too long to answer")
                streams = await streams_of(camera, credentials, min(_ASK_S, left_s))
            except DiscoveryError as error:
                why = str(error)
        return {
            "name": camera.name,
            "host": camera.host,
            "port": camera.port,
            "why": why,
            "streams": streams,
        }

    wanted = [camera for camera in cameras if host in (None, camera.host)]
    return list(await asyncio.gather(*map(asked, wanted)))


async def find_cameras(
    listen_s: float = LISTEN_S, group: tuple[str, int] = GROUP
) -> list[OnvifCamera]:
    """Return the cameras that answer in the local network, by address.

    Anybody in the network can answer: what is found is no proof of what it is. A camera can name
    its own address only, so that nobody sends a password elsewhere in its name.

    Args:
        listen_s: how long to listen for answers.
        group: whom to ask, (address, port).

    Raises:
        DiscoveryError: the network does not let it.
    """
    found: dict[tuple[str, int], OnvifCamera] = {}

    class Listener(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
            for camera in answered(data, str(addr[0])):
                if len(found) < _CAMERAS_MAX:
                    found.setdefault((camera.host, camera.port), camera)

    loop = asyncio.get_running_loop()
    probe = _PROBE.format(id=uuid.uuid4()).encode()
    refused: OSError | None = None
    try:
        asking = _asking_socket()
        transport, _ = await loop.create_datagram_endpoint(Listener, sock=asking)
        try:
            # A datagram may be lost: it is sent twice.
            for _ in range(2):
                refused = _ask_everywhere(asking, probe, group)
                await asyncio.sleep(listen_s / 2)
        finally:
            transport.close()
    except OSError as error:
        refused = error
    if refused is not None and not found:
        raise DiscoveryError(f"cameras cannot be looked for in this network: {refused}")
    return [found[key] for key in sorted(found)]


def _asking_socket() -> socket.socket:
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        asking.setblocking(False)
        asking.bind(("0.0.0.0", 0))
    except OSError:
        asking.close()
        raise
    return asking


def _ask_everywhere(asking: socket.socket, probe: bytes, group: tuple[str, int]) -> OSError | None:
    """Send a probe into all networks of this machine; return why none takes it; None: one does."""
    refusals = []
    several = _interfaces() if ip_address(group[0]).is_multicast else []
    for interface in several or [0]:
        try:
            if interface:
                # ip_mreqn; otherwise the network of the default route is asked alone.
                chosen = struct.pack("4s4si", bytes(4), bytes(4), interface)
                asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, chosen)
            asking.sendto(probe, group)
        except OSError as error:
            refusals.append(error)
    return refusals[0] if len(refusals) == len(several or [0]) else None


def _interfaces() -> list[int]:
    """Return the numbers of the network interfaces that lead somewhere else."""
    with suppress(OSError, AttributeError):
        return [at for at, name in socket.if_nameindex() if not _LOOPBACK.fullmatch(name)]
    return []


def answered(data: bytes, sender: str) -> Iterator[OnvifCamera]:
    """Yield the cameras of an answer; none if it is damaged.

    Args:
        data: the datagram.
        sender: its IPv4 address.
    """
    # Entities, which can make a small document endless, need a declaration.
    if len(data) > _ANSWER_BYTES_MAX or b"<!" in data:
        return
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, LookupError, ValueError):
        return
    for match in root.iter("{http://schemas.xmlsoap.org/ws/2005/04/discovery}ProbeMatch"):
        texts = {each.tag.rpartition("}")[2]: each.text or "" for each in match}
        named = _NAME.search(texts.get("Scopes", ""))
        name = "".join(filter(str.isprintable, unquote(named[1])))[:64] if named else ""
        for address in texts.get("XAddrs", "").split():
            with suppress(ValueError):
                parts = urlsplit(address)
                if parts.scheme == "http" and parts.hostname == sender:
                    yield OnvifCamera(name, sender, parts.port or 80)
                    break


async def streams_of(
    camera: OnvifCamera, credentials: Credentials | None, ask_s: float = _ASK_S
) -> list[FoundStream]:
    """Return a camera's streams, the largest first.

    The library blocks while it reads its descriptions: not for a loop that serves.

    Raises:
        DiscoveryError: it does not say; the message says why.
    """
    check_installed()
    from onvif import ONVIFCamera  # noqa: PLC0415 - an extra

    user = "" if credentials is None else credentials.username
    password = "" if credentials is None else credentials.password
    device = ONVIFCamera(camera.host, camera.port, user, password, adjust_time=True)
    try:
        async with asyncio.timeout(ask_s):
            return await _streams(device)
    except TimeoutError:
        raise DiscoveryError(f"no answer within {ask_s:.0f} s") from None
    except Exception as error:  # the library passes on those of five others
        raise DiscoveryError(_why(error)) from None
    finally:
        await device.close()


async def _streams(device: Any) -> list[FoundStream]:
    await device.update_xaddrs()
    for address in device.xaddrs.values():
        if urlsplit(address).hostname != device.host:
            raise DiscoveryError("it names another address than its own for its services")
    media = await device.create_media_service()
    found: list[FoundStream] = []
    failed: Exception | None = None
    for profile in await media.GetProfiles():
        if profile.VideoEncoderConfiguration is None:
            continue
        try:
            found.append(await _stream(media, profile, device.host))
        except Exception as error:  # one profile that fails leaves the others
            failed = error
    if failed is not None and not found:
        raise failed
    return sorted(found, key=lambda each: -each["width_px"] * each["height_px"])


async def _stream(media: Any, profile: Any, host: str) -> FoundStream:
    """Return the stream of a profile; the library raises what it likes."""
    setup = {"Stream": "RTP-Unicast", "Transport": {"Protocol": "RTSP"}}
    answer = await media.GetStreamUri({"StreamSetup": setup, "ProfileToken": profile.token})
    address, _ = read_address(answer.Uri)
    # The password goes where the stream is: not to a third party, a file or a webcam.
    place = address.host_and_port
    if place is None or place[0] != host:
        raise DiscoveryError("it names another address than its own for its streams")
    encoder = profile.VideoEncoderConfiguration
    return {
        "url": address.text,
        "codec": str(encoder.Encoding).lower(),
        "width_px": encoder.Resolution.Width,
        "height_px": encoder.Resolution.Height,
    }


def _why(error: Exception) -> str:
    if isinstance(error, DiscoveryError):
        return str(error)
    text = str(error)
    if any(word in text.lower() for word in ("authori", "401", "not permitted", "authentic")):
        return "the user name or the password is wrong or missing"
    return f"it does not speak ONVIF as expected ({type(error).__name__})"
