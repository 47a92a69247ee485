"""Serves a pipeline of modules within a deadline at the least cost."""
