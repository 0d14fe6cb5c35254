"""Schedules of sorting networks on the vector unit."""
