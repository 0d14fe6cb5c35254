"""Passes on the cce dialect: addresses, synchronisation."""
