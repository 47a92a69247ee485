"""The doctor: what is healthy is called healthy, what is not comes with its mend."""

import json
import os
import socket
import sqlite3
import stat
import subprocess
import tomllib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from edgebox.domain.errors import ConfigError, ModelError
from edgebox.inference import gpu_checks, package_checks
from edgebox.inference.cuda_libraries import CUDA_BUILD, DRIVER
from edgebox.inference.doctor import (
    check_cores,
    check_executors,
    check_families,
    check_memory,
    check_page,
    check_pipelines,
    check_port,
    check_storage,
    examine,
)
from edgebox.inference.family import Family
from edgebox.inference.findings import Finding, Health, to_json
from edgebox.inference.gpu_checks import (
    Cuda,
    Gpu,
    check_cuda,
    check_gpus,
    find_gpus,
    parse_gpus,
)
from edgebox.inference.gpus import gpu_rows
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.package_checks import (
    EXTRAS,
    check_extras,
    check_libraries,
    check_runtime_packages,
)
from edgebox.inference.zoo import Zoo, bundled_folders, load_zoo
from edgebox.storage.schema import APPLICATION_ID
from tests.inference.tiny_onnx import FAILING_32, YOLOX_32, write_family

ROOT = Path(__file__).resolve().parents[2]
NEW = Gpu("NVIDIA H200", "580.1", "143771 MiB", (9, 0))
OLD = Gpu("Tesla P100", "470.0", "16384 MiB", (6, 0))


def bad(finding: Finding, health: Health, *words: str) -> bool:
    """Say whether a finding is as bad as it should be, says the words and offers a mend."""
    said = f"{finding.found} {finding.mend}"
    return finding.health == health and bool(finding.mend) and all(word in said for word in words)


def test_this_installation_is_examined_whole(tmp_path: Path) -> None:
    findings = examine(
        families=bundled_folders(),
        opening=on_the_cpu,
        storage_file=str(tmp_path / "x.sqlite3"),
        page_built=True,
        port=0,
    )
    checks = [finding.check for finding in findings]
    assert checks == sorted(set(checks), key=checks.index)
    assert {
        "Python",
        "ONNX Runtime",
        "Extras",
        "Executor cpu/0",
        "Model families",
        "Database",
    } <= set(checks)
    assert not [finding for finding in findings if finding.health == Health.FAIL]
    assert json.loads(json.dumps(to_json(findings)))[0]["health"] == "ok"


def test_what_the_caller_does_not_ask_about_is_left_out() -> None:
    checks = {finding.check for finding in examine(families=bundled_folders())}
    assert not checks & {"Page", "Database", "Port", "Executors", "Providers"}


def test_two_onnx_runtimes_over_each_other() -> None:
    both = {"onnxruntime": "1.31.0", "onnxruntime-gpu": "1.31.1"}
    finding = check_runtime_packages(both, "1.31.1")
    assert bad(finding, Health.FAIL, "pip uninstall -y onnxruntime onnxruntime-gpu", "1.31.0")
    assert check_runtime_packages({"onnxruntime_gpu": "1.31.1"}, "1.31.1").health == Health.OK
    left_over = check_runtime_packages({"onnxruntime-gpu": "1.31.1"}, "1.29.0")
    assert bad(left_over, Health.FAIL, "1.29.0", "--force-reinstall")


def test_nvidia_smis_rows_are_read() -> None:
    table = "NVIDIA H200, 580.1, 143771 MiB, 9.0\n\nQuadro, 1.0, 1 MiB, [N/A]\nnonsense\n"
    h200, quadro = parse_gpus(table)
    assert h200 == NEW
    assert quadro.name == "Quadro"


@pytest.mark.parametrize(
    ("script", "found"),
    [("echo 'NVIDIA H200, 580.1, 143771 MiB, 9.0'", [NEW]), ("exit 9", None)],
)
def test_the_drivers_tool_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, found: list[Gpu] | None
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert find_gpus() == found


