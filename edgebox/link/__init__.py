"""How far away a camera is: clock, bandwidth, wire messages. Pure: no clock, no I/O."""
