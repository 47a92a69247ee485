"""Batching policies of other systems, to compare with."""
