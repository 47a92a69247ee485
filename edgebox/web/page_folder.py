"""Where the built page lies; asking costs no import of the server."""

from pathlib import Path

PAGE = Path(__file__).parent / "page"
