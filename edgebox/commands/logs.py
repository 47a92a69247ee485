"""Log lines of long-running commands: text for people, JSON or logfmt for programs.

Lines are written in a thread (`BackgroundStream`). Of what one place in the program logs about one
camera the first few of a minute are written, and then how many more there were.
"""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import orjson
from rich.logging import RichHandler
from rich.text import Text

from edgebox.commands.console import Speaker, err, speak_with
from edgebox.config.log_section import LogParameters
from edgebox.runtime.background_stream import BackgroundStream, drained
from edgebox.runtime.repeat_limiter import NOTICES_PER_MINUTE, RepeatLimiter

_PERIOD_S = 60.0
_END_S = 1.0
"""Time limit for writing the last lines."""
_QUOTED = frozenset(' ="\\')
_log = logging.getLogger("edgebox")


def fields_of(record: logging.LogRecord, formatter: logging.Formatter) -> dict[str, str]:
    """Return what a line in JSON or logfmt has, in order."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    fields = {
        "time": f"{at}.{int(record.msecs):03d}Z",
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    if camera := getattr(record, "camera", None):
        fields["camera"] = str(camera)
    if record.exc_info:
        fields["exception"] = formatter.formatException(record.exc_info)
    return fields


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = {
            # Not every text is one in JSON, as names of files show.
            key: value.encode("utf-8", "backslashreplace").decode()
            for key, value in fields_of(record, self).items()
        }
        return orjson.dumps(fields).decode()


class LogfmtFormatter(logging.Formatter):
    """key=value pairs; what is not one plain word stands in quotes, escaped as in JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return " ".join(
            f"{key}={_logfmt_value(value)}" for key, value in fields_of(record, self).items()
        )


def _logfmt_value(text: str) -> str:
    if text and text.isprintable() and not _QUOTED & set(text):
        return text
    return orjson.dumps(text.encode("utf-8", "backslashreplace").decode()).decode()


class FewRepeats(logging.Filter):
    """Lets the first few of each source and minute through; then says how many more there were.

    A source is a place in the program and, where the line is about one, a camera.
    """

    def __init__(self, passed_max: int = NOTICES_PER_MINUTE, period_s: float = _PERIOD_S) -> None:
        """Begin a period."""
        super().__init__()
        self._repeats = RepeatLimiter(passed_max)
        self._period_s = period_s
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a line."""
        if getattr(record, "counted", False):
            return True
        about = f" about {camera}" if (camera := getattr(record, "camera", None)) else ""
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(self._period_s, self._end_period)
                self._timer.daemon = True
                self._timer.start()
            return self._repeats.passes(f"{record.name}, line {record.lineno}{about}")

    def _end_period(self) -> None:
        with self._lock:
            self._timer = None
            held_back = self._repeats.end_period()
        for source, count in held_back.items():
            _log.warning(
                "%d more lines within a minute from %s", count, source, extra={"counted": True}
            )


def _tell_lost(count: int) -> None:
    _log.warning(
        "%d lines of the log are lost: nobody read them in time, or there was no room for them",
        count,
    )


class LogSpeaker(Speaker):
    """Tells people by log lines, whatever the level, so that every line has the same format."""

    structured = True

    def tell(self, markup: str, level: int = logging.INFO) -> None:
        """Tell a text with rich's markup."""
        record = _log.makeRecord(
            _log.name, level, __file__, 0, Text.from_markup(markup).plain.strip(), (), None,
            extra={"counted": True},
        )  # fmt: skip
        _log.handle(record)


@contextlib.contextmanager
def logging_to_stderr(log: LogParameters) -> Iterator[None]:
    """Log meanwhile, and let nobody wait for who reads it."""
    before = sys.stderr
    stream = BackgroundStream(before.fileno(), _tell_lost)
    before.flush()
    sys.stderr = stream
    handler = _handler(log.format, stream)
    handler.addFilter(FewRepeats())
    root = logging.getLogger()
    old_level = root.level
    root.addHandler(handler)
    root.setLevel(log.level.upper())
    try:
        with drained(stream, _END_S):
            if log.format == "text":
                yield
            else:
                with speak_with(LogSpeaker()):
                    yield
    finally:
        root.removeHandler(handler)
        root.setLevel(old_level)
        sys.stderr = before


def _handler(form: str, stream: Any) -> logging.Handler:
    """Return what writes lines: coloured for a person, plain with a time for a journal."""
    handler: logging.Handler
    if form == "text" and stream.isatty():
        handler = RichHandler(console=err, show_path=False, log_time_format="%H:%M:%S")
        handler.setFormatter(logging.Formatter("%(message)s"))
        return handler
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        {
            "json": JsonFormatter(),
            "logfmt": LogfmtFormatter(),
            "text": logging.Formatter("%(asctime)s %(levelname)s %(message)s"),
        }[form]
    )
    return handler
