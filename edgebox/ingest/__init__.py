"""Cameras whose pictures the box fetches itself."""
