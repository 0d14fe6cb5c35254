"""A tensor compiler for DaVinci-style matrix NPUs and a simulator for its machine code."""

__version__ = "0.1.0"
