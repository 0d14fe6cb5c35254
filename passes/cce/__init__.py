"""Passes on the cce dialect: tiling into it, addresses, synchronisation."""
