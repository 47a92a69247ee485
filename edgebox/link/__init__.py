"""The network link of a camera: clock, bandwidth, wire messages. Pure: no clock, no I/O."""
