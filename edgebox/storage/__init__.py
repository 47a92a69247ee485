"""One writer over SQLite: profiles, cameras, metrics, events."""
