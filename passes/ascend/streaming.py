"""Weights that the host brings to the arena while kernels run, so the device need not hold them.

before:
    %w = memref.get_global @constant_0
    call @first(%x, %t)
    call @product(%t, %w, %y)
after:
    %w = memref.view %arena[..]
    memref.copy @constant_0, %w          begins here and takes as long as the link needs
    call @first(%x, %t)
    call @product(%t, %w, %y)            waits until it is there

Only what is used once is streamed, by one launch or by several that compute parts of one result:
everything else would stay or come several times. Tables of which a kernel gathers a few rows are
not streamed either. A transfer begins with the launch that reads the weights before, so that the
weights of two launches are in the arena at a time: those that are used and those that come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from davinci.mlir import Op, ir
from davinci.passes.ascend.host_function import Launch, Storage
from davinci.passes.ascend.kernel_group import group_of_kernel


def stream(launches: Sequence[Launch], kernels: Mapping[str, ir.Operation]) -> None:
    """Puts constants that are used once into the arena.

    Args:
        kernels: by name.
    """
    readers: dict[Storage, set[tuple[str, ...]]] = {}
    for launch in launches:
        for storage in {place.storage for place, _ in launch.buffers}:
            readers.setdefault(storage, set()).add(launch.operators)
    for launch in launches:
        tables = tables_of(kernels[launch.kernel])
        for number, (place, _) in enumerate(launch.buffers):
            storage = place.storage
            once = len(readers[storage]) == 1 and number not in tables
            if storage.kind == "constant" and storage.size and once:
                storage.kind, storage.streamed = "arena", True


def tables_of(kernel: Op) -> set[int]:
    """Numbers of the arguments of which a kernel gathers rows."""
    group = group_of_kernel(kernel)
    if group is None:
        return set()
    graph = group.graph
    gathered = {node.operands[0] for node in graph.nodes if node.name == "gather"}
    return {
        number
        for value, number in zip(graph.inputs, group.inputs, strict=True)
        if value in gathered
    }


def arrivals(stages: Sequence[Sequence[Launch]]) -> Iterator[tuple[Storage, int]]:
    """Yields streamed storages in the order in which they are needed, each with the number of the
    stage with which its transfer begins."""
    seen: set[Storage] = set()
    before = 0
    for number, launches in enumerate(stages):
        touched = dict.fromkeys(place.storage for x in launches for place, _ in x.buffers)
        new = [storage for storage in touched if storage.streamed and storage not in seen]
        for storage in new:
            yield storage, before
        if new:
            before = number
            seen.update(new)
