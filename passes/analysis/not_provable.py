"""The error of analyses that follow kernels without running them."""


class NotProvable(Exception):
    """A kernel does something that cannot be followed without running it."""
