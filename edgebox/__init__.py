"""edgebox: an edge inference server that answers every frame within its deadline."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("edgebox")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0+source"
