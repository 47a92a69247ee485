"""Random pipelines: chains, forks, joins, diamonds and other graphs of 1 to 7 modules."""

from random import Random

from edgebox.planning.pipelines.cost_problem import Configuration, CostProblem, Module, module

SHAPES = ("chain", "fork", "join", "diamond", "any")
_BATCHES = (1, 2, 4, 8, 16, 32)


def random_pipeline(chance: Random, shape: str, modules_max: int = 7) -> CostProblem:
    """Make a pipeline whose deadline is 1.5 to 8 times its least latency.

    Each module runs on two kinds of hardware in batches of up to 32.
    """
    count = chance.randint(1, modules_max)
    modules = tuple(_random_module(chance, f"m{at}") for at in range(count))
    problem = CostProblem(1, modules, _random_edges(chance, shape, count))
    slo_ns = round(problem.least_latency_ns * chance.uniform(1.5, 8))
    return CostProblem(slo_ns, modules, problem.edges)


def _random_module(chance: Random, name: str) -> Module:
    """Make a module whose batches take a fixed time and one that grows with the batch."""
    single_ms, fixed = chance.uniform(2, 60), chance.uniform(0.2, 1.0)
    kinds = (("p100", 1.0, 1.0), ("v100", chance.uniform(1.3, 2.2), chance.uniform(0.4, 0.8)))
    configurations = []
    for hardware, price, relative in kinds:
        for batch in _BATCHES[: chance.randint(3, 6)]:
            growth = fixed + (1 - fixed) * batch + 0.1 * batch
            duration_ms = single_ms * relative * growth * chance.uniform(0.9, 1.1)
            configurations.append(Configuration(batch, round(duration_ms * 1e6), hardware, price))
    return module(name, chance.uniform(5, 400), configurations)


def _random_edges(chance: Random, shape: str, count: int) -> tuple[tuple[int, int], ...]:
    last = count - 1
    if shape == "chain" or (shape == "diamond" and count < 3):
        return tuple((at, at + 1) for at in range(last))
    if shape == "fork":
        return tuple((0, at) for at in range(1, count))
    if shape == "join":
        return tuple((at, last) for at in range(last))
    if shape == "diamond":
        return tuple(edge for at in range(1, last) for edge in ((0, at), (at, last)))
    pairs = ((at, to) for at in range(count) for to in range(at + 1, count))
    return tuple(pair for pair in pairs if chance.random() < 0.4)
