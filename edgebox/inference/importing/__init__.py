"""Brings other people's detectors in: recognises their layout, rewrites their graph, proves it."""
