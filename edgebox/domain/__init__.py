"""What things are: cameras, requests, variants, profiles, plans. Pure data."""
