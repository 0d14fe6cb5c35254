"""@main on buffers: an arena, views of it and of arguments, and calls that launch kernels.

`HostBuilder` writes it from a list of launches; see `ascend_bufferize`, which decides them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from davinci.dialects.base import attribute
from davinci.elements import to_array, to_attribute
from davinci.mlir import Op, func, function_type, ir, memref, symbols, unique
from davinci.passes import builder
from davinci.passes.analysis.group_graph import CONVERSION
from davinci.passes.analysis.kernels import BLOCKS, PAST_L2, STREAMED, known_kernels
from davinci.passes.ascend.kernel_outline import is_boolean, is_unsigned, memref_of
from davinci.planning import Piece
from davinci.units import BLOCK_BYTES, round_up, row_major


@dataclass(eq=False)
class Storage:
    """Where a value lies: an argument, an output, a global or a part of the arena.

    Attributes:
        kind: "argument", "output", "constant" or "arena".
        key: number of the argument or output; the elements attribute of a constant.
        type: memref type it was made for; other types are views.
        size: in bytes.
        first: number of the first stage that needs it.
        last: number of the last one.
        location: of the value it was made for.
        divided: whether parts of it are passed to kernels.
        streamed: whether it is in the arena for weights, `key`, that the host brings there.
        offset: in the arena, in bytes, once that is planned.
        state: of an output that is the next value of an input, the storage of that argument, whose
            bytes it has wherever that can be.
        uses: ranges of it that are touched, each at the time of a stage; values that are views of
            it, or overwrite a part of it, leave the rest to others.
    """

    kind: str
    key: Any
    type: ir.MemRefType
    size: int
    first: int
    last: int
    location: ir.Location
    divided: bool = False
    streamed: bool = False
    offset: int = 0
    state: Storage | None = None
    uses: list[Piece] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """A storage, or a part of one of the arena.

    Attributes:
        offset: where the part begins, in bytes.
    """

    storage: Storage
    offset: int = 0


@dataclass(frozen=True)
class Touch:
    """A range of a storage that a launch reads or writes: whole blocks, in bytes."""

    storage: Storage
    begin: int
    end: int
    writes: bool

    def meets(self, begin: int, end: int) -> bool:
        """Whether it has bytes of a range of its storage."""
        return self.begin < end and begin < self.end


@dataclass(frozen=True)
class Launch:
    """A kernel to launch on buffers, each a place and the memref type it is seen as.

    Attributes:
        operators: names of the model's nodes that it computes.
        members: of those the ones that each operator of the kernel computes.
        outputs: how many of the buffers are written, the last ones.
        shares: numbers of outputs and of the inputs whose bytes they may take, both counted from 0.
        is_copy: whether nothing is left to be done if they do.
        stage: number of what it shares a launch with; None if it has one of its own.
        past_l2: numbers of the buffers that it reads past the L2.
    """

    kernel: str
    buffers: list[tuple[Place, ir.MemRefType]]
    location: ir.Location
    operators: tuple[str, ...]
    members: Sequence[Sequence[str]]
    outputs: int
    shares: Sequence[tuple[int, int]] = ()
    is_copy: bool = False
    stage: int | None = None
    past_l2: tuple[int, ...] = ()

    @functools.cached_property
    def touches(self) -> tuple[Touch, ...]:
        """What it does to storages, a touch for each buffer."""
        inputs = len(self.buffers) - self.outputs
        return tuple(
            Touch(place.storage, *touched, writes=number >= inputs)
            for number, (place, kind) in enumerate(self.buffers)
            for touched in ranges_of(place, kind)
        )


def is_dense(kind: ir.MemRefType) -> bool:
    """Whether the elements of a memref type follow each other."""
    strides, _ = kind.get_strides_and_offset()
    return list(strides) == list(row_major(kind.shape))


def ranges_of(place: Place, kind: ir.MemRefType) -> Iterator[tuple[int, int]]:
    """The bytes of a storage that a kernel may touch at a place; of images that lie apart those of
    each."""
    if is_dense(kind):
        yield range_of(place, kind)
        return
    strides, _ = kind.get_strides_and_offset()
    step = strides[0] * kind.element_type.width // 8
    size = round_up(bytes_of(kind) // kind.shape[0], BLOCK_BYTES)
    for image in range(kind.shape[0]):
        begin = place.offset + image * step
        yield begin, begin + size


def range_of(place: Place, kind: ir.MemRefType) -> tuple[int, int]:
    """The bytes of a storage that a kernel may touch at a place: whole blocks."""
    return place.offset, place.offset + round_up(bytes_of(kind), BLOCK_BYTES)


def bytes_of(kind: ir.MemRefType) -> int:
    """Bytes of a memref type."""
    count: int = math.prod(kind.shape)
    return count * int(kind.element_type.width) // 8


class HostBuilder:
    """Writes the new @main in front of `function` from launches whose arena is packed.

    Args:
        streamed: storages of weights that the host brings to the arena, by the number of the launch
            in front of which that may begin.
        copied: numbers of outputs that do not have the bytes of their states.
        same: numbers of outputs that no launch writes, each with the number of the output whose
            bytes it has, for both are one value.
    """

    def __init__(
        self,
        root: Op,
        function: Op,
        launches: list[Launch],
        arena_bytes: int,
        line_bytes: int,
        streamed: Mapping[int, Sequence[Storage]] = MappingProxyType({}),
        copied: Set[int] = frozenset(),
        same: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._symbols = dict(symbols(root))
        self._kernels = known_kernels(root)
        self._globals: list[str] = []
        self._views: dict[Hashable, ir.Value] = {}
        self._declarations: dict[str, str] = {}
        self._arena_bytes, self._line_bytes = arena_bytes, line_bytes
        old_type = function_type(function)
        types = [memref_of(t) for t in (*old_type.inputs, *old_type.results)]
        locations = [argument.location for argument in function.regions[0].blocks[0].arguments]
        locations += [function.location] * len(old_type.results)
        self._front = ir.InsertionPoint(function)
        with self._front, function.location:
            self.main = func.FuncOp("main", (types, []))
        self.main.attributes["ascend.entry"] = ir.UnitAttr.get()
        self.main.attributes["arg_attrs"] = _argument_names(function, old_type, copied, same)
        block = self.main.add_entry_block(locations)
        self._arguments = list(block.arguments)[: len(old_type.inputs)]
        self._outputs = list(block.arguments)[len(old_type.inputs) :]
        with ir.InsertionPoint(block), function.location:
            for number, launch in enumerate(launches):
                for storage in streamed.get(number, ()):
                    with storage.location:
                        self._fetch(storage)
                with launch.location:
                    self._launch(launch)
            func.ReturnOp([])

    def _fetch(self, storage: Storage) -> None:
        """Writes that the host brings weights to their place in the arena."""
        name = self._build_global(storage)
        self._symbols[name].attributes[STREAMED] = ir.UnitAttr.get()
        source = memref.GetGlobalOp(storage.type, ir.FlatSymbolRefAttr.get(name)).result
        builder.op("memref.copy", [source, self._view(Place(storage), storage.type)], [])

    def _launch(self, launch: Launch) -> None:
        values = [self._view(place, seen_as) for place, seen_as in launch.buffers]
        callee = ir.FlatSymbolRefAttr.get(self._declaration(launch.kernel, values))
        marks: dict[str, Any] = {BLOCKS: self._blocks_of(launch.kernel)}
        if launch.operators:
            names = [ir.StringAttr.get(name) for name in launch.operators]
            marks["ascend.operators"] = ir.ArrayAttr.get(names)
        if len(launch.members) > 1:
            marks["ascend.members"] = builder.as_attribute(launch.members)
        if launch.stage is not None:
            marks["ascend.stage"] = builder.as_attribute(launch.stage)
        if launch.past_l2:
            marks[PAST_L2] = builder.as_attribute(launch.past_l2)
        builder.op("func.call", values, [], callee=callee, **marks)

    def _blocks_of(self, kernel: str) -> int:
        """As many as a kernel asks for that came ready; others are given theirs later."""
        return int(attribute(self._kernels[kernel], BLOCKS, 1))

    def _declaration(self, kernel: str, values: list[ir.Value]) -> str:
        """Name of the function that stands for `kernel` in the host's symbol table."""
        if kernel not in self._declarations:
            name = self._declarations[kernel] = unique(kernel, self._symbols)
            with self._front, ir.Location.unknown():
                declared = func.FuncOp(name, ([v.type for v in values], []), visibility="private")
            declared.attributes["ascend.launch"] = ir.SymbolRefAttr.get(["kernels", kernel])
            self._symbols[name] = declared.operation
        return self._declarations[kernel]

    def _view(self, place: Place, seen_as: ir.MemRefType) -> ir.Value:
        key = (place, seen_as)
        if key not in self._views:
            self._views[key] = self._build_view(place, seen_as)
        return self._views[key]

    def _build_view(self, place: Place, seen_as: ir.MemRefType) -> ir.Value:
        storage = place.storage
        if storage.kind == "arena":
            offset = builder.constant_index(storage.offset + place.offset)
            if not is_dense(seen_as):
                return self._apart(offset, seen_as)
            return memref.ViewOp(seen_as, self._arena, offset, []).result
        if seen_as.element_type != storage.type.element_type:
            own = ir.MemRefType.get(seen_as.shape, storage.type.element_type)
            return builder.op(CONVERSION, [self._view(place, own)], [seen_as]).result
        if seen_as != storage.type:
            strides, _ = seen_as.get_strides_and_offset()
            base = self._view(place, storage.type)
            return memref.ReinterpretCastOp(
                seen_as, base, [], [], [], [0], list(seen_as.shape), list(strides)
            ).result
        if storage.kind == "constant":
            name = ir.FlatSymbolRefAttr.get(self._build_global(storage))
            return memref.GetGlobalOp(storage.type, name).result
        numbered = self._arguments if storage.kind == "argument" else self._outputs
        value: ir.Value = numbered[storage.key]
        return value

    def _apart(self, offset: ir.Value, seen_as: ir.MemRefType) -> ir.Value:
        """A view of the arena whose elements do not follow each other."""
        strides, _ = seen_as.get_strides_and_offset()
        sizes = list(seen_as.shape)
        last = sum((size - 1) * step for size, step in zip(sizes, strides, strict=True))
        flat = ir.MemRefType.get([last + 1], seen_as.element_type)
        base = memref.ViewOp(flat, self._arena, offset, []).result
        return memref.ReinterpretCastOp(seen_as, base, [], [], [], [0], sizes, list(strides)).result

    @functools.cached_property
    def _arena(self) -> ir.Value:
        byte = ir.IntegerType.get_signless(8)
        arena_type = ir.MemRefType.get([self._arena_bytes], byte)
        return memref.AllocOp(arena_type, [], [], alignment=self._line_bytes).result

    def _build_global(self, storage: Storage) -> str:
        name = unique(f"constant_{len(self._globals)}", self._symbols)
        self._globals.append(name)
        elements = storage.key
        if is_boolean(elements.type) or is_unsigned(elements.type):
            elements = to_attribute(to_array(elements), storage.type.element_type, name)
        with self._front, storage.location:
            self._symbols[name] = builder.op(
                "memref.global",
                [],
                sym_name=name,
                sym_visibility="private",
                type=ir.TypeAttr.get(storage.type),
                initial_value=elements,
                constant=ir.UnitAttr.get(),
            )
        return name


