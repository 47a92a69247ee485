"""The Scheduler and planner of the server, run under virtual time."""
