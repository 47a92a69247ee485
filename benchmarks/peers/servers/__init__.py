"""The same detector behind several servers; run with MODEL HEIGHT WIDTH PORT."""
