"""Which instructions a core of a machine has: the machine file lists them, pipes and memories too.

The compiler asks before it encodes an instruction, the simulator before it executes one.
"""

from __future__ import annotations

from functools import lru_cache

from davinci.isa.core import PIPE_FIELDS, Instruction, Operand, Pipe, Space, Values
from davinci.machine.schema import Machine

CORE_NAMES = {"AICORE": "core", "AIC": "cube core (AIC)", "AIV": "vector core (AIV)"}


@lru_cache(maxsize=4096)
def illegal_instruction(machine: Machine, core: str, record: Instruction) -> str:
    """Why a core of type `core` ("AICORE", "AIC", "AIV") has not this instruction; "" if it has.
    Answers are kept, for those who ask for each instruction of a program."""
    return reason_against(machine, core, record)


def reason_against(machine: Machine, core: str, record: Instruction) -> str:
    """The same, for those who ask about a machine once: what is kept is found by comparing machines
    of the same name."""
    if record.timing == "scalar_access":
        return ""
    if record.timing == "counter":
        flags = "its cores have flags for each other (ffts_cross_core_sync)"
        return f"{machine.name} does not wait for counters: {flags}" if machine.split else ""
    if record.timing == "turn":
        return "" if machine.cross_core is not None else f"{machine.name} has no turns of blocks"
    types = machine.intrinsics.get(record.name)
    if types is None or (not record.type and not types):
        return f"{machine.name} has no instruction {record.name}"
    if record.type not in types:
        known = ", ".join(types)
        return f"{machine.name} has no {record.name} of type {record.type}, only of {known}"
    missing = missing_units(machine, core, record)
    if missing:
        return (
            f"{record.mnemonic} needs {' and '.join(missing)}, which {owner(machine, core)} has not"
        )
    return ""


def missing_units(machine: Machine, core: str, record: Instruction) -> list[str]:
    """The pipe and the memories that an instruction needs and a core of type `core` lacks."""
    kind = machine.core_types[core]
    missing = [f"PIPE_{record.pipe.name}"] if record.pipe.name not in kind.pipes else []
    there: set[str] = {"GM", *kind.memories}
    if any(operand.space.name in kind.memories for operand in record.operands):
        # From one of its own memories it writes into those of its group.
        there |= set(kind.reaches)
    spaces = dict.fromkeys(operand.space.name for operand in record.operands)
    return missing + [space for space in spaces if space not in there]


def illegal_pipes(machine: Machine, core: str, record: Instruction, values: Values) -> str:
    """Why a flag or barrier names a pipe that the core has not; "" if it has all of them."""
    for name in PIPE_FIELDS:
        value = values.get(name)
        if value is None or not record.field_named(name) or value == Pipe.ALL:
            continue
        if value not in _pipes(machine, core):
            return f"{record.name} names {_pipe_name(value)}, which {owner(machine, core)} has not"
    return ""


def align_bytes(machine: Machine, operand: Operand) -> int:
    """The alignment of an operand's address: its own granularity, or its memory's."""
    if operand.align_bytes:
        return operand.align_bytes
    if operand.space is Space.GM:
        return machine.gm.align_bytes
    return machine.buffer(operand.space.name).align_bytes


def owner(machine: Machine, core: str) -> str:
    """`a vector core (AIV) of ascend910b`."""
    return f"a {CORE_NAMES[core]} of {machine.name}"


def _pipe_name(value: int) -> str:
    return f"PIPE_{Pipe(value).name}" if value in list(Pipe) else f"pipe {value}"


@lru_cache
def _pipes(machine: Machine, core: str) -> frozenset[int]:
    return frozenset(int(Pipe[name]) for name in machine.core_types[core].pipes)
