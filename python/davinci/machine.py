"""Machine files: the one place for sizes, rates and limits, read by compiler and simulator.

`load("ascend910")` reads the file of that name in `davinci/machines`; `load("my.toml")` reads a
user's own. The schema is strict: an unknown key is an error that names the nearest known one.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from davinci.errors import InputError
from davinci.units import BLOCK_BYTES, MAX_REPEAT, REPEAT_BYTES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DIRECTORY = Path(__file__).parent / "machines"


class Section(pydantic.BaseModel):
    """A table of a machine file: frozen, no unknown keys, no silent conversion of types."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


MOST = 10**9
"""The largest number that is no size: products of two such numbers are exact in 64 bits."""

Positive = Annotated[int, pydantic.Field(gt=0, le=MOST)]
Cycles = Annotated[int, pydantic.Field(ge=0, le=MOST)]
Amount = Annotated[float, pydantic.Field(ge=0, le=MOST)] | Cycles
MemoryBytes = Annotated[int, pydantic.Field(gt=0, le=1 << 48)]
BufferBytes = Annotated[int, pydantic.Field(gt=0, le=1 << 26)]
Ids = Annotated[int, pydantic.Field(gt=0, le=16)]
"""Events and flags: their instructions have four bits for the number."""

PipeName = Literal["S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"]
MemoryName = Literal["L1", "L0A", "L0B", "L0C", "UB"]


class Buffer(Section):
    bytes: BufferBytes
    align_bytes: Positive


class Buffers(Section):
    L1: Buffer
    L0A: Buffer
    L0B: Buffer
    L0C: Buffer
    UB: Buffer


class GlobalMemory(Section):
    bytes: MemoryBytes
    align_bytes: Positive
    read_bytes_per_cycle: Positive
    write_bytes_per_cycle: Positive
    line_bytes: Positive
    same_line_percent: Amount
    idle_credit_cycles: Cycles


class L2(Section):
    """The cache before global memory.

    Attributes:
        bypass_offset_bytes: transfers whose address in global memory has this added bypass it;
            none on a machine where they cannot.
    """

    bytes: MemoryBytes
    read_bytes_per_cycle: Positive
    write_bytes_per_cycle: Positive
    bypass_offset_bytes: MemoryBytes | None = None


class CoreType(Section):
    """One kind of core.

    Attributes:
        count: cores of this kind in each of the machine's `cores`.
        pipes: queues it has.
        memories: on-chip memories it has, as in `[buffers]`.
    """

    count: Positive
    pipes: list[PipeName]
    memories: list[MemoryName]


class CoreTypes(Section):
    """The kinds of cores: one that has all pipes, or a cube core and vector cores."""

    AICORE: CoreType | None = None
    AIC: CoreType | None = None
    AIV: CoreType | None = None


KINDS = {"coupled": ["AICORE"], "split": ["AIC", "AIV"]}
"""Core types of each kind of machine."""


class Sync(Section):
    event_ids: Ids
    queue_depth: Positive
    flag_cycles: Cycles
    barrier_cycles: Cycles
    sequential_pipes: list[PipeName]


class CrossCore(Section):
    """Flags between the cores of a split machine."""

    flag_ids: Ids
    depth: Positive
    flag_cycles: Cycles


class Scalar(Section):
    issue_cycles: Positive
    gm_access_cycles: Positive
    ub_access_cycles: Positive


class Vector(Section):
    """The vector unit.

    Attributes:
        fixed_cycles: of an instruction besides its repeats; `fixed_cycles_of` has what differs.
        head_cycles: the part of them before the first repeat is read; the rest is the depth of the
            unit, from the last read of a repeat to its write.
        completion_cycles: from when the unit takes the next instruction until results are visible.
        fixed_cycles_of, cycles_per_repeat: by instruction, see `cycles_of`.
    """

    block_bytes: Positive
    repeat_bytes: Positive
    max_repeat: Positive
    fixed_cycles: Cycles
    head_cycles: Cycles
    completion_cycles: Cycles
    bank_groups: Positive
    banks: Positive
    bank_bytes: Positive
    fixed_cycles_of: dict[str, Positive]
    cycles_per_repeat: dict[str, Positive]

    @staticmethod
    def cycles_of(table: dict[str, int], name: str, type_: str, default: int) -> int:
        """The entry of the instruction `name`.`type_`: of its name and type, its name, or of its
        family, which is its name before the first underscore."""
        for key in (f"{name}.{type_}", name, name.partition("_")[0]):
            if key in table:
                return table[key]
        return default


class Cube(Section):
    m: Positive
    n: Positive
    k_b16: Positive
    k_b8: Positive
    occupancy_cycles: Cycles
    latency_cycles: Cycles


class Mte1(Section):
    """Loads from L1.

    Attributes:
        stall_bytes: that come into L1 for each cycle that a load under way waits.
    """

    fixed_cycles: Cycles
    stall_bytes: Positive
    l0a_bytes_per_cycle: Positive
    l0b_bytes_per_cycle: Positive
    l1_to_ub_bytes_per_cycle: Positive | None = None


