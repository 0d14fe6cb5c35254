"""Passes from StableHLO to the ascend dialect."""
