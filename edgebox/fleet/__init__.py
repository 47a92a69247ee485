"""Which of several boxes serves a camera. Pure: no clock, no I/O."""
