"""What is logged, and how: `[log]`."""

from dataclasses import dataclass

from edgebox.config.keys import key

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json", "logfmt")


@dataclass(frozen=True, slots=True)
class LogParameters:
    """What is logged, and how. Lines go to stderr."""

    level: str = key("warning", "Least level of lines", choices=LEVELS)
    format: str = key(
        "text",
        "How a line is written: text, for people; json, one object; logfmt, key=value. With json "
        "and logfmt, messages for people are written as log lines as well",
        choices=FORMATS,
    )
