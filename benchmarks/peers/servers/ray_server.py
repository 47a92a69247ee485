"""Ray Serve, one replica."""

import sys

import ray
from ray import serve
from starlette.requests import Request
from starlette.responses import Response

from benchmarks.peers.servers.session import infer, load


@serve.deployment(num_replicas=1, max_ongoing_requests=64, ray_actor_options={"num_cpus": 0})
class Detector:
    """Takes raw pixels."""

    def __init__(self, arguments: list[str]) -> None:
        """Load the model; `arguments` are those of the program."""
        sys.argv = arguments
        self.session = load()

    async def __call__(self, request: Request) -> Response:
        """Answer one picture."""
        return Response(infer(self.session, await request.body()))


if __name__ == "__main__":
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[4])})
    serve.run(Detector.bind(sys.argv), route_prefix="/predict", blocking=True)  # type: ignore[attr-defined]
