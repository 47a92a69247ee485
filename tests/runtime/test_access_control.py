"""Who may do what: tokens, sessions, pairing codes, and how often one may be wrong."""

import asyncio
import logging
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.access import (
    GRANTS,
    ForbiddenError,
    Identity,
    OpenTo,
    Scope,
    TooManyAttemptsError,
    UnauthorizedError,
)
from edgebox.domain.errors import InvalidInputError, StorageError, UnknownNameError
from edgebox.domain.requests import CameraId
from edgebox.fleet.replicated_settings import TOKEN, ReplicatedSettings, SettingKey
from edgebox.runtime import access_control
from edgebox.runtime.access_control import (
    SESSION_S,
    AccessControl,
    LastAdministratorError,
    TokenLimitError,
    new_token,
    token_document,
)
from edgebox.runtime.attempt_limiter import ATTEMPTS_MAX, AttemptLimiter
from edgebox.runtime.pairings import LIFE_S, PairingError, Pairings
from edgebox.storage.access_store import REVOKED_KEPT_MS, AccessStore, Stored
from edgebox.storage.database import IN_MEMORY
from tests.conftest import PATIENCE_S

GATE, DOOR = CameraId("gate"), CameraId("door")
HOME = "192.0.2.7"


class Clock:
    def __init__(self) -> None:
        self.ns = 10**18

    def __call__(self) -> int:
        return self.ns

    def ms(self) -> int:
        return self.ns // 1_000_000

    def forward(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9)


def contains(file: str, text: str) -> bool:
    return text.encode() in Path(file).read_bytes()


def names_in(folder: Path) -> list[str]:
    return sorted(each.name.partition("-")[0] for each in folder.iterdir())


async def access_of(
    clock: Clock, file: str = IN_MEMORY, open_to: OpenTo = OpenTo.NOBODY
) -> AccessControl:
    access = AccessControl(AccessStore(file), open_to=open_to, clock_ns=clock, now_ms=clock.ms)
    assert await access.load() == ""
    return access


def test_a_wider_scope_grants_what_a_narrower_one_does() -> None:
    for scope, granted in GRANTS.items():
        assert scope in granted
        for narrower in granted:
            assert GRANTS[narrower] <= granted
    assert GRANTS[Scope.ADMIN] == set(Scope)
    assert Scope.CAMERA not in GRANTS[Scope.VIEWER]


async def test_a_token_is_known_by_its_text_only(tmp_path: Path) -> None:
    clock, file = Clock(), str(tmp_path / "a.db")
    access = await access_of(clock, file)
    token, text = await access.issue("Ann", Scope.VIEWER, None)
    found = access.by_token(text)
    assert found == Identity(Scope.VIEWER, None, token)
    for wrong in ("", text[:-1], text + "x", token.id, token.sha256, "\ud800"):
        assert access.by_token(wrong) is None
    assert not contains(file, text)
    assert "sha256" not in token_document(token)
    again = await access_of(clock, file)
    assert again.by_token(text) == found


async def test_when_a_token_was_used_is_kept(tmp_path: Path) -> None:
    clock, file = Clock(), str(tmp_path / "a.db")
    access = await access_of(clock, file)
    _, text = await access.issue("Ann", Scope.VIEWER, None)
    assert access.tokens[0].last_used_ms is None
    clock.forward(5)
    access.by_token(text)
    assert access.tokens[0].last_used_ms == clock.ms()
    await access.close()
    assert (await access_of(clock, file)).tokens[0].last_used_ms == clock.ms()


async def test_a_revoked_token_ends_its_sessions() -> None:
    access = await access_of(Clock())
    await access.issue("Ann", Scope.ADMIN, None)
    token, text = await access.issue("Bob", Scope.VIEWER, None)
    identity, cookie = await access.log_in(text, HOME)
    assert access.by_session(cookie) == identity
    assert access.is_valid(identity)
    changes = []
    access.on_change = lambda: changes.append(access.is_valid(identity))
    await access.revoke(token.id)
    assert changes == [False]
    assert access.by_session(cookie) is None
    assert access.by_token(text) is None
    with pytest.raises(UnknownNameError):
        await access.revoke(token.id)


async def test_a_session_ends_with_logging_out_and_with_time() -> None:
    clock = Clock()
    access = await access_of(clock)
    _, text = await access.issue("Bob", Scope.VIEWER, None)
    first, cookie = await access.log_in(text, HOME)
    _, other = await access.log_in(f" {text}\n", HOME)  # as people paste it
    await access.log_out(first)
    assert access.by_session(cookie) is None
    assert not access.is_valid(first)
    assert access.by_session(other) is not None
    clock.forward(SESSION_S)
    assert access.by_session(other) is None


