"""Families that an executor elsewhere is given while it runs."""

from collections.abc import Iterator

import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.inference.executor import blank_canvas
from edgebox.inference.executor_spec import open_executor
from edgebox.inference.family import Family
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.remote.http_connection import ServerAddress
from edgebox.inference.remote.open_inference_executor import OpenInferenceSpec
from edgebox.inference.zoo import load_family
from tests.end_to_end.protocol_server import ProtocolServer
from tests.end_to_end.test_residency import family_of_files


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> list[Family]:
    folder = tmp_path_factory.mktemp("families")
    return [
        load_family(family_of_files(folder / name, name, (96,)))
        for name in ("gate", "yard", "hall")
    ]


@pytest.fixture
def server(families: list[Family]) -> ProtocolServer:
    gate, yard, _ = families
    return ProtocolServer(
        {f"{of.name}_{of.name}-96": of.model_files[0].path for of in (gate, yard)}
    )


@pytest.fixture
def executor(families: list[Family], server: ProtocolServer) -> Iterator[ModelExecutor]:
    with server.serving():
        spec = OpenInferenceSpec(ExecutorId("x/0"), ServerAddress(server.url), "{family}_{variant}")
        opened = open_executor(spec, families[:1])
        yield opened
        server.running.set()
        opened.close()


def test_a_family_is_added_while_a_batch_runs(
    families: list[Family], server: ProtocolServer, executor: ModelExecutor
) -> None:
    gate, yard, _ = families
    server.running.clear()
    canvas = blank_canvas(gate.variants[0])
    running = executor.submit(gate.variants[0].name, [canvas], 1)
    executor.add_family(yard)
    assert executor.families == ("gate", "yard")
    assert not running.done()
    server.running.set()
    assert len(running.result().detections) == 1
    assert len(executor.submit(yard.variants[0].name, [canvas], 1).result().detections) == 1


def test_one_that_the_server_has_not_is_refused_and_changes_nothing(
    families: list[Family], executor: ModelExecutor
) -> None:
    with pytest.raises(ModelError, match="the server has no model 'hall_hall-96'"):
        executor.add_family(families[2])
    assert executor.families == ("gate",)
    assert not executor.is_loaded(VariantName("hall-96"))
