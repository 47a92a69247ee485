"""Reads a form (multipart/form-data, RFC 7578) that was received whole. Pure."""

from dataclasses import dataclass
from email.message import Message

from edgebox.domain.errors import InvalidInputError

FORM = "multipart/form-data"
_HEADERS_BYTES_MAX = 16_384
_PARTS_MAX = 64
_FIELD_BYTES_MAX = 1_024


@dataclass(frozen=True, slots=True)
class Form:
    """What a form says."""

    files: tuple[memoryview, ...]
    fields: dict[str, str]
    """Texts by their names; the last of each."""

    def file(self) -> memoryview:
        """Return the content of its one file.

        Raises:
            InvalidInputError: it has none, or more than one.
        """
        if len(self.files) != 1:
            raise InvalidInputError(
                f"the form has {len(self.files)} files; send one picture, as "
                "curl -F image=@picture.jpg does"
            )
        return self.files[0]


def read_form(body: bytes, content_type: str) -> Form:
    """Return the files and the fields of a form.

    Args:
        body: of the request.
        content_type: its header, which names the boundary of the parts.

    Raises:
        InvalidInputError: it is no such form.
    """
    try:
        return _read(body, content_type)
    except ValueError as error:  # of the library: a number in a name that is too long for it
        raise InvalidInputError("the form has a header that cannot be read") from error


def _read(body: bytes, content_type: str) -> Form:
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_param("boundary")
    if not isinstance(boundary, str) or not boundary:
        raise InvalidInputError(f"a {FORM} body needs a boundary in its Content-Type")
    parts = _parts(body, boundary)
    files = tuple(content for head, content in parts if _is_file(head))
    fields = {
        name: bytes(content[:_FIELD_BYTES_MAX]).decode("utf-8", "replace")
        for head, content in parts
        if not _is_file(head)
        and isinstance(name := head.get_param("name", header="Content-Disposition"), str)
    }
    return Form(files, fields)


def file_of_form(body: bytes, content_type: str) -> memoryview:
    """Return the content of the file in a form; fields that are no files are ignored.

    Args:
        body: of the request.
        content_type: its header, which names the boundary of the parts.

    Raises:
        InvalidInputError: it is no such form, or has no file, or more than one.
    """
    return read_form(body, content_type).file()


def _parts(body: bytes, boundary: str) -> list[tuple[Message, memoryview]]:
    """Return headers and content of each part."""
    mark, whole = b"\r\n--" + boundary.encode("utf-8", "replace"), memoryview(body)
    parts: list[tuple[Message, memoryview]] = []
    # The first boundary may be the first thing there is.
    at = len(mark) - 2 if body.startswith(mark[2:]) else _after(body, mark, 0)
    while not body.startswith(b"--", at):
        if len(parts) == _PARTS_MAX:
            raise InvalidInputError(f"the form has more than {_PARTS_MAX} parts")
        begin, end = body.find(b"\r\n", at) + 2, body.find(mark, at)
        blank = body.find(b"\r\n\r\n", begin - 2, begin + _HEADERS_BYTES_MAX)
        if begin < 2 or end < 0 or not 0 <= blank < end:
            raise InvalidInputError("the form is cut short, or its parts have no headers")
        parts.append((_headers(body[begin:blank]), whole[blank + 4 : end]))
        at = end + len(mark)
    return parts


def _after(body: bytes, mark: bytes, at: int) -> int:
    found = body.find(mark, at)
    if found < 0:
        raise InvalidInputError("the boundary of the Content-Type is not in the form")
    return found + len(mark)


def _headers(lines: bytes) -> Message:
    headers = Message()
    for line in lines.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().isascii() and name.strip():
            headers[name.strip()] = value.strip().replace("\n", " ").replace("\r", " ")
    return headers


def _is_file(headers: Message) -> bool:
    """Return whether a part is a file. Its name is not decoded, which may be in any encoding."""
    named = ("filename", "Content-Disposition"), ("name", "Content-Type")
    return headers.get_content_maintype() == "image" or any(
        headers.get_param(name, header=header) is not None for name, header in named
    )