async def test_the_connections_of_an_expired_session_end_with_it() -> None:
    clock = Clock()
    access = await access_of(clock)
    _, text = await access.issue("Bob", Scope.VIEWER, None)
    first, _ = await access.log_in(text, HOME)
    clock.forward(10)
    second, _ = await access.log_in(text, HOME)
    changes = []
    access.on_change = lambda: changes.append((access.is_valid(first), access.is_valid(second)))
    clock.forward(SESSION_S - 10.001)
    await access.follow()
    assert changes == []
    clock.forward(0.001)
    await access.follow()
    await access.follow()
    assert changes == [(False, True)]
    clock.forward(10)
    await access.follow()
    assert changes == [(False, True), (False, False)]


async def test_a_session_ends_with_its_time_while_the_file_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    access = await access_of(clock)
    _, text = await access.issue("Bob", Scope.VIEWER, None)
    identity, _ = await access.log_in(text, HOME)
    changes = []
    access.on_change = lambda: changes.append(access.is_valid(identity))

    def unreadable(*_: object) -> None:
        raise StorageError("the file of tokens cannot be used")

    monkeypatch.setattr(access._store, "version", unreadable)
    monkeypatch.setattr(access._store, "load", unreadable)
    clock.forward(SESSION_S)
    for _ in range(2):
        with pytest.raises(StorageError):
            await access.follow()
    assert changes == [False]


async def test_the_last_administrator_stays() -> None:
    clock = Clock()
    access = await access_of(clock)
    text = await access.ensure_administrator()
    assert text is not None
    assert await access.ensure_administrator() is None
    identity = access.by_token(text)
    assert identity is not None
    assert identity.may(Scope.ADMIN)
    with pytest.raises(LastAdministratorError):
        await access.revoke(access.tokens[0].id)
    clock.forward(1)
    other, _ = await access.issue("Ann", Scope.ADMIN, None)
    await access.revoke(access.tokens[0].id)
    assert [token.id for token in access.tokens] == [other.id]


@pytest.mark.parametrize(("scope", "camera"), [(Scope.CAMERA, None), (Scope.VIEWER, GATE)])
async def test_only_cameras_tokens_have_a_camera(scope: Scope, camera: CameraId | None) -> None:
    access = await access_of(Clock())
    with pytest.raises(InvalidInputError):
        await access.issue("x", scope, camera)


async def test_who_needs_no_login() -> None:
    closed = await access_of(Clock())
    assert closed.without_login(from_loopback=True) is None
    loopback = await access_of(Clock(), open_to=OpenTo.LOOPBACK)
    assert loopback.without_login(from_loopback=False) is None
    assert loopback.without_login(from_loopback=True) == Identity(Scope.OPERATOR)
    everybody = await access_of(Clock(), open_to=OpenTo.EVERYBODY)
    assert everybody.without_login(from_loopback=False) == Identity(Scope.OPERATOR)


async def test_a_name_belongs_to_its_token() -> None:
    access = await access_of(Clock(), open_to=OpenTo.EVERYBODY)
    anybody = access.without_login(from_loopback=False)
    assert anybody is not None
    access.check_publisher(anybody, GATE)
    _, text = await access.issue("gate", Scope.CAMERA, GATE)
    gate = access.by_token(text)
    assert gate is not None
    access.check_publisher(gate, GATE)
    access.check_publisher(anybody, DOOR)
    with pytest.raises(ForbiddenError, match="belongs to a camera"):
        access.check_publisher(anybody, GATE)
    with pytest.raises(ForbiddenError, match="is of the camera gate"):
        access.check_publisher(gate, DOOR)


async def test_a_pairing_code_works_once() -> None:
    access = await access_of(Clock())
    code = access.begin_pairing(GATE).shown
    token, text = await access.pair(code.lower(), GATE, HOME)
    assert (token.scope, token.camera, token.name) == (Scope.CAMERA, GATE, "gate")
    assert access.by_token(text) is not None
    with pytest.raises(PairingError):
        await access.pair(code, GATE, HOME)


async def test_pairing_again_replaces_the_token_if_the_code_names_the_camera() -> None:
    access = await access_of(Clock())
    _, old = await access.pair(access.begin_pairing(GATE).shown, GATE, HOME)
    anyone = access.begin_pairing(None).shown
    with pytest.raises(ForbiddenError):  # else a code for a new camera could take an old one's name
        await access.pair(anyone, GATE, HOME)
    assert access.by_token(old) is not None
    await access.pair(anyone, DOOR, HOME)  # the code was not used up
    await access.pair(access.begin_pairing(GATE).shown, GATE, HOME)
    assert access.by_token(old) is None


