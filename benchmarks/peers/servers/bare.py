"""Bare ONNX Runtime in a loop: run with MODEL HEIGHT WIDTH SECONDS DECODED < PICTURE.

Prints pictures per second, and the median and P99 of their time in ms.
"""

import json
import sys
import time

import numpy as np

from benchmarks.peers.servers.session import load, shape
from edgebox.media.jpeg import decode


def main() -> None:
    """Run it."""
    session, seconds, decoded = load(), float(sys.argv[4]), sys.argv[5] == "1"
    body, took_ns = sys.stdin.buffer.read(), []
    stop_s = time.monotonic() + seconds
    while time.monotonic() < stop_s:
        began_ns = time.perf_counter_ns()
        pixels = decode(body) if decoded else np.frombuffer(body, np.uint8)
        session.run(None, {"images": pixels.reshape(1, *shape(), 3)})
        took_ns.append(time.perf_counter_ns() - began_ns)
    ordered = sorted(took_ns[len(took_ns) // 10 :])
    p99 = ordered[int(0.99 * len(ordered))]
    mean = sum(ordered) / len(ordered)
    print(json.dumps([1e9 / mean, ordered[len(ordered) // 2] / 1e6, p99 / 1e6]))


if __name__ == "__main__":
    main()
