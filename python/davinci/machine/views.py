"""What a kernel sees of a split machine: the cores that run it, as a machine of cores of one kind.

A kernel for vector cores alone runs on all of them, each with a block of its own: `for_vector`
gives them as a machine like any other, with a vector core's share of the memory and of the L2.
A coupled machine is seen as it is.
"""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache

from davinci.isa import BY_NAME
from davinci.machine.legality import illegal_instruction
from davinci.machine.schema import CoreTypes, Machine

CUBE_CORE, VECTOR_CORE = "AIC", "AIV"
"""Kinds of cores of a split machine, as its file names them."""

EXACT_COPIES = ("copy_gm_to_ubuf_align", "copy_ubuf_to_gm_align")
"""Instructions that move bursts between GM and UB to the byte."""


@lru_cache(maxsize=64)
def for_vector(machine: Machine) -> Machine:
    """The machine as a kernel without work for the cube sees it."""
    if not machine.split:
        return machine
    kind = machine.core_types[VECTOR_CORE]
    core = kind.model_copy(update={"count": 1})

    def shared(rate: float) -> float:
        return rate / kind.count

    rates = ("read_bytes_per_cycle", "write_bytes_per_cycle")
    made = machine.model_copy(
        update={
            "kind": "coupled",
            "cores": machine.cores * kind.count,
            "core": CoreTypes(AICORE=core),
            "gm": machine.gm.model_copy(
                update={rate: shared(getattr(machine.gm, rate)) for rate in rates}
            ),
            "l2": machine.l2.model_copy(
                update={rate: shared(getattr(machine.l2, rate)) for rate in rates}
            ),
        }
    )
    return made.model_copy(update={"intrinsics": legal_intrinsics(made)})


@lru_cache(maxsize=64)
def for_cube(machine: Machine) -> Machine:
    """The machine as a kernel of cube cores sees it: their pipes and memories, with all of a cube
    core's share of the memory, of which its vector cores take nothing meanwhile."""
    if not machine.split:
        return machine
    core = machine.core_types[CUBE_CORE]
    made = machine.model_copy(update={"kind": "coupled", "core": CoreTypes(AICORE=core)})
    return made.model_copy(update={"intrinsics": legal_intrinsics(made)})


def for_kinds(machine: Machine, kinds: Set[str]) -> Machine:
    """The machine as a kernel for these kinds of cores sees it: as it is for both of a split one,
    whose cores are cube cores with their vector cores then."""
    if len(kinds) > 1:
        return machine
    return for_cube(machine) if CUBE_CORE in kinds else for_vector(machine)


def blocks_a_core(machine: Machine, kinds: Set[str], of_launch: Set[str]) -> int:
    """Blocks that a kernel for some kinds of cores may have for each core of a launch: where that
    is a cube core with its vector cores, each of those has a block of a kernel for them alone."""
    alone = kinds == {VECTOR_CORE} and CUBE_CORE in of_launch
    return machine.core_types[VECTOR_CORE].count if alone else 1


@lru_cache(maxsize=64)
def within_l2(machine: Machine) -> Machine:
    """The machine as a kernel sees it all of whose arrays the L2 holds, which writes back later:
    bytes come and go at its rates, not at those of the memory."""
    rates = {
        "read_bytes_per_cycle": machine.l2.read_bytes_per_cycle,
        "write_bytes_per_cycle": machine.l2.write_bytes_per_cycle,
    }
    return machine.model_copy(update={"gm": machine.gm.model_copy(update=rates)})


def vector_cores_for(machine: Machine, cores: int) -> int:
    """The cores that a kernel without work for the cube may have, where a kernel may have at most
    `cores` of the machine's; 0 is all of them."""
    view = for_vector(machine)
    return (cores or machine.cores) * (view.cores // machine.cores)


def legal_intrinsics(machine: Machine) -> dict[str, list[str]]:
    """The instructions of a coupled machine's file that need no pipe or memory which it lacks."""
    kept = {}
    for name, types in machine.intrinsics.items():
        records = {kind: BY_NAME[name][kind] for kind in types}
        legal = [
            kind for kind in types if not illegal_instruction(machine, "AICORE", records[kind])
        ]
        if legal:
            kept[name] = legal
    return kept


def copies_elements(machine: Machine) -> bool:
    """Whether copies between GM and UB end at any element, not only at whole blocks of 32 bytes."""
    return all({"b8", "b16", "b32"} <= {*machine.intrinsics.get(n, ())} for n in EXACT_COPIES)


RECTANGLES = {"L0A": "img2colv2_cbuf_to_ca", "L0B": "img2colv2_cbuf_to_cb"}
"""Instructions that load a rectangle of windows and elements of a kernel (load3dv2)."""


def loads_rectangles(machine: Machine, space: str, dtype: str = "f16") -> bool:
    """Whether one load brings all columns of fractals of a matrix from L1 to L0A, or transposed to
    L0B: as an image of one row of pixels."""
    return dtype in machine.intrinsics.get(RECTANGLES[space], ())


def multiplies_f32(machine: Machine) -> bool:
    """Whether cubes take f32 as it is, which comes to them in rows."""
    return machine.cubes_apart and "f322f32" in machine.intrinsics.get("mad", ())