async def test_of_two_that_pair_under_one_name_at_once_one_gets_it() -> None:
    access = AccessControl(AccessStore(IN_MEMORY))
    codes = [access.begin_pairing(None).shown for _ in range(2)]
    paired = await asyncio.gather(
        *(access.pair(code, GATE, HOME) for code in codes), return_exceptions=True
    )
    (token, text) = next(each for each in paired if isinstance(each, tuple))
    assert [type(each) for each in paired if each != (token, text)] == [ForbiddenError]
    assert access.by_token(text) is not None
    await access.pair(codes[1], DOOR, HOME)  # the code was not used up


async def test_tokens_that_are_made_at_once_are_no_more_than_there_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access_control, "TOKENS_MAX", 1)
    access = AccessControl(AccessStore(IN_MEMORY))
    made = await asyncio.gather(
        *(access.issue("x", Scope.VIEWER, None) for _ in range(2)), return_exceptions=True
    )
    assert sorted(isinstance(each, TokenLimitError) for each in made) == [False, True]


async def test_a_browser_is_paired_with_a_cookie() -> None:
    access = await access_of(Clock())
    identity, cookie = await access.pair_browser(access.begin_pairing(None).shown, GATE, HOME)
    assert identity.camera == GATE
    assert access.by_session(cookie) == identity


def test_codes_expire_and_are_for_their_camera() -> None:
    clock = Clock()
    pairings = Pairings(clock)
    code = pairings.begin(GATE).code
    with pytest.raises(PairingError, match="is for the camera gate, not for door"):
        pairings.take(code, DOOR)
    clock.forward(LIFE_S)
    with pytest.raises(PairingError, match="expired"):
        pairings.take(code, GATE)


def test_too_many_wrong_codes_end_all() -> None:
    pairings = Pairings(Clock())
    code = pairings.begin(None).code
    for _ in range(100):
        with pytest.raises(PairingError):
            pairings.take("WRONGONE", GATE)
    with pytest.raises(PairingError):
        pairings.take(code, GATE)
    pairings.take(pairings.begin(None).code, GATE)


def test_wrong_codes_of_earlier_do_not_count_against_a_new_one() -> None:
    pairings = Pairings(Clock())
    for _ in range(99):
        with pytest.raises(PairingError):
            pairings.take("WRONGONE", GATE)
    code = pairings.begin(None).code
    with pytest.raises(PairingError):
        pairings.take("WRONGONE", GATE)
    assert pairings.take(code, GATE).code == code


async def test_a_camera_gets_another_token_where_there_are_as_many_as_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    access = await access_of(Clock())
    monkeypatch.setattr(access_control, "TOKENS_MAX", len(access.tokens) + 1)
    _, old = await access.issue("gate", Scope.CAMERA, GATE)
    _, new = await access.issue("gate", Scope.CAMERA, GATE)
    assert old != new
    with pytest.raises(TokenLimitError):
        await access.issue("door", Scope.CAMERA, DOOR)


async def test_wrong_logins_are_limited_by_address() -> None:
    clock = Clock()
    access = await access_of(clock)
    _, text = await access.issue("Ann", Scope.VIEWER, None)
    for _ in range(ATTEMPTS_MAX):
        with pytest.raises(UnauthorizedError):
            await access.log_in("edgebox_guess", HOME)
    with pytest.raises(TooManyAttemptsError, match="try again in 6 s"):
        await access.log_in("wrong", HOME)
    await access.log_in(text, HOME)  # who has a token is not kept out by others
    with pytest.raises(TooManyAttemptsError):
        await access.pair(access.begin_pairing(None).shown, GATE, HOME)
    await access.log_in(text, "192.0.2.8")
    assert access.by_token(text) is not None  # who has a token is not kept out
    clock.forward(6)
    await access.log_in(text, HOME)


@given(st.lists(st.tuples(st.floats(0, 30), st.booleans()), max_size=60))
def test_no_address_is_wrong_more_often_than_it_may_be(events: list[tuple[float, bool]]) -> None:
    clock, failures = Clock(), []
    limiter = AttemptLimiter(clock)
    for wait_s, attempt in events:
        clock.forward(wait_s)
        if not attempt:
            continue
        try:
            limiter.check(HOME)
        except TooManyAttemptsError:
            continue
        limiter.failed(HOME)
        failures.append(clock())
    for began in failures:
        within = [at for at in failures if began <= at < began + 60_000_000_000]
        assert len(within) <= 2 * ATTEMPTS_MAX


