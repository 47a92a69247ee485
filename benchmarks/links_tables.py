"""Decides how a comparison is shown: one run's columns side by side, and several runs in sum."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from edgebox.commands.console import out, table
from edgebox.simulation.figures import PARTS

COLUMNS = {
    "simulated": "simulated",
    "as_measured": "as measured",
    "real": "real",
}
"""Figures of a run, by their names."""


def summary(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each scenario, misses and accuracy of the frames of all its runs together."""
    return [
        _pooled([run for run in runs if run["scenario"] == name])
        for name in dict.fromkeys(run["scenario"] for run in runs)
    ]


def _pooled(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    frames = {column: [_counted(run[column]["all"]) for run in runs] for column in COLUMNS}
    means = {
        key: {
            column: sum(
                run[column]["all"][key] * count
                for run, count in zip(runs, frames[column], strict=True)
            )
            / max(1, sum(frames[column]))
            for column in COLUMNS
        }
        for key in ("miss_rate", "accuracy")
    }
    misses = means["miss_rate"]
    return {
        "scenario": runs[0]["scenario"],
        "runs": len(runs),
        "frames": sum(frames["real"]),
        **{key: {c: round(mean, 6) for c, mean in of.items()} for key, of in means.items()},
        "misses_real_less_simulated_points": points(misses),
    }


def _counted(of: dict[str, Any]) -> int:
    return int(of["captured"] - of["departed"])


def points(miss_rate: dict[str, float]) -> dict[str, float]:
    """Return by how many percentage points more a real run misses than each simulated one."""
    return {
        column: round(100 * (miss_rate["real"] - miss_rate[column]), 2)
        for column in ("simulated", "as_measured")
    }


def show_summary(rows: Sequence[dict[str, Any]]) -> None:
    """Print what `summary` returns."""
    headings = ("all runs", "frames", *(f"misses {name}" for name in COLUMNS.values()),
                "points", *(f"accuracy {name}" for name in COLUMNS.values()))  # fmt: skip
    cells = [
        (
            f"{row['scenario']}, {row['runs']} runs",
            str(row["frames"]),
            *(_percent(row["miss_rate"][column]) for column in COLUMNS),
            f"{row['misses_real_less_simulated_points']['simulated']:+.2f}",
            *(f"{row['accuracy'][column]:.3f}" for column in COLUMNS),
        )
        for row in rows
    ]
    out.print(table("misses of the real runs less those simulated, in points", headings, cells))


def show(run: dict[str, Any]) -> None:
    """Print one scenario's columns side by side, then its misses by camera."""
    columns = [run[column] for column in COLUMNS]
    reasons = sorted({reason for of in columns for reason in of["all"]["dropped"]})
    rows = [(label, *(of(column) for column in columns)) for label, of in _ROWS.items()]
    rows[_REASONS_AT:_REASONS_AT] = [
        (f"  dropped, {why}", *(str(of["all"]["dropped"].get(why, 0)) for of in columns))
        for why in reasons
    ]
    busy = run["cores_busy"]
    out.print(
        table(
            f"{run['scenario']}, seed {run['seed']}, uplinks shaped by {run['shaping']}",
            ("", *COLUMNS.values()),
            rows,
        )
    )
    names = list(run["real"]["cameras"])
    rows = [
        (name, *(_percent(of["cameras"][name]["miss_rate"]) for of in columns),
         *(f"{of['cameras'][name]['accuracy']:.3f}" for of in columns))
        for name in names
    ]  # fmt: skip
    headings = ("camera", *(f"misses {name}" for name in COLUMNS.values()), *COLUMNS.values())
    out.print(table("misses and accuracy by camera", headings, rows))
    out.print(
        f"cores busy: {busy['by_this_benchmark']:.2f} by this, {busy['by_others']:.2f} by others; "
        f"misses of the real run less those simulated: "
        f"{run['misses_real_less_simulated_points']['simulated']:+.2f} points",
        soft_wrap=True,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _latency(part: str, of: dict[str, Any]) -> str:
    spread = of["all"]["latency_ms"][part]
    return f"{spread['mean']:.1f} / {spread['p99']:.1f}"


_ROWS: dict[str, Callable[[dict[str, Any]], str]] = {
    "captured": lambda of: str(of["all"]["captured"]),
    "on time": lambda of: str(of["all"]["on_time"]),
    "late": lambda of: str(of["all"]["late"]),
    "misses": lambda of: _percent(of["all"]["miss_rate"]),
    "accuracy, misses 0": lambda of: f"{of['all']['accuracy']:.4f}",
    "accuracy on time": lambda of: f"{of['all']['accuracy_on_time']:.4f}",
    "changes a camera and minute": lambda of: f"{of['all']['changes_per_camera_minute']:.1f}",
    "not on the advised variant": lambda of: _percent(of["all"]["mismatch_rate"]),
    **{f"{part}, mean / P99 ms": functools.partial(_latency, part) for part in PARTS},
    "busy": lambda of: ", ".join(
        f"{name} {share:.0%}" for name, share in of["utilisation"].items()
    ),
}
_REASONS_AT = 3
"""Rows before those of the reasons of drops."""
