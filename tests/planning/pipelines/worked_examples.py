"""The modules of the worked examples in Harpagon's paper (tables I and II, figure 4)."""

from edgebox.planning.pipelines.cost_problem import Configuration, Module, module

SECOND_NS = 1_000_000_000


def of_rows(name: str, rate_hz: float, *rows: tuple[int, float]) -> Module:
    """Make a module from batch sizes and durations in seconds, on machines that cost 1."""
    return module(
        name, rate_hz, [Configuration(b, round(d * SECOND_NS), "gpu", 1.0) for b, d in rows]
    )


M1 = of_rows("M1", 100, (2, 0.16), (4, 0.2), (8, 0.32))
M3 = of_rows("M3", 198, (2, 0.1), (8, 0.25), (32, 0.8))
M4 = of_rows("M4", 8, (6, 2.0), (2, 1.0))
