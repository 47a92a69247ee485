"""Bounds what refusing programs' pictures costs the event loop. Pure.

A picture for which there is no time is refused as soon as that is certain. Programs that ask again
at once could fill the event loop with that. So refusals have a budget of the loop's time. Beyond
it, a connection whose picture was refused rests: the next one on it is read a little later, and
twice as late with each refusal in a row.
"""

from dataclasses import dataclass

WHOLE_COST = 10
"""Of a refusal of a request that was received, parsed and checked: about 1 ms of the loop."""
HEAD_COST = 1
"""Of one that was refused by its head (`repeated_requests`): about .1 ms."""
COST_PER_S = 2_000
"""About a fifth of the loop's time."""
REST_MIN_S = 0.02
REST_MAX_S = 1.0


@dataclass(slots=True)
class RefusalBudget:
    """What refusals may cost the box, in units of `HEAD_COST`; saved up for a second."""

    left: float = COST_PER_S
    at_s: float = 0.0

    def spend(self, cost: int, now_s: float) -> bool:
        """Spend on one refusal; return whether that was within the budget."""
        self.left = min(COST_PER_S, self.left + (now_s - self.at_s) * COST_PER_S)
        self.at_s = now_s
        if self.left < cost:
            return False
        self.left -= cost
        return True


@dataclass(slots=True)
class Rests:
    """How long one connection rests."""

    budget: RefusalBudget
    _until_s: float = 0.0
    _last_s: float = 0.0

    def refused(self, cost: int, now_s: float) -> float:
        """Return how long the connection rests after a refusal; 0: not at all."""
        if self.budget.spend(cost, now_s):
            return 0.0
        if self._until_s <= now_s - REST_MAX_S:
            self._last_s = 0.0
        self._last_s = min(REST_MAX_S, max(REST_MIN_S, 2 * self._last_s))
        self._until_s = now_s + self._last_s
        return self._last_s

    def answered(self) -> None:
        """Note that a picture was answered: that ends the row."""
        self._last_s = 0.0
