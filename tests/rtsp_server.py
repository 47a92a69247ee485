"""A real RTSP server (GStreamer's) that plays a file; run with the system's Python.

    python3 tests/rtsp_server.py PORT FILE.mkv|FILE.ts h264|h265 [USER PASSWORD] [--tls PEM]

It serves rtsp://127.0.0.1:PORT/stream and says "ready PORT" when it listens. With a
file that has a certificate and its key it serves rtsps.
"""

import sys
from typing import Any

import gi  # type: ignore[import-not-found,unused-ignore]  # of the system's Python

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import (  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
    Gio,
    GLib,
    Gst,
    GstRtspServer,
)


def served(port: str, file: str, codec: str) -> Any:
    """Return a server of a file's video."""
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(port)
    factory = GstRtspServer.RTSPMediaFactory()
    demuxer = f"tsdemux ! {codec}parse" if file.endswith(".ts") else "matroskademux"
    factory.set_launch(
        f"( filesrc location={file} ! {demuxer} ! rtp{codec}pay name=pay0 pt=96 "
        "config-interval=-1 )"
    )
    factory.set_shared(True)
    server.get_mount_points().add_factory("/stream", factory)
    return server, factory


def encrypt(server: Any, pem: str) -> None:
    """Serve over TLS with the certificate and the key in a file."""
    auth = server.get_auth() or GstRtspServer.RTSPAuth()
    auth.set_tls_certificate(Gio.TlsCertificate.new_from_file(pem))
    server.set_auth(auth)


def protect(server: Any, factory: Any, user: str, password: str) -> None:
    """Let in nobody but one user."""
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "user")
    auth.add_basic(GstRtspServer.RTSPAuth.make_basic(user, password), token)
    server.set_auth(auth)
    permissions = GstRtspServer.RTSPPermissions()
    permissions.add_permission_for_role("user", "media.factory.access", True)
    permissions.add_permission_for_role("user", "media.factory.construct", True)
    factory.set_permissions(permissions)


def main() -> None:
    """Serve until killed."""
    Gst.init(None)
    given = sys.argv[1:]
    pem = given.pop() if "--tls" in given else None
    if pem is not None:
        given.remove("--tls")
    server, factory = served(*given[:3])
    if len(given) > 3:
        protect(server, factory, *given[3:5])
    if pem is not None:
        encrypt(server, pem)
    server.attach(None)
    print("ready", server.get_bound_port(), flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main()
