"""Cores of a split machine, which talk to each other by flags, and launches on them."""
