"""Passes on the hivm dialect: exact instructions, then packed configuration words."""
