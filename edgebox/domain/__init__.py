"""Domain types: cameras, requests, variants, profiles, plans. Pure data."""
