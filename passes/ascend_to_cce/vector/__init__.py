"""Builds kernels of `schedule.vector`: loops over tiles that stay in UB."""
