"""Checks which hardware decodes video here, for `edgebox doctor`."""

from edgebox.domain.errors import InvalidInputError
from edgebox.inference.findings import Finding, Health
from edgebox.media.containers import hardware_decoders


def check_decoders() -> Finding:
    """Report the hardware decoders of PyAV, and those that have a device here."""
    try:
        found = hardware_decoders()
    except InvalidInputError:
        return Finding(
            "Video", Health.OK, "PyAV is not installed: only cameras that connect can be served"
        )
    here = [name for name, there in found.items() if there]
    known = ", ".join(found) or "none"
    text = f"decoded in software; PyAV knows the hardware decoders {known}; none has a device here"
    if here:
        text = f"hardware decoders with a device here: {', '.join(here)} (PyAV knows {known})"
    return Finding("Video", Health.OK, text)
