"""Operations of StableHLO that no device can run for one program alone, with what to do instead."""

from __future__ import annotations

from typing import NoReturn

from davinci.dialects.base import attribute
from davinci.mlir import Op
from davinci.passes.pipeline.base import fail

COLLECTIVE = "talks to other devices, and there is one", "lower the model for one device"
HOST = "talks to the host while it runs", "make it an argument or a result of the program"
RANDOM = (
    "draws random numbers, whose algorithm is left to the device",
    "draw them outside and pass them as an argument, or write the generator in integer operations, "
    "as jax.random does with its default generator",
)
COMPLEX = (
    "works on complex numbers, which no unit has",
    "compute real and imaginary part apart",
)

REASONS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            *("all_gather", "all_reduce", "all_to_all", "collective_broadcast"),
            *("collective_permute", "cross-replica-sum", "partition_id", "reduce_scatter"),
            *("replica_id", "async_start", "async_done"),
        ),
        COLLECTIVE,
    ),
    **dict.fromkeys(
        ("after_all", "create_token", "infeed", "outfeed", "recv", "send"),
        HOST,
    ),
    **dict.fromkeys(("rng", "rng_bit_generator"), RANDOM),
    **dict.fromkeys(("complex", "fft", "imag", "real"), COMPLEX),
    "tuple": ("makes a tuple", "return the values one by one"),
    "get_tuple_element": ("takes a tuple apart", "pass the values one by one"),
}
"""Why an operation is refused, and the hint, by its name without the dialect's."""


def refuse_by_name(op: Op) -> None:
    """Raises a `CompileError` at an operation in `REASONS`."""
    name = op.name.removeprefix("stablehlo.")
    if op.name.startswith("stablehlo.") and name in REASONS:
        reason, hint = REASONS[name]
        fail(op, f"cannot be compiled: it {reason}", hint=hint)


def refuse_target(op: Op) -> NoReturn:
    """Raises a `CompileError` at a custom call whose target is not known."""
    fail(
        op,
        "calls a function outside of the program",
        found=f"@{attribute(op, 'call_target_name')}",
        expected="operations of StableHLO or CHLO",
        hint="a custom call is made for one device; lower the model without it, "
        "for example for another platform",
    )
