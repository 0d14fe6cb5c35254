"""The cce dialect: instruction-like operations on multi-dimensional arrays."""
