"""Compiles kernels at the llvm level to native scalar programs that issue the instruction stream.

`KernelLibrary(module).programs["add_0"]` is a `ScalarProgram` for `Device.launch`. It runs without
Python, except that full buffers of instructions are handed to the device.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from davinci.diagnostics import first_diagnostic
from davinci.dialects.base import attribute
from davinci.errors import CompileError, DeviceFault
from davinci.isa import RECORD_WORDS, Space
from davinci.isa.core import LOCATION_SHIFT, Records
from davinci.mlir import (
    MLIRError,
    Op,
    callee_of,
    execution_engine,
    ir,
    operations,
    passmanager,
    run_unverified,
    symbol_name,
)
from davinci.native import half
from davinci.passes.hivm_to_llvm.convert_hivm_to_llvm import UPSTREAM
from davinci.runtime.device_code import (
    INTRINSIC,
    check_functions,
    check_intrinsic,
    check_name,
    check_signature,
    guard_divisions,
    loaded_arguments,
)
from davinci.runtime.guard_functions import guards
from davinci.runtime.intrinsics import (
    ACCESSES,
    ADDS,
    CONTEXT_WORDS,
    COUNTERS,
    CROSSINGS,
    DIVISION_BY_ZERO,
    FAULT_FUNCTION,
    NO_ACCESS,
    OUT_OF_BOUNDS,
    PORTS,
    TOO_MANY_TURNS,
    MemoryWord,
    Slot,
    definitions,
)
from davinci.runtime.known_records import KnownRecords
from davinci.runtime.loop_guards import guard_loops

CAPACITY = 4096
"""Records handed to the device at a time."""

OPT_LEVEL = 0
"""Level of the native compiler's optimisations; scalar programs are mostly calls, and upstream's
passes have been over them."""


CLEARED = (
    Slot.CURSOR, Slot.SCALAR_OPS, Slot.ACCESSES, Slot.TOUCHED_GM, Slot.WRITES_GM, Slot.INSTRUCTIONS,
    Slot.FAULT,
)  # fmt: skip
"""Words that are 0 when a block begins."""

FOREIGN = "ascend.foreign"
"""Attribute of kernels that AscendNPU-IR has made, see `KernelCall`."""


class MemoryView(Protocol):
    """A simulated memory: bytes, and which of them were ever written; none where all count so."""

    data: npt.NDArray[np.uint8]
    written: npt.NDArray[np.bool_]


class CoreLike(Protocol):
    """The interface of a core that a compiled scalar program calls."""

    @property
    def sub_block(self) -> int:
        """Which of its block's vector cores it is."""

    @property
    def most_turns(self) -> int:
        """How many turns the loops of its program may take."""

    def consume(self, records: Records) -> None:
        """Executes instructions, an array [n, 8] in program order."""

    def memory(self, space: Space) -> MemoryView:
        """One of the core's memories, or GM."""


class ScalarProgram:
    """The scalar program of one kernel: `program(arguments, block, blocks, core)`.

    Attributes:
        name: of the kernel.
        inputs: number of arguments, addresses in GM.
        core: kind of core it is for.
        loads: numbers of the arguments from whose memory its scalar unit may load.
        accesses: whether it loads or stores anywhere: what it issues may depend on data.
        foreign: see `KernelCall`.
        adds: whether its stores may add to global memory: what they find there depends on which
            block ran before.
        crosses: whether it sets flags of other cores of a split machine, or waits for them.
        talks: whether its blocks wait for each other by counters in global memory.
    """

    def __init__(
        self,
        library: KernelLibrary,
        name: str,
        inputs: int,
        core: str,
        called: set[str],
        loads: frozenset[int],
        entry: int,
        foreign: bool = False,
    ) -> None:
        self.name, self.inputs, self.core = name, inputs, core
        self.foreign = foreign
        self.loads = loads
        self.accesses = any(callee.startswith(ACCESSES) for callee in called)
        self.adds = any(callee.startswith(ADDS) for callee in called)
        self.crosses = not called.isdisjoint(CROSSINGS)
        self.talks = not called.isdisjoint(COUNTERS)
        self._library = library
        self._entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry)

    def __call__(self, arguments: Sequence[int], block: int, blocks: int, core: CoreLike) -> None:
        """Runs one block to its end.

        Raises:
            DeviceFault: from the device, or of a scalar access.
        """
        if len(arguments) != self.inputs:
            raise ValueError(
                f"{self.name}: found {len(arguments)} arguments, expected {self.inputs}"
            )
        values = (ctypes.c_uint64 * len(arguments))(*arguments)
        base = ctypes.addressof(values)
        packed = (ctypes.c_void_p * len(arguments))(*(base + 8 * i for i in range(len(arguments))))
        self._library.run(self, lambda: self._entry(ctypes.addressof(packed)), block, blocks, core)


