"""Builds kernels of `schedule.moves`: each piece of an output on its way."""
