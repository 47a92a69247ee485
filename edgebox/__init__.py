"""edgebox: an edge inference server that answers every frame within its deadline."""

# Not asked of the package's metadata: every command would spend a third of its start on that.
__version__ = "0.1.0"
"""That of pyproject.toml; a test compares."""
