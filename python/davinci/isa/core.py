"""What an instruction record is. Everything that knows an instruction reads its record.

An encoded instruction is a header and up to seven 64-bit words:

    header   bits 0..15 opcode, 16..31 scalar operations issued since the instruction before,
             32..63 source location id
    words    first the address operands, one a word, in order; then the configuration words

Configuration words hold the fields; bits 56..63 hold the repeat count where there is one. Opcode
and address words are what the call in LLVM code names and passes; see docs/architecture.md, llvm.

Semantics read no simulator state: `accesses` says which bytes are read and written, as strided
regions; `compute` maps the arrays read to the arrays written, which broadcast to the shapes of the
regions written; the arrays read may be views of memory. All sources are read before anything is
written. Bounds, alignment, unwritten bytes and races are checked by the simulator from the accesses
alone, the same way for every instruction. A gather reads more than `accesses` says: `finds` names
it from the data that those read.
Floating-point overflow gives infinity: run `compute` under `np.errstate(all="ignore")`.
Records import neither MLIR nor the simulator; what takes long to compute are native functions
(`davinci.native`), for which MLIR is imported when the first one is called.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from davinci.errors import InputError

Array = npt.NDArray[Any]

RECORD_WORDS = 8
"""64-bit words of one encoded instruction in the stream: a header and seven operand words."""

Records = npt.NDArray[np.uint64]
"""A stream of encoded instructions in program order, of shape [n, RECORD_WORDS]."""


class Space(enum.IntEnum):
    """Memories; the number is the LLVM address space of pointers into them."""

    GM = 1
    L1 = 2
    L0A = 3
    L0B = 4
    L0C = 5
    UB = 6
    VREG = 7
    L0A_MX = 8
    L0B_MX = 9
    BT = 10
    FB = 11


class Pipe(enum.IntEnum):
    """Queues of a core; the number is the one that flags and barriers encode."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    ALL = 6
    FIX = 10


PIPE_FIELDS = ("src_pipe", "dst_pipe", "pipe")
"""Fields of flags and barriers that hold a `Pipe`."""


TIMING_RULES: dict[str, str] = {
    "vector": "fixed cost and cycles per repeat of the mnemonic",
    "vnchwconv": "fixed cost and cycles per repeat of the 16x16 transpose",
    "cube": "fractal products at one a cycle, and occupancy",
    "mte1_load2d": "512-byte fractals from L1 into L0A or L0B",
    "mte1_scales": "fractals of scales from L1, 32 bytes each",
    "mte1_load3d": "fractals of the windows of an image in L1, into L0A or L0B",
    "mte1_copy": "bursts from L1 to UB",
    "l1_to_bt": "bursts from L1 to the bias table",
    "l1_to_fb": "bursts from L1 to the buffer of fixpipe",
    "mte2": "bursts from GM to UB or L1",
    "mte3": "bursts from UB to GM or L1",
    "ub_to_ub": "bursts inside UB, on the vector pipe",
    "l0c_to_ub": "fractals from L0C to UB, on the vector pipe",
    "fixpipe": "results from L0C to GM",
    "fixpipe_to_ub": "results from L0C to UB of vector cores",
    "fixpipe_to_l1": "results from L0C to L1",
    "nd2nz": "rows from GM that become fractals in L1",
    "l1_fill": "numbers into L1",
    "flag": "set_flag and wait_flag",
    "cross_core_flag": "ffts_cross_core_sync and wait_flag_dev",
    "counter": "post_counter, poll_counters and end_poll",
    "turn": "pass_turn and await_turn",
    "barrier": "pipe_barrier",
    "vector_function": "the call of a function of the vector unit",
    "register": "an instruction of such a function, on vector registers",
    "sort": "fixed cost and elements that are sorted in a cycle",
    "scalar": "one instruction of the scalar unit",
    "scalar_access": "loads and stores of the scalar unit, summed up",
}
"""Names of the timing rules; the simulator implements each."""

DTYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "s16": np.dtype(np.int16),
    "u16": np.dtype(np.uint16),
    "s32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "s64": np.dtype(np.int64),
    "b8": np.dtype(np.uint8),
    "b16": np.dtype(np.uint16),
    "b32": np.dtype(np.uint32),
}


@dataclass(frozen=True)
class Operand:
    """An address operand, one word of the record: a byte address in `space`.

    `align_bytes` is the alignment of the address, 0 for the granularity of the memory as the
    machine file has it.
    """

    name: str
    space: Space
    writes: bool
    doc: str = ""
    align_bytes: int = 0


@dataclass(frozen=True)
class Field:
    """Bits `lo`..`hi` (inclusive) of configuration word `word`; legal values `minimum`..`maximum`.

    `maximum` defaults to what the bits can hold. An `optional` field that is not given is 0.
    """

    name: str
    lo: int
    hi: int
    word: int = 0
    minimum: int = 0
    maximum: int = -1
    doc: str = ""
    optional: bool = False

    @property
    def width(self) -> int:
        """Number of bits."""
        return self.hi - self.lo + 1

    @property
    def limit(self) -> int:
        """Largest legal value."""
        return self.maximum if self.maximum >= 0 else (1 << self.width) - 1


