"""The kernel of Triton that `npu_on_cpu` compiles before it forks, in a module of its own."""

import triton
import triton.language as tl


@triton.jit
def doubled(array, count, length: tl.constexpr):  # type: ignore[no-untyped-def]
    """The kernel of `ready_to_fork`: each program doubles `length` elements of an array."""
    places = tl.program_id(0) * length + tl.arange(0, length)
    inside = places < count
    tl.store(array + places, tl.load(array + places, mask=inside) * 2, mask=inside)
