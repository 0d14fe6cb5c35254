"""Builds kernels of `schedule.loops`: steps of a loop whose state stays on its core."""
