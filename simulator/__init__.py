"""The simulated machine. It knows nothing of MLIR: encoded instructions and bytes come in."""
