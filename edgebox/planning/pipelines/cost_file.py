"""Owns the JSON form of a pipeline to be served at least cost, and of its plan. Pure.

Every error names the source and the field.
"""

from typing import Any

from edgebox.domain.field_reader import FieldReader
from edgebox.planning.instance_file import instance_reader, refuse_twice
from edgebox.planning.pipelines.cost_plan import CostPlan
from edgebox.planning.pipelines.cost_problem import Configuration, CostProblem, Module, module

_MODULES_MAX = 100
_CONFIGURATIONS_MAX = 1_000
_DURATION_MAX_MS = 1e7
_NUMBER_MAX = 1e9


def parse_cost_problem(text: bytes, source: str) -> CostProblem:
    """Read a problem.

    Args:
        text: one JSON object; `docs/explanation/pipelines.md` describes it.
        source: what errors call it.

    Raises:
        InvalidInputError: the first mistake, with source and field.
    """
    root = instance_reader(text, source)
    slo_ns = round(root.number("slo_ms", 1e-3, _DURATION_MAX_MS) * 1e6)
    found = root.objects("modules", _MODULES_MAX)
    if not found:
        raise root.wrong("modules", "must have at least one entry")
    modules = tuple(map(_module, found))
    names = [of.name for of in modules]
    refuse_twice(root, "modules", "name", names)
    problem = CostProblem(slo_ns, modules, _edges(root, names))
    try:
        _ = problem.order
    except ValueError:
        raise root.wrong("edges", "must not lead back to a module they come from") from None
    root.refuse_unknown()
    return problem


def cost_document(problem: CostProblem, plan: CostPlan) -> dict[str, Any]:
    """Return a plan as programs read it."""
    return {
        "cost": plan.cost,
        "modules": [
            {
                "name": of.name,
                "wcl_ms": own.latency_ns / 1e6,
                "cost": own.cost,
                "dummy_hz": own.dummy_hz,
                "groups": [
                    [c.hardware, c.batch, group.rate_hz, c.duration_ns / 1e6]
                    for group in own.groups
                    for c in [group.configuration]
                ],
            }
            for of, own in zip(problem.modules, plan.modules, strict=True)
        ],
    }


def _module(of: FieldReader) -> Module:
    name = of.nonempty("name")
    rate_hz = of.number("rate_hz", 0, _NUMBER_MAX, above=True)
    configurations = [
        Configuration(
            config.integer("batch", 1, 1 << 20),
            round(config.number("duration_ms", 1e-3, _DURATION_MAX_MS) * 1e6),
            config.nonempty("hardware"),
            config.number("price", 0, _NUMBER_MAX, above=True),
        )
        for config in of.objects("configs", _CONFIGURATIONS_MAX)
    ]
    if not configurations:
        raise of.wrong("configs", "must have at least one entry")
    return module(name, rate_hz, configurations)


def _edges(root: FieldReader, names: list[str]) -> tuple[tuple[int, int], ...]:
    places = {name: at for at, name in enumerate(names)}
    edges = []
    for at, edge in enumerate(root.items("edges", default=[])):
        if not isinstance(edge, list) or len(edge) != 2:
            raise root.wrong(("edges", at), "must be a list of two module names", edge)
        for end, name in enumerate(edge):
            if not isinstance(name, str) or name not in places:
                known = ", ".join(names)
                raise root.wrong(("edges", at, end), f"must be one of the modules {known}", name)
        edges.append((places[edge[0]], places[edge[1]]))
    return tuple(edges)
