"""Short codes with which a camera gets its token. Lives on the event loop.

A code works once, for ten minutes. Codes are few and wrong ones are limited per address, so they
cannot be guessed; too many wrong ones from anywhere end all codes.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.requests import CameraId

LIFE_S = 600
"""Seconds for which a code works."""
_OPEN_MAX = 32
"""Codes at once; a further one ends the oldest."""
_WRONG_MAX = 100
"""Wrong codes after which all open ones end."""
_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Without those that are mistaken for others."""
_CHARACTERS = 8


class PairingError(EdgeboxError):
    """The code is wrong, was used, or has expired."""

    http_status = 403
    code = "pairing"
    title = "The pairing code does not work"


@dataclass(frozen=True, slots=True)
class Pairing:
    """A code that somebody may use once."""

    code: str
    camera: CameraId | None
    """The camera that it is for; None: one whose name no token has yet."""
    expires_ns: int

    @property
    def shown(self) -> str:
        """The code as people read it: "K7QF-2M9D"."""
        half = _CHARACTERS // 2
        return f"{self.code[:half]}-{self.code[half:]}"


class Pairings:
    """The codes that work just now."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        """Begin with none."""
        self._clock_ns = clock_ns
        self._open: dict[str, Pairing] = {}
        self._wrong = 0

    def begin(self, camera: CameraId | None) -> Pairing:
        """Return a new code."""
        code = "".join(secrets.choice(_LETTERS) for _ in range(_CHARACTERS))
        pairing = Pairing(code, camera, self._clock_ns() + LIFE_S * 1_000_000_000)
        self._forget_expired()
        self.put_back(pairing)
        return pairing

    def take(self, code: str, camera: CameraId) -> Pairing:
        """Return the pairing of a code, which does not work again.

        Raises:
            PairingError: there is none of this code, or it is for another camera.
        """
        self._forget_expired()
        pairing = self._open.get(code.upper().replace("-", "").replace(" ", ""))
        if pairing is None:
            self._wrong += 1
            if self._wrong >= _WRONG_MAX:
                self._open.clear()
                self._wrong = 0
            raise PairingError(
                "this pairing code does not work: it is wrong, was used or has expired. Get a new "
                "one on the box's page, under Add a camera"
            )
        if pairing.camera not in (None, camera):
            raise PairingError(
                f"this pairing code is for the camera {pairing.camera}, not for {camera}: give the "
                "camera that name, or get a code for this one"
            )
        del self._open[pairing.code]
        return pairing

    def put_back(self, pairing: Pairing) -> None:
        """Let a code work again that was taken in vain."""
        self._open[pairing.code] = pairing
        while len(self._open) > _OPEN_MAX:
            del self._open[next(iter(self._open))]

    def _forget_expired(self) -> None:
        now_ns = self._clock_ns()
        self._open = {code: each for code, each in self._open.items() if each.expires_ns > now_ns}
        if not self._open:
            self._wrong = 0  # wrong codes count against those that can be guessed
