"""The composition root: builds a box from its configuration, starts it and stops it."""
