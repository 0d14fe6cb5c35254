"""Kernels in which the cores of a launch do nothing but meet, and their calls.

On a coupled machine (`cce.sync_cores`) they are given a line of a counter for each core, and the
number that all have to reach. On a split machine they meet by flags: where a launch has both kinds,

    vector cores                             cube cores
    pipe_barrier ALL                         pipe_barrier ALL
    set_core_flag CAME
                                             wait_core_flag CAME
                                             set_core_flag MET, of all cube cores
                                             wait_core_flag MET
                                             set_core_flag GO
    wait_core_flag GO
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.dialects.cce import build as cce
from davinci.isa.counters import LINE_BYTES
from davinci.isa.cross_core import BY_FLAGS
from davinci.machine import CUBE_CORE, VECTOR_CORE
from davinci.mlir import Op, arith, func, ir, memref, symbols, unique
from davinci.passes import builder
from davinci.passes.analysis.kernels import BLOCKS, CORE, MEETING, UNIT

LANES = LINE_BYTES // 4

CAME, MET, GO = range(3)
"""Flags of a meeting: between the cores of a group, of all cube cores, and in a group again."""

STORES = {CUBE_CORE: "FIX", VECTOR_CORE: "MTE3"}
"""The pipe that stores to global memory, by kind of core; it sets the flags."""


class MeetingBuilder:
    """Builds calls of meetings, kernels and counters for each number of cores."""

    def __init__(self, root: Op, main: Op) -> None:
        self._root, self._main = root, main
        self._made: dict[tuple[int, frozenset[str]], tuple[str, list[ir.Value]]] = {}

    def build(self, call: Op, cores: int, kinds: frozenset[str]) -> None:
        """A meeting of so many cores of these kinds in front of a call."""
        if (cores, kinds) not in self._made:
            split = kinds <= STORES.keys()
            made = self._by_flags(cores, kinds) if split else self._by_counters(cores)
            self._made[cores, kinds] = made
        callee, arguments = self._made[cores, kinds]
        with ir.InsertionPoint(call), call.location:
            marks = {BLOCKS: cores, MEETING: 1 if arguments else BY_FLAGS}
            name = ir.FlatSymbolRefAttr.get(callee)
            builder.op("func.call", arguments, [], callee=name, **marks)

    def _by_counters(self, cores: int) -> tuple[str, list[ir.Value]]:
        """The name of the function that stands for the kernel, and its arguments."""
        name, counters = self._name(cores), unique("counters", dict(symbols(self._root)))
        i32, i64 = (ir.IntegerType.get_signless(width) for width in (32, 64))
        kind = ir.MemRefType.get([cores, LANES], i32)
        types = [kind, i64]

        def build(lines: ir.Value, number: ir.Value) -> None:
            cce.pipe_barrier(pipe="ALL")
            scratch = builder.alloc([cores + 1, LANES], i32, "UB")
            zero = arith.ConstantOp(i32, ir.IntegerAttr.get(i32, 0)).result
            cce.vector_dup(zero, builder.subview(scratch, [cores, 0], [1, LANES]))
            cce.set_flag(src="V", dst="S", event=0)
            cce.wait_flag(src="V", dst="S", event=0)
            reached = arith.TruncIOp(i32, number).result
            cce.sync_cores(lines, reached, scratch)

        declare_launch(self._main, name, [name], types)
        self._kernel(name, cores, types, {UNIT: "vector"}, build)
        with ir.Location.unknown():
            with ir.InsertionPoint(self._main):
                builder.global_of_zeros(counters, kind)
            with ir.InsertionPoint.at_block_begin(self._main.regions[0].blocks[0]):
                lines = memref.GetGlobalOp(kind, ir.FlatSymbolRefAttr.get(counters)).result
                number = arith.ConstantOp(i64, ir.IntegerAttr.get(i64, 0)).result
        return name, [lines, number]

    def _by_flags(self, cores: int, kinds: frozenset[str]) -> tuple[str, list[ir.Value]]:
        """The name of the function that stands for the kernels, which have no arguments."""
        name, both = self._name(cores), len(kinds) > 1
        parts = {kind: f"{name}_{kind.lower()}" if both else name for kind in sorted(kinds)}
        declare_launch(self._main, name, list(parts.values()), [])
        for kind, part in parts.items():
            unit = "cube" if kind == CUBE_CORE else "vector"
            marks = {UNIT: unit, CORE: kind.lower()}
            self._kernel(part, cores, [], marks, lambda kind=kind: _flags(kind, both))
        return name, []

    def _name(self, cores: int) -> str:
        known = dict(symbols(self._root))
        return unique(f"meeting_of_{cores}", {**known, **dict(symbols(known["kernels"]))})

    def _kernel(
        self,
        name: str,
        cores: int,
        types: list[ir.Type],
        marks: dict[str, str],
        build: Callable[..., None],
    ) -> None:
        """A kernel of a meeting, whose body `build` makes, given its arguments."""
        module = dict(symbols(self._root))["kernels"]
        with ir.Location.unknown(), ir.InsertionPoint(module.regions[0].blocks[0]):
            kernel = func.FuncOp(name, (types, []))
            marks |= {"ascend.op": "meeting", "ascend.label": f"meeting of {cores}"}
            for key, value in marks.items():
                kernel.attributes[key] = builder.as_attribute(value)
            kernel.attributes["ascend.kernel"] = ir.UnitAttr.get()
            block = kernel.add_entry_block()
            with ir.InsertionPoint(block):
                build(*block.arguments)
                func.ReturnOp([])


def declare_launch(main: Op, name: str, programs: Sequence[str], types: Sequence[ir.Type]) -> None:
    """Declares, in front of the host's function, the function whose calls launch a kernel.

    Args:
        programs: names in `@kernels`: the kernel, or its programs for each kind of core.
        types: of the arguments.
    """
    with ir.Location.unknown(main.context), ir.InsertionPoint(main):
        declared = func.FuncOp(name, (list(types), []), visibility="private")
        names = [ir.SymbolRefAttr.get(["kernels", program]) for program in programs]
        launch = names[0] if len(names) == 1 else ir.ArrayAttr.get(names)
        declared.attributes["ascend.launch"] = launch


def _flags(kind: str, both: bool) -> None:
    """What a core of a kind does in a meeting by flags, of both kinds or of its own."""
    cce.pipe_barrier(pipe="ALL")
    stores = STORES[kind]
    if both and kind == VECTOR_CORE:
        cce.set_core_flag(pipe=stores, flag=CAME)
        cce.wait_core_flag(flag=GO)
        return
    if both:
        cce.wait_core_flag(flag=CAME)
    cce.set_core_flag(pipe=stores, flag=MET, of_all=True)
    cce.wait_core_flag(flag=MET)
    if both:
        cce.set_core_flag(pipe=stores, flag=GO)
