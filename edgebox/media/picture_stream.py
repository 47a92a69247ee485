"""A source of decoded pictures that are converted only if somebody wants them.

A stream is read by one thread. What it yields is decoded, but neither converted nor scaled: most
pictures of a camera that sends more than it is asked for are thrown away.
"""

import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.source_address import Credentials, SourceAddress, SourceKind
from edgebox.domain.source_settings import CaptureTimes
from edgebox.media import jpeg, losses
from edgebox.media.containers import (
    SILENCE_S,
    SOFTWARE,
    SourceError,
    cause_of,
    import_av,
    measured_path_ns,
    open_container,
)
from edgebox.media.pacing import Pacer

_REPORT = "prft"
"""FFmpeg's name of what a sender report says of a packet: its wall clock, in microseconds."""
_KEYFRAME_PATIENCE_NS = 5_000_000_000
_UNDECODED_MAX_NS = 5_000_000_000
_UNDECODED_MAX = 8
"""A stream is another one now, and is opened anew, if for so long, and of more packets than so
many, nothing can be decoded: of a slow one two damaged pictures in a row are no sign of it.
A camera damages all its pictures if none of the first so many is whole."""
_STAMPS_KEPT = 64
"""Packets whose pictures may still come out of the decoder."""

Wanted = Callable[[int], bool]
"""Says of a picture, by its capture, whether it will be used; called once for each."""


class ArrivalClock(Protocol):
    """Decides when a picture of a live source was captured."""

    times: CaptureTimes
    """What the last capture time came from."""

    def captured_ns(self, arrival_ns: int, stamp_ns: int | None, reported_ns: int | None) -> int:
        """Return the capture of a picture, never after its arrival.

        Args:
            arrival_ns: when it arrived.
            stamp_ns: the camera's stamp on its media clock; None: it has none.
            reported_ns: the capture by the camera's sender reports, on the monotonic clock; None:
                there was no report yet.
        """
        ...


MakeClock = Callable[[int], ArrivalClock]
"""Makes the clock of a connection, given the time of the way from the source in ns."""


class PathClock:
    """A clock that knows no more than the arrival and the way."""

    times = CaptureTimes.ARRIVAL

    def __init__(self, path_ns: int) -> None:
        self._path_ns = path_ns

    def captured_ns(self, arrival_ns: int, stamp_ns: int | None, reported_ns: int | None) -> int:
        """Return when a picture left the camera at the latest."""
        return arrival_ns - self._path_ns


class Scalers:
    """What scales the pictures of one stream: for pictures and for their brightness one each.

    They are used in two threads at once, and FFmpeg's scaler hangs or crashes if it is.
    """

    def __init__(self) -> None:
        make = import_av().video.reformatter.VideoReformatter
        self.rgb, self.luma = make(), make()


class DecodedPicture:
    """A picture as it came out of the decoder."""

    def __init__(self, frame: Any, captured_ns: int, scalers: Scalers) -> None:
        self.captured_ns = captured_ns
        self.width_px: int = frame.width
        self.height_px: int = frame.height
        self._frame = frame
        self._scalers = scalers

    def rgb(self, width_px: int, height_px: int) -> NDArray[np.uint8]:
        """Return it scaled to a size, as (height, width, 3) RGB.

        Of the pictures of a stream, one at a time.
        """
        return self._scaled(self._scalers.rgb, width_px, height_px, "rgb24")

    def luma(self, width_px: int, height_px: int) -> NDArray[np.uint8]:
        """Return its brightness scaled to a size, as (height, width).

        Of the pictures of a stream, one at a time; meanwhile another may become RGB.
        """
        return self._scaled(self._scalers.luma, width_px, height_px, "gray")

    def _scaled(self, scaler: Any, width_px: int, height_px: int, layout: str) -> NDArray[np.uint8]:
        # One thread: FFmpeg would start one for each core and scaler, whose time nobody counts.
        scaled = scaler.reformat(
            self._frame, width_px, height_px, layout, interpolation="AREA", threads=1
        )
        found: NDArray[np.uint8] = scaled.to_ndarray()
        return found

    def jpeg(self, width_px: int, height_px: int, quality: int) -> bytes:
        """Return it scaled to a size, as a JPEG."""
        return jpeg.encode(self.rgb(width_px, height_px), quality)


class PictureStream(Protocol):
    """An open source."""

    address: SourceAddress
    codec: str
    decoder: str
    """What decodes it: "software", or the type of the hardware device."""
    width_px: int
    height_px: int

    @property
    def times(self) -> CaptureTimes:
        """What the capture times come from."""
        ...

    def pictures(self, wanted: Wanted) -> Iterator[DecodedPicture]:
        """Yield the wanted pictures, each when it has come; blocks in between.

        Raises:
            SourceError: the source has broken off.
        """
        ...

    def close(self) -> None:
        """End `pictures`, from any thread: at once if pictures come, else by its time limit."""
        ...


