"""The camera daemon: source, resize, encode, send, obeying the box's advice."""

from edgebox.camera.daemon import Camera

__all__ = ["Camera"]
