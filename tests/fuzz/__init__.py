"""Fuzzing of everything that reads bytes of others: `make fuzz SECONDS=60`."""