def open_stream(
    address: SourceAddress,
    credentials: Credentials | None = None,
    decoder: str = SOFTWARE,
    make_clock: MakeClock = PathClock,
) -> PictureStream:
    """Open a source; blocks.

    Raises:
        SourceError: it cannot be opened; the message says why.
    """
    if address.kind is SourceKind.FILE:
        return FileStream(address, decoder)
    return LiveStream(address, credentials, decoder, make_clock)


class _Opened:
    """What is common to all streams: the container and its first video."""

    def __init__(
        self, address: SourceAddress, credentials: Credentials | None, decoder: str
    ) -> None:
        self.address = address
        self._container = open_container(address, credentials, decoder)
        self._stream = self._container.streams.video[0]
        context = self._stream.codec_context
        # One thread for each source: frames are not held back for others, and the cost is known.
        context.thread_count = 1
        self.codec: str = context.codec.name
        self.decoder = decoder if getattr(context, "is_hwaccel", False) else SOFTWARE
        self.width_px: int = context.width
        self.height_px: int = context.height
        self._scalers = Scalers()
        self._closed = self._is_read = False
        self._changing = threading.Lock()

    def _begin(self) -> bool:
        """Begin to read; whoever does so closes the container. False: it is closed."""
        with self._changing:
            self._is_read = not self._closed
            return self._is_read

    def close(self) -> None:
        """End `pictures`."""
        with self._changing:
            if not self._is_read and not self._closed:
                self._container.close()
            self._closed = True


class Undecoded:
    """The packets in a row that completed no picture."""

    def __init__(self) -> None:
        self.count = 0
        self._since_ns: int | None = None

    def add(self, now_ns: int) -> None:
        """Count a packet that was tried now."""
        self.count += 1
        if self._since_ns is None:
            self._since_ns = now_ns

    def too_many(self, now_ns: int) -> bool:
        """Return whether it is no use to go on."""
        since_ns = now_ns if self._since_ns is None else self._since_ns
        return self.count > _UNDECODED_MAX and now_ns - since_ns > _UNDECODED_MAX_NS


class LiveStream(_Opened):
    """A network camera or a webcam: pictures come when they come."""

    def __init__(
        self,
        address: SourceAddress,
        credentials: Credentials | None = None,
        decoder: str = SOFTWARE,
        make_clock: MakeClock = PathClock,
    ) -> None:
        """Open it, and measure the way from it.

        Raises:
            SourceError: it cannot be opened.
        """
        self._clock = make_clock(measured_path_ns(address))
        super().__init__(address, credentials, decoder)
        context = self._stream.codec_context
        if context.codec.intra_only:  # no later picture needs what is left of a damaged one
            context.options = {**context.options, "err_detect": "explode"}
        self._damages_all = bool(context.codec.intra_only)
        """Whether all pictures so far were damaged, and what is left of them may be shown."""
        self._tolerant: Any = None
        """Decodes what is left of damaged pictures, where all are."""
        self._undecoded = Undecoded()
        self._captured: dict[int, int] = {}
        """The captures of pictures that are in the decoder, by their stamps."""

    @property
    def times(self) -> CaptureTimes:
        """What the capture times come from."""
        if self.address.kind is SourceKind.WEBCAM:
            return CaptureTimes.PLAYBACK
        return self._clock.times

    def pictures(self, wanted: Wanted) -> Iterator[DecodedPicture]:
        """Yield the wanted pictures; of codecs without references, only those are decoded."""
        if not self._begin():
            return
        av, shown = import_av(), self.address.shown
        whole = every_one_alone = self._stream.codec_context.codec.intra_only
        give_up_ns = time.monotonic_ns() + _KEYFRAME_PATIENCE_NS
        try:
            for packet in self._video_packets():
                captured_ns = self._capture_of(packet)
                # Who joins a stream in the middle sees grey smears until the next keyframe. Some
                # cameras send none.
                whole = whole or packet.is_keyframe or time.monotonic_ns() > give_up_ns
                if not whole:
                    continue
                if every_one_alone and not wanted(captured_ns):
                    continue
                for frame in self._decoded(packet):
                    at_ns = self._captured.get(frame.pts, captured_ns)
                    if every_one_alone or wanted(at_ns):
                        yield DecodedPicture(frame, at_ns, self._scalers)
        except (av.error.FFmpegError, OSError) as error:
            if not self._closed:
                raise SourceError(shown, cause_of(error, self.address)) from None
        finally:
            self._container.close()
        if not self._closed:
            raise SourceError(shown, losses.ENDED)

    def _decoded(self, packet: Any) -> list[Any]:
        """Return the frames that a packet completes; a damaged one completes none.

        Where all pictures are damaged, what is left of them is returned.

        Raises:
            SourceError: none has completed any for long.
        """
        found: list[Any] = []
        with suppress(import_av().error.InvalidDataError):
            found = packet.decode() if self._tolerant is None else self._tolerant.decode(packet)
        if found:
            self._damages_all = False
            self._undecoded = Undecoded()
            return found
        now_ns = time.monotonic_ns()
        self._undecoded.add(now_ns)
        if self._damages_all and self._undecoded.count == _UNDECODED_MAX:
            self._tolerant = import_av().CodecContext.create(self.codec, "r")
            self._damages_all, self._undecoded = False, Undecoded()
        elif self._undecoded.too_many(now_ns):
            raise SourceError(self.address.shown, losses.UNDECODABLE)
        return found

    def _video_packets(self) -> Iterator[Any]:
        """Yield the packets of the video until `close`; its sound is read only to notice silence.

        Raises:
            SourceError: the video has stopped, and something else goes on.
        """
        latest_ns = time.monotonic_ns()
        for packet in self._container.demux():
            if self._closed:
                return
            now_ns = time.monotonic_ns()
            if packet.stream.index == self._stream.index:
                latest_ns = now_ns
                yield packet
            elif now_ns - latest_ns > SILENCE_S * 1e9:
                raise SourceError(self.address.shown, losses.silent(SILENCE_S))

    def _capture_of(self, packet: Any) -> int:
        """Return when the picture of a packet was captured."""
        arrival_ns = time.monotonic_ns()
        stamp_ns = None
        if packet.pts is not None:
            stamp_ns = round(packet.pts * packet.time_base * 1_000_000_000)
        captured_ns = self._clock.captured_ns(arrival_ns, stamp_ns, _reported_ns(packet))
        if packet.pts is not None:
            self._captured[packet.pts] = captured_ns
            if len(self._captured) > _STAMPS_KEPT:
                del self._captured[next(iter(self._captured))]
        return captured_ns


