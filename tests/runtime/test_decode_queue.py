"""Whose picture is decoded next: fairly by time, and never all threads to those who are slow."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import RequestId
from edgebox.runtime.decode_queue import SLOW_NS, Deferrable, FairQueue, Taken, decode_pool
from edgebox.runtime.frames import PendingFrame, one_shot_frame, one_shot_request
from tests.conftest import PATIENCE_S

MS = 1_000_000


def nothing(*_: object) -> None:
    """Work that is never run: the queue does not look into it."""


class Box:
    """A queue and its threads under virtual time."""

    def __init__(self, threads: int, takes_ms: dict[str, int]) -> None:
        self.queue = FairQueue(threads)
        self.threads = threads
        self.takes_ms = takes_ms
        self.now_ms = 0
        self.running: list[tuple[int, str, object]] = []
        self.waited_ms: dict[str, list[int]] = {sender: [] for sender in takes_ms}
        self.since: dict[Callable[[], None], tuple[str, int]] = {}

    def put(self, sender: str) -> None:
        work = Deferrable(nothing, lambda: False)
        self.since[work] = sender, self.now_ms
        self.queue.put(sender, work)
        self.fill()

    def fill(self) -> None:
        while len(self.running) < self.threads and (taken := self.queue.take()) is not None:
            sender, since_ms = self.since[taken.work]
            self.waited_ms[sender].append(self.now_ms - since_ms)
            self.running.append((self.now_ms + self.takes_ms[sender], sender, taken))

    def until(self, now_ms: int) -> None:
        """Let everything end that ends by then."""
        while self.running and min(self.running, key=lambda each: each[0])[0] <= now_ms:
            ended = min(self.running, key=lambda each: each[0])
            self.running.remove(ended)
            self.now_ms = max(self.now_ms, ended[0])
            self.queue.done(ended[2], self.takes_ms[ended[1]] * MS)  # type: ignore[arg-type]
            self.fill()
        self.now_ms = now_ms


def test_a_sender_of_slow_pictures_takes_nobody_elses_time() -> None:
    """First come, first served let the other wait for up to four seconds each time."""
    box = Box(2, {"hostile": 1_000, "gate": 5})
    box.put("gate")
    for at_ms in range(50, 20_000, 50):
        box.until(at_ms)
        box.put("hostile")
        box.put("gate")
    assert max(box.waited_ms["gate"]) <= 5
    assert len(box.waited_ms["gate"]) == 400


def test_who_is_not_known_yet_waits_for_one_slow_picture_at_most() -> None:
    box = Box(2, {"hostile": 1_000, "gate": 5})
    box.put("hostile")
    box.put("gate")
    box.until(20_000)
    assert box.waited_ms["gate"] == [1_000]


def test_many_slow_senders_leave_a_thread_to_the_others() -> None:
    slow = [f"hostile-{number}" for number in range(6)]
    box = Box(3, {**dict.fromkeys(slow, 800), "gate": 5})
    for at_ms in range(0, 30_000, 50):
        box.until(at_ms)
        for sender in slow:
            box.put(sender)
        box.put("gate")
    # One round on two threads, until the gate is known, and its own that piled up meanwhile.
    assert max(box.waited_ms["gate"][60:]) <= 5


def test_slow_senders_under_ever_new_names_leave_a_thread_to_who_is_known() -> None:
    names = [f"hostile-{number}" for number in range(400)]
    box = Box(2, {**dict.fromkeys(names, 1_000), "gate": 5})
    box.put("gate")
    for number, name in enumerate(names, start=1):
        box.until(number * 50)
        box.put(name)
        box.put("gate")
    assert max(box.waited_ms["gate"]) == 0
    assert len(box.waited_ms["gate"]) == 401


def test_one_sender_alone_has_all_threads_but_one() -> None:
    box = Box(4, {"gate": 10})
    for _ in range(4):
        box.put("gate")
    assert len(box.running) == 3


def test_slow_pictures_are_decoded_where_there_is_one_thread() -> None:
    box = Box(1, {"gate": 500})
    for _ in range(3):
        box.put("gate")
    box.until(5_000)
    assert box.waited_ms["gate"] == [0, 500, 1_000]


def test_a_sender_that_was_slow_once_is_trusted_again() -> None:
    queue = FairQueue(2)
    for took_ns in (16 * SLOW_NS, *[MS] * 5):
        queue.put("gate", deferred())
        taken = queue.take()
        assert taken is not None
        queue.done(taken, took_ns)
    for sender in ("slow", "slow", "gate"):
        queue.put(sender, deferred())
    slow = queue.take()
    assert slow is not None
    queue.done(slow, 16 * SLOW_NS)
    assert queue.take() is not None
    assert queue.take() is not None
    assert queue.take() is None


def test_having_sent_nothing_earns_nothing() -> None:
    box = Box(1, {"busy": 10, "late": 10})
    for at_ms in range(0, 10_000, 10):
        box.until(at_ms)
        box.put("busy")
    for _ in range(20):
        box.put("late")
        box.put("busy")
    before = {sender: len(waits) for sender, waits in box.waited_ms.items()}
    box.until(10_200)
    served = {sender: len(waits) - before[sender] for sender, waits in box.waited_ms.items()}
    assert abs(served["late"] - served["busy"]) <= 1


def picture_of(address: str, at_ms: int, deadline_ms: int, app: str = "http") -> PendingFrame:
    """Return the frame of a picture that a program sent."""
    request = one_shot_request(
        RequestId(at_ms), b"", (64, 64), VariantName("v"), app=app,
        now_ns=at_ms * MS, deadline_ms=deadline_ms,
    )  # fmt: skip
    return one_shot_frame(request, b"", lambda frame, ending: None, address)


@pytest.mark.parametrize(
    ("other", "before"),
    [
        ({"address": "10.0.0.2"}, 1),
        ({"address": "10.0.0.1", "app": "counter"}, 1),
        ({"address": "10.0.0.1", "deadline_ms": 100}, 0),
        ({"address": "10.0.0.1"}, 5),
    ],
    ids=["another address", "another application", "an earlier deadline", "the same program"],
)
def test_a_program_that_always_has_slow_pictures_waiting_keeps_no_other_program_waiting(
    other: dict[str, Any], before: int
) -> None:
    """The newest first of all programs' pictures let the other's never be decoded."""
    queue = FairQueue(2)
    decoded: list[str] = []

    def put(frame: PendingFrame, name: str) -> None:
        due_ns, app = frame.request.deadline_ns, frame.request.app
        work = Deferrable(lambda _: decoded.append(name), lambda: False, due_ns, app)
        queue.put(frame.sender, work)

    for at_ms in range(5):
        put(picture_of("10.0.0.1", at_ms, 1_000), "slow")
    put(picture_of(**{"at_ms": 5, "deadline_ms": 1_000} | other), "quick")
    for at_ms in range(6, 20):
        put(picture_of("10.0.0.1", at_ms, 1_000), "slow")
        taken = taken_from(queue)
        taken.work()
        queue.done(taken, 800 * MS if decoded[-1] == "slow" else MS)
    assert decoded.index("quick") == before


@pytest.mark.parametrize("renames", [False, True], ids=["one name", "ever new names"])
def test_a_program_gains_nothing_from_others_by_naming_ever_new_applications(renames: bool) -> None:
    """Nor by other addresses of its IPv6 network."""
    queue = FairQueue(2)
    decoded: list[str] = []

    def put(address: str, name: str, number: int) -> None:
        app = f"app-{number}" if renames and name == "slow" else "app"
        frame = picture_of(address, number, 60_000, app)
        due_ns = frame.request.deadline_ns
        work = Deferrable(lambda _: decoded.append(name), lambda: False, due_ns, app)
        queue.put(frame.sender, work)

    for number in range(40):
        put("2001:db8::1" if number % 2 else "2001:db8::2", "slow", number)
    for number in range(40, 60):
        put("10.0.0.2", "quick", number)
        taken = taken_from(queue)
        taken.work()
        queue.done(taken, 800 * MS if decoded[-1] == "slow" else MS)
        put("2001:db8::3", "slow", number)
    assert decoded.count("slow") <= 1


def deferred(over: bool = False) -> Deferrable:
    return Deferrable(nothing, lambda: over)


def taken(queue: FairQueue) -> list[object]:
    """Return all work that may be taken, in order; each ends before the next."""
    found: list[object] = []
    while (each := queue.take()) is not None:
        found.append(each.work)
        queue.done(each, MS)
    return found


def test_what_can_wait_waits_while_the_queue_is_held_and_the_rest_does_not() -> None:
    queue, picture = FairQueue(2), deferred()
    queue.put("gate", picture)
    queue.hold(True)
    queue.put("gate", nothing)
    assert taken(queue) == [nothing]
    queue.hold(False)
    assert taken(queue) == [picture]


def test_what_is_no_longer_wanted_is_never_taken() -> None:
    queue, wanted = FairQueue(2), deferred()
    for picture in (deferred(over=True), wanted, deferred(over=True)):
        queue.put("gate", picture)
    assert taken(queue) == [wanted]


def test_of_a_camera_with_too_many_pictures_the_newest_comes_first() -> None:
    queue = FairQueue(2)
    first, second, third, fourth = pictures = [deferred() for _ in range(4)]
    for picture in pictures:
        queue.put("gate", picture)
    assert taken(queue) == [fourth, third, first, second]
    assert [picture.behind for picture in pictures] == [False, True, True, True]


def test_of_a_programs_pictures_the_one_with_the_earliest_deadline_comes_first() -> None:
    queue = FairQueue(2)
    pictures = {due: Deferrable(nothing, lambda: False, due) for due in (3, 1, 4, 2)}
    for picture in pictures.values():
        queue.put("program", picture)
    assert taken(queue) == [pictures[due] for due in (1, 2, 3, 4)]


def test_threads_look_again_when_the_queue_is_held_no_more() -> None:
    queue, done = FairQueue(2), threading.Event()
    queue.hold(True)
    pool = decode_pool(2, queue=queue)
    pool.submit(Deferrable(lambda _: done.set(), lambda: False), "gate")
    pool.submit(nothing, "gate")
    assert not done.is_set()
    pool.change(lambda: queue.hold(False))
    assert done.wait(PATIENCE_S)
    pool.stop()


def test_a_machine_that_is_busy_with_other_things_makes_no_sender_slow() -> None:
    """Who is slow waits for a thread while another picture never ends."""
    now_ns, begun, released = [0], threading.Event(), threading.Event()

    def pass_a_second(_: Deferrable) -> None:
        now_ns[0] += 1_000 * MS

    def endless(_: Deferrable) -> None:
        begun.set()
        released.wait()

    pool = decode_pool(2, clock_ns=lambda: now_ns[0])
    for sender, work in (("gate", pass_a_second), ("hostile", endless)):
        pool.submit(Deferrable(work, lambda: False), sender)
    assert begun.wait(PATIENCE_S)
    done = threading.Event()
    pool.submit(done.set, "gate")
    assert done.wait(PATIENCE_S)
    released.set()
    pool.stop()


@given(
    threads=st.integers(1, 4),
    steps=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 200)), max_size=60),
    takes_ms=st.fixed_dictionaries({sender: st.integers(0, 300) for sender in "abc"}),
)
def test_everything_is_decoded_once_in_its_senders_order_and_no_thread_idles(
    threads: int, steps: list[tuple[str, int]], takes_ms: dict[str, int]
) -> None:
    box = Box(threads, takes_ms)
    for sender, pause_ms in steps:
        box.put(sender)
        box.until(box.now_ms + pause_ms)
        waiting = len(box.since) - sum(map(len, box.waited_ms.values()))
        if waiting:  # the last thread may be left to another
            assert len(box.running) >= max(1, threads - 1)
    box.until(10**9)
    assert {s: len(w) for s, w in box.waited_ms.items() if w} == Counter(s for s, _ in steps)


def test_idle_senders_are_forgotten() -> None:
    queue = FairQueue(1)
    for number in range(5_000):
        queue.put(number, nothing)
        taken = queue.take()
        assert taken is not None
        queue.done(taken, MS)
    assert len(queue._senders.by_name) <= 1_024


def test_idle_applications_are_forgotten() -> None:
    queue = FairQueue(1)
    overs = [False]
    for number in range(100):
        queue.put("a", Deferrable(nothing, lambda: overs[0], number, app=f"app-{number}"))
        queue.done(taken_from(queue), MS)
    queue.put("a", Deferrable(nothing, lambda: overs[0], 100, app="last"))
    (sender,) = queue._senders.by_name.values()
    assert len(sender.apps.by_name) == 1
    overs[0] = True
    assert queue.take() is None, "nobody waits for it any more"
    assert not sender.apps.by_name
    overs[0] = False
    queue.put("a", Deferrable(nothing, lambda: overs[0], 0, app="slow"))
    slow = taken_from(queue)
    for number in range(100):
        queue.put("a", Deferrable(nothing, lambda: overs[0], number, app=f"app-{number}"))
        queue._senders.by_name["a"].take()
    assert len(sender.apps.by_name) <= 33, "beside one that is decoded"
    queue.done(slow, MS)


def test_threads_run_what_is_submitted_and_survive_defects() -> None:
    pool = decode_pool(2)
    done = threading.Semaphore(0)

    def broken() -> None:
        done.release()
        raise ZeroDivisionError

    for sender in range(8):
        pool.submit(broken, sender)
    for _ in range(8):
        assert done.acquire(timeout=PATIENCE_S)
    pool.stop()
    pool.submit(done.release, "gate")
    assert not done.acquire(blocking=False)


def test_a_picture_that_is_being_decoded_does_not_keep_the_process() -> None:
    program = (
        "import threading\n"
        "from edgebox.runtime.decode_queue import decode_pool\n"
        "began, pool = threading.Event(), decode_pool(2)\n"
        "pool.submit(lambda: (began.set(), threading.Event().wait()), 'gate')\n"
        "began.wait()\n"
        "pool.stop()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE_S)


@pytest.mark.parametrize("quick", ["a cut", "a frame that had ended"])
def test_work_that_decodes_nothing_makes_no_sender_of_slow_pictures_quick(quick: str) -> None:
    queue = FairQueue(2)
    for sender in ("a", "b"):
        for _ in range(3):
            queue.put(sender, Deferrable(nothing, lambda: False))
            queue.done(taken_from(queue), 90 * MS)
            if quick == "a cut":
                queue.put(sender, nothing)
            else:
                queue.put(sender, Deferrable(nothing, lambda: False, skipped=True))
            queue.done(taken_from(queue), MS)
    for sender in ("a", "b"):
        queue.put(sender, Deferrable(nothing, lambda: False))
    assert queue.take() is not None
    assert queue.take() is None, "a thread stays in reserve for quick pictures"


def taken_from(queue: FairQueue) -> Taken:
    taken = queue.take()
    assert taken is not None
    return taken
