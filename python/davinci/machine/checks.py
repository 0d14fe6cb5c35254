"""Checks of machine files that the schema of single keys cannot make."""

from __future__ import annotations

from collections.abc import Iterable

from davinci.errors import InputError, did_you_mean, shipped
from davinci.isa import BY_NAME
from davinci.machine.legality import reason_against
from davinci.machine.memories import OnChipMemories
from davinci.machine.schema import Machine
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_SIDE, MAX_REPEAT, REPEAT_BYTES

KINDS = {"coupled": ["AICORE"], "split": ["AIC", "AIV"]}
"""Core types of each kind of machine."""

NEEDS = (
    ("fixpipe", "fixpipe", ""),
    ("fixpipe_to_ub", "fixpipe", "to_ub_bytes_per_cycle"),
    ("fixpipe_to_l1", "fixpipe", ""),
    ("copy_cbuf_to_bt", "buffers", "BT"),
    ("copy_cbuf_to_bt", "mte1", "bias"),
    ("copy_cbuf_to_fbuf", "buffers", "FB"),
    ("copy_cbuf_to_fbuf", "fixpipe", "from_l1_bytes_per_cycle"),
    ("ffts_cross_core_sync", "cross_core", ""),
    ("wait_flag_dev", "cross_core", ""),
    ("copy_matrix_cc_to_ubuf", "l0c", ""),
    ("copy_cbuf_to_ubuf", "mte1", "l1_to_ub_bytes_per_cycle"),
    ("img2col_cbuf_to_ca", "mte1", "load3d"),
    ("img2col_cbuf_to_cb", "mte1", "load3d"),
    ("img2colv2_cbuf_to_ca", "mte1", "load3d"),
    ("img2colv2_cbuf_to_cb", "mte1", "load3d"),
    ("mad.f322f32", "cube", "k_b32"),
    ("vbitsort", "vector", "sorted_per_cycle"),
    ("vmrgsort4", "vector", "sorted_per_cycle"),
    ("vf_call", "vector", "functions"),
    ("vf_call", "buffers", "VREG"),
    ("copy_ubuf_to_cbuf", "mte3", "ub_to_l1_bytes_per_cycle"),
    ("load_cbuf_to_ca_mx", "buffers", "L0A_MX"),
    ("load_cbuf_to_cb_mx", "buffers", "L0B_MX"),
    ("load_cbuf_to_ca_mx", "mte1", "scales"),
    ("load_cbuf_to_cb_mx", "mte1", "scales"),
    ("copy_ubuf_to_cbuf", "mte3", "on_chip_start_cycles"),
)
"""Instructions, some of one type only, that need an optional section or key of a section."""

FIXED = {
    "vector": {"block_bytes": BLOCK_BYTES, "repeat_bytes": REPEAT_BYTES, "max_repeat": MAX_REPEAT},
    "cube": {
        "m": FRACTAL_SIDE,
        "n": FRACTAL_SIDE,
        "k_b16": BLOCK_BYTES // 2,
        "k_b8": BLOCK_BYTES,
    },
}
"""Keys of sections that the encoding fixes; a machine file says them for its readers."""


MOST_REGISTERS, MOST_WINDOW = 63, 256
"""Limits of the schedule of a function, see `simulator.timing.functions`."""

LEAST_BYTES = {
    "L0A": 8 * FRACTAL_BYTES,
    "L0B": 8 * FRACTAL_BYTES,
    "L0C": 4 * FRACTAL_BYTES,
    "L1": 16 * FRACTAL_BYTES,
    "UB": 32 * FRACTAL_BYTES,
}
"""What kernels of small networks need: in L0A and L0B a fractal of a factor beside those of a bias,
residuals and results of bytes, two of sums of f32 in L0C, which take turns there, in L1 rows of an
image for the windows of a convolution, and in UB a fractal of each value of an epilogue."""


def check(machine: Machine, where: str) -> None:
    """Makes all of the checks below; `where` names the file in messages.

    Raises:
        InputError: the first thing that is wrong.
    """
    check_core_types(machine, where)
    check_encoded(machine, where)
    check_optional(machine, where)
    check_sequential(machine, where)
    check_powers(machine, where)
    check_capacities(machine, where)
    check_instructions(machine, where)
    check_owners(machine, where)
    check_bypass(machine, where)
    check_launch(machine, where)
    check_registers(machine, where)


def check_core_types(machine: Machine, where: str) -> None:
    """The core types are those of the machine's kind."""
    expected = KINDS[machine.kind]
    if list(machine.core_types) != expected:
        raise InputError(
            f"wrong core types for kind {machine.kind!r}",
            where=where,
            found=", ".join(f"core.{name}" for name in machine.core_types) or "none",
            expected=", ".join(f"core.{name}" for name in expected),
        )


