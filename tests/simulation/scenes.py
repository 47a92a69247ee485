"""A scenario to vary: a small family on one executor, cameras behind a link."""

HARDWARE = """
[[executors]]
name = "gpu/0"
spread = [0.8, 0.85, 0.88, 0.9, 0.92, 0.95, 0.97, 1.0, 1.1]

[[variants]]
name = "s-128"
width_px = 128
accuracy = 0.3
batch_ms = { 1 = 4, 2 = 5, 4 = 7, 8 = 11 }

[[variants]]
name = "s-256"
width_px = 256
accuracy = 0.45
batch_ms = { 1 = 8, 2 = 11, 4 = 17, 8 = 29 }

[[variants]]
name = "s-416"
width_px = 416
accuracy = 0.55
batch_ms = { 1 = 15, 2 = 24, 4 = 42, 8 = 78 }

[[variants]]
name = "s-608"
width_px = 608
accuracy = 0.6
batch_ms = { 1 = 28, 2 = 48, 4 = 88, 8 = 168 }
"""


def scenario_text(*cameras: str, top: str = "duration_s = 20") -> str:
    """Return a scenario; each camera is the lines under its [[cameras]]."""
    return "\n".join([top, HARDWARE, *(f"[[cameras]]\n{lines}\n" for lines in cameras)])


def gate(name: str = "gate", mbps: object = 20, slo_ms: int = 200, rate_hz: int = 10) -> str:
    """Return the lines of a camera."""
    return f'name = "{name}"\nslo_ms = {slo_ms}\nrate_hz = {rate_hz}\nmbps = {mbps}'
