"""Faults under virtual time: executors, links, cameras and memory that break at random."""
