"""`edgebox models get`, `default` and `remove`: from local servers, a proxy and folders."""

import errno
import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner

from edgebox.app import model_download
from edgebox.app.import_process import ImportOrder, import_in_process
from edgebox.app.model_download import fetched
from edgebox.commands.root import main
from edgebox.config.config_file import load
from edgebox.domain.errors import ModelError
from edgebox.inference import catalogue as catalogue_module
from edgebox.inference.catalogue import CatalogueEntry, catalogue
from edgebox.inference.importing.layouts import layout_named
from edgebox.inference.zoo import load_family
from tests.inference.importing.planted import LABELS, write
from tests.inference.importing.zoo_of_layouts import DETECTORS
from tests.real_models import REAL_MODELS

PERMISSIVE = {"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause"}
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep what the machine has set, its home included, out of these tests."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def content() -> bytes:
    """A small detector, as it is exported."""
    return write(DETECTORS["yolov8"][0]())


def entry_of(content: bytes) -> CatalogueEntry:
    return CatalogueEntry(
        name="gate", title="of a gate", task="detect", labels=LABELS, width_px=64, height_px=48,
        layout="yolov8", licence="MIT", authors="the tests", file="gate.onnx",
        size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest(),
        repository="some/body", commit="0" * 40, path="model/gate.onnx",
    )  # fmt: skip


@pytest.fixture
def entry(content: bytes, monkeypatch: pytest.MonkeyPatch) -> CatalogueEntry:
    """The only model of the catalogue."""
    made = entry_of(content)
    monkeypatch.setattr(catalogue_module, "catalogue", lambda: (made,))
    return made