def check_encoded(machine: Machine, where: str) -> None:
    """Numbers that instructions encode are those of `davinci.units`."""
    for section, keys in FIXED.items():
        for key, number in keys.items():
            found = getattr(getattr(machine, section), key)
            if found != number:
                raise InputError(
                    f"bad value of '{section}.{key}'",
                    where=where,
                    found=str(found),
                    expected=f"{number}, which the encoding of {section} instructions fixes",
                )


def check_sequential(machine: Machine, where: str) -> None:
    """The scalar unit is sequential on every machine: it issues the instructions of the others."""
    pipes = machine.sync.sequential_pipes
    if "S" not in pipes:
        raise InputError(
            "bad value of 'sync.sequential_pipes'",
            where=where,
            found=", ".join(pipes) or "none",
            expected="S and others",
        )


def check_optional(machine: Machine, where: str) -> None:
    """Optional sections and keys are there exactly where an instruction needs them."""
    present: dict[tuple[str, str], bool] = {}
    needed: dict[tuple[str, str], str] = {}
    for instruction, section, key in NEEDS:
        owner = getattr(machine, section)
        present[section, key] = owner is not None and (not key or getattr(owner, key) is not None)
        name, _, kind = instruction.partition(".")
        if name in machine.intrinsics and (not kind or kind in machine.intrinsics[name]):
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
    """Alignments and lines are powers of two, and a line holds whole blocks."""
    numbers = {
        f"buffers.{name}.align_bytes": (machine.buffer(name).align_bytes, 1)
        for name in OnChipMemories.model_fields
        if machine.buffers.of(name) is not None
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


def check_capacities(machine: Machine, where: str) -> None:
    """Memories on chip hold what the smallest kernels take."""
    for name, least in LEAST_BYTES.items():
        found = machine.buffer(name).bytes
        if found < least:
            raise InputError(
                f"bad value of 'buffers.{name}.bytes'",
                where=where,
                found=str(found),
                expected=f"at least {least}, which kernels of small networks need",
            )


def check_instructions(machine: Machine, where: str) -> None:
    """Instructions and types that the machine file names exist."""
    places: list[tuple[str, Iterable[str], Iterable[str]]] = [
        ("intrinsics", machine.intrinsics, BY_NAME)
    ]
    for name, found in machine.intrinsics.items():
        places.append((f"intrinsics.{name}", found, BY_NAME.get(name, {})))
    for key, names, known in places:
        for name in names:
            if name not in known:
                raise InputError(
                    f"no such instruction or type in {key!r}",
                    where=where,
                    found=repr(name),
                    hint=did_you_mean(name, known) or f"see {shipped('instructions.md')}",
                )


def check_owners(machine: Machine, where: str) -> None:
    """Some core has the pipe and the memories that an instruction of the machine needs."""
    for name, types in machine.intrinsics.items():
        for kind in types:
            record = BY_NAME[name][kind]
            missing = [reason_against(machine, core, record) for core in machine.core_types]
            if all(missing):
                raise InputError(
                    f"no core can execute {record.mnemonic} of [intrinsics]",
                    where=where,
                    found=missing[0],
                    expected="them among pipes and memories of a [core] section",
                )


def check_bypass(machine: Machine, where: str) -> None:
    """Addresses that bypass the L2 are none of global memory's, and keep their place in a line."""
    offset, gm = machine.l2.bypass_offset_bytes, machine.gm
    if offset is not None and (offset < gm.bytes or offset % gm.line_bytes):
        raise InputError(
            "bad value of 'l2.bypass_offset_bytes'",
            where=where,
            found=str(offset),
            expected=f"a multiple of {gm.line_bytes} (gm.line_bytes), at least {gm.bytes} "
            "(gm.bytes)",
        )


def check_launch(machine: Machine, where: str) -> None:
    """What a launch may take is given from the least to the most."""
    costs = machine.launch.all_cores_us_range
    if costs != sorted(set(costs)):
        raise InputError(
            "bad value of 'launch.all_cores_us_range'",
            where=where,
            found=", ".join(f"{cost:g}" for cost in costs),
            expected="times in microseconds, each longer than the one before",
        )


def check_registers(machine: Machine, where: str) -> None:
    """Vector registers are as many as the schedule of a function can tell apart, and it holds no
    more instructions than it remembers."""
    registers, functions = machine.buffers.of("VREG"), machine.vector.functions
    limits: list[tuple[str, int, int]] = []
    if registers is not None:
        limits.append(("buffers.VREG.bytes", registers.bytes, MOST_REGISTERS * REPEAT_BYTES))
    if functions is not None:
        limits.append(("vector.functions.window", functions.window, MOST_WINDOW))
    for key, found, most in limits:
        if found > most:
            raise InputError(
                f"bad value of {key!r}",
                where=where,
                found=str(found),
                expected=f"at most {most}",
            )
