"""Owns the work of each application's requests, and of the longest member of a batch.

Pure. One `WorkTable` per variant answers for hundreds of candidate batches at once. The CDFs of all
applications are tabulated at common nodes, as logarithms, so that the CDF of a batch's longest
member is a matrix product and an exponential. For independent requests it is the product of theirs.
Source: Orloj (arXiv 2209.00159), section 4.2. Equation 8 of the paper, a sum over all subsets of a
batch, is the derivative of that product.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from edgebox.scheduling.distributions import EmpiricalDistribution, Floats

Floats32 = npt.NDArray[np.float32]

MEMBERSHIP = (0.5, 0.9, 0.99)
"""A candidate batch contains the requests that are on time with this probability."""

_NODE_QUANTILES = np.array([0.01, 0.05, *np.arange(0.1, 0.95, 0.1), 0.95, 0.99, 1.0])
_NODES_MAX = 160
_CELLS = 4096
_JUMP = 0.03
EDGE = 1e-6
"""Relative width of a jump."""

_LONGEST_MAX = 128
"""Number of sets of members that a table caches."""

_LOG_ZERO = -200.0
"""Replaces the logarithm of 0: e to this is 0 in single precision."""


@dataclass(frozen=True, slots=True)
class Longest:
    """The distribution of the work of a batch's longest member."""

    nodes: Floats32
    """(G,): amounts of work, rising."""
    cdf: Floats32
    """(G,)"""
    mean: float
    _quantiles: dict[float, float] = field(default_factory=dict)
    """Those that were asked for: each batch asks for the same few."""

    def quantile(self, q: float) -> float:
        """Return the `q` quantile of the work."""
        known = self._quantiles.get(q)
        if known is None:
            known = self._quantiles[q] = self._interpolated(q)
        return known

    def _interpolated(self, q: float) -> float:
        at = int(self.cdf.searchsorted(q))
        if at == 0 or at == len(self.cdf):
            return float(self.nodes[min(at, len(self.nodes) - 1)])
        low, high = float(self.cdf[at - 1]), float(self.cdf[at])
        left, right = float(self.nodes[at - 1]), float(self.nodes[at])
        return left + (right - left) * (q - low) / (high - low)


def cdfs_at(members: Sequence[Longest], work: Floats) -> Floats:
    """Return the probability that each is at most each amount of work, (members, n).

    Args:
        members: of one table, so that their nodes are the same; at least one.
        work: (n,)
    """
    nodes = members[0].nodes
    cdfs = np.stack([longest.cdf for longest in members]).astype(np.float64)
    after = np.clip(nodes.searchsorted(work, side="right"), 1, len(nodes) - 1)
    left, right = nodes[after - 1].astype(np.float64), nodes[after].astype(np.float64)
    wide = right > left
    share = np.clip((work - left) / np.where(wide, right - left, 1.0), 0.0, 1.0)
    low = cdfs[:, after - 1]
    chances: Floats = low + np.where(wide, share, 1.0) * (cdfs[:, after] - low)
    chances[:, work < nodes[0]] = 0.0
    return chances


