"""Decides who sent a request, issues and revokes tokens, pairs cameras.

Lives on the event loop; the file is read and written in threads. Tokens and cookies are random
texts of 256 bits, of which only a SHA-256 hash is kept.
"""

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from edgebox.domain.access import (
    ForbiddenError,
    Identity,
    Login,
    OpenTo,
    Scope,
    Token,
    UnauthorizedError,
)
from edgebox.domain.errors import EdgeboxError, InvalidInputError, StorageError, UnknownNameError
from edgebox.domain.requests import CameraId
from edgebox.runtime.attempt_limiter import AttemptLimiter
from edgebox.runtime.pairings import Pairing, Pairings
from edgebox.storage.access_store import REVOKED_KEPT_MS, AccessStore, Stored, StoredSession
from edgebox.storage.connecting import DamagedError
from edgebox.storage.wall_clock import wall_clock_ms

_log = logging.getLogger(__name__)

TOKENS_MAX = 10_000
SESSION_S = 30 * 86_400
"""Seconds for which a browser stays logged in."""
CAMERA_SESSION_S = 400 * 86_400
"""The same for a browser that is a camera: as long as browsers keep a cookie."""
_PREFIX = "edgebox_"
"""Begins every token, so that people and scanners for secrets recognise one."""
_RELOAD_PERIOD_S = 1.0
_USED_PERIOD_S = 60.0
_SHOWN_PERIOD_MS = 3_600_000
"""How exactly it is known when a ticket was given for a token; what is revoked is known for a day
longer than tickets are valid."""


class TokenLimitError(EdgeboxError):
    """The box keeps no more tokens."""

    http_status = 409
    code = "too_many_tokens"
    title = "There are too many tokens"


class LastAdministratorError(EdgeboxError):
    """Without this token nobody could manage the box over HTTP."""

    http_status = 409
    code = "last_administrator"
    title = "It is the last administrator's token"


def new_token(name: str, scope: Scope, camera: CameraId | None, now_ms: int) -> tuple[Token, str]:
    """Return a token and its text, which nobody can find out later.

    Raises:
        InvalidInputError: tokens of the scope `camera` need a camera, others have none.
    """
    if (scope is Scope.CAMERA) != (camera is not None):
        raise InvalidInputError(
            "a token of the scope camera needs the name of its camera"
            if camera is None
            else f"a token of the scope {scope} is for no single camera"
        )
    text = _PREFIX + secrets.token_urlsafe(32)
    return Token(secrets.token_hex(4), name, scope, camera, _hash(text), now_ms), text


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


class Tickets(Protocol):
    """What boxes of a fleet give cameras to show each other in place of a token."""

    def read(self, ticket: str) -> tuple[CameraId, Login] | None:
        """Return the camera of a valid ticket, and its login; None: it is not valid."""

    def allows(self, login: Login) -> bool:
        """Say whether what descends from a login is valid."""


