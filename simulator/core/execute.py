"""Decoding and issuing, compiled: from records to steps of the time line.

Forms and steps that were seen before are found in a table, by the words that matter. For what is
new, and for what is wrong, the compiled code returns: the core learns it, or says what is wrong.
"""

from __future__ import annotations

from davinci.isa.core import (
    LOCATION_SHIFT,
    MOST_SCALAR_OPS,
    OPCODE_MASK,
    RECORD_WORDS,
    SCALAR_OPS_SHIFT,
)
from davinci.isa.unit_flags import UNIT_BYTES
from davinci.native import Bytes, Floats, Ints, ints_at
from davinci.simulator.core.columns import (
    ALIGNMENT,
    BY_ATOMIC,
    BY_DEQSCALE,
    BY_FMATRIX,
    BY_VA,
    COUNT_SHIFT,
    ENTRY,
    GM_PORT,
    KEY_HEAD,
    KEY_WORDS,
    OF_STEP,
    PORT,
    STRIDED,
    VA_WORDS,
    Effect,
    FormColumn,
    OpcodeColumn,
)
from davinci.simulator.core.events import MTE2
from davinci.simulator.timing.clock import CLEAR_BIT, OPS_SHIFT, UNIT_SHIFT, issue
from davinci.simulator.timing.layout import LIBRARY, Kind, StepColumn, Stop, Word
from davinci.units import BLOCK_BYTES

DIRECT = 1 << OPS_SHIFT
"""Bit beside the step of a noted transfer: it bypasses the L2."""


@LIBRARY.entry
def execute(t: Ints, x: Floats, records: Ints, count: int) -> int:
    """Executes records up to number `count`, from number `AT` on; returns a `Stop`."""
    opcodes = ints_at(t[Word.OPCODES])
    forms = ints_at(t[Word.FORMS])
    steps = ints_at(t[Word.STEPS])
    log = ints_at(t[Word.LOG])
    transfers = ints_at(t[Word.TRANSFERS])
    while t[Word.AT] < count:
        if t[Word.COUNT] >= t[Word.ROOM] or t[Word.TRANSFER_COUNT] >= t[Word.TRANSFER_ROOM]:
            return Stop.ROOM
        at = t[Word.AT] * RECORD_WORDS
        head = records[at]
        form = form_of(t, opcodes, records, at)
        if form < 0:
            return Stop.UNKNOWN_FORM
        row = form * FormColumn.COLUMNS
        gm_word = forms[row + FormColumn.GM_WORD]
        gm = 0
        direct = 0
        if gm_word:
            gm = records[at + gm_word]
            # A negative number is an address beyond all memory.
            if t[Word.BYPASS] and (gm >= t[Word.BYPASS] or gm < 0):
                gm -= t[Word.BYPASS]
                direct = DIRECT
        if t[Word.BOUNDS] and not inside(t, records, at, row, gm):
            return Stop.ILLEGAL
        step = forms[row + FormColumn.STEP]
        if step < 0:
            step = step_of(t, records, at, form)
            if step < 0:
                return Stop.UNKNOWN_STEP
        known = step * StepColumn.COLUMNS
        kind = steps[known + StepColumn.KIND]
        if kind == Kind.SET:
            place = t[Word.EVENT_SETS] + steps[known + StepColumn.EVENT]
            if t[place] > 0:
                return Stop.SET_TWICE
            t[place] += 1
        elif kind == Kind.WAIT:
            t[t[Word.EVENT_SETS] + steps[known + StepColumn.EVENT]] -= 1
        elif kind >= Kind.CROSS_SET:
            if not t[Word.PASS]:
                return Stop.CROSS
            t[Word.PASS] = 0
        effect = forms[row + FormColumn.EFFECT]
        if effect:
            load(t, records, at, effect)
        ops = head >> SCALAR_OPS_SHIFT & MOST_SCALAR_OPS
        clear = CLEAR_BIT if steps[known + StepColumn.OVERLAP] else 0
        if forms[row + FormColumn.WRITES] and not write_last(t, records, at, row):
            clear = 0
        unit = 0
        if forms[row + FormColumn.UNITS]:
            unit = records[at + forms[row + FormColumn.UNITS]] // UNIT_BYTES
        log[t[Word.COUNT]] = step | clear | ops << OPS_SHIFT | unit << UNIT_SHIFT
        if steps[known + StepColumn.MOVES]:
            noted = 2 * t[Word.TRANSFER_COUNT]
            transfers[noted] = step | direct
            transfers[noted + 1] = gm
            t[Word.TRANSFER_COUNT] += 1
        stop = issue(t, x, step, clear, unit, ops, head >> LOCATION_SHIFT)
        if stop != Stop.END:
            return stop
        t[Word.AT] += 1
        if t[Word.CAME]:
            return Stop.CAME
    return Stop.END