class Mte2(Section):
    """Transfers from global memory.

    Attributes:
        row_miss_cycles: for each row that is not in the L2; a long run has none of its own.
        nd2nz_fixed_cycles, nd2nz_row_cycles: of a transfer to fractals and of each of its rows,
            besides the bytes; `nd2nz_row_miss_cycles` as above.
        nd2nz_block_cycles: of each block of a row that does not begin at a whole one.
    """

    start_cycles: Cycles
    issue_cycles: Cycles
    port_bytes_per_cycle: Positive
    l1_port_bytes_per_cycle: Positive
    row_miss_cycles: Amount
    nd2nz_fixed_cycles: Amount | None = None
    nd2nz_row_cycles: Amount | None = None
    nd2nz_row_miss_cycles: Amount | None = None
    nd2nz_block_cycles: Amount | None = None


class Mte3(Section):
    start_cycles: Cycles
    issue_cycles: Cycles
    on_chip_start_cycles: Cycles | None = None
    port_bytes_per_cycle: Positive
    ub_to_l1_bytes_per_cycle: Positive | None = None


class L0C(Section):
    to_ub_bytes_per_cycle: Positive


class Fixpipe(Section):
    fixed_cycles: Cycles
    start_cycles: Cycles
    elements_per_cycle: Positive
    port_bytes_per_cycle: Positive


class Launch(Section):
    overhead_us: Cycles


class Machine(Section):
    """One NPU. Fields carry their unit; see the comments of the file for the source of a number.

    Attributes:
        kind: "coupled": one core runs all pipes; "split": a cube core and vector cores, each with a
            scalar unit and program of its own, exchange data through GM.
        cores: cores that run blocks at once; on a split machine cube cores, each with its vector
            cores.
        core: the kinds of cores.
        intrinsics: the types of every instruction the machine has; "" for one without a type.

    Sections and keys that describe what only some machines have may be missing.
    """

    name: str
    kind: Literal["coupled", "split"]
    cores: Positive
    clock_mhz: Positive
    core: CoreTypes
    buffers: Buffers
    gm: GlobalMemory
    l2: L2
    sync: Sync
    scalar: Scalar
    vector: Vector
    cube: Cube
    mte1: Mte1
    mte2: Mte2
    mte3: Mte3
    l0c: L0C | None = None
    fixpipe: Fixpipe | None = None
    cross_core: CrossCore | None = None
    launch: Launch
    intrinsics: dict[str, list[str]]

    @property
    def split(self) -> bool:
        """Whether cube and vector cores run programs of their own."""
        return self.kind == "split"

    @property
    def vector_units(self) -> int:
        """Vector units in each of the `cores`."""
        return sum(core.count for core in self.core_types.values() if "V" in core.pipes)

    @property
    def core_types(self) -> dict[str, CoreType]:
        """The kinds of cores by name."""
        types = {name: getattr(self.core, name) for name in type(self.core).model_fields}
        return {name: core for name, core in types.items() if core is not None}

    def buffer(self, space: str) -> Buffer:
        """Capacity and alignment of the on-chip memory `space` ("L1", "L0A", ..., "UB")."""
        found: Buffer = getattr(self.buffers, space)
        return found


def names() -> list[str]:
    """Names of the machines that come with the package."""
    return sorted(path.stem for path in DIRECTORY.glob("*.toml"))


@cache
def load(name: str) -> Machine:
    """Returns the machine called `name`, or the one described by the TOML file at that path.

    Raises:
        InputError: no such machine or file, malformed TOML, an unknown, missing or mistyped key.
    """
    path = Path(name) if name.endswith(".toml") else DIRECTORY / f"{name}.toml"
    if not path.is_file():
        near = difflib.get_close_matches(name, names(), n=1)
        raise InputError(
            "no such machine",
            where="--machine",
            found=repr(name),
            expected=f"one of {', '.join(names())}, or the path of a .toml file",
            hint=f"did you mean {near[0]!r}?" if near else "",
        )
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a TOML file: {error}", where=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", where=str(path)) from None
    return parse(data, str(path))


def parse(data: dict[str, Any], where: str) -> Machine:
    """Checks a machine file's tables against the schema; `where` names the file in messages."""
    try:
        machine = Machine.model_validate(data)
    except pydantic.ValidationError as error:
        # A misspelt key is also a missing one; the misspelling says more.
        first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(str(first["loc"][-1]), _known_keys(), n=1)
            raise InputError(
                "unknown key",
                where=where,
                found=repr(key),
                hint=f"did you mean {near[0]!r}?" if near else "remove it",
            ) from None
        if first["type"] == "missing":
            raise InputError("missing key", where=where, expected=repr(key)) from None
        raise InputError(
            f"bad value of {key!r}",
            where=where,
            found=repr(first["input"]),
            expected=first["msg"].removeprefix("Input should be "),
        ) from None
    check_consistent(machine, where)
    check_powers(machine, where)
    check_instructions(machine, where)
    check_bypass(machine, where)
    return machine


