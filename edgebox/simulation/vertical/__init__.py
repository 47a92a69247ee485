"""Vertical scaling under virtual time: one executor that may use more or fewer CPU cores."""
