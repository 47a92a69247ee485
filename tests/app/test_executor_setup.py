"""Which executors a box gets from its configuration and its machine; real sessions on the CPU."""

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgebox.app import executor_setup
from edgebox.app.executor_setup import Opened, open_executors, open_one
from edgebox.config.config_file import Config, load
from edgebox.domain.errors import ConfigError, ModelError
from edgebox.inference import executor_spec
from edgebox.inference.executor import Executor, HungError, blank_canvas
from edgebox.inference.executor_spec import ExecutorSpec, open_executor
from edgebox.inference.family import Family
from edgebox.inference.gpus import driver_cuda_release, gpu_names, has_nvidia_device
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.sessions import CPU, CUDA, Session, cuda_obstacle, open_session
from edgebox.inference.zoo import bundled_folders, load_family, load_zoo
from edgebox.runtime.threads import within
from tests.conftest import PATIENCE_S
from tests.end_to_end.test_residency import family_of_files
from tests.inference.tiny_onnx import FAILING_32, write_family

CORES = sorted(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def street() -> Family:
    return load_zoo(bundled_folders()).family("street")


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Family:
    return load_family(family_of_files(tmp_path_factory.mktemp("files") / "gate", "gate", [128]))


def configured(*tables: dict[str, Any]) -> Config:
    return load(None, {"executors": list(tables)})


@contextmanager
def opened(config: Config, families: list[Family]) -> Iterator[Opened]:
    found = open_executors(config, families)
    try:
        yield found
    finally:
        found.close()


def runs(executor: Executor, family: Family) -> bool:
    variant = family.variants[0]
    done = executor.submit(variant.name, [blank_canvas(variant)], 1)
    return done.exception(timeout=60) is None


class Driver:
    """A driver with so many GPUs; a real one is a C library with the same calls."""

    def __init__(self, names: list[str], *, broken: bool = False) -> None:
        self._names = names
        self._broken = broken

    def cuInit(self, flags: int, /) -> int:  # noqa: N802
        return 100 if self._broken else 0

    def cuDriverGetVersion(self, version: Any, /) -> int:  # noqa: N802
        version._obj.value = 13020
        return 100 if self._broken else 0

    def cuDeviceGetCount(self, count: Any, /) -> int:  # noqa: N802
        count._obj.value = len(self._names)
        return 0

    def cuDeviceGet(self, device: Any, ordinal: int, /) -> int:  # noqa: N802
        device._obj.value = 10 + ordinal
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: Any, /) -> int:  # noqa: N802
        name.value = self._names[device.value - 10].encode()
        return 0


def meant_for_gpus(
    monkeypatch: pytest.MonkeyPatch, build: bool = True, device: bool = True
) -> None:
    """Pretend that ONNX Runtime is built with CUDA or not, and that there is a GPU or none."""
    monkeypatch.setattr("edgebox.app.executor_setup.built_with_cuda", lambda: build)
    monkeypatch.setattr("edgebox.app.executor_setup.has_nvidia_device", lambda: device)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Pretend that there are two GPUs; return what is opened on which. Sessions are the CPU's."""
    seen: list[tuple[str, int]] = []

    def on_gpu(path: Path, provider: str, threads: int, index: int = 0, **how: Any) -> Session:
        session = open_session(path, "cpu", threads)
        seen.append((provider, index))
        return session if provider == "cpu" else replace(session, provider=CUDA)

    monkeypatch.setattr("edgebox.inference.session_store.open_session", on_gpu)
    monkeypatch.setattr("edgebox.app.executor_setup.gpu_names", lambda: ("A", "B"))
    monkeypatch.setattr("edgebox.app.executor_setup.cuda_obstacle", lambda: "")
    return seen


def test_gpus_are_counted_as_cuda_counts_them() -> None:
    assert gpu_names(Driver(["H200", "T4"])) == ("H200", "T4")
    assert gpu_names(Driver([])) == ()
    assert gpu_names(Driver(["H200"], broken=True)) == ()


def test_a_driver_says_which_cuda_it_runs() -> None:
    assert driver_cuda_release(Driver([])) == (13, 2)
    assert driver_cuda_release(Driver([], broken=True)) is None


