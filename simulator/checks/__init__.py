"""Checks for faults that a real machine would let pass silently: races and deadlocks."""