def core_of(kernel: Op) -> str:
    """The kind of core a kernel is for, as the machine files name it: `ascend.core`."""
    name: str = attribute(kernel, "ascend.core", "aicore")
    return name.upper()


class KernelLibrary:
    """The kernels of one module, compiled together.

    Attributes:
        programs: by kernel name.
        locations: texts of the source locations that instructions name by number.
        rows: records of instructions that are known before the kernels run.
    """

    def __init__(self, module: Op) -> None:
        """Compiles the kernels directly inside `module`, an operation at the llvm level.

        Raises:
            CompileError: a kernel is not lowered to LLVM, or holds what no kernel may.
        """
        self.locations: list[str] = attribute(module, "hivm.locations", [""])
        self._context = np.zeros(CONTEXT_WORDS, dtype=np.uint64)
        self._buffer: Records = np.zeros((CAPACITY, RECORD_WORDS), dtype=np.uint64)
        self._core: CoreLike | None = None
        self._error: BaseException | None = None
        self._foreign: set[str] = set()
        self._flush = ctypes.CFUNCTYPE(None)(self._hand_over)
        self._context[Slot.BUFFER] = self._buffer.ctypes.data
        self._context[Slot.CAPACITY] = CAPACITY
        self._context[Slot.FLUSH] = ctypes.cast(self._flush, ctypes.c_void_p).value or 0
        with module.context, ir.Location.unknown():
            try:
                native, kernels, called, loads = self._native_module(module)
            except MLIRError as error:
                raise CompileError(first_diagnostic(error)) from None
            self._engine = execution_engine.ExecutionEngine(native, opt_level=OPT_LEVEL)
        self.programs = {
            name: ScalarProgram(
                self,
                name,
                inputs,
                core,
                called[name],
                loads[name],
                self._engine.raw_lookup(name),
                name in self._foreign,
            )
            for name, (inputs, core) in kernels.items()
        }

    def _native_module(
        self, module: Op
    ) -> tuple[Any, dict[str, tuple[int, str]], dict[str, set[str]], dict[str, frozenset[int]]]:
        """A module of its own: copies of the functions, definitions of the intrinsics.

        Returns:
            The module, by kernel the number of arguments and the kind of core, by function what it
            calls, and by kernel the arguments that it may load from.
        """
        native = ir.Module.create()
        names: list[str] = []
        kernels: dict[str, tuple[int, str]] = {}
        known = KnownRecords()
        with ir.InsertionPoint(native.body):
            for view in module.regions[0].blocks[0].operations:
                op = view.operation
                if op.name == "func.func" and "ascend.kernel" in op.attributes:
                    raise CompileError(
                        "kernel is not lowered to LLVM",
                        where=str(op.attributes["sym_name"]),
                        hint="run convert-hivm-to-llvm first",
                    )
                if op.name != "llvm.func":
                    continue
                name = ir.StringAttr(op.attributes["sym_name"]).value
                if name.startswith(INTRINSIC):
                    check_intrinsic(op, name)
                    names.append(name)
                    continue
                check_name(op, name)
                known.take(op.clone().operation)
                if "ascend.kernel" in op.attributes:
                    check_signature(op, name)
                    if attribute(op, FOREIGN, False):
                        self._foreign.add(name)
                    kernels[name] = len(op.regions[0].blocks[0].arguments), core_of(op)
        self.rows = known.table()
        self._context[Slot.ROWS] = self.rows.ctypes.data
        called, halves = needs(native.operation)
        # To compile what nobody calls takes most of the time: the known records call nothing.
        defined = definitions(self._context.ctypes.data, [n for n in names if n in called])
        text = ir.Module.parse(defined + half.DEFINITIONS if halves else defined)
        own = [symbol_name(view) for view in text.body.operations]
        adopt(native, text)
        run_unverified(native.operation, UPSTREAM)
        native.operation.verify()  # once: between the passes it takes five times as long as they do
        # With what upstream's passes declared and defined for operations of `math`.
        functions = {symbol_name(view): view.operation for view in native.body.operations}
        functions = {name: op for name, op in functions.items() if name not in own}
        reached = check_functions(functions)
        kinds = guard_divisions(functions, self.locations)
        loops = guard_loops(functions, self.locations)
        if kinds or loops:
            faults = FAULT_FUNCTION in own
            text = ir.Module.parse(guards(self._context.ctypes.data, kinds, loops, faults))
            passmanager.PassManager.parse(UPSTREAM).run(text.operation)
            adopt(native, text)
        return (
            native,
            kernels,
            reached,
            {name: loaded_arguments(functions[name]) for name in kernels},
        )

    def run(
        self, program: ScalarProgram, entry: Any, block: int, blocks: int, core: CoreLike
    ) -> None:
        """Runs `entry` with the context set up for one block, and hands over the last records."""
        context = self._context
        context[Slot.BLOCK], context[Slot.BLOCKS] = block, blocks
        context[Slot.SUB_BLOCK], context[Slot.TURNS] = core.sub_block, core.most_turns
        for slot in CLEARED:
            context[slot] = 0
        for space, port in PORTS.values():
            memory = core.memory(space)
            context[port : port + len(NO_ACCESS)] = NO_ACCESS
            context[port + MemoryWord.DATA] = memory.data.ctypes.data
            context[port + MemoryWord.WRITTEN] = (
                memory.written.ctypes.data if memory.written.size else 0
            )
            context[port + MemoryWord.SIZE] = memory.data.size
        self._core, self._error = core, None
        entry()
        if self._error is None and context[Slot.ACCESSES]:
            self._summarise()
        self._hand_over()
        self._core = None
        if self._error is not None:
            raise self._error
        if context[Slot.FAULT]:
            raise self._fault(program, core.most_turns)

    def _summarise(self) -> None:
        """Appends the record of the scalar accesses behind the last instruction."""
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._engine.raw_lookup("davinci.scalar_records"))(
            None
        )

    def _hand_over(self) -> None:
        """Gives the buffered records to the core; called by native code, so it must not raise."""
        count = int(self._context[Slot.CURSOR])
        self._context[Slot.CURSOR] = 0
        core, error = self._core, self._error
        if not count or core is None or error is not None:
            return
        # Where the program waits for another core, that one's program runs in this call.
        saved = self._context.copy()
        try:
            core.consume(self._buffer[:count].copy())
        except BaseException as raised:  # raised again when the native code has returned
            error = raised
            saved[Slot.TURNS] = 0  # so its loops end
        self._context[:] = saved
        self._core, self._error = core, error

    def _fault(self, program: ScalarProgram, most_turns: int) -> DeviceFault:
        context = [int(word) for word in self._context]
        number = context[Slot.FAULT_TAG] >> LOCATION_SHIFT  # of any size in a hand-written call
        location = self.locations[number] if number < len(self.locations) else ""
        where = f"{location}: {program.name}" if location else program.name
        if context[Slot.FAULT] == DIVISION_BY_ZERO:
            return DeviceFault("integer division by zero in the scalar program", where=where)
        if context[Slot.FAULT] == TOO_MANY_TURNS:
            return DeviceFault(
                "too many turns of loops: the scalar program may never end",
                where=where,
                expected=f"at most {most_turns:,} in a block",
                hint="look at the loop at this place; npu-run --instruction-limit N allows more",
            )
        address, count = context[Slot.FAULT_ADDRESS], context[Slot.FAULT_BYTES]
        space = Space(context[Slot.FAULT_SPACE])
        size = context[dict(PORTS.values())[space] + MemoryWord.SIZE]
        outside = context[Slot.FAULT] == OUT_OF_BOUNDS
        return DeviceFault(
            "scalar access out of bounds" if outside else "scalar load of bytes nobody wrote",
            where=where,
            found=f"{space.name} [{address:#x}, {address + count:#x})",
            expected=f"addresses below {size:#x}" if outside else "",
        )


def needs(module: Op) -> tuple[set[str], bool]:
    """Names of the functions that a module calls, and whether it has values of half precision."""
    called: set[str] = set()
    kinds: set[ir.Type] = set()
    for op in operations(module):
        kinds.update(result.type for result in op.results)
        if op.name == "llvm.func":
            kinds.add(ir.TypeAttr(op.attributes["function_type"]).value)
        if op.name == "llvm.call" and "callee" in op.attributes:
            called.add(callee_of(op))
    return called, any("f16" in str(kind) for kind in kinds)


def adopt(module: ir.Module, other: ir.Module) -> None:
    """Moves the functions that `other` defines into `module`."""
    for view in list(other.body.operations):
        if view.operation.regions[0].blocks:
            module.body.append(view.operation)