async def test_commands_change_a_running_box(tmp_path: Path) -> None:
    clock, file = Clock(), str(tmp_path / "a.db")
    access = await access_of(clock, file)
    command = await access_of(clock, file)
    _, text = await command.issue("Ann", Scope.ADMIN, None)
    assert access.by_token(text) is None
    await access.follow()
    assert access.by_token(text) is not None


async def test_what_is_revoked_replaced_or_gone_with_its_file_is_known_as_that(
    tmp_path: Path,
) -> None:
    clock, file = Clock(), str(tmp_path / "a.db")
    access = await access_of(clock, file)
    ann, _ = await access.issue("Ann", Scope.VIEWER, None)
    old, _ = await access.issue("gate", Scope.CAMERA, GATE)
    gate, _ = await access.issue("gate", Scope.CAMERA, GATE)
    assert access.revoked == {old.id: clock.ms()}
    command = await access_of(clock, file)
    await command.revoke(ann.id)
    await access.follow()
    assert access.revoked.keys() == {old.id, ann.id}
    assert access.revoked == (await access_of(clock, file)).revoked
    other = str(tmp_path / "b.db")
    await (await access_of(clock, other)).issue("Ben", Scope.ADMIN, None)
    (tmp_path / "b.db").rename(file)
    await access.follow()
    assert access.revoked.keys() == {old.id, ann.id, gate.id}
    clock.forward(REVOKED_KEPT_MS / 1e3)
    await access.issue("Cid", Scope.VIEWER, None)
    assert access.revoked == {}


@pytest.mark.parametrize("how", ["revoked", "paired anew", "gone with its file"])
async def test_other_boxes_know_of_a_token_that_was_revoked_while_the_clock_was_behind(
    tmp_path: Path, how: str
) -> None:
    """A board without a battery for its clock is in 1970 until it has asked for the time."""
    clock, file = Clock(), str(tmp_path / "a.db")
    access = await access_of(clock, file)
    await access.issue("Ann", Scope.ADMIN, None)
    gate, text = await access.issue("gate", Scope.CAMERA, GATE)
    clock.forward(40 * 86_400)  # it is revoked long after it was made, and shortly after its use
    assert access.by_token(text) is not None
    await access.close()
    right_ns, clock.ns = clock.ns, 60 * 10**9
    access = await access_of(clock, file)
    assert access.by_token(text) is not None
    await access.close()
    if how == "revoked":
        await access.revoke(gate.id)
    elif how == "paired anew":
        await access.issue("gate", Scope.CAMERA, GATE)
    else:
        other = str(tmp_path / "b.db")
        AccessStore(other).add(new_token("Ben", Scope.ADMIN, None, clock.ms())[0])
        (tmp_path / "b.db").rename(file)
        await access.follow()
    here, there = ReplicatedSettings(), ReplicatedSettings()
    here.revoke(access.revoked, "here", clock.ms())
    clock.ns = right_ns + 60 * 10**9
    revisions = {key: setting.revision for key, setting in here.settings.items()}
    assert SettingKey(CameraId(gate.id), TOKEN) in there.to_fetch(revisions, clock.ms())
    there.take(here.settings, clock.ms())
    here.forget_old(clock.ms())
    await access.issue("Cid", Scope.VIEWER, None)
    assert gate.id in access.revoked
    assert here.is_revoked(gate.id)
    assert there.is_revoked(gate.id)


async def test_a_fleet_knows_what_was_revoked_while_the_clock_was_behind() -> None:
    clock = Clock()
    access = await access_of(clock)
    await access.issue("Ann", Scope.ADMIN, None)
    gate, _ = await access.issue("gate", Scope.CAMERA, GATE)
    clock.forward(40 * 86_400)
    access.shown(gate.id)  # a ticket was given to its camera, which is still connected
    now_ns, clock.ns = clock.ns, 60 * 10**9  # a board without a battery, until NTP has answered
    await access.close()
    await access.revoke(gate.id)
    here, there = ReplicatedSettings(), ReplicatedSettings()
    here.revoke(access.revoked, "here", clock.ms())
    clock.ns = now_ns
    clock.forward(60)
    revisions = {key: setting.revision for key, setting in here.settings.items()}
    assert there.to_fetch(revisions, clock.ms()) == [*here.settings]
    there.take(here.settings, clock.ms())
    assert there.is_revoked(gate.id)
    here.forget_old(clock.ms())
    await access.issue("Ben", Scope.VIEWER, None)
    here.revoke(access.revoked, "here", clock.ms())
    assert here.is_revoked(gate.id)


