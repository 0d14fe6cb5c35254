"""Native definitions of the instruction intrinsics, as text in the LLVM dialect.

An instruction appends its record to the stream buffer. A scalar load or store accesses the memory
itself: it checks bounds and unwritten bytes, counts, and makes the device catch up first if the
buffer still holds instructions the access could depend on. All state lies in a context, an array of
64-bit words whose address is a constant in the text; `Slot` names its words.

Functions may hold scf and arith operations; `convert_hivm_to_llvm.UPSTREAM` lowers them.
"""

from __future__ import annotations

import enum

from davinci.isa import INSTRUCTIONS, RECORD_WORDS, Instruction, Space
from davinci.isa.core import LOCATION_SHIFT, MOST_SCALAR_OPS, SCALAR_OPS_SHIFT
from davinci.units import BLOCK_BYTES


class Slot(enum.IntEnum):
    """Words of the context."""

    BUFFER = 0  # address of the records
    CURSOR = 1  # records in the buffer
    CAPACITY = 2  # records the buffer can hold
    FLUSH = 3  # function that hands the buffer to the device
    BLOCK = 4
    BLOCKS = 5
    SCALAR_OPS = 6  # operations between scalar accesses, not yet in a record
    ACCESSES = 7  # tag of the last scalar access that is not yet in a record, 0 if all are
    TOUCHED_GM = 8  # whether the buffer holds an instruction that reads or writes GM
    WRITES_GM = 9
    FAULT = 10  # first fault: 0 none, or one of those below
    FAULT_ADDRESS = 11
    FAULT_BYTES = 12
    FAULT_TAG = 13
    FAULT_SPACE = 14
    SUB_BLOCK = 15
    GM = 16  # a `MemoryWord` for each memory
    UB = 32
    ROWS = 41  # address of the known records
    TURNS = 42  # that loops may still take
    INSTRUCTIONS = 43  # whether the buffer holds anything but records of scalar accesses


class MemoryWord(enum.IntEnum):
    """Words of the context about one memory, counted from `Slot.GM` or `Slot.UB`.

    LOADS to STORE_HIGH are in the order of the words of the record `scalar_access`.
    """

    LOADS = 0
    STORES = 1
    LOAD_LOW = 2
    LOAD_HIGH = 3
    STORE_LOW = 4
    STORE_HIGH = 5
    DATA = 6  # address of the bytes
    WRITTEN = 7  # address of the shadow, a byte of 0 or 1 for each byte; 0 where all are written
    SIZE = 8


CONTEXT_WORDS = 48
OUT_OF_BOUNDS, UNWRITTEN, DIVISION_BY_ZERO, TOO_MANY_TURNS = 1, 2, 3, 4
NO_ACCESS = (0, 0, (1 << 63) - 1, 0, (1 << 63) - 1, 0)
"""Counters of a port when nothing was accessed."""