def test_no_driver_means_no_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gpu_checks, "cuda_driver", lambda: None)
    assert find_gpus() == []


@pytest.mark.parametrize(("row", "found"), [("H200, for CUDA 13.2, 9 MiB, 9.0", 1), (None, None)])
def test_without_its_tool_the_driver_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, row: str | None, found: int | None
) -> None:
    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert command[1:] == ["-m", "edgebox.inference.gpus"]
        if row is None:
            raise subprocess.CalledProcessError(-11, command)
        return subprocess.CompletedProcess(command, 0, stdout=row)

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gpu_checks, "cuda_driver", object)
    monkeypatch.setattr(subprocess, "run", run)
    gpus = find_gpus()
    assert (None if gpus is None else len(gpus)) == found
    if gpus:
        assert gpus[0].capability == (9, 0)
        assert check_gpus(gpus).found == "H200, 9 MiB, driver for CUDA 13.2"


class Driver:
    """A driver with one GPU; a real one is a C library with the same calls."""

    def cuInit(self, flags: int, /) -> int:  # noqa: N802
        return 0

    def cuDriverGetVersion(self, version: Any, /) -> int:  # noqa: N802
        version._obj.value = 13020
        return 0

    def cuDeviceGetCount(self, count: Any, /) -> int:  # noqa: N802
        count._obj.value = 1
        return 0

    def cuDeviceGet(self, device: Any, ordinal: int, /) -> int:  # noqa: N802
        device._obj.value = 5
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: Any, /) -> int:  # noqa: N802
        name.value = b"NVIDIA H200"
        return 0

    def cuDeviceTotalMem_v2(self, size: Any, device: Any, /) -> int:  # noqa: N802
        size._obj.value = 143_771 << 20
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any, /) -> int:  # noqa: N802
        assert device.value == 5
        value._obj.value = {75: 9, 76: 0}[attribute]
        return 0


def test_a_driver_describes_gpus_as_its_tool_does() -> None:
    (row,) = gpu_rows(Driver())
    assert row == "NVIDIA H200, for CUDA 13.2, 143771 MiB, 9.0"
    assert parse_gpus(row) == [replace(NEW, driver="for CUDA 13.2")]


def test_gpus() -> None:
    assert check_gpus([]).health == Health.OK
    assert check_gpus([NEW, OLD]).health == Health.OK
    assert bad(check_gpus([OLD]), Health.WARN, "too old", "cpu")
    assert bad(check_gpus(None), Health.WARN, "fails")


def test_missing_libraries_only_matter_with_a_gpu() -> None:
    (finding,) = check_cuda([], Cuda(["libcudnn.so.9"], "13"))
    assert finding.health == Health.OK
    (finding,) = check_cuda([NEW], Cuda([], "13"))
    assert finding.health == Health.OK
    assert "can be loaded" in finding.found
    (finding,) = check_cuda([NEW], Cuda([], "", (12, 8)))
    assert finding.health == Health.OK
    assert "only a batch shows what is missing" in finding.found
    (finding,) = check_cuda([NEW], Cuda(["libcurand.so.10"], "13"))
    assert bad(finding, Health.WARN, "libcurand", "edgebox[cuda]")


@pytest.mark.parametrize(
    ("gpu", "cuda", "mend"),
    [
        (NEW, Cuda([CUDA_BUILD]), "pip uninstall -y onnxruntime, then pip install 'edgebox[cuda]'"),
        (NEW, Cuda([DRIVER], "13"), "--gpus all"),
        (NEW, Cuda(["libcudnn.so.9"], "13", (13, 0)), "pip install 'edgebox[cuda]'"),
        (NEW, Cuda([], "13", (12, 8)), "driver 580 or newer"),
        (NEW, Cuda(["libcudnn.so.9"], "13", (12, 8)), "driver 580 or newer"),
        (NEW, Cuda([], "99", (13, 0)), "update the driver"),
        (OLD, Cuda([], "13", (13, 0)), 'device = "cpu"'),
        (NEW, Cuda([CUDA_BUILD], jetson=True), "docs/how-to/jetson.md"),
        (NEW, Cuda([], "13", (13, 1)), "nvidia-smi"),
    ],
)
def test_the_mend_fits_the_cause(gpu: Gpu, cuda: Cuda, mend: str) -> None:
    assert mend in cuda.mend([gpu])


