"""Machine files: what a chip is like, read by compiler and simulator alike."""

from davinci.machine.reader import DIRECTORY, check_cores, load, names, parse, read
from davinci.machine.schema import CrossCore, Machine, OnChipMemory, Vector

__all__ = [
    "DIRECTORY",
    "CrossCore",
    "Machine",
    "OnChipMemory",
    "Vector",
    "check_cores",
    "load",
    "names",
    "parse",
    "read",
]
