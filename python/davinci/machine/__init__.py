"""Machine files: what a chip is like, read by compiler and simulator alike."""

from davinci.machine.compiled import not_compilable
from davinci.machine.reader import DIRECTORY, check_cores, load, names, parse, read, read_once
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
    "not_compilable",
    "parse",
    "read",
    "read_once",
]