def test_a_driver_is_held_against_the_cuda_that_onnx_runtime_is_built_for() -> None:
    _, driver = check_cuda([NEW], Cuda([], "13", (12, 8)))
    assert bad(driver, Health.WARN, "up to 12.8", "built for CUDA 13", "580")
    _, driver = check_cuda([NEW], Cuda([], "13", (13, 2)))
    assert (driver.check, driver.health) == ("Driver", Health.OK)


def test_extras_are_listed_with_their_use(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    others = {"cpu", "cuda", "dev", "fuzz", "train"}  # a runtime, and what is not for users
    assert set(EXTRAS) == set(extras) - others
    for name, (package, _) in EXTRAS.items():
        assert [text.split(">")[0] for text in extras[name]] == [package]
    monkeypatch.setattr(package_checks, "_version", lambda name: "1" if name == "av" else None)
    found = check_extras().found
    assert found.startswith("camera; not installed: mqtt (events over MQTT: pip install")
    monkeypatch.setattr(package_checks, "_version", lambda name: "1")
    assert check_extras().found == "camera, mqtt, onvif, mdns, zmq, ray, tls, accuracy, plot"


@dataclass
class Opened:
    executors: list[OnnxExecutor]
    problems: list[str]

    def close(self) -> None:
        for executor in self.executors:
            executor.close()


def on_the_cpu(families: Sequence[Family]) -> Opened:
    return Opened([OnnxExecutor(0, families, cpu_threads=1, cores=(0,))], ["x does not run there"])


def nowhere(families: Sequence[Family]) -> Opened:
    raise ModelError("no GPU")


@pytest.mark.parametrize("gpus", [[], None])
def test_a_gpu_without_its_driver_is_a_warning(gpus: list[Gpu] | None) -> None:
    def instead(families: Sequence[Family]) -> Opened:
        found = on_the_cpu(families)
        found.executors[0].note = "CUDA cannot be used: there is no NVIDIA driver on this machine"
        return found

    cuda = Cuda([DRIVER], "13")
    executor, *_ = check_executors(load_zoo(bundled_folders()), gpus, cuda, instead)
    assert bad(executor, Health.WARN, "no NVIDIA driver", "install NVIDIA's driver")


def test_executors_are_tried_and_not_believed(tmp_path: Path) -> None:
    executor, problem, listed = check_executors(load_zoo(bundled_folders()), [], Cuda(), on_the_cpu)
    assert (executor.check, executor.health) == ("Executor cpu/0", Health.OK)
    assert "1 thread, on cores 0, with street" in executor.found
    assert bad(problem, Health.WARN, "x does not run there")
    assert "CPUExecutionProvider" in listed.found
    assert check_executors(Zoo((), ()), [], Cuda(), nowhere)[0].health == Health.WARN
    failing = load_zoo([write_family(tmp_path, FAILING_32)])
    assert bad(check_executors(failing, [], Cuda(), on_the_cpu)[0], Health.FAIL, "the batch failed")
    assert bad(
        check_executors(failing, [], Cuda(), nowhere)[0], Health.FAIL, "no GPU", "[[executors]]"
    )


def test_cores_and_memory() -> None:
    assert check_cores(4, None).health == Health.OK
    assert bad(check_cores(1, 0.5), Health.WARN, "0.5", "2 cores")
    assert check_memory(4 << 30).found == "4.0 GiB"
    assert check_memory(None).health == Health.OK
    assert bad(check_memory(256 << 20), Health.WARN, "0.2 GiB")


def test_families(tmp_path: Path) -> None:
    good = write_family(tmp_path / "good", YOLOX_32)
    (alone,) = check_families(load_zoo([good]))
    assert alone.found == "tiny: 1 variants, 1 labels"
    fine, broken = check_families(load_zoo([good, tmp_path / "nowhere"]))
    assert fine.health == Health.OK
    assert bad(broken, Health.WARN, "nowhere/family.toml", "inference.families")
    assert all(f.health == Health.FAIL for f in check_families(load_zoo([tmp_path / "nowhere"])))


def test_page() -> None:
    assert check_page(True).health == Health.OK
    assert bad(check_page(False), Health.WARN, "make page")


def test_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_storage(":memory:").health == Health.OK
    assert check_storage(str(tmp_path / "a" / "b" / "box.sqlite3")).health == Health.OK
    assert bad(check_storage(str(tmp_path)), Health.FAIL, "is a folder")
    (tmp_path / "file").write_text("x")
    assert bad(check_storage(str(tmp_path / "file")), Health.FAIL, "is not a SQLite database")
    (tmp_path / "empty").touch()
    assert check_storage(str(tmp_path / "empty")).health == Health.OK
    assert bad(check_storage(str(tmp_path / "file" / "box")), Health.FAIL, "is no folder")
    for script, message in (
        ("CREATE TABLE theirs (x)", "is another program's database"),
        ("PRAGMA application_id = 7", "is another program's database"),
        (f"PRAGMA application_id = {APPLICATION_ID}", ""),
        (f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 999", "a newer edgebox"),
    ):
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite3"
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(script)
        before = file.read_bytes()
        finding = check_storage(str(file))
        assert bad(finding, Health.FAIL, message) if message else finding.health == Health.OK
        assert file.read_bytes() == before
        assert not list(tmp_path.glob(f"{file.name}-*"))
    # Root may write anywhere, so the system is made to say no.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert bad(check_storage(str(tmp_path / "box.sqlite3")), Health.FAIL, "cannot be written")


def test_ports() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        port = listener.getsockname()[1]
        assert bad(check_port("127.0.0.1", port), Health.FAIL, "is taken", "server.port")
    assert check_port("127.0.0.1", port).health == Health.OK
    assert bad(check_port("203.0.113.7", port), Health.FAIL, "cannot be listened on")


@pytest.mark.parametrize(
    ("missing", "health", "message"),
    [
        (("uvloop",), Health.WARN, "uvloop (the box runs on asyncio's slower event loop)"),
        (("uvloop", "onnx"), Health.WARN, "onnx (no importing)"),
        (("aiohttp",), Health.FAIL, "missing: aiohttp"),
        (("prometheus-client", "uvloop"), Health.FAIL, "prometheus-client, uvloop"),
    ],
)
def test_a_library_that_is_missing_is_worth_what_does_not_work_without_it(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], health: Health, message: str
) -> None:
    monkeypatch.setattr(package_checks, "_version", lambda name: None if name in missing else "1.0")
    there, gone = check_libraries()
    assert there.health == Health.OK
    assert not any(name in there.found for name in missing)
    assert bad(gone, health, message, "pip install")
    monkeypatch.undo()
    assert [found.health for found in check_libraries()] == [Health.OK]


def test_pipelines_are_named_and_what_is_wrong_with_them_is_said() -> None:
    zoo = load_zoo(bundled_folders())
    (finding,) = check_pipelines(
        zoo, lambda families: ([f"of {each.name}" for each in families], {})
    )
    assert (finding.health, "of street" in finding.found) == (Health.OK, True)
    assert check_pipelines(zoo, lambda families: ((), {})) == []
    (finding,) = check_pipelines(zoo, lambda families: ((), {"gate": "there is no cascade"}))
    assert (finding.check, finding.health) == ("Pipeline gate", Health.FAIL)
    assert finding.found == "there is no cascade"

    def wrong(families: Sequence[Family]) -> tuple[list[str], dict[str, str]]:
        raise ConfigError("edgebox.toml:\n  pipelines[0].stages[0].family: there is none")

    (finding,) = check_pipelines(zoo, wrong)
    assert finding.health is Health.FAIL
    assert "there is none" in finding.found