@dataclass(frozen=True)
class Access:
    """A strided region of one memory.

    `dims` are (count, stride in bytes), outermost first; each innermost point is a run of `run`
    elements of `dtype`. Read as an array its shape is (*counts, run). `mask`, if given, is a
    boolean array that broadcasts to that shape: elements where it is false are not touched.
    """

    space: Space
    address: int
    dims: tuple[tuple[int, int], ...]
    run: int
    dtype: np.dtype[Any]
    mask: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return (*(count for count, _ in self.dims), self.run)

    @property
    def strides(self) -> tuple[int, ...]:
        return (*(stride for _, stride in self.dims), self.dtype.itemsize)

    @property
    def span_bytes(self) -> int:
        """Distance from the first byte to one past the last; 0 for an empty region."""
        if 0 in self.shape:
            return 0
        last = sum((count - 1) * stride for count, stride in self.dims)
        return last + self.run * self.dtype.itemsize

    @property
    def size_bytes(self) -> int:
        """Bytes touched, ignoring the mask."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


@lru_cache(maxsize=1024)
def lanes_of(low: int, high: int, count: int) -> tuple[int, Array | None]:
    """A vector mask as the lanes it lets through, of the first `count`.

    Returns:
        (n, None) if these are exactly the first n lanes, else (count, booleans of shape [count]).
    """
    bits = (low | high << 64) & ((1 << count) - 1)
    if bits & (bits + 1) == 0:
        return bits.bit_length(), None
    words = np.array([low, high], dtype="<u8")
    lanes = np.unpackbits(words.view(np.uint8), bitorder="little")[:count].astype(bool)
    lanes.flags.writeable = False
    return count, lanes


@dataclass
class Registers:
    """Special registers of a core, written by instructions in program order.

    Attributes:
        mask_low: vector mask of lanes 0..63.
        mask_high: vector mask of lanes 64..127.
        cmpmask: result of the last compare, one boolean a lane.
        va: the byte addresses in UB that the 8 VA registers hold, 8 in each.
        fmatrix: the word of FMATRIX, see `davinci.isa.img2col`.
        padding: bits of the element around images.
        deqscale: the word of DEQSCALE, see `davinci.isa.dequantize`.
        quant_pre, fpc: words of QUANT_PRE and FPC, see `davinci.isa.fixpipe_tables`.
        atomic: which element type stores to global memory are added in, see `davinci.isa.atomic`.
    """

    mask_low: int = (1 << 64) - 1
    mask_high: int = (1 << 64) - 1
    cmpmask: Array = field(default_factory=lambda: np.zeros(128, dtype=bool))
    va: Array = field(default_factory=lambda: np.zeros((8, 8), dtype=np.int64))
    fmatrix: int = 0
    padding: int = 0
    deqscale: int = 0
    atomic: int = 0
    quant_pre: int = 0
    fpc: int = 0

    def lanes(self, count: int) -> tuple[int, Array | None]:
        """The lanes the vector mask lets through, see `lanes_of`."""
        return lanes_of(self.mask_low, self.mask_high, count)


Values = Mapping[str, int]
"""Decoded operands and fields by name: byte addresses and field values."""

Accesses = tuple[Sequence[Access], Sequence[Access]]
"""Regions read and regions written."""

Regions = Callable[[Values, Registers], Accesses]
"""`accesses` of a record."""

Compute = Callable[[Values, Registers, Sequence[Array]], Sequence[Array]]
"""`compute` of a record: from the arrays read to the arrays written."""

Finds = Callable[[Values, Registers, Sequence[Array]], Sequence[Access]]
"""`finds` of a record: from the arrays read to further regions read."""


def finds_nothing(
    values: Values, registers: Registers, arrays: Sequence[Array]
) -> Sequence[Access]:
    """`finds` of an instruction that says what it reads before it reads."""
    return ()


@dataclass(frozen=True)
class Instruction:
    """The record of one instruction for one element type.

    Attributes:
        name: the field's name, e.g. `vadd`; with `type` it makes the mnemonic `vadd.f32`.
        type: element type or type pair, "" where the instruction has none.
        opcode: unique number, assigned by the registry.
        pipe: the queue that executes it. For flags see `pipe_of`.
        operands: address operands, in order.
        fields: bit fields of the configuration words.
        accesses: (values, registers) -> regions read and written.
        compute: (fields, registers, arrays read) -> arrays written; may update registers.
        timing: name of a rule in `TIMING_RULES`.
        doc: what it does; units of its fields.
        source: where the fact comes from.
        check: further limits that relate several values; returns a message or "".
        finds: (values, registers, arrays read) -> further regions read, whose arrays `compute` gets
            behind the others; ValueError if the data names none.
    """

    name: str
    type: str
    pipe: Pipe
    operands: tuple[Operand, ...]
    fields: tuple[Field, ...]
    accesses: Regions
    compute: Compute
    timing: str
    doc: str
    source: str
    check: Callable[[Values], str] = lambda values: ""
    finds: Finds = finds_nothing
    opcode: int = -1
    _layout: tuple[tuple[str, int, int, int], ...] = field(init=False, repr=False, compare=False)
    _names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _bounds: tuple[tuple[str, int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        base = len(self.operands)
        layout = tuple((f.name, base + f.word, f.lo, (1 << f.width) - 1) for f in self.fields)
        object.__setattr__(self, "_layout", layout)
        object.__setattr__(self, "_names", tuple(o.name for o in self.operands))
        object.__setattr__(
            self, "_bounds", tuple((f.name, f.minimum, f.limit) for f in self.fields)
        )

    @property
    def mnemonic(self) -> str:
        return f"{self.name}.{self.type}" if self.type else self.name

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @cached_property
    def words(self) -> int:
        """Number of configuration words."""
        return 1 + max((f.word for f in self.fields), default=-1)

    @cached_property
    def defaults(self) -> dict[str, int]:
        """Values of the fields that need not be given."""
        return {f.name: 0 for f in self.fields if f.optional}

    def field_named(self, name: str) -> Field | None:
        """The field of that name, if there is one."""
        return next((f for f in self.fields if f.name == name), None)

    def pipe_of(self, values: Values) -> Pipe:
        """The queue this instance goes to: flags and barriers name it in a field."""
        if self.name == "set_flag":
            return Pipe(values["src_pipe"])
        if self.name == "wait_flag":
            return Pipe(values["dst_pipe"])
        if self.name in ("pipe_barrier", "ffts_cross_core_sync", "pass_turn"):
            return Pipe(values["pipe"])
        return self.pipe

    def illegal(self, values: Values) -> str:
        """Why these field values are not legal, or "" if they are. Addresses are not looked at."""
        for name, minimum, limit in self._bounds:
            if not minimum <= values[name] <= limit:
                return (
                    f"{self.mnemonic}: field {name} is out of range: found {values[name]}, "
                    f"expected {minimum}..{limit}"
                )
        message = self.check(values)
        return f"{self.mnemonic}: {message}" if message else ""

    def encode(self, values: Values) -> list[int]:
        """Operand words of the record: addresses, then configuration words.

        Raises:
            InputError: a value is missing or outside its field.
        """
        values = {**self.defaults, **values}
        names = [*self._names, *(f.name for f in self.fields)]
        missing = [name for name in names if name not in values]
        if missing:
            raise InputError("missing value", where=self.mnemonic, expected=", ".join(missing))
        if message := self.illegal(values):
            raise InputError(message)
        words = [int(values[o.name]) for o in self.operands] + [0] * self.words
        for name, index, lo, _ in self._layout:
            words[index] |= int(values[name]) << lo
        return words

    def decode(self, words: Sequence[int]) -> dict[str, int]:
        """Values from operand words (Python integers; further words are ignored).

        Legality is not checked here, see `illegal`.
        """
        values = dict(zip(self._names, words, strict=False))
        for name, index, lo, mask in self._layout:
            values[name] = words[index] >> lo & mask
        return values


def no_regions(values: Values, registers: Registers) -> Accesses:
    """`accesses` of an instruction that touches no memory."""
    return (), ()


def no_compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute` of an instruction without data."""
    return ()