SCALAR_BYTES = {"f16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
PORTS = {"": (Space.GM, Slot.GM), "ub.": (Space.UB, Slot.UB)}


NEAR_BYTES = BLOCK_BYTES - 1
"""Most bytes between accesses of UB that one record sums up: no block lies between them."""

ROWS_FUNCTION = "davinci.rows"
"""Appends known records: the number of the first, how many."""

FAULT_FUNCTION = "davinci.fault"
"""Remembers a fault: of which kind, at which address of which memory, of how many bytes, where."""

TURN = "davinci.turn"
"""Counts a turn of a loop; says whether it was the last one that the program may take."""

ACCESSES = ("hivm.ld.", "hivm.st.")
"""Beginnings of the names of loads and stores of the scalar unit."""

ADDS = "hivm.set_atomic_"
"""Beginning of the names of what makes stores to global memory add."""

WAITS = ("hivm.wait_flag_dev", "hivm.await_turn")
"""Names of what waits for another core of a split machine."""

CROSSINGS = (*WAITS, "hivm.ffts_cross_core_sync", "hivm.pass_turn")
"""Names of what concerns another core of a split machine."""

COUNTERS = ("hivm.post_counter", "hivm.poll_counters")
"""Names of what makes blocks wait for each other."""

REGISTERS = {
    "get_block_idx": Slot.BLOCK,
    "get_block_num": Slot.BLOCKS,
    "get_sub_block_idx": Slot.SUB_BLOCK,
}
"""Special registers of the scalar unit."""


class Text:
    """Lines of one function; each helper adds an operation and returns its value's name."""

    def __init__(self, context: int) -> None:
        self.context, self._count = context, 0
        self.lines: list[str] = []

    def add(self, operation: str) -> str:
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"{name} = {operation}")
        return name

    def do(self, line: str) -> None:
        self.lines.append(line)

    def constant(self, value: int, kind: str = "i64") -> str:
        return self.add(f"arith.constant {value} : {kind}")

    def slot(self, slot: int) -> str:
        address = self.constant(self.context + 8 * slot)
        return self.add(f"llvm.inttoptr {address} : i64 to !llvm.ptr")

    def load(self, slot: int) -> str:
        return self.add(f"llvm.load {self.slot(slot)} : !llvm.ptr -> i64")

    def store(self, value: str, slot: int) -> None:
        self.do(f"llvm.store {value}, {self.slot(slot)} : i64, !llvm.ptr")

    def arith(self, name: str, a: str, b: str) -> str:
        return self.add(f"arith.{name} {a}, {b} : i64")

    def compare(self, predicate: str, a: str, b: str) -> str:
        return self.add(f"arith.cmpi {predicate}, {a}, {b} : i64")

    def update(self, slot: int, name: str, value: str) -> None:
        """slot = name(slot, value)."""
        self.store(self.arith(name, self.load(slot), value), slot)

    def is_set(self, slot: int) -> str:
        return self.compare("ne", self.load(slot), self.constant(0))

    def call(self, name: str) -> None:
        self.do(f"llvm.call @{name}() : () -> ()")

    def pointer(self, base_slot: int, offset: str) -> str:
        """The host address `offset` bytes behind the one in a slot."""
        address = self.arith("addi", self.load(base_slot), offset)
        return self.add(f"llvm.inttoptr {address} : i64 to !llvm.ptr")

    def function(self, signature: str, inline: bool = False, internal: bool = True) -> str:
        """`internal`: only functions of the library call it, so none is made for the host."""
        body = "\n".join(f"  {line}" for line in self.lines)
        attributes = "" if inline else " attributes {no_inline}"
        linkage = "internal " if internal else ""
        return f"llvm.func {linkage}{signature}{attributes} {{\n{body}\n}}\n"


def definitions(context: int, names: list[str]) -> str:
    """Definitions of the intrinsics `names` ("hivm.vadd.f32", ...) and what they share."""
    accesses = any(name.startswith(ACCESSES) for name in names)
    parts = [flush(context), slot(context, accesses), rows(context, accesses)]
    parts += [fault(context), scalar_records(context)] if accesses else []
    parts += [intrinsic(context, name) for name in names]
    return "".join(parts)


def signature(name: str) -> str | None:
    """The type of the intrinsic `name` ("hivm.vadd.f32", ...), None if there is none."""
    mnemonic = name.removeprefix("hivm.")
    kind, _, rest = mnemonic.partition(".")
    if kind in ("ld", "st"):
        port, element = ("ub.", rest[3:]) if rest.startswith("ub.") else ("", rest)
        if element not in SCALAR_BYTES:
            return None
        pointer = f"ptr<{int(PORTS[port][0])}>"
        if kind == "ld":
            return f"!llvm.func<{element} ({pointer}, i64)>"
        return f"!llvm.func<void ({pointer}, {element}, i64)>"
    if mnemonic in REGISTERS:
        return "!llvm.func<i64 ()>"
    record = INSTRUCTIONS.get(mnemonic)
    if record is None:
        return None
    addresses = [f"ptr<{int(o.space)}>" for o in record.operands]
    return f"!llvm.func<void ({', '.join([*addresses, *['i64'] * (record.words + 1)])})>"


def intrinsic(context: int, name: str) -> str:
    """The definition of one intrinsic."""
    kind, _, rest = name.removeprefix("hivm.").partition(".")
    if kind in ("ld", "st"):
        port = "ub." if rest.startswith("ub.") else ""
        return scalar_access(context, name, kind, rest.removeprefix("ub."), port)
    if kind in REGISTERS:
        text = Text(context)
        value = text.load(REGISTERS[kind])
        text.do(f"llvm.return {value} : i64")
        return text.function(f"@{name}() -> i64", inline=True)
    return append(context, name, INSTRUCTIONS[name.removeprefix("hivm.")])


