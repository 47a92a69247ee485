"""What runs next, decided at every event. Pure: no clock, no I/O."""