@dataclass
class Seen:
    """A web server: what it was asked, and what it has."""

    url: str
    files: dict[str, bytes]
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, address and Range of each request."""
    cut_at: int | None = None
    """Bytes after which it closes the connection."""
    ranges: bool = True
    status: int = 200


@pytest.fixture
def serving() -> Iterator[Callable[[dict[str, bytes]], Seen]]:
    """Start web servers, which are proxies as well: they answer whole addresses."""
    servers = []

    def start(files: dict[str, bytes]) -> Seen:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                seen.asked.append(("GET", self.path, wanted))
                body = seen.files.get(self.path)
                if body is None or seen.status != 200:
                    self.send_error(404 if body is None else seen.status)
                    return
                begin = int(wanted[6:-1]) if wanted and seen.ranges else 0
                self.send_response(206 if begin else 200)
                if begin:
                    self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
                self.send_header("Content-Length", str(len(body) - begin))
                self.end_headers()
                self.wfile.write(body[begin : seen.cut_at])

            def do_CONNECT(self) -> None:
                seen.asked.append(("CONNECT", self.path, None))
                self.send_error(407, "Proxy Authentication Required")

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        seen = Seen(f"http://127.0.0.1:{server.server_port}", files)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return seen

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def run(*arguments: str, code: int = 0, answer: str | None = None) -> str:
    """Run a command; return what it printed on both streams."""
    ended = CliRunner().invoke(main, ["models", *arguments], input=answer)
    assert ended.exit_code == code, ended.output
    assert "Traceback" not in ended.output
    return ended.output


def documents(*arguments: str) -> Any:
    return json.loads(CliRunner().invoke(main, ["models", *arguments, "--json"]).stdout)


def installed(tmp_path: Path) -> list[str]:
    models = tmp_path / "data" / "edgebox" / "models"
    return sorted(path.name for path in models.iterdir()) if models.exists() else []


# -- the catalogue ------------------------------------------------------------------------------


def test_the_catalogue_has_facts_only() -> None:
    names = [each.name for each in catalogue()]
    assert {"deimv2-atto", "deimv2-femto", "yolox-nano", "nanodet-m", "person"} <= set(names)
    assert len(set(names)) == len(names)
    assert len({each.file for each in catalogue()}) == len(names)
    for each in catalogue():
        assert each.licence in PERMISSIVE
        assert len(each.sha256) == 64
        assert len(each.commit) == 40
        assert set(each.sha256 + each.commit) <= set("0123456789abcdef")
        layout = layout_named(each.layout)
        assert layout is not None
        assert layout.task == each.task
        assert (each.accuracy is None) == (not each.accuracy_of)
        assert bool(each.labels) == (each.task != "embed")


def test_the_list_downloads_nothing_and_says_all(
    serving: Callable[[dict[str, bytes]], Seen], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    proxy = serving({})
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    listed = documents("get")["models"]
    assert [each["name"] for each in listed] == [each.name for each in catalogue()]
    assert set(listed[0]) >= {
        "name", "task", "labels", "size_bytes", "licence", "source", "sha256",
        "published_accuracy", "installed",
    }  # fmt: skip
    text = run("get")
    assert "deimv2-atto" in text
    assert listed[0]["sha256"] in text
    assert proxy.asked == []
    assert installed(tmp_path) == []


@pytest.mark.parametrize("each", catalogue(), ids=lambda each: each.name)
async def test_every_file_of_the_catalogue_imports_and_finds(
    each: CatalogueEntry, tmp_path: Path
) -> None:
    by_digest = {
        hashlib.sha256(path.read_bytes()).hexdigest(): path for path in REAL_MODELS.glob("*.onnx")
    }
    if each.sha256 not in by_digest:
        pytest.skip(f"{REAL_MODELS} has no file with the sha256 of {each.name}")
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / each.file).symlink_to(by_digest[each.sha256])
    models = tmp_path / "models"
    with fetched(each, models, str(tmp_path / "mirror"), lambda text, share: None) as file:
        order = ImportOrder(
            files=(Path(file.name),), folder=file.parent, models=models, name=each.name,
            layout=each.layout, labels=each.labels or None, embeds=each.task == "embed",
            licence=each.licence,
        )  # fmt: skip
        await import_in_process(order, lambda text, share: None)
    family = load_family(models / each.name)
    assert (family.licence, family.task) == (each.licence, each.task)
    (variant,) = family.variants
    assert (variant.width_px, variant.height_px) == (each.width_px, each.height_px)
    if each.task != "detect":
        return
    assert family.labels == each.labels
    photo = REAL_MODELS.parent / "photos" / "bus.jpg"
    ended = CliRunner().invoke(
        main,
        ["detect", str(photo), "--family", each.name, "--json", "--config", _config(models)],
    )
    (picture,) = json.loads(ended.stdout)["pictures"]
    found = [each["label"] for each in picture["detections"] if each["score"] >= 0.5]
    assert found.count("person") >= 3, found


def _config(models: Path) -> str:
    path = models.parent / "box.toml"
    path.write_text(f'[inference]\nmodels = "{models}"\n[[executors]]\ndevice = "cpu"\n')
    return str(path)


# -- getting ------------------------------------------------------------------------------------


def test_get_downloads_verifies_imports_and_makes_it_the_default(
    entry: CatalogueEntry,
    content: bytes,
    serving: Callable[[dict[str, bytes]], Seen],
    tmp_path: Path,
) -> None:
    server = serving({"/models/gate.onnx": content})
    text = run("get", "gate", "--from", f"{server.url}/models/", "--default")
    assert "installed gate, licence MIT" in text
    assert "cameras that name no model now get gate" in text
    assert server.asked == [("GET", "/models/gate.onnx", None)]
    assert installed(tmp_path) == ["default-family", "gate"]
    config = load(None)
    assert (config.inference.family, config.origins["inference.family"]) == ("gate", "stored")
    family = load_family(config.inference.models_folder / "gate")
    assert (family.labels, family.licence) == (LABELS, "MIT")
    again = documents("get", "gate")
    assert (again["was_installed"], again["default"]) == (True, True)
    assert len(server.asked) == 1
    assert documents("get")["models"][0]["installed"] is True
    listed = run("get")
    assert "installed" in listed
    assert "nothing was downloaded" not in listed  # one was, a moment ago
    assert documents("default") == {"default": "gate"}


def test_an_http_proxy_is_asked_instead_of_the_mirror(
    entry: CatalogueEntry,
    content: bytes,
    serving: Callable[[dict[str, bytes]], Seen],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = "http://mirror.example/gate.onnx"
    proxy = serving({url: content})
    monkeypatch.setenv("http_proxy", proxy.url)
    assert documents("get", "gate", "--from", "http://mirror.example")["family"] == "gate"
    assert proxy.asked == [("GET", url, None)]


def test_an_https_proxy_is_asked_for_the_source_and_its_refusal_is_told(
    entry: CatalogueEntry,
    serving: Callable[[dict[str, bytes]], Seen],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    proxy = serving({})
    monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//somebody:secret@"))
    text = " ".join(run("get", "gate", code=1).split())
    assert proxy.asked == [("CONNECT", "raw.githubusercontent.com:443", None)]
    assert f"through the proxy {proxy.url.removeprefix('http://')}" in text
    assert "407" in text
    assert "secret" not in text
    assert installed(tmp_path) == []


def test_offline_is_one_message_that_says_what_to_do(
    entry: CatalogueEntry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    text = " ".join(run("get", "gate", code=1).split())
    assert "gate cannot be downloaded: raw.githubusercontent.com" in text
    assert "connection refused" in text
    assert f"download {entry.url} elsewhere" in text
    assert "edgebox models get gate --from FOLDER" in text
    assert installed(tmp_path) == []


def test_a_folder_is_a_mirror(entry: CatalogueEntry, content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "stick"
    assert "there is no such folder" in run("get", "gate", "--from", str(folder), code=1)
    folder.mkdir()
    assert "has no gate.onnx" in run("get", "gate", "--from", str(folder), code=1)
    (folder / "gate.onnx").write_bytes(content)
    assert documents("get", "gate", "--from", str(folder), "--as", "entry")["family"] == "entry"
    assert installed(tmp_path) == ["entry"]
    assert (folder / "gate.onnx").read_bytes() == content


def test_what_cannot_be_read_is_named(entry: CatalogueEntry) -> None:
    # A file that anybody can open; its beginning cannot be read.
    said = run("get", "gate", "--from", "/proc/self/mem", code=1)
    assert "--from /proc/self/mem: cannot be read: Input/output error" in said


def test_a_network_that_breaks_off_is_no_disk_that_cannot_be_written(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Answer(BytesIO):
        status = 200
        headers: ClassVar[dict[str, str]] = {}

        def read(self, size: int | None = -1) -> bytes:
            raise OSError(errno.EHOSTUNREACH, "No route to host")

    class Opener:
        def open(self, request: object, timeout: float) -> Answer:
            return Answer()

    monkeypatch.setattr(model_download, "build_opener", Opener)
    with (
        pytest.raises(ModelError, match=r"example\.com cannot be reached: no route to host"),
        fetched(
            entry_of(content), tmp_path, "http://example.com", progress=lambda text, share: None
        ),
    ):
        pytest.fail("it was had")


def test_what_was_interrupted_continues(
    content: bytes, serving: Callable[[dict[str, bytes]], Seen], tmp_path: Path
) -> None:
    entry, shares = entry_of(content), list[float]()

    def fetch() -> bytes:
        with fetched(
            entry, tmp_path / "models", server.url, lambda text, share: shares.append(share)
        ) as file:
            return file.read_bytes()

    server = serving({"/gate.onnx": content})
    server.cut_at = 1000
    with pytest.raises(ModelError, match=f"after 1000 of {len(content)} bytes; the same command"):
        fetch()
    server.cut_at = None
    assert fetch() == content
    assert [wanted for _, _, wanted in server.asked] == [None, "bytes=1000-"]
    assert shares[-1] == 1.0
    assert list(tmp_path.iterdir()) == []
    server.cut_at, server.ranges = 1000, False
    with pytest.raises(ModelError, match="the same command continues there"):
        fetch()
    server.cut_at = None
    assert fetch() == content  # from its beginning, where a server cannot continue


@pytest.mark.parametrize(
    ("made_of", "message"),
    [
        (lambda content: content[:-1] + b"?", "is not the file of the catalogue: its sha256 is"),
        (lambda content: content + b"?", "larger than gate.onnx"),
        (lambda content: content[:-5], "ended after"),
    ],
)
def test_another_file_is_refused_before_anything_reads_it(
    made_of: Callable[[bytes], bytes],
    message: str,
    content: bytes,
    serving: Callable[[dict[str, bytes]], Seen],
    tmp_path: Path,
) -> None:
    server = serving({"/gate.onnx": made_of(content)})
    with (
        pytest.raises(ModelError, match=message),
        fetched(entry_of(content), tmp_path / "models", server.url, lambda text, share: None),
    ):
        pytest.fail("it was believed")


def test_refusals_of_a_server_and_bad_names_are_told(
    entry: CatalogueEntry, serving: Callable[[dict[str, bytes]], Seen], tmp_path: Path
) -> None:
    server = serving({})
    assert "answered 404" in run("get", "gate", "--from", server.url, code=1)
    assert "the catalogue has no model 'cat'; it has gate" in run("get", "cat", code=1)
    assert "a mirror is a folder, or begins with" in run("get", "gate", "--from", "ftp://x", code=1)
    assert "a family cannot be called" in run("get", "gate", "--as", "../up", code=1)
    assert "there is a family 'street' already" in run("get", "gate", "--as", "street", code=1)
    assert installed(tmp_path) == []


def test_a_file_that_does_not_import_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bad = replace(entry_of(b"no model"), layout="yolov8")
    monkeypatch.setattr(catalogue_module, "catalogue", lambda: (bad,))
    (tmp_path / "gate.onnx").write_bytes(b"no model")
    assert "is not an ONNX model" in run("get", "gate", "--from", str(tmp_path), code=1)
    assert installed(tmp_path) == []


# -- the default, and removing ------------------------------------------------------------------


def test_default_and_remove(entry: CatalogueEntry, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "gate.onnx").write_bytes(content)
    run("get", "gate", "--from", str(tmp_path), "--no-default")
    assert documents("default") == {"default": "street"}
    assert "there is no model family 'cat'" in run("default", "cat", code=1)
    assert "is given features of" in run("default", "street-rest", code=1)
    assert "cameras that name no model now get gate" in run("default", "gate")
    assert "gate is the default model; choose another one first" in run("remove", "gate", code=1)
    run("default", "street")
    assert documents("remove", "gate")["removed"] == "gate"
    assert installed(tmp_path) == ["default-family"]
    for name, message in (
        ("gate", "there is no imported family 'gate'"),
        ("vehicles", "vehicles comes with edgebox and stays"),
        ("../models", "a family cannot be called"),
    ):
        assert message in " ".join(run("remove", name, code=1).split())


def test_the_configuration_file_counts_more_than_the_stored_default(
    entry: CatalogueEntry, content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "gate.onnx").write_bytes(content)
    run("get", "gate", "--from", str(tmp_path), "--default")
    file = tmp_path / "box.toml"
    file.write_text('[inference]\nfamily = "street"\n')
    assert load(file).inference.family == "street"
    text = " ".join(run("default", "gate", "--config", str(file), code=1).split())
    assert "box.toml sets inference.family = 'street', which counts more" in text
    stage = '[[pipelines.stages]]\nname = "a"\nfamily = "gate"'
    file.write_text(f'[inference]\nfamily = "street"\n[[pipelines]]\nname = "yard"\n{stage}\n')
    text = " ".join(run("remove", "gate", "--config", str(file), code=1).split())
    assert "the pipeline yard uses gate" in text
    detector = 'endpoint = "tcp://127.0.0.1:5555"\nfamily = "gate"'
    file.write_text(f'[inference]\nfamily = "street"\n[zmq_detector]\n{detector}\n')
    text = " ".join(run("remove", "gate", "--config", str(file), code=1).split())
    assert "zmq_detector.family" in text and "names gate; take it out there first" in text