def append(context: int, name: str, record: Instruction) -> str:
    """An instruction: header and words go to the next free record of the buffer."""
    text = Text(context)
    arguments = [f"%a{i}: !llvm.ptr<{int(o.space)}>" for i, o in enumerate(record.operands)]
    arguments += [f"%w{i}: i64" for i in range(record.words)]
    header = text.arith("ori", "%tag", text.constant(record.opcode))
    words = [
        text.add(f"llvm.ptrtoint %a{i} : !llvm.ptr<{int(o.space)}> to i64")
        for i, o in enumerate(record.operands)
    ]
    words += [f"%w{i}" for i in range(record.words)]
    place = text.add(f"llvm.call @davinci.slot({header}) : (i64) -> !llvm.ptr")
    store_words(text, place, words)
    text.store(text.constant(1), Slot.INSTRUCTIONS)
    if touches_gm(record):
        text.store(text.constant(1), Slot.TOUCHED_GM)
    if waits(record) or any(o.writes and o.space is Space.GM for o in record.operands):
        text.store(text.constant(1), Slot.WRITES_GM)
    text.do("llvm.return")
    return text.function(f"@{name}({', '.join([*arguments, '%tag: i64'])})")


def touches_gm(record: Instruction) -> bool:
    """Says whether an instruction may read or write GM."""
    return waits(record) or any(o.space is Space.GM for o in record.operands)


def waits(record: Instruction) -> bool:
    """Says whether an instruction waits for another core, whose data is in GM then."""
    return f"hivm.{record.mnemonic}" in WAITS


def store_words(text: Text, place: str, words: list[str]) -> None:
    """Writes the words behind the header of a record."""
    for i, word in enumerate(words):
        kind = "(!llvm.ptr) -> !llvm.ptr, i64"
        target = text.add(f"llvm.getelementptr {place}[{i + 1}] : {kind}")
        text.do(f"llvm.store {word}, {target} : i64, !llvm.ptr")


def flush(context: int) -> str:
    """Hands the buffer to the device."""
    text = Text(context)
    function = text.add(f"llvm.load {text.slot(Slot.FLUSH)} : !llvm.ptr -> !llvm.ptr")
    text.do(f"llvm.call {function}() : !llvm.ptr, () -> ()")
    for cleared in (Slot.CURSOR, Slot.TOUCHED_GM, Slot.WRITES_GM, Slot.INSTRUCTIONS):
        text.store(text.constant(0), cleared)
    text.do("llvm.return")
    return text.function("@davinci.flush()")


def next_record(text: Text, header: str) -> str:
    """The next free record of the buffer, with its header written."""
    full = text.compare("eq", text.load(Slot.CURSOR), text.load(Slot.CAPACITY))
    text.do(f"scf.if {full} {{")
    text.call("davinci.flush")
    text.do("}")
    cursor = text.load(Slot.CURSOR)
    offset = text.arith("muli", cursor, text.constant(8 * RECORD_WORDS))
    place = text.pointer(Slot.BUFFER, offset)
    text.store(text.arith("addi", cursor, text.constant(1)), Slot.CURSOR)
    text.do(f"llvm.store {header}, {place} : i64, !llvm.ptr")
    return place


def pending_accesses(text: Text) -> None:
    """The records of the scalar accesses before an instruction."""
    text.do(f"scf.if {text.is_set(Slot.ACCESSES)} {{")
    text.call("davinci.scalar_records")
    text.do("}")


def slot(context: int, accesses: bool) -> str:
    """The place of an instruction's record, behind those of the scalar accesses before it, where
    the module has any."""
    text = Text(context)
    if accesses:
        pending_accesses(text)
    text.do(f"llvm.return {next_record(text, '%header')} : !llvm.ptr")
    return text.function("@davinci.slot(%header: i64) -> !llvm.ptr")


def rows(context: int, accesses: bool) -> str:
    """Copies known records to the next free ones; `accesses` as for `slot`."""
    text = Text(context)
    if accesses:
        pending_accesses(text)
    text.store(text.constant(1), Slot.INSTRUCTIONS)
    zero, one = text.constant(0), text.constant(1)
    text.do(f"scf.for %i = {zero} to %count step {one} : i64 {{")
    offset = text.arith("muli", text.arith("addi", "%first", "%i"), text.constant(8 * RECORD_WORDS))
    source = text.pointer(Slot.ROWS, offset)
    words = []
    for i in range(RECORD_WORDS):
        word = text.add(f"llvm.getelementptr {source}[{i}] : (!llvm.ptr) -> !llvm.ptr, i64")
        words.append(text.add(f"llvm.load {word} : !llvm.ptr -> i64"))
    store_words(text, next_record(text, words[0]), words[1:])
    text.do("}")
    text.do("llvm.return")
    return text.function(f"@{ROWS_FUNCTION}(%first: i64, %count: i64)")


