"""What should run at all, decided about twice a second. Pure: no clock, no I/O."""