def states_of(function: Op) -> dict[int, int]:
    """Numbers of the results that are the next values of arguments, and of these."""
    found = {}
    for number, one in enumerate(function.attributes.get("res_attrs", ())):
        for mark in one:
            if mark.name == "ascend.state":
                found[number] = ir.IntegerAttr(mark.attr).value
    return found


def _argument_names(
    function: Op, old_type: ir.FunctionType, copied: Set[int], same: Mapping[int, int]
) -> ir.Attribute:
    """Attributes of the new arguments: names; outputs, booleans and unsigned integers marked, and
    outputs that are copied into their states or have the bytes of other outputs."""
    attributes = []
    for key, name, types in (
        ("arg_attrs", "arg", old_type.inputs),
        ("res_attrs", "out", old_type.results),
    ):
        given = function.attributes[key] if key in function.attributes else [{}] * len(types)
        for number, tensor in enumerate(map(ir.RankedTensorType, types)):
            names = {x.name: x.attr for x in given[number]}
            if is_boolean(tensor):
                names["ascend.boolean"] = ir.UnitAttr.get()
            if is_unsigned(tensor):
                names["ascend.unsigned"] = ir.UnitAttr.get()
            names.setdefault("ascend.name", ir.StringAttr.get(f"{name}{number}"))
            if key == "res_attrs":
                names["ascend.output"] = ir.UnitAttr.get()
                if number in copied:
                    names["ascend.copied"] = ir.UnitAttr.get()
                if number in same:
                    names["ascend.same"] = builder.as_attribute(same[number])
            attributes.append(ir.DictAttr.get(names))
    return ir.ArrayAttr.get(attributes)
