"""Passes below the cce level: to exact instructions, and to the LLVM dialect."""
