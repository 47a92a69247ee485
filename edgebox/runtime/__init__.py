"""The driver that feeds events in and carries actions out; the journal."""
