"""GET /v1/models/files/{sha256}: the files of detectors, for cameras that run the first stage."""

from collections.abc import Iterator

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.errors import UnknownNameError
from edgebox.inference.family import ModelFile
from edgebox.runtime.box import Box
from edgebox.web.query_parameters import InPath
from edgebox.web.routes import Answer, Route
from edgebox.web.web_context import WebContext

_SHA256 = InPath("sha256", "Checksum of a manifest or of a model file")
_BINARY = "application/octet-stream"
_NEVER_CHANGES = "private, max-age=31536000, immutable"


async def _file(context: WebContext, request: web.Request) -> web.StreamResponse:
    wanted = _SHA256.read(request)
    found = next((file for file in _files(context.box) if file.sha256 == wanted), None)
    if found is None or not found.path.is_file():
        raise UnknownNameError(f"no served detector has a file with the sha256 {wanted[:64]}")
    headers = {"Content-Type": _BINARY, "Cache-Control": _NEVER_CHANGES}
    return web.FileResponse(found.path, headers=headers)


def _files(box: Box) -> Iterator[ModelFile]:
    for family in box.families.values():
        if family.task == "detect" and family.manifest is not None:
            yield family.manifest
            yield from family.model_files


ROUTES = (
    Route(
        method="GET",
        path="/v1/models/files/{sha256}",
        answer=_file,
        scope=Scope.CAMERA,
        summary="A file of a detector",
        doc=(
            "The manifest or a model file of a detector that is served, for cameras that run the "
            "first stage themselves. Their welcome names the manifest, and this the model files."
        ),
        parameters=(_SHA256,),
        answers=(
            Answer(
                "The file.", {"type": "string", "contentMediaType": _BINARY}, content_type=_BINARY
            ),
        ),
        problems=(UnknownNameError,),
        needs_ready=True,
    ),
)
