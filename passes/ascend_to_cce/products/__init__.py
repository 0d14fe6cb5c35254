"""Builds kernels of `schedule.products`: loops over tiles in L1, L0A, L0B, L0C, the epilogue."""
