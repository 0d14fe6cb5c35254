"""Kernels that people reported, in a short notation that becomes text of AscendNPU-IR.

A file has one instruction a line. Lines that begin with `-` are only in the kernel as it was
reported, lines that begin with `+` only in its correct twin, and `!` at the end of a line marks the
instructions that the fault must name. Every instruction has its line of the file as its location.

    @source hw-native-sys/PTOAS 934     where it was reported
    @fault race                         what the fault says
    @expect y = x * 2                   what the twin computes, in NumPy
    @given n = 0                        a scalar argument
    @grid 2                             programs, 1 if absent
    in x f32 64                         an array argument: name, element type, elements
    out y f32 64
    core aic                            what follows is the program of the cube cores
    ub a 256 f32 64                     a buffer: name, byte address, element type, shape
    load x[i*64] a                      from an array to a buffer; `store a y[0]` the other way
    vadd a b c                          an instruction of the vector unit, its result last
    set MTE2 V 0                        set_flag; wait, barrier alike
    signal MTE3 4, await MTE2 4, meet   flags between cores, and all vector cores
    for i 4, if n > 0, else, end        control; `pick p i a b` is a where i is even, else b
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from davinci.frontends.hivm import Given
from hivm_support import LOAD, STORE, memref, segments

SPACES = {"ub": "ub", "l1": "cbuf", "l0c": "cc"}
VECTOR = {"vadd": 2, "vsub": 2, "vmul": 2, "vmax": 2, "vdiv": 2, "vexp": 1}
"""Instructions of the vector unit and how many operands they have."""

TARGET = re.compile(r"(\w+)(?:\[([^\]]*)\])?")
CONDITIONS = {"==": 0, "!=": 1, "<": 2, ">": 4}
OVERFLOW = "overflowFlags = #arith.overflow<none>"


@dataclass(frozen=True)
class Report:
    """A file of a report."""

    path: Path

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    def said(self, key: str) -> list[str]:
        """What lines that begin with `@key` say."""
        begin = f"@{key} "
        return [line[len(begin) :] for line in self.lines if line.startswith(begin)]

    @property
    def scalars(self) -> dict[str, int]:
        found = (line.split(" = ") for line in self.said("given"))
        return {name: int(value) for name, value in found}

    @property
    def grid(self) -> int:
        return int(next(iter(self.said("grid")), "1"))

    @property
    def marked(self) -> set[int]:
        """Numbers of the lines that the fault must name."""
        return {n for n, line in enumerate(self.lines, 1) if line.endswith(" !")}

    @property
    def given(self) -> list[Given]:
        """Arguments of the kernel."""
        arrays = [line.split() for line in self.lines if line.startswith(("in ", "out "))]
        found = [Given(name, (int(size),), kind) for _, name, kind, size in arrays]
        return found + [Given(name, None, "i32") for name in self.scalars]

    def text(self, twin: bool) -> str:
        """Text of AscendNPU-IR of the kernel as it was reported, or of its correct twin."""
        left_out, kept = "-+" if twin else "+-"
        programs: dict[str, Program] = {}
        program = None
        for number, line in enumerate(self.lines, 1):
            words = line.removesuffix(" !").split()
            if not words or words[0] in ("#", "in", "out") or line.startswith(("@", left_out)):
                continue
            if words[0] == kept:
                words = words[1:]
            if words[0] == "core":
                program = programs.setdefault(words[1], Program(self, words[1]))
                continue
            if program is None:
                program = programs.setdefault("aiv", Program(self, "aiv"))
            program.instruction(words, number)
        mixed = len(programs) > 1
        functions = "\n".join(each.text(mixed) for each in programs.values())
        return f'"builtin.module"() ({{\n{functions}\n}}) : () -> ()\n'


@dataclass
class Program:
    """The program of one kind of core that is being written."""

    report: Report
    core: str
    body: list[str] = field(default_factory=list)
    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Values and their types."""
    shapes: dict[str, tuple[list[int], str]] = field(default_factory=dict)
    place: str = ""
    count: int = 0
    ends: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for given in self.report.given:
            kind = memref(["?"], given.element, "gm") if given.shape else given.element
            self.names[given.name] = (f"%{given.name}", kind)

    def op(self, name: str, operands: list[str], attributes: str = "", kind: str = "") -> str:
        """An operation on values by name, with this result type."""
        found = [self.names[operand] for operand in operands]
        values, kinds = ", ".join(v for v, _ in found), ", ".join(k for _, k in found)
        result = self.fresh() if kind else ""
        given = f" <{{{attributes}}}>" if attributes else ""
        left = f"{result} = " if kind else ""
        made = f'{left}"{name}"({values}){given} : ({kinds}) -> {kind or "()"} {self.place}'
        self.body.append(made)
        self.names[result] = (result, kind)
        return result

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def constant(self, value: str, kind: str) -> str:
        return self.op("arith.constant", [], f"value = {value} : {kind}", kind)

    def number(self, text: str, kind: str = "index") -> str:
        """A sum of numbers, names, and names with factors, as a value of that type."""
        parts = [self.term(part, kind) for part in text.split("+")]
        total = parts[0]
        for part in parts[1:]:
            total = self.op("arith.addi", [total, part], OVERFLOW, kind)
        return total

    def term(self, text: str, kind: str) -> str:
        """A number, a name, or a name with a factor."""
        if text.lstrip("-").isdigit():
            return self.constant(text, kind)
        name, _, factor = text.partition("*")
        found = name
        if self.names[name][1] != kind:
            found = self.op("arith.index_cast", [name], kind=kind)
        if not factor:
            return found
        return self.op("arith.muli", [found, self.constant(factor, kind)], OVERFLOW, kind)

    def slice(self, text: str, shape: list[int], width: int = 0) -> str:
        """A part of an array with the shape of a buffer; `width` is the pitch of its rows."""
        matched = TARGET.fullmatch(text)
        assert matched is not None, text
        name, offset = matched.group(1), self.number(matched.group(2) or "0")
        element = self.names[name][1].split("x")[1].split(",")[0]
        pitch = [width or shape[-1], 1][-len(shape) :]
        kind = memref(shape, element, "gm").replace(
            ", #", f", strided<[{', '.join(map(str, pitch))}], offset: ?>, #"
        )
        sizes, steps = (", ".join(map(str, numbers)) for numbers in (shape, pitch))
        attributes = (
            "operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = "
            f"array<i64: {-(1 << 63)}>, static_sizes = array<i64: {sizes}>, "
            f"static_strides = array<i64: {steps}>"
        )
        return self.op("memref.reinterpret_cast", [name, offset], attributes, kind)

    def instruction(self, words: list[str], line: int) -> None:
        """One line of the file."""
        self.place = f'loc("{self.report.path.name}":{line}:1)'
        name, rest = words[0], words[1:]
        if name in VECTOR:
            self.vector(name, rest)
        elif name in SPACES:
            self.buffer(name, *rest)
        else:
            getattr(self, f"do_{name}")(*rest)

    def buffer(self, space: str, name: str, address: str, element: str, sizes: str) -> None:
        shape = [int(n) for n in sizes.split("x")]
        kind = memref(shape, element, SPACES[space])
        self.shapes[name] = shape, element
        at = self.constant(str(int(address, 0)), "i64")
        made = self.op(
            "hivm.hir.pointer_cast", [at], "operandSegmentSizes = array<i32: 1, 0>", kind
        )
        self.names[name] = self.names[made]

    def vector(self, name: str, operands: list[str]) -> None:
        given = []
        for operand in operands:
            numeric = operand not in self.names
            given.append(self.constant(operand, "f32") if numeric else operand)
        self.op(f"hivm.hir.{name}", given, segments(VECTOR[name], 1, 0))

    def do_load(self, source: str, target: str) -> None:
        self.op("hivm.hir.load", [self.slice(source, self.shapes[target][0]), target], LOAD)

    def do_store(self, source: str, target: str) -> None:
        self.op("hivm.hir.store", [source, self.slice(target, self.shapes[source][0])], STORE)

    def do_nd2nz(self, source: str, target: str, sizes: str, width: str) -> None:
        shape = [int(n) for n in sizes.split("x")]
        part = self.slice(source, shape, int(width))
        given = "init_out_buffer = false, operandSegmentSizes = array<i32: 1, 1, 0, 0>"
        self.op("hivm.hir.nd2nz", [part, target], f"dst_continuous, {given}")

    def do_mmad(self, a: str, b: str, c: str, first: str, *events: str) -> None:
        """c = a b where `first` is 0, c += a b elsewhere; events that say when factors are loaded
        and where they were read."""
        (k1, m1, *_), _ = self.shapes[a]
        (n1, *_), _ = self.shapes[b]
        zero = self.number("0")
        attributes = f"predicate = {CONDITIONS['==']} : i64"
        init = self.op("arith.cmpi", [self.number(first), zero], attributes, "i1")
        sizes = [self.number(str(16 * n)) for n in (m1, k1, n1)]
        given = [self.number(event, "i64") for event in (*events, *["-1"] * (7 - len(events)))]
        self.op(
            "hivm.hir.mmadL1",
            [a, b, init, *sizes, c, *given],
            "operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 7, 0, 0>",
        )

    def do_fixpipe(self, source: str, target: str, sizes: str) -> None:
        part = self.slice(target, [int(n) for n in sizes.split("x")])
        given = "operandSegmentSizes = array<i32: 1, 1, 0, 0>"
        mode = "dma_mode = #hivm.dma_mode<nz2nd>"
        self.op("hivm.hir.fixpipe", [source, part], f"{mode}, {given}")

    def do_set(self, source: str, target: str, event: str, name: str = "set_flag") -> None:
        pipes = f"set_pipe = #hivm.pipe<PIPE_{source}>, wait_pipe = #hivm.pipe<PIPE_{target}>"
        if event.isdigit():
            fixed = f"static_event_id = #hivm.event<EVENT_ID{event}>"
            self.op(f"hivm.hir.{name}", [], f"{pipes}, {fixed}")
            return
        two = self.constant("2", "i64")
        odd = self.op("arith.remsi", [self.number(event, "i64"), two], kind="i64")
        self.op(f"hivm.hir.{name}", [odd], pipes)

    def do_wait(self, source: str, target: str, event: str) -> None:
        self.do_set(source, target, event, "wait_flag")

    def do_barrier(self, pipe: str) -> None:
        self.op("hivm.hir.pipe_barrier", [], f"pipe = #hivm.pipe<PIPE_{pipe}>")

    def do_signal(self, pipe: str, flag: str, mode: str = "INTRA_BLOCK") -> None:
        kind = "CUBE" if self.core == "aic" else "VECTOR"
        self.op(
            "hivm.hir.sync_block_set",
            [],
            f"operandSegmentSizes = array<i32: 0, 0>, static_flag_id = {flag} : i64, "
            f"tcore_type = #hivm.tcore_type<{kind}>, tpipe = #hivm.pipe<PIPE_{pipe}>, "
            f"tsync_instr_mode = #hivm.sync_block_instr_mode<{mode}_SYNCHRONIZATION>",
        )

    def do_await(self, pipe: str, flag: str) -> None:
        given = f"static_flag_id = {flag} : i64, tpipe = #hivm.pipe<PIPE_{pipe}>"
        self.op("hivm.hir.sync_block_wait", [], given)

    def do_block(self, name: str) -> None:
        """The number of this program."""
        found = self.op("hivm.hir.get_block_idx", [], kind="i64")
        self.names[name] = self.names[found]

    def do_sub(self, name: str) -> None:
        """The number of this vector core among those of its cube core."""
        found = self.op("hivm.hir.get_sub_block_idx", [], kind="i64")
        self.names[name] = self.names[found]

    def do_read(self, source: str, name: str) -> None:
        """An element of a buffer, by the scalar unit."""
        matched = TARGET.fullmatch(source)
        assert matched is not None, source
        at = self.number(matched.group(2))
        element = self.shapes[matched.group(1)][1]
        found = self.op("memref.load", [matched.group(1), at], kind=element)
        self.names[name] = self.names[found]

    def do_write(self, value: str, target: str) -> None:
        """An element into a buffer, by the scalar unit."""
        matched = TARGET.fullmatch(target)
        assert matched is not None, target
        at = self.number(matched.group(2))
        given = self.constant(value, self.shapes[matched.group(1)][1])
        self.op("memref.store", [given, matched.group(1), at])

    def do_pick(self, name: str, turn: str, even: str, odd: str) -> None:
        two, zero = self.number("2"), self.number("0")
        which = self.op("arith.remsi", [self.number(turn), two], kind="index")
        attributes = f"predicate = {CONDITIONS['==']} : i64"
        first = self.op("arith.cmpi", [which, zero], attributes, "i1")
        kind = self.names[even][1]
        self.names[name] = self.names[self.op("arith.select", [first, even, odd], kind=kind)]
        self.shapes[name] = self.shapes[even]

    def do_for(self, name: str, times: str) -> None:
        first, last, step = (self.number(text) for text in ("0", times, "1"))
        self.body.append(f'"scf.for"({first}, {last}, {step}) ({{')
        self.body.append(f"^bb0(%{name}: index):")
        self.names[name] = (f"%{name}", "index")
        self.ends.append('"scf.yield"() : () -> ()\n}) : (index, index, index) -> ()')

    def do_if(self, left: str, relation: str, right: str) -> None:
        values = [self.number(left), self.number(right)]
        attributes = f"predicate = {CONDITIONS[relation]} : i64"
        condition = self.op("arith.cmpi", values, attributes, "i1")
        self.body.append(f'"scf.if"({condition}) ({{')
        self.ends.append('"scf.yield"() : () -> ()\n}, {\n}) : (i1) -> ()')

    def do_else(self) -> None:
        self.body.append('"scf.yield"() : () -> ()\n}, {')
        self.ends[-1] = '"scf.yield"() : () -> ()\n}) : (i1) -> ()'

    def do_end(self) -> None:
        self.body.append(self.ends.pop())

    def text(self, mixed: bool) -> str:
        arguments = [(f"%{given.name}", self.names[given.name][1]) for given in self.report.given]
        kinds = ", ".join(kind for _, kind in arguments)
        listed = ", ".join(f"{name}: {kind}" for name, kind in arguments)
        name = f"k_mix_{self.core}" if mixed else "k"
        body = "\n".join(self.body)
        return f"""
"func.func"() <{{function_type = ({kinds}) -> (), sym_name = "{name}"}}> ({{
^bb0({listed}):
{body}
"func.return"() : () -> ()
}}) {{hivm.func_core_type = #hivm.func_core_type<{self.core.upper()}>}} : () -> ()"""


KINDS = {"f32": np.float32, "f16": np.float16, "i32": np.int32}


def inputs_of(report: Report) -> dict[str, np.ndarray]:
    """Small whole numbers, which sums and products keep exact."""
    random = np.random.default_rng(1)
    arrays = {
        given.name: random.integers(0, 4, given.shape).astype(KINDS[given.element])
        for given in report.given
        if given.shape
    }
    return {**arrays, **{name: np.int32(value) for name, value in report.scalars.items()}}
