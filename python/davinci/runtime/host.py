"""The host's function, read once: what lies where on the device, and the list of launches.

Every buffer gets an address in GM, every launch becomes a kernel's native program with the
addresses of its arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from davinci import report
from davinci.dialects.base import attribute
from davinci.elements import to_array
from davinci.errors import CompileError, InputError
from davinci.isa.cross_core import BY_FLAGS
from davinci.machine import Machine
from davinci.mlir import Op, callee_of, ir
from davinci.narrow import from_stored, stored_dtype, to_stored
from davinci.passes.analysis.kernels import MEETING, PAST_L2, STAGE, STREAMED
from davinci.passes.pipeline.base import fail
from davinci.runtime.arguments import Array, Spec
from davinci.runtime.fetches import Fetches
from davinci.runtime.jit import KernelLibrary, ScalarProgram
from davinci.runtime.module_facts import (
    WORD,
    code_of,
    initial_of,
    scalar_bits,
    scalar_dtype,
    spec_of,
    symbols,
)
from davinci.runtime.phases import add_call, add_meeting, check_phases, without_meetings
from davinci.simulator import Device, JoinedKernels, KernelCall, LaunchProfile
from davinci.units import BLOCK_BYTES

POISON = 0xFF
"""Of a byte whose value may never reach a result: floats of such bytes are not numbers."""

STATE = "ascend.state"
"""Of an output: the number of the input whose next value it is. They are one buffer, unless the
output is `COPIED` into it at the end."""

COPIED = "ascend.copied"

SAME = "ascend.same"
"""Of an output that no launch writes: the number of the output that has the same value, and whose
buffer it has. If it is the next value of an input, then no launch reads that input."""

SAME_BUFFER = frozenset(
    {
        *("memref.reinterpret_cast", "memref.cast", "memref.collapse_shape"),
        "builtin.unrealized_conversion_cast",
    }
)
"""Views of a whole buffer under another shape, or as elements of another type of that size."""


@dataclass(frozen=True)
class State:
    """An input that has the value of an output when the program is called again.

    Attributes:
        in_place: whether they are one buffer, or the input's is never read (`SAME`); else a kernel
            copies the output at the end.
    """

    input: Spec
    output: Spec
    in_place: bool


class HostProgram:
    """The host function, read once.

    Attributes:
        device: with the constants in its memory; without data those that scalar programs get.
        inputs, outputs: specifications, by the arguments' attributes.
        input_addresses, output_addresses: by name; an input and an output may have the same.
        launches: in order.
        operators: by call of a kernel, the model's nodes that it computes.
        members: by call, the nodes that each operator of its kernel computes.
        firsts: numbers of the calls that call their kernel for the first time.
        volatile: (address, bytes) of what holds nothing at the start of a run.
        arena: address and bytes of the arena, 0 and 0 where there is none.
        arena_uses: of values in it offset, bytes, and the numbers of the first and the last call
            of a kernel that needs them.
        padding: (address, bytes) behind buffers in the arena, zero at the start of a run.
        code: the module without the values of its constants, as bytecode.
        states: inputs that outputs are the next values of.
        initial: what states hold at first, by name, where the module says it.
        meetings: arguments of the calls in which cores count, and the places of those that grow.
    """

    def __init__(
        self,
        module: ir.Module,
        machine: Machine,
        checks: bool,
        data: bool,
        constants: Mapping[str, Array] | None = None,
    ) -> None:
        """Reads `module`; `constants` are the bytes of those whose values it does not have."""
        self._module = module.operation
        self._given = constants
        self.code = code_of(self._module)
        self._symbols = symbols(self._module)
        self._libraries: dict[tuple[str, ...], KernelLibrary] = {}
        main = self._main()
        self._globals = {
            name: op for name, op in self._symbols.items() if op.name == "memref.global"
        }
        self.device = Device(machine, self._gm_bytes(main, machine.gm.line_bytes), checks, data)
        self.inputs: list[Spec] = []
        self.outputs: list[Spec] = []
        self.input_addresses: dict[str, int] = {}
        self.output_addresses: dict[str, int] = {}
        self.launches: list[JoinedKernels] = []
        self.operators: list[tuple[str, ...]] = []
        self.members: list[tuple[tuple[str, ...], ...]] = []
        self.volatile: list[tuple[int, int]] = []
        self.padding: list[tuple[int, int]] = []
        self.arena = (0, 0)
        places = attribute(main, "ascend.arena", ())
        self.arena_uses = [tuple(places[i : i + 4]) for i in range(0, len(places), 4)]
        self.states: list[State] = []
        self.initial = initial_of(self._module)
        self._places: dict[Any, int] = {}
        self._constants: dict[str, tuple[int, int]] = {}
        self._unfilled: dict[int, str] = {}
        self._stage: int | None = None
        self.meetings: list[tuple[list[int], int]] = []
        self._met = 0
        self.fetches = Fetches(self.device)
        self._scalars: dict[Any, int] = {}
        self._given_scalars: list[tuple[list[int], int, int]] = []
        self._arguments(main)
        for view in main.regions[0].blocks[0].operations:
            self._visit(view.operation)
        check_phases(self.launches, main, machine)
        phases = [launch for launch in self.launches if not launch.meets]
        names = [call.name for launch in phases for call in launch.kernels]
        self.firsts = {names.index(name) for name in set(names)}
        self.fetches.end()
        # Lets go of the module, whose constants are on the device now.
        del self._module, self._symbols, self._globals, self._places, self._libraries, self._given
        del self._scalars

    def execute(
        self, arrays: Sequence[Array], timeline: str, processes: int, poison: bool = False
    ) -> list[LaunchProfile]:
        """Writes the inputs, arrays in order, and launches everything.

        Args:
            arrays: of the shapes and types of `inputs`.
            timeline: launches that keep their rows, see `Executable.run`.
            processes: that compute data.
            poison: see `Executable.poison`.

        Returns:
            The profile of each call of a kernel, in order.
        """
        numbers = itertools.count()
        kept = [
            [0 if launch.meets else self._kept(next(numbers), x, timeline) for x in launch.kernels]
            for launch in self.launches
        ]
        self._prepare(arrays)
        profiles = self._run(kept, processes, poison)
        if profiles is None:
            self._prepare(arrays)
            profiles = self._run(kept)
        assert profiles is not None, "one process finds what is wrong, or nothing is"
        found = without_meetings(self.launches, profiles)
        for profile, operators, members in zip(found, self.operators, self.members, strict=True):
            profile.operators, profile.members = operators, members
        return found

    def _run(
        self, kept: Sequence[Sequence[int]], processes: int = 1, poison: bool = False
    ) -> list[list[LaunchProfile]] | None:
        """Runs the launches: all at once, or those between transfers of weights, or one by one if
        the arena is poisoned in front of each."""
        count = len(self.launches)
        edges = [*range(count)] if poison else sorted({0, *self.fetches.places})
        profiles: list[list[LaunchProfile]] = []
        calls = 0
        for first, end in itertools.pairwise([*edges, count]):
            if poison:
                self._poison(calls)
                calls += 0 if self.launches[first].meets else len(self.launches[first].kernels)
            self.fetches.receive(first)
            found = self.device.run(self.launches[first:end], kept[first:end], processes)
            if found is None:
                return None
            profiles += found
        self.fetches.mark(profiles)
        return profiles

    def _poison(self, calls: int) -> None:
        """Fills all bytes of the arena with `POISON` that none of the values in it needs from one
        launch to the next, in front of a call of a kernel."""
        address, size = self.arena
        free = np.ones(size, dtype=np.bool_)
        for offset, count, first, last in self.arena_uses:
            if first < calls <= last:
                free[offset : offset + count] = False
        edges = np.flatnonzero(np.diff(free, prepend=False, append=False))
        for begin, end in edges.reshape(-1, 2):
            poison = np.full(end - begin, POISON, dtype=np.uint8)
            self.device.write(address + int(begin), poison)

    def _kept(self, number: int, call: KernelCall, timeline: str) -> int:
        """For how many blocks of a kernel's call the rows of the timeline are kept."""
        if timeline == "all":
            return call.blocks
        return int(timeline == "first" and number in self.firsts)

    def _prepare(self, arrays: Sequence[Array]) -> None:
        """Makes memory what it is at the start of a run."""
        device = self.device
        for arguments, place in self.meetings:
            self._met += 1
            arguments[place] = self._met
        device.flush(self._written_share())
        for address, size in self.volatile:
            device.discard(address, size)
        for address, size in self.padding:
            device.write(address, np.zeros(size, dtype=np.uint8))
        for spec, array in zip(self.inputs, arrays, strict=True):
            if spec.name in self.input_addresses:
                device.write(self.input_addresses[spec.name], to_stored(array))
        for arguments, place, number in self._given_scalars:
            arguments[place] = scalar_bits(arrays[number])

    def _written_share(self) -> float | None:
        """The part of a run's bytes that it writes: such a part of the lines that earlier runs like
        it left in the L2 goes to the memory while it runs. Values of the arena count once. None if
        the accesses of its only launch tell: of arrays that it changes in place it may write any
        part."""
        if len(self.launches) == 1 and any(state.in_place for state in self.states):
            return None
        written = sum(size for _, size in self.volatile)
        read = sum(spec.nbytes for spec in self.inputs)
        read += sum(size for _, size in self._constants.values()) + self.fetches.nbytes
        return written / max(written + read, 1)

    def results(self, in_memory: bool = False) -> dict[str, Array]:
        """The outputs by name, in order; none without data.

        Args:
            in_memory: as views of the memory, where it has their element types; the next run
                changes them. Else as copies.
        """
        read = self.device.array if in_memory else self.device.read
        return {
            spec.name: from_stored(
                read(self.output_addresses[spec.name], stored_dtype(spec.dtype), spec.shape),
                spec.dtype,
            )
            for spec in self.outputs
            if self.device.data
        }

    def input_in_memory(self, spec: Spec) -> Array:
        """What the memory has of a buffer that is an input, as a view where it has its type."""
        address = self.input_addresses[spec.name]
        return from_stored(
            self.device.array(address, stored_dtype(spec.dtype), spec.shape), spec.dtype
        )

    def constants(self) -> dict[str, Array]:
        """The bytes of the constants by name; of counters as before the first run."""
        read, counters = self.device.read, {a for args, n in self.meetings for a in args[:n]}
        there = {
            name: np.zeros(size, np.uint8) if at in counters else read(at, np.uint8, (size,))
            for name, (at, size) in self._constants.items()
            if at not in self._unfilled
        }
        return {**there, **self.fetches.constants()}

    def _main(self) -> Any:
        for op in self._symbols.values():
            if op.name == "func.func" and "ascend.entry" in op.attributes:
                return op
        raise CompileError(
            "the module has no host function",
            expected="a func.func with the attribute ascend.entry",
            hint="run ascend-bufferize first, or launch single kernels with KernelLibrary",
        )

    def _gm_bytes(self, main: Any, line_bytes: int) -> int:
        """Room for everything the host allocates, each buffer in lines of its own."""
        types = [argument.type for argument in main.regions[0].blocks[0].arguments]
        types += [
            ir.TypeAttr(op.attributes["type"]).value
            for op in self._globals.values()
            if STREAMED not in op.attributes
        ]
        for view in main.regions[0].blocks[0].operations:
            if view.operation.name == "memref.alloc":
                types.append(view.operation.results[0].type)
        lines = 1 + sum(report.memref_bytes(t) // line_bytes + 1 for t in types)
        return lines * line_bytes

    def _arguments(self, main: Any) -> None:
        block = main.regions[0].blocks[0]
        given = main.attributes.get("arg_attrs")
        same: dict[str, int] = {}
        for number, argument in enumerate(block.arguments):
            names = {x.name: x.attr for x in given[number]} if given is not None else {}
            output = "ascend.output" in names
            specs = self.outputs if output else self.inputs
            addresses = self.output_addresses if output else self.input_addresses
            default = f"{'out' if output else 'arg'}{len(specs)}"
            name = ir.StringAttr(names["ascend.name"]).value if "ascend.name" in names else default
            if not isinstance(argument.type, ir.MemRefType):
                self._scalars[argument] = len(specs)
                specs.append(Spec(name, (), scalar_dtype(name, argument.type)))
                continue
            spec = spec_of(name, argument.type, names)
            if name in addresses or (output and name in same):
                kind = "outputs" if output else "inputs"
                fail(main, f"has two {kind} of one name", found=repr(name))
            specs.append(spec)
            state = self._state_of(spec, names, main) if output else None
            if state is not None:
                self.states.append(state)
            if SAME in names:
                same[name] = ir.IntegerAttr(names[SAME]).value
                continue
            if state is not None and state.in_place:
                addresses[name] = self._places[argument] = self.input_addresses[state.input.name]
                continue
            address = self.device.allocate(spec.nbytes)
            addresses[name] = self._places[argument] = address
            if output:
                self.volatile.append((address, spec.nbytes))
        for name, other in same.items():
            self.output_addresses[name] = self.output_addresses[self.outputs[other].name]

    def _state_of(self, output: Spec, names: Mapping[str, Any], main: Any) -> State | None:
        """The state whose next value an output is, None for other outputs."""
        if STATE not in names:
            return None
        number = ir.IntegerAttr(names[STATE]).value
        known = number < len(self.inputs)
        if not known or str(self.inputs[number]) != str(output):
            found = str(self.inputs[number]) if known else f"input {number}"
            message = f"has a state of another type than {output.name!r}"
            fail(main, message, found=found, expected=str(output))
        return State(self.inputs[number], output, COPIED not in names)

    def _visit(self, op: Op) -> None:
        """Places a buffer, or adds a launch."""
        if op.name == "memref.alloc":
            size = report.memref_bytes(op.results[0].type)
            address = self._places[op.results[0]] = self.device.allocate(size)
            self.volatile.append((address, size))
            self.arena = address, size
        elif op.name == "memref.get_global":
            name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
            if STREAMED not in self._globals[name].attributes:
                self._places[op.results[0]] = self._constant(name)
        elif op.name == "memref.copy":
            self._fetch(op)
        elif op.name == "memref.view":
            self._fill(self._places[op.operands[0]])  # A view may begin elsewhere.
            offset = ir.IntegerAttr(op.operands[1].owner.attributes["value"]).value
            address = self._places[op.results[0]] = self._places[op.operands[0]] + offset
            end = address + report.memref_bytes(op.results[0].type)
            if end % BLOCK_BYTES:
                self.padding.append((end, -end % BLOCK_BYTES))
        elif op.name in SAME_BUFFER:
            if any(attribute(op, "static_offsets", [])):
                fail(op, "moves the start of a buffer", expected="offset 0")
            self._places[op.results[0]] = self._places[op.operands[0]]
        elif op.name == "func.call":
            self._launch(op)
        elif op.name not in ("arith.constant", "func.return"):
            fail(op, "cannot be run by the host", hint="run the whole npu-pipeline first")

    def _fetch(self, op: Op) -> None:
        """Notes that the host brings weights to the arena."""
        source, place = op.operands[0].owner, self._places[op.operands[1]]
        name = ir.FlatSymbolRefAttr(source.attributes["name"]).value
        size = report.memref_bytes(op.operands[1].type)
        self.fetches.add(name, place, size, len(self.launches), partial(self._value, name))

    def _constant(self, name: str) -> int:
        """Address of a global, which is placed on the device once.

        Without data only scalar programs see what it holds: it is filled when one may load from it.
        """
        if name not in self._constants:
            size = report.memref_bytes(ir.TypeAttr(self._globals[name].attributes["type"]).value)
            address = self.device.allocate(size)
            self._constants[name] = address, size
            self._unfilled[address] = name
            if self.device.data:
                self._fill(address)
        return self._constants[name][0]

    def _fill(self, address: int) -> None:
        """Copies the constant at this address to the device, if there is one and it is not."""
        name = self._unfilled.pop(address, None)
        if name is not None:
            self.device.write(address, self._value(name))

    def _value(self, name: str) -> Array:
        if self._given is None:
            return to_array(self._globals[name].attributes["initial_value"])
        if name not in self._given:
            raise InputError("a constant has no values", found=name)
        return self._given[name]

    def _launch(self, op: Op) -> None:
        declaration = self._symbols[callee_of(op)]
        if "ascend.launch" not in declaration.attributes:
            fail(op, "calls a function that is not a kernel", expected="attribute ascend.launch")
        names = report.kernel_names(declaration.attributes["ascend.launch"])
        *path, name = names[0]
        library = self._library(tuple(path), op)
        programs: dict[str, ScalarProgram] = {}
        for *place, kernel in names:
            found = library.programs.get(kernel) if place == path else None
            if found is None:
                known = ", ".join(library.programs)
                fail(op, "launches an unknown kernel", found=kernel, expected=known)
            if found.core in programs:
                fail(op, "launches two kernels for one kind of core", found=found.core.lower())
            if found.inputs != len(op.operands):
                given = f"{len(op.operands)} arguments"
                fail(op, f"calls kernel {kernel} wrongly", found=given, expected=str(found.inputs))
            programs[found.core] = found
        arguments = [self._argument(value) for value in op.operands]
        self._given_scalars += [
            (arguments, place, self._scalars[value])
            for place, value in enumerate(op.operands)
            if value in self._scalars
        ]
        loads = frozenset[int]().union(*(program.loads for program in programs.values()))
        for number in loads:
            self._fill(arguments[number])
        blocks = attribute(op, "ascend.blocks", 1)
        alone = any(program.accesses or program.adds for program in programs.values())
        talks = any(program.talks for program in programs.values())
        foreign = any(program.foreign for program in programs.values())
        crosses = any(program.crosses for program in programs.values())
        places = library.locations
        call = KernelCall(name, programs, arguments, blocks, places, alone, talks, foreign, crosses)
        if MEETING in op.attributes:
            counted = add_meeting(self.launches, op, call)
            if counted != BY_FLAGS:
                self.meetings.append((arguments, counted))
            return
        # What a scalar unit accesses is not compared with what other kernels do.
        stage = attribute(op, STAGE, None) if not alone else None
        add_call(self.launches, call, stage is not None and stage == self._stage)
        self._stage = stage
        reader = len(self.launches) - 1, len(self.launches[-1].kernels) - 1
        self.fetches.read(arguments, loads, reader)
        for number in attribute(op, PAST_L2, ()):
            arguments[number] += self.device.machine.l2.bypass_offset_bytes or 0
        self.operators.append(tuple(attribute(op, "ascend.operators", ())))
        self.members.append(tuple(map(tuple, attribute(op, "ascend.members", ()))))

    def _argument(self, value: Any) -> int:
        """The address of a buffer or the bits of a constant; 0 for a scalar that is given later."""
        if value in self._places:
            return self._places[value]
        if value in self._scalars:
            return 0
        constant = ir.IntegerAttr(value.owner.attributes["value"]).value
        return int(constant) & WORD

    def _library(self, path: tuple[str, ...], user: Op) -> KernelLibrary:
        """The compiled kernels of the nested module with that symbol path."""
        if path not in self._libraries:
            module = self._module
            for name in path:
                found = symbols(module).get(name)
                if found is None:
                    fail(user, "names an unknown module", found="::".join(path))
                module = found
            self._libraries[path] = KernelLibrary(module)
        return self._libraries[path]