@pytest.mark.parametrize("how", ["revoked", "paired anew"])
async def test_a_revoked_token_counts_from_a_use_that_could_not_be_stored(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def full(store: AccessStore, last_used_ms: object) -> None:
        raise StorageError("the disk is full")

    clock = Clock()
    access = await access_of(clock)
    await access.issue("Ann", Scope.ADMIN, None)
    gate, text = await access.issue("gate", Scope.CAMERA, GATE)
    clock.forward(40 * 86_400)
    assert access.by_token(text) is not None
    used_ms = clock.ms()
    with monkeypatch.context() as broken:
        broken.setattr(AccessStore, "used", full)
        await access.close()
    clock.ns = 60 * 10**9  # behind, until NTP has answered
    if how == "revoked":
        await access.revoke(gate.id)
    else:
        await access.issue("gate", Scope.CAMERA, GATE)
    assert access.revoked == {gate.id: used_ms}


async def test_a_token_is_noted_as_shown_once_an_hour_and_not_by_a_clock_that_is_behind() -> None:
    clock = Clock()
    access = await access_of(clock)
    gate, _ = await access.issue("gate", Scope.CAMERA, GATE)
    noted = []
    for wait_s in (0, 60, 3_540, 3_599, 1, -7_200):
        clock.forward(wait_s)
        access.shown(gate.id)
        noted.append(access.tokens[0].last_used_ms)
    began_ms = noted[0]
    assert began_ms is not None
    assert noted == [began_ms + 3_600_000 * hours for hours in (0, 0, 1, 1, 2, 2)]
    access.shown("nobody's")


async def test_a_damaged_file_is_renamed(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    file.write_bytes(b"nothing that SQLite knows" * 100)
    access = AccessControl(AccessStore(str(file)))
    assert "is damaged (file is not a database): it is now a.db.corrupt-" in await access.load()
    assert await access.ensure_administrator() is not None
    assert names_in(tmp_path) == ["a.db", "a.db.corrupt"]


async def test_tokens_outlive_their_file_while_the_box_runs(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    access = await access_of(Clock(), str(file))
    _, text = await access.issue("Ann", Scope.ADMIN, None)
    file.unlink()
    for change in (access.follow(), access.issue("Ben", Scope.VIEWER, None)):
        with pytest.raises(StorageError, match="was deleted or emptied"):
            await change
    assert access.by_token(text) is not None
    await (await access_of(Clock(), str(file))).issue("Ben", Scope.ADMIN, None)
    await access.follow()
    assert access.by_token(text) is None, "another file counts"


async def test_two_administrators_do_not_revoke_each_other_at_once() -> None:
    access = await access_of(Clock())
    for name in ("anna", "ben"):
        await access.issue(name, Scope.ADMIN, None)
    ids = [token.id for token in access.tokens]
    found = await asyncio.gather(*map(access.revoke, ids), return_exceptions=True)
    assert [type(each) for each in found] == [type(None), LastAdministratorError]
    assert len(access.tokens) == 1


class SlowStore(AccessStore):
    """A file of which one reading takes long."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.slow = False
        self.has_read, self.may_end = threading.Event(), threading.Event()

    def load(self, now_ms: int) -> Stored:
        found = super().load(now_ms)
        if self.slow:
            self.slow = False
            self.has_read.set()
            self.may_end.wait(PATIENCE_S)
        return found


async def test_what_was_read_before_a_change_does_not_undo_it(tmp_path: Path) -> None:
    clock, file = Clock(), str(tmp_path / "a.db")
    store = SlowStore(file)
    access = AccessControl(store, clock_ns=clock, now_ms=clock.ms)
    await access.load()
    AccessStore(file).add(new_token("by a command", Scope.VIEWER, None, clock.ms())[0])
    store.slow = True
    following = asyncio.ensure_future(access.follow())
    await asyncio.to_thread(store.has_read.wait, PATIENCE_S)
    issuing = asyncio.ensure_future(access.issue("on the page", Scope.VIEWER, None))
    await asyncio.wait({issuing}, timeout=0.2)
    store.may_end.set()
    await following
    _, text = await issuing
    assert access.by_token(text) is not None


async def test_a_file_that_cannot_be_read_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    access = await access_of(Clock())
    looks = asyncio.Semaphore(0)

    async def follow() -> None:
        looks.release()
        raise StorageError("the file of tokens cannot be used")

    monkeypatch.setattr(access_control, "_RELOAD_PERIOD_S", 0.001)
    monkeypatch.setattr(access, "follow", follow)
    with caplog.at_level(logging.WARNING):
        following = asyncio.ensure_future(access.run())
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(5):
                await looks.acquire()
        following.cancel()
    assert caplog.messages == ["the file of tokens cannot be used"]