@LIBRARY.function
def form_of(t: Ints, opcodes: Ints, records: Ints, at: int) -> int:
    """Number of the form of a record, -1 if it is not known; its key is in `t` then."""
    opcode = records[at] & OPCODE_MASK
    row = opcode * OpcodeColumn.COLUMNS
    if not opcodes[row + OpcodeColumn.KNOWN]:
        return -1
    key = t[Word.KEY]
    first = opcodes[row + OpcodeColumn.FIRST]
    end = opcodes[row + OpcodeColumn.END]
    place = key + KEY_HEAD
    for i in range(first, end):
        t[place] = records[at + i] & opcodes[row + i]
        place += 1
    scalar = opcodes[row + OpcodeColumn.SCALAR]
    if scalar and records[at + scalar] & opcodes[row + OpcodeColumn.UNUSED]:
        return -1
    if opcodes[row + OpcodeColumn.SUMMARY]:
        for i in range(2):
            # Number of loads or stores, lowest and highest address: none may be the wrong way.
            low = records[at + 3 + 2 * i]
            if records[at + 1 + i] and not 0 <= low < records[at + 4 + 2 * i]:
                return -1
    head = opcode | place - key << COUNT_SHIFT
    t[key + 1] = 0
    t[key + 2] = 0
    if opcodes[row + OpcodeColumn.PLAIN]:
        t[key] = head
        form = find(t)
        if form >= 0:
            return form
    depends = opcodes[row + OpcodeColumn.DEPENDS]
    t[key] = head | depends << 16
    if depends == BY_FMATRIX:
        t[key + 1] = t[Word.FMATRIX]
    elif depends == BY_DEQSCALE:
        t[key + 1] = t[Word.DEQSCALE]
    elif depends == BY_ATOMIC:
        t[key + 1] = t[Word.ATOMIC]
        t[key + 2] = t[Word.FPC]
    elif depends == BY_VA:
        digest(t, key + 1)
    else:
        t[key + 1] = t[Word.MASK_LOW]
        t[key + 2] = t[Word.MASK_HIGH]
    return find(t)


@LIBRARY.function
def digest(t: Ints, place: int) -> None:
    """Two words that stand for the contents of the VA registers."""
    first = 1
    second = 2
    for i in range(VA_WORDS):
        address = t[t[Word.VA] + i]
        first = (first ^ address) * 0x2545F4914F6CDD1D
        first = first ^ (first >> 31 & 0x1FFFFFFFF)
        second = (second + address) * 0x369DEA0F31A53F85
        second = second ^ (second >> 29 & 0x7FFFFFFFF)
    t[place] = first
    t[place + 1] = second


@LIBRARY.function
def load(t: Ints, records: Ints, at: int, effect: int) -> None:
    """What an instruction does to the registers on which regions depend."""
    if effect == Effect.MASK:
        t[Word.MASK_LOW] = records[at + 1]
        t[Word.MASK_HIGH] = records[at + 2]
    elif effect == Effect.FMATRIX:
        t[Word.FMATRIX] = records[at + 1]
    elif effect == Effect.DEQSCALE:
        t[Word.DEQSCALE] = records[at + 1]
    elif effect == Effect.FPC:
        t[Word.FPC] = records[at + 1]
    elif effect >= Effect.ATOMIC:
        t[Word.ATOMIC] = effect - Effect.ATOMIC
    else:
        first = t[Word.VA] + (records[at + 1] & 7) * 8 + (records[at + 1] >> 3 & 1) * 4
        for i in range(4):
            t[first + i] = (records[at + 2] >> 16 * i & 0xFFFF) * BLOCK_BYTES


