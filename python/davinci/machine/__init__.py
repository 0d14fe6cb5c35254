"""Machine files: what a chip is like, read by compiler and simulator alike."""

from davinci.machine.compiled import not_compilable
from davinci.machine.functions import VectorFunctions
from davinci.machine.memories import OnChipMemory
from davinci.machine.reader import (
    DIRECTORY,
    check_cores,
    check_host_link,
    load,
    names,
    parse,
    read,
    read_once,
)
from davinci.machine.schema import CrossCore, Machine, Vector
from davinci.machine.vector_cores import SUFFIX as VECTOR_SUFFIX
from davinci.machine.views import (
    CUBE_CORE,
    VECTOR_CORE,
    blocks_a_core,
    copies_elements,
    for_cube,
    for_kinds,
    for_vector,
    vector_cores_for,
    within_l2,
)

__all__ = [
    "CUBE_CORE",
    "DIRECTORY",
    "VECTOR_CORE",
    "VECTOR_SUFFIX",
    "CrossCore",
    "Machine",
    "OnChipMemory",
    "Vector",
    "VectorFunctions",
    "blocks_a_core",
    "check_cores",
    "check_host_link",
    "copies_elements",
    "for_cube",
    "for_kinds",
    "for_vector",
    "load",
    "names",
    "not_compilable",
    "parse",
    "read",
    "read_once",
    "vector_cores_for",
    "within_l2",
]
