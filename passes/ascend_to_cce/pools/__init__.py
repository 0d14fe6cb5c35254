"""Builds kernels of `schedule.pools`: bands of windows of images in UB."""
