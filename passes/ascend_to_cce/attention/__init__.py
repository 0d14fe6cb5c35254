"""Builds kernels of `schedule.attention`: units of rows of Q against tiles of K and V."""