def test_a_gpu_that_cannot_be_used_is_said(street: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    if not cuda_obstacle():
        pytest.skip("this machine has a GPU")
    meant_for_gpus(monkeypatch)
    with opened(load(None), [street]) as found:
        (executor,) = found.executors
        assert (executor.id, executor.provider) == ("cpu/0", CPU)
        assert executor.note == cuda_obstacle()
        assert runs(executor, street)
    with opened(configured({"device": "tensorrt"}), [street]) as found:
        assert [each.id for each in found.executors] == ["cpu/0"]
        assert "CUDA cannot be used" in found.executors[0].note


@pytest.mark.parametrize(("build", "device"), [(False, True), (True, False)])
def test_nothing_is_said_where_no_gpu_is_to_be_expected(
    street: Family, monkeypatch: pytest.MonkeyPatch, build: bool, device: bool
) -> None:
    meant_for_gpus(monkeypatch, build, device)
    monkeypatch.setattr("edgebox.app.executor_setup.gpu_names", lambda: ())
    obstacle = "CUDA cannot be used: no GPU"
    monkeypatch.setattr("edgebox.app.executor_setup.cuda_obstacle", lambda: obstacle)
    with opened(load(None), [street]) as found:
        assert [(each.id, each.note) for each in found.executors] == [("cpu/0", "")]
    with opened(configured({"device": "tensorrt"}), [street]) as found:
        assert [each.note for each in found.executors] == [obstacle]


def test_the_bus_says_whether_there_is_a_gpu(tmp_path: Path) -> None:
    jetson = tmp_path / "nv_tegra_release"
    for name, vendor, kind in (
        ("00:01.0", "0x8086", "0x030000"), ("00:02.0", "0x10de", "0x040300"),
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "class").write_text(f"{kind}\n")
    assert not has_nvidia_device(tmp_path / "none", jetson)
    assert not has_nvidia_device(tmp_path, jetson)  # another maker's, and a sound card
    (tmp_path / "00:02.0" / "class").write_text("0x030200\n")
    assert has_nvidia_device(tmp_path, jetson)
    jetson.touch()
    assert has_nvidia_device(tmp_path / "none", jetson)


def test_what_the_machine_has_not_is_said_with_its_key(tmp_path: Path, street: Family) -> None:
    file = tmp_path / "edgebox.toml"
    file.write_text(
        '[[executors]]\ndevice = "cuda:7"\n'
        f'[[executors]]\ndevice = "cpu"\ncores = [{CORES[0]}, 4000]\n'
    )
    with pytest.raises(ConfigError) as caught:
        open_executors(load(file), [street])
    first, device, cores = str(caught.value).splitlines()
    assert first == f"{file}:"
    assert device.startswith("  executors[0].device: ")
    assert cores == (
        f"  executors[1].cores: this process may not use 4000 (it may use "
        f"{', '.join(map(str, CORES))})"
    )


@pytest.mark.parametrize(
    ("device", "said"),
    [("cuda:2", "there is no GPU 2 (GPUs 0 to 1)"), ("tensorrt:3", "there is no GPU 3")],
)
def test_a_gpu_that_is_not_there(
    street: Family, two_gpus: list[tuple[str, int]], device: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        open_executors(configured({"device": device}), [street])
    assert said in str(caught.value)


def test_auto_takes_every_gpu(street: Family, two_gpus: list[tuple[str, int]]) -> None:
    with opened(configured({"streams": 2}), [street]) as found:
        ids = [each.id for each in found.executors]
        assert ids == ["cuda:0/0", "cuda:0/1", "cuda:1/0", "cuda:1/1"]
        assert two_gpus == [("cuda", 0), ("cuda", 0), ("cuda", 1), ("cuda", 1)]
        assert [key.rpartition("/")[0] for key in found.specs] == ["cuda:0", "cuda:0"] + [
            "cuda:1"
        ] * 2
        assert all(runs(executor, street) for executor in found.executors)


def test_runs_are_recorded_on_gpus_alone(street: Family, two_gpus: list[tuple[str, int]]) -> None:
    with opened(configured({"device": "auto", "cuda_graphs": True}), [street]) as found:
        specs = [*found.specs.values(), *found.cpu_fallbacks.values()]
        local = [each for each in specs if isinstance(each, ExecutorSpec)]
        assert {(each.id, each.cuda_graphs) for each in local} == {
            ("cuda:0/0", True), ("cuda:1/0", True), ("cpu/0", False),
        }  # fmt: skip


def test_only_where_the_box_may_choose_does_the_cpu_stand_in_for_a_gpu(
    street: Family, two_gpus: list[tuple[str, int]]
) -> None:
    with opened(configured({"device": "auto"}), [street]) as found:
        assert [*found.cpu_fallbacks] == ["cuda:0/0", "cuda:1/0"]
        assert {(spec.id, spec.provider) for spec in found.cpu_fallbacks.values()} == {
            ("cpu/0", "cpu")
        }
    with opened(configured({"device": "cuda:1"}), [street]) as found:
        assert not found.cpu_fallbacks


def test_a_cpu_stands_beside_a_gpu(
    street: Family, gate: Family, two_gpus: list[tuple[str, int]]
) -> None:
    config = configured(
        {"device": "cuda:1"},
        {"device": "cpu", "threads": 1, "families": ["street"]},
        {"device": "cpu", "threads": 2, "families": ["street", "gate"]},
    )
    with opened(config, [street, gate]) as found:
        held = {each.id: each.families for each in found.executors}
        assert held == {
            "cuda:1/0": ("street", "gate"), "cpu/0": ("street",), "cpu/1": ("street", "gate"),
        }  # fmt: skip
        assert [each.cpu_threads for each in found.executors][1:] == [1, 2]
        assert runs(found.executors[2], gate)
        assert not runs(found.executors[1], gate)


def test_a_family_that_no_gpu_can_run_gets_an_executor_on_the_cpu(
    gate: Family, two_gpus: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch, street: Family
) -> None:
    def on_gpu(path: Path, provider: str, threads: int, index: int = 0, **how: Any) -> Session:
        if provider != "cpu" and path == gate.model_files[0].path:
            raise ModelError("out of memory")
        session = open_session(path, "cpu", threads)
        return session if provider == "cpu" else replace(session, provider=CUDA)

    monkeypatch.setattr("edgebox.inference.session_store.open_session", on_gpu)
    with opened(configured({}), [street, gate]) as found:
        held = {each.id: each.families for each in found.executors}
        assert held == {"cuda:0/0": ("street",), "cuda:1/0": ("street",), "cpu/0": ("gate",)}
        assert found.problems == [
            "gate does not run on cuda:0/0: out of memory",
            "gate does not run on cuda:1/0: out of memory",
        ]
        assert found.executors[2].note == "no GPU can run gate"
        assert runs(found.executors[2], gate)
    with pytest.raises(ModelError, match="out of memory"):
        open_executors(configured({"device": "cuda"}), [gate])
    alone = open_one(configured({}), gate)
    alone.close()
    assert alone.id == "cpu/0"


def test_a_gpu_that_opens_a_model_and_cannot_run_it(
    tmp_path: Path, two_gpus: list[tuple[str, int]]
) -> None:
    family = load_family(write_family(tmp_path, FAILING_32))
    with opened(configured({}), [family]) as found:
        assert [each.id for each in found.executors] == ["cpu/0"]
        assert found.executors[0].note.startswith("CUDA cannot run tiny")
        assert [text.partition(":")[0] for text in found.problems] == ["cuda", "cuda"]


@pytest.fixture
def hanging_gpus(
    two_gpus: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[set[int]]:
    """Return the numbers of GPUs on which opening hangs, to be added to; nobody waits long."""
    hanging: set[int] = set()
    go_on = threading.Event()
    opening = open_executor

    def open_later(spec: ExecutorSpec, families: Sequence[Family], **how: Any) -> ModelExecutor:
        if spec.provider != "cpu" and spec.device_index in hanging:
            go_on.wait()
        return opening(spec, families, **how)

    monkeypatch.setattr(executor_setup, "open_executor", open_later)
    monkeypatch.setattr(
        executor_setup, "within",
        lambda limit_s, work, name, late: within(
            0.0 if name in {f"open-cuda:{at}/0" for at in hanging} else limit_s, work, name, late
        ),
    )  # fmt: skip
    yield hanging
    go_on.set()


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_a_gpu_that_hangs_while_it_is_opened_is_left_out(
    street: Family, hanging_gpus: set[int], device: str
) -> None:
    hanging_gpus.add(0)
    with opened(configured({"device": device}), [street]) as found:
        assert [each.id for each in found.executors] == ["cuda:1/0"]
        (text,) = found.problems
        assert "opening cuda:0/0 did not come back within" in text
        assert runs(found.executors[0], street)


def test_where_all_gpus_hang_the_cpu_serves_if_the_box_may_choose(
    street: Family, hanging_gpus: set[int]
) -> None:
    hanging_gpus |= {0, 1}
    with opened(configured({}), [street]) as found:
        assert [each.id for each in found.executors] == ["cpu/0"]
        assert "did not come back" in found.executors[0].note
    with opened(configured({"device": "cuda"}, {"device": "cpu"}), [street]) as found:
        assert [each.id for each in found.executors] == ["cpu/0"]
    with pytest.raises(HungError, match="opening cuda:1/0 did not come back") as caught:
        open_executors(configured({"device": "cuda"}), [street])
    assert caught.value.exit_code == 75


def test_a_gpu_that_comes_back_too_late_is_left_behind(
    street: Family, two_gpus: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, left = threading.Event(), threading.Event()
    opening = open_executor

    def open_later(*what: Any, **how: Any) -> ModelExecutor:
        go_on.wait()
        return opening(*what, **how)

    def abandon(executor: OnnxExecutor) -> None:
        executor.close()
        left.set()

    monkeypatch.setattr(executor_setup, "open_executor", open_later)
    monkeypatch.setattr(executor_spec, "run_limit_s", lambda *, builds: 0.0)
    monkeypatch.setattr(OnnxExecutor, "abandon", abandon)
    with pytest.raises(HungError):
        open_executors(configured({"device": "cuda:0"}), [street])
    go_on.set()
    assert left.wait(PATIENCE_S)


def test_a_driver_that_does_not_say_which_gpus_there_are(
    street: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(executor_setup, "gpu_names", lambda: ("A",) if go_on.wait() else ())
    monkeypatch.setattr(executor_setup, "RUN_LIMIT_S", 0.0)
    try:
        with opened(configured({}), [street]) as found:
            assert [each.id for each in found.executors] == ["cpu/0"]
            assert "its driver did not say" in found.executors[0].note
        with opened(configured({"device": "cuda:0"}, {"device": "cpu"}), [street]) as found:
            assert [each.id for each in found.executors] == ["cpu/0"]
            assert "its driver did not say" in found.problems[0]
        with pytest.raises(HungError, match="its driver did not say"):
            open_executors(configured({"device": "cuda:0"}), [street])
    finally:
        go_on.set()


def test_a_family_that_is_not_there_is_named(street: Family) -> None:
    config = configured({"device": "cpu", "families": ["street", "strete"]})
    with opened(config, [street]) as found:
        assert found.problems == [
            'executors[0].families: "strete" is unknown, or cannot be served (there are: street)'
        ]


@pytest.mark.parametrize("others", [[], [{"device": "cpu"}]])
def test_an_executor_of_families_that_are_not_there(
    street: Family, gate: Family, others: list[dict[str, Any]]
) -> None:
    config = configured({"device": "cpu", "families": ["cats"]}, *others)
    with pytest.raises(ConfigError) as caught:
        open_executors(config, [street, gate])
    assert str(caught.value).splitlines() == [
        "the command line:",
        '  executors[0].families: "cats" is unknown, or cannot be served (there are: street, gate)',
    ]


def test_some_executor_has_the_family_of_cameras_that_name_none(
    street: Family, gate: Family
) -> None:
    with pytest.raises(ConfigError, match=r'none has the family "street" in its families'):
        open_executors(configured({"device": "cpu", "families": ["gate"]}), [street, gate])


def test_executors_elsewhere_are_opened_side_by_side(street: Family) -> None:
    count = 3
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def end_all_once_all_are_there() -> None:
            for client in [listener.accept()[0] for _ in range(count)]:
                client.recv(65_536)
                client.close()

        server = threading.Thread(target=end_all_once_all_are_there)
        server.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        elsewhere = {"kind": "open_inference", "url": url, "streams": count}
        with opened(configured({"device": "cpu"}, elsewhere), [street]) as found:
            assert [each.id for each in found.executors] == ["cpu/0"]
            assert len(found.absent) == count
            assert len(found.problems) == count
            assert all("ended the connection unanswered" in problem for problem in found.problems)
        server.join()


def test_executors_are_counted_in_the_order_of_the_file(
    street: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    meant_for_gpus(monkeypatch)
    monkeypatch.setattr(
        "edgebox.app.executor_setup.cuda_obstacle", lambda: "CUDA cannot be used: no GPU"
    )
    config = configured({"device": "auto"}, {"device": "cpu", "streams": 2, "threads": 1})
    with opened(config, [street]) as found:
        assert [each.id for each in found.executors] == ["cpu/0", "cpu/1", "cpu/2"]
        assert [bool(each.note) for each in found.executors] == [True, False, False]


def test_without_a_gpu_the_cpu_may_hold_what_is_imported_later(
    street: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "edgebox.app.executor_setup.cuda_obstacle", lambda: "CUDA cannot be used: no GPU"
    )
    with opened(configured({"device": "auto"}), [street]) as found:
        assert found.specs[found.executors[0].id].holds("imported later")
    with opened(configured({"device": "auto", "families": ["street"]}), [street]) as found:
        assert not found.specs[found.executors[0].id].holds("imported later")


def test_a_stand_in_takes_no_number_of_what_is_there(
    street: Family, two_gpus: list[tuple[str, int]]
) -> None:
    with opened(configured({"device": "auto"}, {"device": "cpu"}), [street]) as found:
        assert [each.id for each in found.executors] == ["cuda:0/0", "cuda:1/0", "cpu/0"]
        assert {spec.id for spec in found.cpu_fallbacks.values()} == {"cpu/1"}


def test_memory_is_shared_by_the_executors_of_a_device(street: Family) -> None:
    config = load(
        None,
        {
            "inference.memory_limit_mb": 300,
            "executors": [{"device": "cpu", "streams": 2}, {"device": "cpu"}],
        },
    )
    with opened(config, [street]) as found:
        assert [each.memory_limit_bytes for each in found.executors] == [100_000_000] * 3


def test_the_same_specification_opens_a_replacement(street: Family) -> None:
    config = configured({"device": "cpu", "threads": 1, "cores": [CORES[-1]]})
    with opened(config, [street]) as found:
        again = open_executor(found.specs[found.executors[0].id], [street])
        try:
            assert (again.id, again.cores) == ("cpu/0", (CORES[-1],))
            assert runs(again, street)
        finally:
            again.close()


def threads_by_name() -> dict[int, set[int]]:
    """Return where each thread of this process may run, as the kernel says."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has just ended
            found[int(task.name)] = os.sched_getaffinity(int(task.name))
    return found


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_threads_stay_on_their_cores(street: Family) -> None:
    before = set(threads_by_name())
    config = configured(
        {"device": "cpu", "cores": [CORES[0]]},
        {"device": "cpu", "cores": CORES[:2]},
        {"device": "cpu", "cores": [CORES[1]], "threads": 1},
    )
    with opened(config, [street]) as found:
        assert all(runs(executor, street) for executor in found.executors)
        new = {thread: on for thread, on in threads_by_name().items() if thread not in before}
        # An executor's own thread each, and what ONNX Runtime starts for the second one.
        assert sorted(map(sorted, new.values())) == sorted(
            [[CORES[0]], CORES[:2], CORES[:2], [CORES[1]]]
        )
        assert [each.cpu_threads for each in found.executors] == [1, 2, 1]
    assert os.sched_getaffinity(0) == set(CORES)
