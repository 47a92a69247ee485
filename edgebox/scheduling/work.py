"""Owns how much work each application's requests are, and what that makes of whole batches.

Pure. One `WorkTable` per variant answers for hundreds of candidate batches at once: the CDFs of
all applications are tabulated at common nodes, as logarithms, so that the CDF of a batch's longest
member is a matrix product and an exponential.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from edgebox.scheduling.distributions import EmpiricalDistribution, Floats

Singles = npt.NDArray[np.float32]

MEMBERSHIP = (0.5, 0.9, 0.99)
"""A candidate batch takes those that are in time with this probability."""

_NODE_QUANTILES = np.array([0.01, 0.05, *np.arange(0.1, 0.95, 0.1), 0.95, 0.99, 1.0])
_NODES_MAX = 160
_CELLS = 4096
_JUMP = 0.03
EDGE = 1e-6
"""Relative width of a jump; times this close count as equal."""

_LOG_ZERO = -60.0
"""Stands for the logarithm of 0: e to this is no probability worth the name."""


@dataclass(frozen=True, slots=True)
class WorkTable:
    """The applications of one variant, from the least to the most work.

    J applications, G nodes, S batch sizes, Q membership quantiles.
    """

    rank: npt.NDArray[np.intp]
    """(J,): the place of an application (by its index) in this order."""
    nodes: Singles
    """(G,): amounts of work, rising."""
    log_cdf: Singles
    """(J, G), by rank."""
    weights: Singles
    """(G,): the mean of a maximum is `greatest - cdf @ weights`."""
    greatest: float
    cell_of_work: float
    """Cells of `node_of` per unit of work."""
    node_of: npt.NDArray[np.intp]
    """(cells,): the last node that is not above a cell."""
    width: Singles
    """(G,): from each node to the next."""
    ranked: Sequence[EmpiricalDistribution]
    least: Floats
    """(J,)"""
    _thresholds: dict[tuple[int, ...], Floats] = field(default_factory=dict)

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

    def chances(self, cdfs: Singles, work: Floats) -> Singles:
        """Return how likely the maximum of each batch is at most each amount of work.

        Args:
            cdfs: (batches, G), the CDFs of the batches' maxima at the nodes.
            work: (batches, n).
        """
        cell = np.minimum(np.maximum(work * self.cell_of_work, -1.0), len(self.node_of) - 2)
        at = self.node_of[cell.astype(np.intp) + 1]
        rows = np.arange(len(cdfs))[:, None]
        low = cdfs[rows, at]
        step = cdfs[rows, np.minimum(at + 1, len(self.nodes) - 1)] - low
        share = np.clip((work - self.nodes[at]) / self.width[at], 0.0, 1.0)
        chance: Singles = np.where(work < self.nodes[0] * (1 - 2 * EDGE), 0.0, low + share * step)
        return chance


def tabulate(distributions: Sequence[EmpiricalDistribution]) -> WorkTable:
    """Build the table of some applications, given in the order of their indices."""
    order = sorted(range(len(distributions)), key=lambda at: distributions[at].mean)
    ranked = [distributions[at] for at in order]
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    nodes = _nodes(ranked)
    with np.errstate(divide="ignore"):
        log_cdf = np.log(np.stack([d.cdf(nodes) for d in ranked]))
    width = np.diff(nodes)
    # Trapezoids: the integral of 1 - CDF from the first node on, plus the first node itself.
    weights = np.zeros(len(nodes))
    weights[:-1] += width / 2
    weights[1:] += width / 2
    greatest = float(nodes[-1])
    cell_of_work = _CELLS / max(greatest, 1e-12)
    # The right edge of each cell: what is at the node but for rounding is in time.
    edges = np.arange(0, _CELLS + 2) / cell_of_work
    node_of = np.clip(np.searchsorted(nodes, edges, side="right") - 1, 0, len(nodes) - 1)
    return WorkTable(
        rank=rank,
        nodes=nodes.astype(np.float32),
        log_cdf=np.maximum(log_cdf, _LOG_ZERO).astype(np.float32),
        weights=weights.astype(np.float32),
        greatest=greatest,
        cell_of_work=cell_of_work,
        node_of=node_of,
        width=np.append(width, 1.0).astype(np.float32),
        ranked=ranked,
        least=np.array([d.least for d in ranked]),
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
        points += [at, jumps * (1 - EDGE)]
    every = np.unique(np.concatenate(points))
    if len(every) > _NODES_MAX:
        picked = np.unique(np.linspace(0, len(every) - 1, _NODES_MAX).astype(np.intp))
        every = every[picked]
    return every
