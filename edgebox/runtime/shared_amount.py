"""A limited amount that network addresses share: connections, requests, bytes.

One address may have a part of it only, so that it cannot keep the others out. Lives on the event
loop.
"""

from collections import Counter

from edgebox.runtime.peers import network_of


class SharedAmount:
    """How much of an amount is in use, in all and by each address."""

    def __init__(self, most: int, most_of_one: int) -> None:
        """Start with nothing in use; one address may have `most_of_one` of `most`."""
        self.most = most
        self.most_of_one = min(most, most_of_one)
        self.used = 0
        self._used_by: Counter[str] = Counter()

    def fits(self, address: str | None, amount: int = 1) -> bool:
        """Return whether so much is left; None: an address that stands for many."""
        if self.used + amount > self.most:
            return False
        if address is None:
            return True
        return self._used_by[network_of(address)] + amount <= self.most_of_one

    def take(self, address: str | None, amount: int = 1) -> None:
        """Use so much, whether it fits or not."""
        self.used += amount
        if address is not None:
            self._used_by[network_of(address)] += amount

    def give_back(self, address: str | None, amount: int = 1) -> None:
        """Use so much less."""
        self.used -= amount
        if address is not None:
            network = network_of(address)
            self._used_by[network] -= amount
            if not self._used_by[network]:
                del self._used_by[network]
