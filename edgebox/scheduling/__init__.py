"""The scheduling core: it decides at every event what runs next. Pure: no clock, no I/O."""