def scalar_records(context: int) -> str:
    """Writes a `scalar_access` record for each memory accessed and resets the counters.

    The operations between the accesses go into the headers; as many empty records follow as it
    takes to hold them all.
    """
    record = INSTRUCTIONS["scalar_access"]
    text = Text(context)
    for space, port in PORTS.values():
        counts = [text.load(port + i) for i in range(len(NO_ACCESS))]
        total = text.arith("addi", counts[0], counts[1])
        text.do(f"scf.if {text.compare('ne', total, text.constant(0))} {{")
        header = text.arith("ori", counted_header(text, record.opcode), last_location(text))
        place = next_record(text, header)
        ranges = [known_low(text, counts[i // 2 - 1], counts[i]) for i in (2, 4)]
        words = [*counts[:2], ranges[0], counts[3], ranges[1], counts[5]]
        store_words(text, place, [*words, text.constant(int(space))])
        for i, value in enumerate(NO_ACCESS):
            text.store(text.constant(value), port + i)
        text.do("}")
    text.store(text.constant(0), Slot.ACCESSES)
    text.do("scf.while : () -> () {")
    text.do(f"scf.condition({text.is_set(Slot.SCALAR_OPS)})")
    text.do("} do {")
    place = next_record(text, counted_header(text, record.opcode))
    zero = text.constant(0)
    store_words(text, place, [zero] * len(NO_ACCESS) + [text.constant(int(Space.GM))])
    text.do("scf.yield")
    text.do("}")
    text.do("llvm.return")
    return text.function("@davinci.scalar_records()", internal=False)


def known_low(text: Text, count: str, low: str) -> str:
    """The lowest address, 0 where nothing was accessed."""
    zero = text.constant(0)
    none = text.compare("eq", count, zero)
    return text.add(f"arith.select {none}, {zero}, {low} : i64")


def last_location(text: Text) -> str:
    """The location of the last access, where headers have it."""
    shift = text.constant(LOCATION_SHIFT)
    return text.arith("shli", text.arith("shrui", text.load(Slot.ACCESSES), shift), shift)


def counted_header(text: Text, opcode: int) -> str:
    """A header with as many of the pending scalar operations as it can hold."""
    pending = text.load(Slot.SCALAR_OPS)
    held = text.arith("minui", pending, text.constant(MOST_SCALAR_OPS))
    text.store(text.arith("subi", pending, held), Slot.SCALAR_OPS)
    shifted = text.arith("shli", held, text.constant(SCALAR_OPS_SHIFT))
    return text.arith("ori", shifted, text.constant(opcode))


def fault(context: int) -> str:
    """Remembers the first fault."""
    text = Text(context)
    first = text.compare("eq", text.load(Slot.FAULT), text.constant(0))
    text.do(f"scf.if {first} {{")
    for value, target in (
        ("%kind", Slot.FAULT),
        ("%address", Slot.FAULT_ADDRESS),
        ("%bytes", Slot.FAULT_BYTES),
        ("%tag", Slot.FAULT_TAG),
        ("%space", Slot.FAULT_SPACE),
    ):
        text.store(value, target)
    text.do("}")
    text.do("llvm.return")
    arguments = "%kind: i64, %address: i64, %bytes: i64, %tag: i64, %space: i64"
    return text.function(f"@{FAULT_FUNCTION}({arguments})")


def scalar_access(context: int, name: str, kind: str, element: str, prefix: str) -> str:
    """A load or store of the scalar unit."""
    space, port = PORTS[prefix]
    text = Text(context)
    address = text.add(f"llvm.ptrtoint %p : !llvm.ptr<{int(space)}> to i64")
    ops = text.arith("shrui", "%tag", text.constant(SCALAR_OPS_SHIFT))
    ops = text.arith("andi", ops, text.constant(MOST_SCALAR_OPS))
    text.update(Slot.SCALAR_OPS, "addi", ops)
    catch_up(text, space, kind)
    count = SCALAR_BYTES[element]
    end = text.arith("addi", address, text.constant(count))
    fits = text.compare("ule", end, text.load(port + MemoryWord.SIZE))
    inside = text.add(f"arith.andi {fits}, {text.compare('ult', address, end)} : i1")
    result = (
        f"%result = scf.if {inside} -> ({element}) {{" if kind == "ld" else f"scf.if {inside} {{"
    )
    text.do(result)
    if space is Space.UB:
        leave_far_behind(text, port, kind, address, end)
    count_access(text, port, kind, address, end)
    data = text.pointer(port + MemoryWord.DATA, address)
    all_written = int.from_bytes(b"\1" * count, "little")
    if kind == "ld":
        check_written(text, port, all_written, count, address, space)
        value = text.add(f"llvm.load {data} {{alignment = 1 : i64}} : !llvm.ptr -> {element}")
        text.do(f"scf.yield {value} : {element}")
    else:
        text.do(f"scf.if {text.is_set(port + MemoryWord.WRITTEN)} {{")
        shadow = text.pointer(port + MemoryWord.WRITTEN, address)
        mark = text.constant(all_written, f"i{8 * count}")
        text.do(f"llvm.store {mark}, {shadow} {{alignment = 1 : i64}} : i{8 * count}, !llvm.ptr")
        text.do("}")
        text.do(f"llvm.store %value, {data} {{alignment = 1 : i64}} : {element}, !llvm.ptr")
    text.do("} else {")
    report(text, OUT_OF_BOUNDS, address, count, space)
    if kind == "ld":
        zero = "0" if element[0] == "i" else "0.0"
        nothing = text.add(f"arith.constant {zero} : {element}")
        text.do(f"scf.yield {nothing} : {element}")
    text.do("}")
    pointer = f"%p: !llvm.ptr<{int(space)}>"
    if kind == "ld":
        text.do(f"llvm.return %result : {element}")
        return text.function(f"@{name}({pointer}, %tag: i64) -> {element}", inline=True)
    text.do("llvm.return")
    return text.function(f"@{name}({pointer}, %value: {element}, %tag: i64)", inline=True)


def catch_up(text: Text, space: Space, kind: str) -> None:
    """Makes the device execute what the access could depend on.

    In UB that is anything in the buffer; in GM instructions that write there, and before a store
    also those that read there.
    """
    pending = Slot.INSTRUCTIONS
    if space is Space.GM:
        pending = Slot.WRITES_GM if kind == "ld" else Slot.TOUCHED_GM
    text.do(f"scf.if {text.is_set(pending)} {{")
    text.call("davinci.flush")
    text.do("}")


def leave_far_behind(text: Text, port: int, kind: str, address: str, end: str) -> None:
    """Writes the record of the accesses so far where the next one is not near them: their range
    would hold what nobody accessed."""
    load = kind == "ld"
    low, high = (
        (MemoryWord.LOAD_LOW, MemoryWord.LOAD_HIGH)
        if load
        else (MemoryWord.STORE_LOW, MemoryWord.STORE_HIGH)
    )
    near = text.constant(NEAR_BYTES)
    above = text.compare("ugt", address, text.arith("addi", text.load(port + high), near))
    below = text.compare("ult", text.arith("addi", end, near), text.load(port + low))
    some = text.is_set(port + (MemoryWord.LOADS if load else MemoryWord.STORES))
    far = text.add(f"arith.andi {text.add(f'arith.ori {above}, {below} : i1')}, {some} : i1")
    text.do(f"scf.if {far} {{")
    text.call("davinci.scalar_records")
    text.do("}")


def count_access(text: Text, port: int, kind: str, address: str, end: str) -> None:
    load = kind == "ld"
    text.store(text.arith("ori", "%tag", text.constant(1)), Slot.ACCESSES)
    text.update(port + (MemoryWord.LOADS if load else MemoryWord.STORES), "addi", text.constant(1))
    text.update(port + (MemoryWord.LOAD_LOW if load else MemoryWord.STORE_LOW), "minui", address)
    text.update(port + (MemoryWord.LOAD_HIGH if load else MemoryWord.STORE_HIGH), "maxui", end)


def check_written(
    text: Text, port: int, expected: int, count: int, address: str, space: Space
) -> None:
    """A fault unless all bytes of a load are written; where none are noted all of them are."""
    text.do(f"scf.if {text.is_set(port + MemoryWord.WRITTEN)} {{")
    shadow = text.pointer(port + MemoryWord.WRITTEN, address)
    kind = f"i{8 * count}"
    found = text.add(f"llvm.load {shadow} {{alignment = 1 : i64}} : !llvm.ptr -> {kind}")
    wanted = text.constant(expected, kind)
    bad = text.add(f"arith.cmpi ne, {found}, {wanted} : {kind}")
    text.do(f"scf.if {bad} {{")
    report(text, UNWRITTEN, address, count, space)
    text.do("}")
    text.do("}")


def report(text: Text, fault_kind: int, address: str, count: int, space: Space) -> None:
    kind, size = text.constant(fault_kind), text.constant(count)
    arguments = f"{kind}, {address}, {size}, %tag, {text.constant(int(space))}"
    text.do(f"llvm.call @davinci.fault({arguments}) : (i64, i64, i64, i64, i64) -> ()")
