"""Tracks of objects, zones and lines: which object is which over time, and where it is. Pure."""
