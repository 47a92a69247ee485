"""Why a source of pictures gives none, since when, and what a person can do about it."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LossCause:
    """One reason, and what helps against it."""

    reason: str
    """In a few plain words: "connection refused"."""
    remedy: str
    """What to do, in the imperative."""


@dataclass(frozen=True, slots=True)
class SourceTrouble:
    """A source that gives no pictures."""

    text: str
    """Since when, and why."""
    remedy: str
    """What to do, in the imperative."""


TRY_IN_PLAYER = "try its address in a player such as VLC"
CHECK_ANY = "check its power, address and password"
REFUSED = LossCause(
    "connection refused",
    "check that the camera is on and has finished starting, and the port in its address",
)
NO_SUCH_NAME = LossCause(
    "there is no machine of that name",
    "check the spelling of the camera's name, or enter its IP address instead",
)
NO_ROUTE = LossCause(
    "there is no way to it in this network",
    "check that the camera's address is right and in a network that this machine can reach",
)
WRONG_PASSWORD = LossCause(
    "the user name or the password is wrong or missing",
    "enter the user name and the password that the camera itself has",
)
FORBIDDEN = LossCause(
    "the camera does not allow this user to see it",
    "give this user the right to see live video, in the camera's own settings",
)
NOT_FOUND = LossCause(
    "the camera has no stream at this path",
    "correct the path of its address: the camera's manual has it, and so has an ONVIF search",
)
STREAM_REFUSED = LossCause(
    "the camera refuses this stream",
    "check the path of its address, and close other viewers: many cameras allow only a few",
)
FAULTY = LossCause(
    "the camera reports a fault of its own",
    "restart the camera; if the fault stays, check that the scheme and the port of its address "
    "belong together",
)
REDIRECTED = LossCause(
    "it redirects to an address of another kind, which is not followed",
    "enter the address that it redirects to",
)
CUT_OFF = LossCause(
    "the connection broke off",
    "check the network between the camera and this machine, and whether the camera restarts",
)
NO_TLS = LossCause(
    "no encrypted connection could be made",
    "check that the camera speaks TLS at this port; rtsp:// or http:// is without",
)
ENDED = LossCause(
    "the other side ended the stream",
    "wait, if the camera restarts; else check that its address is a live stream and no recording, "
    "and close other viewers",
)
NOT_VIDEO = LossCause(
    "what is there is not video",
    f"check scheme, port and path of its address: a page to log in is no stream; {TRY_IN_PLAYER}",
)
NO_VIDEO = LossCause(
    "there is no video in it", "choose a stream or a file with video: this one has sound or data"
)
NO_SIZE = LossCause(
    "the video does not say how large it is",
    "choose another stream of the camera, or H.264 in the camera's own settings",
)
UNKNOWN_CODEC = LossCause(
    "its video is in a format that cannot be decoded here",
    "choose H.264 or H.265 in the camera's own settings",
)
UNDECODABLE = LossCause(
    "its pictures cannot be decoded any more",
    "wait, if the camera's codec was just changed; else check the network for lost packets",
)
BROKEN_FILE = LossCause(
    "the file is damaged or cut off", "copy or record the file again; a player shows how far it is"
)
NOT_A_VIDEO_FILE = LossCause("the file is no video", "name a video file, such as an MP4 or MKV")
NO_FILE = LossCause("there is no such file", "correct the path, or bring the file back")
FOLDER = LossCause("this is a folder, not a file", "name one video file in it")
FORBIDDEN_FILE = LossCause(
    "this process is not allowed to read it",
    "let the user that runs edgebox read it (chmod; for a webcam, the group video)",
)
SHORT_FILE = LossCause("the file has fewer than two pictures", "name a longer video file")
NO_WEBCAM = LossCause(
    "there is no such camera on this machine",
    "plug it in; `ls /dev/video*` shows the numbers of those that are there",
)
BUSY_WEBCAM = LossCause("another program uses it", "close the other program that uses the camera")


def timed_out(seconds: float) -> LossCause:
    """Return the cause of a source that does not answer."""
    return LossCause(
        f"no answer within {seconds:g} s",
        "check that the camera is on, its address, and that no firewall is in between",
    )


def silent(seconds: float) -> LossCause:
    """Return the cause of a source that is there but sends nothing."""
    return LossCause(
        f"nothing was received for {seconds:g} s",
        "check the camera's power and its network, and restart it if it answers but sends nothing",
    )


def lost_text(since_ms: int, why: str) -> str:
    """Return what is said of a source that was lost at an instant in Unix milliseconds."""
    return f"source lost since {clock_time(since_ms)}: {why}"


def clock_time(at_ms: int) -> str:
    """Return the local time of day, with the date if it is another day."""
    at = time.localtime(at_ms / 1000)
    today = at[:3] == time.localtime()[:3]
    return time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", at)