NEEDS = (
    ("fixpipe", "fixpipe", ""),
    ("ffts_cross_core_sync", "cross_core", ""),
    ("wait_flag_dev", "cross_core", ""),
    ("copy_matrix_cc_to_ubuf", "l0c", ""),
    ("copy_cbuf_to_ubuf", "mte1", "l1_to_ub_bytes_per_cycle"),
    ("copy_ubuf_to_cbuf", "mte3", "ub_to_l1_bytes_per_cycle"),
    ("copy_ubuf_to_cbuf", "mte3", "on_chip_start_cycles"),
)
"""Instructions that need an optional section, or an optional key of a section."""


FIXED = {"block_bytes": BLOCK_BYTES, "repeat_bytes": REPEAT_BYTES, "max_repeat": MAX_REPEAT}
"""Keys of `[vector]` that the encoding fixes; a machine file says them for its readers."""


def check_consistent(machine: Machine, where: str) -> None:
    """Checks what no single key shows: core types of the kind, sections of the instructions, and
    that numbers which instructions encode are those of `davinci.units`.

    Raises:
        InputError: a core type or section is missing or has no use, or a number cannot be.
    """
    expected = KINDS[machine.kind]
    if list(machine.core_types) != expected:
        raise InputError(
            f"wrong core types for kind {machine.kind!r}",
            where=where,
            found=", ".join(f"core.{name}" for name in machine.core_types) or "none",
            expected=", ".join(f"core.{name}" for name in expected),
        )
    for key, number in FIXED.items():
        found = getattr(machine.vector, key)
        if found != number:
            raise InputError(
                f"bad value of 'vector.{key}'",
                where=where,
                found=str(found),
                expected=f"{number}, which the encoding of vector instructions fixes",
            )
    present: dict[tuple[str, str], bool] = {}
    needed: dict[tuple[str, str], str] = {}
    for instruction, section, key in NEEDS:
        owner = getattr(machine, section)
        present[section, key] = owner is not None and (not key or getattr(owner, key) is not None)
        if instruction in machine.intrinsics:
            needed[section, key] = instruction
    for place, there in present.items():
        name = ".".join(filter(None, place))
        if place in needed and not there:
            hint = f"{needed[place]} of [intrinsics] needs it"
            raise InputError("missing key", where=where, expected=repr(name), hint=hint)
        if there and place not in needed:
            hint = "remove it: no instruction of [intrinsics] uses it"
            raise InputError("key without use", where=where, found=repr(name), hint=hint)


def check_powers(machine: Machine, where: str) -> None:
    """Alignments and lines are powers of two, and a line holds whole blocks.

    Raises:
        InputError: one is not.
    """
    numbers = {
        f"buffers.{name}.align_bytes": (machine.buffer(name).align_bytes, 1)
        for name in Buffers.model_fields
    }
    numbers["gm.align_bytes"] = machine.gm.align_bytes, 1
    numbers["gm.line_bytes"] = machine.gm.line_bytes, BLOCK_BYTES
    for key, (number, least) in numbers.items():
        if number < least or number & (number - 1):
            raise InputError(
                f"bad value of {key!r}",
                where=where,
                found=str(number),
                expected="a power of two" + (f", at least {least}" if least > 1 else ""),
            )


def check_instructions(machine: Machine, where: str) -> None:
    """Instructions and types that the machine file names must exist.

    Raises:
        InputError: one does not, with the nearest one that does.
    """
    from davinci.isa import INSTRUCTIONS  # whose modules read machine files

    types: dict[str, list[str]] = {}
    for record in INSTRUCTIONS.values():
        types.setdefault(record.name, []).append(record.type)
    places: list[tuple[str, Iterable[str], Iterable[str]]] = [
        ("intrinsics", machine.intrinsics, types)
    ]
    for name, found in machine.intrinsics.items():
        places.append((f"intrinsics.{name}", found, types.get(name, [])))
    for key, names, known in places:
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                raise InputError(
                    f"no such instruction or type in {key!r}",
                    where=where,
                    found=repr(name),
                    hint=f"did you mean {near[0]!r}?" if near else "see docs/instructions.md",
                )


def check_bypass(machine: Machine, where: str) -> None:
    """Addresses that bypass the L2 must not be those of global memory, and keep their place in a
    line.

    Raises:
        InputError: the offset is too small, or no multiple of a line.
    """
    offset, gm = machine.l2.bypass_offset_bytes, machine.gm
    if offset is not None and (offset < gm.bytes or offset % gm.line_bytes):
        raise InputError(
            "bad value of 'l2.bypass_offset_bytes'",
            where=where,
            found=str(offset),
            expected=f"a multiple of {gm.line_bytes} (gm.line_bytes), at least {gm.bytes} "
            "(gm.bytes)",
        )


def check_cores(machine: Machine, cores: int) -> None:
    """Raises an `InputError` unless `machine` has that many cores; 0 stands for all."""
    if not 0 <= cores <= machine.cores:
        raise InputError(
            "no such number of cores",
            where="cores",
            found=str(cores),
            expected=f"1 to {machine.cores}, or 0 for all of {machine.name}",
        )


def _known_keys() -> list[str]:
    sections: list[type[Section]] = [Machine, *Section.__subclasses__()]
    return sorted({key for section in sections for key in section.model_fields})
