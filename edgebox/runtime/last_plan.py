"""The plan in force, and what planning took."""

from dataclasses import dataclass

from edgebox.domain.plans import Plan


@dataclass
class LastPlan:
    """The planner's last run; all runs are counted."""

    plan: Plan | None = None
    took_ns: int = 0
    runs: int = 0

    def replace(self, plan: Plan, took_ns: int) -> None:
        """Record a run."""
        self.plan, self.took_ns = plan, took_ns
        self.runs += 1

    def age_ns(self, now_ns: int) -> int | None:
        """Return how old what the plan knew is; None: there is no plan yet."""
        return None if self.plan is None else now_ns - self.plan.computed_ns