@LIBRARY.function
def inside(t: Ints, records: Ints, at: int, row: int, gm: int) -> int:
    """Whether all addresses of a record are aligned, and all that it touches is in its memories."""
    forms = ints_at(t[Word.FORMS])
    details = ints_at(t[Word.DETAILS])
    place = forms[row + FormColumn.DETAILS]
    gm_word = forms[row + FormColumn.GM_WORD]
    for _ in range(forms[row + FormColumn.ALIGNMENTS]):
        word = details[place]
        address = gm if word == gm_word else records[at + word]
        if address & details[place + 1] - 1:
            return 0
        place += ALIGNMENT
    for _ in range(forms[row + FormColumn.PORTS]):
        word = details[place]
        base = details[place + 1]
        if word:
            base += gm if word == gm_word else records[at + word]
        if base < 0 or base > t[t[Word.SIZES] + details[place + 3]] - details[place + 2]:
            return 0
        place += PORT
    if forms[row + FormColumn.SUMMARY]:
        size = t[t[Word.SIZES] + records[at + 7]]
        if records[at + 1] and records[at + 4] > size:
            return 0
        if records[at + 2] and records[at + 6] > size:
            return 0
    return 1


@LIBRARY.function
def write_last(t: Ints, records: Ints, at: int, row: int) -> int:
    """Notes what a record has the vector unit write, its last regions, from end to end; returns
    whether it touches nothing that was noted before."""
    forms = ints_at(t[Word.FORMS])
    details = ints_at(t[Word.DETAILS])
    place = forms[row + FormColumn.DETAILS] + forms[row + FormColumn.ALIGNMENTS] * ALIGNMENT
    ports = forms[row + FormColumn.PORTS]
    first = ports - forms[row + FormColumn.WRITES]
    clear = 1
    written_low = 0
    written_high = 0
    for i in range(ports):
        low = details[place + 1]
        if details[place]:
            low += records[at + details[place]]
        high = low + details[place + 2]
        if low < t[Word.WRITTEN_HIGH] and high > t[Word.WRITTEN_LOW]:
            clear = 0
        if i >= first:
            written_low = min(low, written_low) if i > first else low
            written_high = max(high, written_high) if i > first else high
        place += PORT
    t[Word.WRITTEN_LOW] = written_low
    t[Word.WRITTEN_HIGH] = written_high
    return clear


@LIBRARY.function
def step_of(t: Ints, records: Ints, at: int, form: int) -> int:
    """Number of the step of a record, by what of its addresses its cost depends on; -1 if it is not
    known; its key is in `t` then."""
    forms = ints_at(t[Word.FORMS])
    details = ints_at(t[Word.DETAILS])
    row = form * FormColumn.COLUMNS
    key = t[Word.KEY]
    t[key] = OF_STEP | 3 << COUNT_SHIFT
    t[key + 1] = form
    if forms[row + FormColumn.SUMMARY]:
        t[key + 2] = records[at + 1] + records[at + 2]
        return find(t)
    if forms[row + FormColumn.GM_WORD]:
        address = records[at + forms[row + FormColumn.GM_WORD]]
        t[key + 2] = (address + forms[row + FormColumn.GM_OFFSET]) % t[Word.LINE]
        return find(t)
    place = forms[row + FormColumn.STRIDES]
    strided = forms[row + FormColumn.STRIDED]
    t[key] = OF_STEP | strided + 2 << COUNT_SHIFT
    for i in range(strided):
        address = records[at + details[place]]
        block = address // BLOCK_BYTES
        bank = block // t[Word.ROW_BLOCKS]
        if address + details[place + 1] <= (bank + 1) * t[Word.ROW_BLOCKS] * BLOCK_BYTES:
            block = block % t[Word.BANK_GROUPS] + bank * t[Word.ROW_BLOCKS]
        t[key + 2 + i] = block
        place += STRIDED
    return find(t)


