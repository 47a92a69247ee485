"""The process of `camera_search`: reads an order from its input, prints what it found."""

import asyncio
import json
import sys

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.source_address import Credentials
from edgebox.ingest.onvif_cameras import search


def main() -> None:
    """Search once."""
    order = json.load(sys.stdin)
    host, port = order["group"]
    credentials = None
    if order["username"] is not None:
        credentials = Credentials(order["username"], order["password"])
    try:
        found = asyncio.run(
            search(credentials, order["host"], listen_s=order["listen_s"], group=(host, port))
        )
        answer: dict[str, object] = {"cameras": found}
    except EdgeboxError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
