"""The very Scheduler and planner of the server, under virtual time."""
