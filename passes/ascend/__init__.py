"""Passes on the ascend dialect: precision, layouts, constants, kernels and buffers."""
