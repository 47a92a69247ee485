"""Reads the bandwidth trace of a link from a scenario's table. Pure: files' texts are read by an
argument.
"""

import random
from collections.abc import Callable

from edgebox.domain.field_reader import FieldReader
from edgebox.link.shaping import MADE_UP, TRACE_FORMATS, BandwidthTrace, parse_trace

ReadFile = Callable[[str], str]
"""A function that returns the text of a file named by the scenario, relative to its folder."""


def read_trace_start_s(entry: FieldReader) -> float | None:
    """Return where in the trace a link starts, in s; None: anywhere."""
    if isinstance(entry.raw("trace_start_s"), str):
        entry.choice("trace_start_s", ("random",))
        return None
    return entry.number("trace_start_s", 0, 1e6, 0.0)


def read_trace(entry: FieldReader, read: ReadFile) -> BandwidthTrace:
    """Return the trace: constant or stepwise `mbps`, a file's `trace`, or one that is `made_up`.

    Raises:
        InvalidInputError: it is none of these, with line and key.
    """
    given = [key for key in ("mbps", "trace", "made_up") if key in entry]
    if len(given) != 1:
        raise entry.wrong("mbps", "give exactly one of mbps, trace (a file) and made_up")
    step_s = entry.number("step_s", 0.001, 86_400, 1.0)
    if given == ["made_up"]:
        kind = entry.choice("made_up", tuple(MADE_UP))
        seed = entry.count("made_up_seed", 1)
        return MADE_UP[kind](random.Random(seed))
    if given == ["mbps"]:
        rates = entry.numbers("mbps", 0, 1e6) if isinstance(entry.raw("mbps"), list) else None
        if rates is None:
            rates = [entry.number("mbps", 0, 1e6, above=True)]
        if not any(rates):
            raise entry.wrong("mbps", "a link that is 0 throughout carries nothing")
        return BandwidthTrace.stepwise(rates, step_s)
    file = entry.nonempty("trace")
    known = entry.choice("trace_format", ("auto", *TRACE_FORMATS), "auto")
    return parse_trace(read(file), file, step_s=step_s, form=None if known == "auto" else known)
