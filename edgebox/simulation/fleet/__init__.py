"""Many boxes and cameras under virtual time. Pure."""
