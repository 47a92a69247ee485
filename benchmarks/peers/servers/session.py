"""What all servers run: bare ONNX Runtime on one thread. Needs nothing else but NumPy."""

import functools
import sys

import numpy as np
import onnxruntime as ort


@functools.cache
def shape() -> tuple[int, int]:
    """Return height and width of a picture."""
    return int(sys.argv[2]), int(sys.argv[3])


def load() -> ort.InferenceSession:
    """Return the model."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])


def infer(session: ort.InferenceSession, pixels: bytes) -> bytes:
    """Return the outputs of one picture, one after another."""
    picture = np.frombuffer(pixels, np.uint8).reshape(1, *shape(), 3)
    return b"".join(np.asarray(each).tobytes() for each in session.run(None, {"images": picture}))
