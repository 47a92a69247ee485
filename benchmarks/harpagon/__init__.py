"""Harpagon's planner as its paper describes it (arXiv 2412.06161), the baseline of ours."""
