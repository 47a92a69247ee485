"""Executors in workers of a real Ray cluster: several node processes on this machine."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ray_cluster import RayCluster, ray_cluster
from edgebox.app import late_executors
from edgebox.app.composition import App
from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId
from edgebox.scheduling.supervised import ExecutorState
from tests.end_to_end.running import (
    assert_counts_agree,
    get_json,
    gone,
    post,
    running,
    streaming,
    texts,
    until,
)
from tests.end_to_end.streets import street_jpeg
from tests.end_to_end.test_live_models import imported
from tests.end_to_end.test_remote_executors import LOCAL, QUERY, burst

pytestmark = pytest.mark.usefixtures("no_other_families")

FIRST, SECOND, THIRD = (ExecutorId(f"ray:{number}/0") for number in range(3))


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster(2) as found:
        yield found


def workers(cluster: RayCluster, **keys: Any) -> dict[str, Any]:
    return {"kind": "ray", "address": cluster.address, **keys}


def is_up(app: App, executor: ExecutorId) -> bool:
    of = app.box.driver.scheduler.supervised.get(executor)
    return of is not None and of.state is ExecutorState.UP


def losses(app: App, executor: ExecutorId, cause: LossCause) -> int:
    return app.box.driver.scheduler.supervised[executor].losses[cause]


async def until_lost(app: App, executor: ExecutorId, cause: LossCause) -> None:
    while losses(app, executor, cause) < 1:
        assert set(await burst(app)) <= {200, 503}


async def test_workers_that_are_killed_or_hang_are_replaced_and_every_frame_is_counted(
    database: Path, gate: dict[str, Any], cluster: RayCluster, quick_supervision: None
) -> None:
    async with running(database, executors=[LOCAL, workers(cluster, count=2)], **gate) as app:
        await until(lambda: is_up(app, FIRST) and is_up(app, SECOND), "the workers")
        assert "ray" not in sys.modules
        _, state = await get_json(app, "/v1/state")
        assert sorted(each["id"] for each in state["box"]["executors"]) == ["cpu/0", FIRST, SECOND]
        before = cluster.workers()
        assert len(before) == 2
        async with streaming(app) as camera:
            for each in before:
                os.kill(each, signal.SIGKILL)
            for executor in (FIRST, SECOND):
                await until_lost(app, executor, LossCause.GONE)
            await until(lambda: is_up(app, FIRST) and is_up(app, SECOND), "other workers")
            after = cluster.workers()
            assert len(after) == 2
            assert not after & before
            for each in after:
                os.kill(each, signal.SIGSTOP)
            for executor in (FIRST, SECOND):
                await until_lost(app, executor, LossCause.HUNG)
            await until(lambda: is_up(app, FIRST) and is_up(app, SECOND), "still other workers")
            least = camera.summary().on_time + 3
            await until(lambda: camera.summary().on_time >= least, "answers")
        await gone(app, "bystander")
        assert_counts_agree(app, camera.summary())
    await until(lambda: not cluster.workers(), "the workers to end with their box")


async def test_what_workers_find_is_what_this_machine_finds_and_nodes_may_join(
    database: Path,
    tmp_path: Path,
    gate: dict[str, Any],
    cluster: RayCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(late_executors, "LOOK_EVERY_S", 0.2)
    async with running(tmp_path / "local.sqlite3", executors=[LOCAL], **gate) as app:
        _, wanted = await post(app, street_jpeg(3), QUERY)
    async with running(
        database,
        executors=[workers(cluster, count="all")],
        access__open_scope="admin",
        **gate,
    ) as app:
        status, found = await post(app, street_jpeg(3), QUERY)
        assert status == 200
        assert [each["label"] for each in found["detections"]]
        assert found["detections"] == wanted["detections"]
        assert not is_up(app, THIRD)
        cluster.add_node()
        await until(lambda: is_up(app, THIRD), "the worker on the new node")
        # Nodes of one kind are measured once.
        (first, third) = (app.box.profiles[each] for each in (FIRST, THIRD))
        assert {name: of.quantiles_ns for name, of in first.items()} == {
            name: of.quantiles_ns for name, of in third.items()
        }
        await imported(app)
        assert all(
            any(name.startswith("tiny-") for name in app.box.profiles[each])
            for each in (FIRST, SECOND, THIRD)
        )
        assert (await post(app, street_jpeg(3), {**QUERY, "family": "tiny"}))[0] == 200


async def test_a_cluster_that_cannot_be_used_costs_itself_alone(
    database: Path, gate: dict[str, Any], cluster: RayCluster
) -> None:
    tables = [
        LOCAL,
        {"kind": "ray", "address": "127.0.0.1:1"},
        workers(cluster, num_gpus=1.0),
        workers(cluster, resources=["line-3=1"], num_cpus=0.0, count="all"),
    ]
    async with running(database, executors=tables, **gate) as app:
        told = "\n".join(texts(app, "error"))
        assert "the Ray cluster at 127.0.0.1:1 cannot be used: " in told
        assert "num_gpus = 1: no node of the cluster has room for it" in told
        assert "executors follow when nodes join" in told
        status, _ = await post(app, street_jpeg(3), QUERY)
        assert status == 200


async def test_another_family_on_the_disk_than_the_box_serves_is_refused(
    database: Path, gate: dict[str, Any], cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = map(Path, gate["inference__families"])
    async with running(database, executors=[LOCAL], **gate) as app:
        (spec_of,) = {each.name for each in app.box.families.values()}
        assert spec_of == "gate"
        family = app.box.families[spec_of]
    model = folder / "gate-192.onnx"
    model.write_bytes(model.read_bytes() + b"\0")
    from edgebox.domain.errors import ModelError
    from edgebox.inference.remote.ray_executor import RaySpec

    with pytest.raises(ModelError, match=r"gate-192.onnx of the family gate has sha256 .* Start"):
        RaySpec(FIRST, cluster.address).open([family], score_floor=0.05)
