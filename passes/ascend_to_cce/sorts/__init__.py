"""Builds sorting networks."""
