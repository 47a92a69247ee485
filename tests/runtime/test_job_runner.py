"""Jobs: one at a time, each with its progress, and an end whatever comes of it."""

import asyncio

import pytest

from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.runtime.job_runner import JOBS_KEPT, BusyError, Finished, Job, Jobs


async def ended(jobs: Jobs, job: Job) -> None:
    while job.state == "running":  # noqa: ASYNC110 - a turn of the loop, not a wait
        await asyncio.sleep(0)


async def test_a_job_tells_how_far_it_is_and_what_came_of_it() -> None:
    jobs = Jobs()
    go_on = asyncio.Event()

    async def work(job: Job) -> Finished:
        job.progress("measuring", 0.4)
        await go_on.wait()
        return Finished("measured", ("it was hot",))

    job = jobs.start("profile", "street", work)
    await asyncio.sleep(0)
    assert (job.state, job.text, job.share, job.ended_ms) == ("running", "measuring", 0.4, None)
    go_on.set()
    await ended(jobs, job)
    assert (job.state, job.text, job.share) == ("done", "measured", 1.0)
    assert job.remarks == ("it was hot",)
    assert job.ended_ms is not None
    assert job.ended_ms >= job.started_ms
    assert job.error is None


async def test_another_job_is_refused_while_one_runs() -> None:
    jobs = Jobs()
    go_on = asyncio.Event()

    async def work(job: Job) -> Finished:
        await go_on.wait()
        return Finished("done")

    first = jobs.start("import", "gate", work)
    with pytest.raises(BusyError, match=r"gate is being imported \(job 1\)"):
        jobs.start("profile", "street", work)
    assert jobs.all == [first]
    go_on.set()
    await ended(jobs, first)
    second = jobs.start("profile", "street", work)
    assert jobs.all == [second, first]
    await ended(jobs, second)


async def test_a_failure_is_kept_and_a_defect_tells_nothing_internal() -> None:
    jobs = Jobs()

    async def refused(job: Job) -> Finished:
        raise ModelError("it is no model")

    async def broken(job: Job) -> Finished:
        raise ZeroDivisionError("a secret")

    for work, kind, text in (
        (refused, ModelError, "it is no model"),
        (broken, EdgeboxError, "the box's log says why"),
    ):
        job = jobs.start("import", "gate", work)
        await ended(jobs, job)
        assert job.state == "failed"
        assert type(job.error) is kind
        assert str(job.error) == text


async def test_a_stop_ends_the_running_job_and_waits_for_it() -> None:
    jobs = Jobs()
    cleared: list[str] = []

    async def work(job: Job) -> Finished:
        try:
            await asyncio.Event().wait()
        finally:
            cleared.append("away")
        return Finished("never")

    job = jobs.start("import", "gate", work)
    await asyncio.sleep(0)
    await jobs.stop()
    assert cleared == ["away"]
    assert job.ended_ms is not None
    await jobs.stop()


async def test_only_the_last_jobs_are_remembered() -> None:
    jobs = Jobs()

    async def work(job: Job) -> Finished:
        return Finished("done")

    for _ in range(JOBS_KEPT + 5):
        await ended(jobs, jobs.start("profile", "street", work))
    assert [job.id for job in jobs.all] == list(range(JOBS_KEPT + 5, 5, -1))