@dataclass(frozen=True, slots=True)
class WorkTable:
    """The applications of one variant, ordered by their mean work.

    J applications, G nodes, S batch sizes, Q membership quantiles.
    """

    rank: npt.NDArray[np.intp]
    """(J,): the rank of an application (by its index) in this order."""
    nodes: Floats32
    """(G,): amounts of work, rising."""
    log_cdf: Floats32
    """(J, G), by rank."""
    weights: Floats32
    """(G,): the mean of a maximum is `greatest - cdf @ weights`."""
    greatest: float
    cell_of_work: float
    """Cells of `node_of` per unit of work."""
    node_of: npt.NDArray[np.intp]
    """(cells,): the last node that is at most the cell."""
    per_width: Floats32
    """(G,): one over the distance to the next node; 0 if there is none."""
    ranked: Sequence[EmpiricalDistribution]
    rank_of: tuple[int, ...]
    """`rank` for look-ups of single applications."""
    least_of: tuple[float, ...]
    """The least work of an application, by its index; below 0 if it takes less than the fixed part
    of a batch."""
    _longest: dict[tuple[int, ...], "Longest"] = field(default_factory=dict)
    _thresholds: dict[tuple[int, ...], Floats] = field(default_factory=dict)

    def longest(self, apps: Sequence[int]) -> "Longest":
        """Return the work of the longest of some requests.

        Args:
            apps: the applications' indices, one for each request.

        Cached, because the same applications often occur together; otherwise O(members * G).
        """
        ranks = tuple(sorted([self.rank_of[app] for app in apps]))
        known = self._longest.get(ranks)
        if known is None:
            if len(self._longest) >= _LONGEST_MAX:
                self._longest.clear()
            cdf = np.exp(self.log_cdf[list(ranks)].sum(axis=0))
            mean = self.greatest - float(cdf @ self.weights)
            known = self._longest[ranks] = Longest(self.nodes, cdf, mean)
        return known

    def thresholds(self, sizes: tuple[int, ...]) -> Floats:
        """Return the work that a size's longest member does not exceed with each quantile.

        Returns:
            (J, S, Q) float64; kept, because executors rarely have many sets of sizes.
        """
        known = self._thresholds.get(sizes)
        if known is None:
            known = self._thresholds[sizes] = np.array(
                [
                    [[d.quantile_of_max(k, q) for q in MEMBERSHIP] for k in sizes]
                    for d in self.ranked
                ]
            )
        return known

    def chances(self, cdfs: Floats32, work: Floats32) -> Floats32:
        """Return how likely the maximum of each batch is at most each amount of work.

        Args:
            cdfs: (batches, G), the CDFs of the batches' maxima at the nodes.
            work: (batches, n).
        """
        # Clipped first, because values far below 0 overflow in the conversion.
        cell = np.minimum(np.maximum(work * self.cell_of_work, -1), _CELLS).astype(np.intp)
        at = self.node_of[cell + 1]
        share = np.maximum((work - self.nodes[at]) * self.per_width[at], 0)
        at += (np.arange(len(cdfs)) * len(self.nodes))[:, None]
        flat = cdfs.ravel()
        low = flat[at]
        chance: Floats32 = low + share * (flat[at + 1] - low)
        return chance


def tabulate(distributions: Sequence[EmpiricalDistribution]) -> WorkTable:
    """Build the table of some applications, given in the order of their indices."""
    order = sorted(range(len(distributions)), key=lambda at: distributions[at].mean)
    ranked = [distributions[at] for at in order]
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    nodes = _nodes(ranked)
    # The last node twice: every node has a next one, and the CDF is flat behind the last.
    nodes = np.append(nodes, nodes[-1])
    with np.errstate(divide="ignore"):
        log_cdf = np.log(np.stack([d.cdf(nodes) for d in ranked]))
        per_width = np.where(np.diff(nodes) > 0, 1 / np.diff(nodes), 0.0)
    # Trapezoids: the integral of 1 - CDF from the first node on, plus the first node itself.
    width = np.diff(nodes, prepend=nodes[0], append=nodes[-1])
    cell_of_work = _CELLS / max(float(nodes[-1]), 1e-12)
    # The right edge of each cell: work equal to a node up to rounding counts as on time.
    edges = np.arange(0, _CELLS + 2) / cell_of_work
    node_of = np.searchsorted(nodes, edges, side="right") - 1
    return WorkTable(
        rank=rank,
        nodes=nodes.astype(np.float32),
        log_cdf=np.maximum(log_cdf, _LOG_ZERO).astype(np.float32),
        weights=((width[:-1] + width[1:]) / 2).astype(np.float32),
        greatest=float(nodes[-1]),
        cell_of_work=cell_of_work,
        node_of=np.clip(node_of, 0, len(nodes) - 2),
        per_width=np.append(per_width, 0.0).astype(np.float32),
        ranked=ranked,
        rank_of=tuple(rank.tolist()),
        least_of=tuple(float(d.signed_least) for d in distributions),
    )


def _nodes(ranked: Sequence[EmpiricalDistribution]) -> Floats:
    """Return the amounts of work at which CDFs are kept: quantiles of every application.

    Where a CDF jumps, a node just below the jump keeps interpolation from smearing it.
    """
    points = []
    for distribution in ranked:
        values = distribution.values
        at = np.unique(np.quantile(values, _NODE_QUANTILES, method="inverted_cdf"))
        below = np.searchsorted(values, at, side="left") / len(values)
        jumps = at[(distribution.cdf(at) - below > _JUMP) | (at == at[0])]
        points += [at, jumps - EDGE * np.maximum(jumps, EDGE)]
    every = np.unique(np.concatenate(points))
    if len(every) > _NODES_MAX:
        picked = np.unique(np.linspace(0, len(every) - 1, _NODES_MAX).astype(np.intp))
        every = every[picked]
    return every