class FileStream(_Opened):
    """A video file, played in real time by its stamps, over and over."""

    @property
    def times(self) -> CaptureTimes:
        """What the capture times come from."""
        return CaptureTimes.PLAYBACK

    def __init__(self, address: SourceAddress, decoder: str = SOFTWARE) -> None:
        """Open it.

        Raises:
            SourceError: it cannot be opened.
        """
        super().__init__(address, None, decoder)
        self._pacer = Pacer()

    def pictures(self, wanted: Wanted) -> Iterator[DecodedPicture]:
        """Yield the pictures that are due; decoding that falls behind leaves pictures out."""
        if not self._begin():
            return
        begin_s = 0.0
        try:
            while not self._closed:
                end_s = begin_s
                for at_s, frame in self._played():
                    end_s = begin_s + at_s
                    if self._pacer.misses(end_s):
                        continue
                    if not self._pacer.wait(end_s):
                        return
                    captured_ns = time.monotonic_ns()
                    if wanted(captured_ns):
                        yield DecodedPicture(frame, captured_ns, self._scalers)
                if end_s == begin_s:
                    raise SourceError(self.address.shown, losses.SHORT_FILE)
                begin_s = end_s + 1 / float(self._stream.average_rate or 25)
                self._container.seek(0)
        finally:
            self._container.close()

    def _played(self) -> Iterator[tuple[float, Any]]:
        """Yield (seconds from the first frame, frame), once through the file."""
        step_s = 1 / float(self._stream.average_rate or 25)
        first_s: float | None = None
        try:
            for number, frame in enumerate(self._container.decode(self._stream)):
                at_s = number * step_s if frame.time is None else float(frame.time)
                first_s = at_s if first_s is None else first_s
                yield at_s - first_s, frame
        except import_av().error.FFmpegError as error:
            raise SourceError(self.address.shown, cause_of(error, self.address)) from None

    def close(self) -> None:
        """End `pictures`."""
        super().close()
        self._pacer.stop()


def _reported_ns(packet: Any) -> int | None:
    """Return a packet's capture by sender reports, on the monotonic clock; None: not reported."""
    for data in packet.iter_sidedata():
        if data.data_type == _REPORT:
            (wall_us,) = struct.unpack_from("<q", bytes(data))
            return int(wall_us) * 1000 - (time.time_ns() - time.monotonic_ns())
    return None
