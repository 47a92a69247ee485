"""NVIDIA Triton, by pytriton, without dynamic batching: one thread has nothing to gain from it."""

import functools
import sys

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

from benchmarks.peers.servers.session import load, shape

loaded = functools.cache(load)


@batch
def predict(images: np.ndarray) -> list[np.ndarray]:
    """Return the outputs of a batch."""
    boxes, scores, labels = loaded().run(None, {"images": images})
    return [boxes, scores, labels]


if __name__ == "__main__":
    port = int(sys.argv[4])
    config = TritonConfig(http_port=port, grpc_port=port + 1, metrics_port=port + 2)
    with Triton(config=config) as triton:
        triton.bind(
            model_name="street",
            infer_func=predict,
            inputs=[Tensor(name="images", dtype=np.uint8, shape=(*shape(), 3))],
            outputs=[
                Tensor(name="boxes", dtype=np.float32, shape=(-1, 4)),
                Tensor(name="scores", dtype=np.float32, shape=(-1,)),
                Tensor(name="labels", dtype=np.int64, shape=(-1,)),
            ],
            config=ModelConfig(max_batch_size=1),
        )
        triton.serve()