OPCODE_MASK = 0xFFFF
SCALAR_OPS_SHIFT = 16
MOST_SCALAR_OPS = 0xFFFF
LOCATION_SHIFT = 32
"""Where the parts of the header word are, and how many scalar operations it counts."""


def header(opcode: int, scalar_ops: int = 0, location: int = 0) -> int:
    """Packs the header word of an encoded instruction."""
    counted = min(scalar_ops, MOST_SCALAR_OPS)
    return opcode | counted << SCALAR_OPS_SHIFT | location << LOCATION_SHIFT


QUEUES = tuple(pipe for pipe in Pipe if pipe is not Pipe.ALL)
"""The pipes that execute instructions."""


def check_queue(value: int) -> str:
    """Why `value` names no pipe that executes instructions, or "" if it does."""
    if value in QUEUES:
        return ""
    expected = ", ".join(f"{pipe.value} {pipe.name}" for pipe in QUEUES)
    return f"no such pipe: found {value}, expected {expected}"


INSTRUCTIONS: dict[str, Instruction] = {}
"""The records of the instructions by mnemonic, in opcode order."""

BY_OPCODE: dict[int, Instruction] = {}


def define(record: Instruction) -> Instruction:
    """Registers a record and gives it the next opcode; opcode 0 is never used."""
    if record.mnemonic in INSTRUCTIONS:
        raise ValueError(f"instruction {record.mnemonic} is defined twice")
    if len(record.operands) + record.words >= RECORD_WORDS:
        raise ValueError(f"instruction {record.mnemonic} does not fit a record")
    numbered = replace(record, opcode=len(INSTRUCTIONS) + 1)
    INSTRUCTIONS[numbered.mnemonic] = numbered
    BY_OPCODE[numbered.opcode] = numbered
    return numbered