class AccessControl:
    """The tokens, browser sessions and pairing codes of one box."""

    def __init__(
        self,
        store: AccessStore,
        *,
        open_to: OpenTo = OpenTo.NOBODY,
        open_scope: Scope = Scope.OPERATOR,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        """Use `load` next.

        Args:
            store: the file.
            open_to: who needs no login.
            open_scope: what these may do.
            clock_ns: a monotonic clock.
            now_ms: the wall clock, in Unix milliseconds.
        """
        self.open_to = open_to
        self._anonymous = Identity(open_scope)
        self._store = store
        self._changing = asyncio.Lock()
        """Held while the file is written or read again: what was read before a change must not take
        the place of what was read after it."""
        self._now_ms = now_ms
        self._version: object = None
        self._tokens: dict[str, Token] = {}
        """By the hash of their text."""
        self._by_id: dict[str, Token] = {}
        self._owners: dict[CameraId, Token] = {}
        self._sessions: dict[str, StoredSession] = {}
        self._gone_ms: dict[str, int] = {}
        """When tokens were found gone from the file, by id; as in `Stored.revoked`."""
        self._used_ms: dict[str, int] = {}
        """When tokens were used since that was stored last, by id."""
        self._pairings = Pairings(clock_ns)
        self.attempts = AttemptLimiter(clock_ns)
        self.tickets: Tickets | None = None
        """Of the fleet; None: the box is alone."""
        self.revoked: Mapping[str, int] = {}
        """When tokens were revoked or replaced in the last weeks, or found gone with their file, by
        id: Unix milliseconds, and not before they were used last."""
        self.on_change: Callable[[], None] = lambda: None
        """Called after tokens or sessions have changed."""

    @property
    def is_open(self) -> bool:
        """Whether somebody needs no login."""
        return self.open_to is not OpenTo.NOBODY

    async def load(self) -> str:
        """Read the file; return a warning for people if it was damaged, and set aside.

        Raises:
            StorageError: it cannot be read; the message says what to do.
        """
        try:
            await self._reload()
        except DamagedError as error:
            aside = await asyncio.to_thread(self._store.rename_damaged)
            await self._reload()
            return (
                f"the file of tokens {error.path} is damaged ({error.reason}): it is now "
                f"{aside.name}. Everybody needs a new token"
            )
        return ""

    async def run(self) -> None:
        """Follow changes that commands make to the file, and store when tokens were used."""
        stored_s, said = time.monotonic(), ""
        while True:
            await asyncio.sleep(_RELOAD_PERIOD_S)
            try:
                await self.follow()
                if time.monotonic() - stored_s >= _USED_PERIOD_S:
                    stored_s = time.monotonic()
                    await self._store_used()
            except StorageError as error:
                if said != (said := str(error)):
                    _log.warning("%s", error)
            else:
                said = ""

    async def follow(self) -> None:
        """Read the file again if another process has changed it or a session has expired.

        Raises:
            StorageError: it cannot be read.
        """
        async with self._changing:
            now_ms = self._now_ms()
            lasting = {
                sha256: of for sha256, of in self._sessions.items() if of.expires_ms > now_ms
            }
            if len(lasting) < len(self._sessions):  # also while the file cannot be read
                self._sessions = lasting
                self.on_change()
            if await asyncio.to_thread(self._store.version) != self._version:
                await self._reload()

    async def close(self) -> None:
        """Store when tokens were used."""
        try:
            await self._store_used()
        except StorageError as error:
            _log.warning("%s", error)

    async def _store_used(self) -> None:
        if self._used_ms:
            used = dict(self._used_ms)
            await self._write(self._store.used, used)
            self._used_ms = {  # what has come meanwhile
                id_: ms for id_, ms in self._used_ms.items() if used.get(id_) != ms
            }

    # -- who it is -----------------------------------------------------------------------------

    def by_token(self, text: str) -> Identity | None:
        """Return the identity of who has a token; None: there is no such token."""
        token = self._tokens.get(_hash(text))
        return None if token is None else self._identity(token)

    def by_ticket(self, text: str) -> Identity | None:
        """Return the identity of a camera that another box of the fleet has sent here."""
        found = None if self.tickets is None else self.tickets.read(text)
        if found is None:
            return None
        camera, login = found
        return Identity(Scope.CAMERA, camera, login=login)

    def by_session(self, cookie: str) -> Identity | None:
        """Return the identity of who has a session's cookie; None: there is no such session."""
        session = self._sessions.get(_hash(cookie))
        if session is None or session.expires_ms <= self._now_ms():
            return None
        token = self._by_id.get(session.token)
        return None if token is None else self._identity(token, session.sha256)

    def without_login(self, *, from_loopback: bool) -> Identity | None:
        """Return the identity of who has neither; None: a login is needed."""
        is_open = self.open_to is OpenTo.EVERYBODY or (
            self.open_to is OpenTo.LOOPBACK and from_loopback
        )
        return self._anonymous if is_open else None

    def is_valid(self, identity: Identity) -> bool:
        """Return whether an identity's token and session still exist, or its ticket's login."""
        if identity.login is not None:
            return self.tickets is not None and self.tickets.allows(identity.login)
        if identity.token is None:
            return True
        if identity.session is not None and identity.session not in self._sessions:
            return False
        return identity.token.sha256 in self._tokens

    def publisher(self, identities: Sequence[Identity], camera: CameraId) -> Identity:
        """Return as which of its identities a sender may be a camera, the first that may.

        Those that were revoked since it connected do not count.

        Raises:
            ForbiddenError: none may; says what the first would have to do.
        """
        first: ForbiddenError | None = None
        for identity in filter(self.is_valid, identities):
            try:
                self.check_publisher(identity, camera)
            except ForbiddenError as error:
                first = first or error
            else:
                return identity
        raise first or ForbiddenError("its token was revoked, or its login has ended")

    def check_publisher(self, identity: Identity, camera: CameraId) -> None:
        """Check that somebody may be a camera: its own token may, others if it has none.

        Raises:
            ForbiddenError: says what to do.
        """
        if identity.camera is not None:
            if identity.camera != camera:
                raise ForbiddenError(
                    f"this token is of the camera {identity.camera}, not of {camera}: give the "
                    "camera that name, or pair it anew"
                )
        elif camera in self._owners:
            raise ForbiddenError(
                f"the name {camera} belongs to a camera with a token of its own: choose another "
                "name, or pair this camera under that name on the box's page"
            )

    def shown(self, token_id: str) -> None:
        """Note that what descends from a token descends from this instant on."""
        token, now_ms = self._by_id.get(token_id), self._now_ms()
        if token is None:
            return
        noted_ms = self._used_ms.get(token_id, token.last_used_ms or 0)
        if now_ms >= noted_ms + _SHOWN_PERIOD_MS:  # earlier than before: the wall clock is behind
            self._used_ms[token_id] = now_ms

    def _identity(self, token: Token, session: str | None = None) -> Identity:
        # Earlier than before: the wall clock is behind.
        self._used_ms[token.id] = max(self._now_ms(), token.last_used_ms or 0)
        return Identity(token.scope, token.camera, token, session)

    # -- tokens --------------------------------------------------------------------------------

    @property
    def tokens(self) -> list[Token]:
        """All tokens, the oldest first."""
        return [
            replace(token, last_used_ms=self._used_ms.get(token.id, token.last_used_ms))
            for token in self._tokens.values()
        ]

    async def ensure_administrator(self) -> str | None:
        """Make the first administrator's token; return its text, or None: there is one.

        Raises:
            StorageError: it cannot be stored.
        """
        if any(token.scope is Scope.ADMIN for token in self._tokens.values()):
            return None
        _, text = await self.issue("administrator", Scope.ADMIN, None)
        return text

    async def issue(self, name: str, scope: Scope, camera: CameraId | None) -> tuple[Token, str]:
        """Make a token; return it and its text. One of the same camera is replaced.

        Raises:
            InvalidInputError: scope and camera do not fit.
            TokenLimitError: there are `TOKENS_MAX`.
            StorageError: it cannot be stored.
        """
        async with self._changing:
            return await self._issue(name, scope, camera)

    async def _issue(self, name: str, scope: Scope, camera: CameraId | None) -> tuple[Token, str]:
        """Do so while nothing else is changed."""
        replaced = camera is not None and camera in self._owners
        if len(self._tokens) - replaced >= TOKENS_MAX:
            raise TokenLimitError(f"there are {TOKENS_MAX} tokens, the most there may be")
        token, text = new_token(name, scope, camera, self._now_ms())
        await asyncio.to_thread(self._store.add, token)
        await self._reload()
        return token, text

    async def revoke(self, token_id: str) -> None:
        """Delete a token, and with it its sessions and open connections.

        Raises:
            UnknownNameError: there is no such token.
            LastAdministratorError: nobody else could manage the box.
            StorageError: it cannot be stored.
        """
        async with self._changing:
            token = self._by_id.get(token_id)
            if token is None:
                raise UnknownNameError(f"there is no token {token_id}")
            administrators = [each for each in self._tokens.values() if each.scope is Scope.ADMIN]
            if administrators == [token]:
                raise LastAdministratorError(
                    "this is the last administrator's token: make another one first"
                )
            await asyncio.to_thread(self._store.remove, token_id, self._now_ms())
            await self._reload()

    # -- browsers ------------------------------------------------------------------------------

    async def log_in(self, text: str, address: str) -> tuple[Identity, str]:
        """Begin a browser's session with a token; return its identity and cookie.

        Raises:
            TooManyAttemptsError: this address sent too many wrong ones.
            UnauthorizedError: there is no such token.
            StorageError: the session cannot be stored.
        """
        identity = self.by_token(text.strip())
        if identity is None:  # the guesses of others keep nobody out who has one
            self.attempts.check(address)
            self.attempts.failed(address)
            raise UnauthorizedError(
                "there is no such token, or it was revoked. `edgebox tokens add` on the box makes "
                "a new one"
            )
        assert identity.token is not None
        return await self._begin_session(identity.token)

    async def log_out(self, identity: Identity) -> None:
        """End a browser's session; StorageError if that cannot be stored."""
        if identity.session is not None:
            await self._write(self._store.remove_session, identity.session)

    async def _begin_session(self, token: Token) -> tuple[Identity, str]:
        cookie = secrets.token_urlsafe(32)
        life_s = CAMERA_SESSION_S if token.scope is Scope.CAMERA else SESSION_S
        session = StoredSession(_hash(cookie), token.id, self._now_ms() + life_s * 1000)
        await self._write(self._store.add_session, session, self._now_ms())
        return Identity(token.scope, token.camera, token, session.sha256), cookie

    # -- pairing -------------------------------------------------------------------------------

    def begin_pairing(self, camera: CameraId | None) -> Pairing:
        """Return a new code, for one camera or for any whose name has no token yet."""
        return self._pairings.begin(camera)

    async def pair(self, code: str, camera: CameraId, address: str) -> tuple[Token, str]:
        """Give the camera that knows a code its token; return it and its text.

        Raises:
            TooManyAttemptsError: this address sent too many wrong ones.
            PairingError: the code does not work for this camera.
            ForbiddenError: the code is for any camera, and this name has a token.
            TokenLimitError, StorageError: see `issue`; the code works again.
        """
        self.attempts.check(address)
        try:
            pairing = self._pairings.take(code, camera)
        except EdgeboxError:
            self.attempts.failed(address)
            raise
        try:
            async with self._changing:
                if pairing.camera is None:
                    self.check_publisher(self._anonymous, camera)
                return await self._issue(camera, Scope.CAMERA, camera)
        except EdgeboxError:
            self._pairings.put_back(pairing)
            raise

    async def pair_browser(self, code: str, camera: CameraId, address: str) -> tuple[Identity, str]:
        """Do the same for a browser that is a camera; return its identity and cookie."""
        token, _ = await self.pair(code, camera, address)
        return await self._begin_session(token)

    # -- the file ------------------------------------------------------------------------------

    async def _write(self, write: Callable[..., None], *args: object) -> None:
        async with self._changing:
            await asyncio.to_thread(write, *args)
            await self._reload()

    async def _reload(self) -> None:
        version = await asyncio.to_thread(self._store.version)
        stored = await asyncio.to_thread(self._store.load, self._now_ms())
        self._version = version
        self._note_revoked(stored)
        self._tokens = {token.sha256: token for token in stored.tokens}
        self._by_id = {token.id: token for token in stored.tokens}
        self._owners = {t.camera: t for t in stored.tokens if t.camera is not None}
        self._sessions = {session.sha256: session for session in stored.sessions}
        self.on_change()

    def _note_revoked(self, stored: Stored) -> None:
        now_ms = self._now_ms()
        for id_ in self._by_id.keys() - {token.id for token in stored.tokens}:
            token = self._by_id[id_]
            used_ms = self._used_ms.get(id_, token.last_used_ms or 0)
            self._gone_ms[id_] = max(now_ms, token.created_ms, used_ms)
        lately = {id_: ms for id_, ms in self._gone_ms.items() if ms > now_ms - REVOKED_KEPT_MS}
        # The file does not know of uses that are not stored yet.
        later = {id_: max(ms, lately.get(id_, ms)) for id_, ms in stored.revoked.items()}
        self.revoked = {**lately, **later}


def token_document(token: Token) -> dict[str, object]:
    """Return a token as JSON, without its hash."""
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope.value,
        "camera": token.camera,
        "created_ms": token.created_ms,
        "last_used_ms": token.last_used_ms,
    }
