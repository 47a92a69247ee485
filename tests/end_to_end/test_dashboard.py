"""deploy/grafana/edgebox.json: every metric and label that it asks for is in a real scrape."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.end_to_end.running import running, streaming
from tests.end_to_end.test_prometheus import scrape

DASHBOARD = Path(__file__).resolve().parent.parent.parent / "deploy/grafana/edgebox.json"
_METRIC = re.compile(r"\b(?:edgebox|process)_[a-z0-9_]+")
_SELECTOR = re.compile(r"\b((?:edgebox|process)_[a-z0-9_]+)\{([^}]*)\}")
_LABEL = re.compile(r"([a-z_]+)(?:=~|!=|=)")
_BY = re.compile(r"\bby \(([^)]*)\)")
_SCRAPERS = {"instance", "job"}
"""Labels that Prometheus adds itself."""


def queries(part: Any) -> Iterator[str]:
    """Yield every query of a part of the dashboard."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name in ("expr", "definition"):
                yield value
            else:
                yield from queries(value)
    elif isinstance(part, list):
        for value in part:
            yield from queries(value)


async def test_what_the_dashboard_asks_for_exists(database: Path) -> None:
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    async with running(database) as app, streaming(app, "gate"):
        families = await scrape(app)
    labels: dict[str, set[str]] = defaultdict(set)
    declared = set()
    for name, family in families.items():
        # A counter without samples yet is declared all the same.
        declared |= {name, f"{name}_total", f"{name}_sum", f"{name}_count", f"{name}_bucket"}
        for sample in family.samples:
            labels[sample.name] |= set(sample.labels)
    asked = list(queries(dashboard))
    assert len(asked) > 20
    for query in asked:
        names = set(_METRIC.findall(query))
        assert names, query
        assert names <= declared, query
        for name, selector in _SELECTOR.findall(query):
            if labels.get(name):
                assert set(_LABEL.findall(selector)) - _SCRAPERS <= labels[name], query
        known = set().union(*(labels.get(name, set()) for name in names))
        if known:
            wanted = {each.strip() for by in _BY.findall(query) for each in by.split(",")}
            assert wanted <= known, query


def test_what_never_happens_has_no_line() -> None:
    """Counters have a series from 0 for each of these, of which most stay at 0."""
    asked = list(queries(json.loads(DASHBOARD.read_text("utf-8"))))
    rare = [each for each in asked if re.search(r"by \([^)]*(reason|code|cause)\)", each)]
    assert len(rare) == 3
    assert all(each.endswith(" > 0") for each in rare)


def test_every_panel_says_what_it_shows() -> None:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["title"]
        assert panel["type"] == "row" or panel["description"].endswith(".")