@LIBRARY.function
def slot_of(t: Ints, table: Ints, size: int) -> int:
    """Where the key in `t` is in a table, or the empty place for it."""
    key = t[Word.KEY]
    mixed = 0
    count = t[key] >> COUNT_SHIFT
    for i in range(count):
        mixed = (mixed ^ t[key + i]) * 0x2545F4914F6CDD1D
        mixed = mixed ^ (mixed >> 32 & 0xFFFFFFFF)
    slot = mixed & size - 1
    while 1:
        at = slot * ENTRY
        if table[at] == 0:
            return at
        same = 1
        for i in range(count):
            if table[at + 1 + i] != t[key + i]:
                same = 0
                break
        if same:
            return at
        slot = slot + 1 & size - 1
    return -1


@LIBRARY.function
def find(t: Ints) -> int:
    """What the table has for the key in `t`, -1 if nothing."""
    table = ints_at(t[Word.TABLE])
    return table[slot_of(t, table, t[Word.TABLE_SIZE])] - 1


@LIBRARY.entry
def insert(t: Ints, value: int) -> None:
    """Puts the key in `t` into the table, with a number."""
    table = ints_at(t[Word.TABLE])
    at = slot_of(t, table, t[Word.TABLE_SIZE])
    table[at] = value + 1
    for i in range(KEY_WORDS):
        table[at + 1 + i] = t[t[Word.KEY] + i]


@LIBRARY.entry
def reads_of(t: Ints, count: int, ends: Ints, fill_in: int) -> int:
    """How many of the noted transfers MTE2 reads with, and for each of them, if `fill_in`, the
    numbers of its first line among those of `lines_of` and of the one behind its last.
    """
    transfers = ints_at(t[Word.TRANSFERS])
    steps = ints_at(t[Word.STEPS])
    forms = ints_at(t[Word.FORMS])
    details = ints_at(t[Word.DETAILS])
    line = t[Word.LINE]
    lines = 0
    found = 0
    for i in range(count):
        known = (transfers[2 * i] & DIRECT - 1) * StepColumn.COLUMNS
        row = steps[known + StepColumn.FORM] * FormColumn.COLUMNS
        port = forms[row + FormColumn.GM_PORTS]
        first_line = lines
        for _ in range(forms[row + FormColumn.GM_PORT_COUNT]):
            address = transfers[2 * i + 1] + details[port]
            run = details[port + 4]
            for _ in range(details[port + 3]):
                first = (address + details[run]) // line
                last = (address + details[run] + details[run + 1] - 1) // line
                lines += max(last - first + 1, 0)
                run += 2
            port += GM_PORT
        if steps[known + StepColumn.PIPE] == MTE2 and steps[known + StepColumn.GM_READ]:
            if fill_in:
                ends[2 * found] = first_line
                ends[2 * found + 1] = lines
            found += 1
    return found


@LIBRARY.entry
def lines_of(t: Ints, count: int, lines: Ints, kinds: Bytes, sizes: Ints, fill_in: int) -> int:
    """The lines that the noted transfers touch, in order, and how many.

    Args:
        count: of transfers.
        lines, kinds: filled in, if `fill_in`; kinds are those of `timing.l2`.
        sizes: bytes of each kind; added to if not `fill_in`.
    """
    transfers = ints_at(t[Word.TRANSFERS])
    steps = ints_at(t[Word.STEPS])
    forms = ints_at(t[Word.FORMS])
    details = ints_at(t[Word.DETAILS])
    line = t[Word.LINE]
    found = 0
    for i in range(count):
        step = transfers[2 * i] & DIRECT - 1
        direct = 2 if transfers[2 * i] & DIRECT else 0
        row = steps[step * StepColumn.COLUMNS + StepColumn.FORM] * FormColumn.COLUMNS
        port = forms[row + FormColumn.GM_PORTS]
        for _ in range(forms[row + FormColumn.GM_PORT_COUNT]):
            address = transfers[2 * i + 1] + details[port]
            kind = details[port + 1] + direct
            if not fill_in:
                sizes[kind] += details[port + 2]
            run = details[port + 4]
            for _ in range(details[port + 3]):
                first = (address + details[run]) // line
                last = (address + details[run] + details[run + 1] - 1) // line
                if fill_in:
                    for number in range(first, last + 1):
                        lines[found] = number
                        kinds[found] = kind
                        found += 1
                else:
                    found += max(last - first + 1, 0)
                run += 2
            port += GM_PORT
    return found
