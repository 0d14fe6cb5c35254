"""Kernels as text of AscendNPU-IR, each against the kernel of ours that it was made of.

    python benchmarks/coverage/written_kernels.py MODEL.. [--quantize]

Models are named as npu-run names them, the text is that of `davinci.hivm_out`. Each kernel's text
is verified by `bishengir-opt`, read back and run on the simulated 910B with random arrays, and so
is our own kernel: all arrays that they may write have the same bytes, or the kernel is printed.
Kernels that need what random arrays are not, such as places of elements, fault and are counted.

--quantize has products of bytes instead, calibrated with two random samples.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

import davinci
from davinci import job
from davinci.dialects.base import attribute
from davinci.errors import DavinciError, DeviceFault
from davinci.frontends.hivm import Given, launch
from davinci.hivm_out import MACHINE, WrittenKernel, as_hivm, lowered, programs_of
from davinci.mlir import Op, ir, symbol_name
from davinci.triton.toolchain import verify

FLOATS = {"f16": np.float16, "f32": np.float32}
INTEGERS = {"i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8}

Arrays = dict[str, np.ndarray]


def our_module(name: str, programs: Sequence[Op]) -> str:
    """The module that launches a kernel of ours once, whose arguments are inputs and outputs."""
    types = [str(value.type) for value in programs[0].regions[0].blocks[0].arguments]
    inputs, outputs = (
        [f'%{role}{i}: {t} {{ascend.name = "a{i}"{more(i)}}}' for i, t in enumerate(types)]
        for role, more in (
            ("in", lambda i: ""),
            ("out", lambda i: f", ascend.output, ascend.state = {i} : i64"),
        )
    )
    parts = [f"@kernels::@{symbol_name(each)}" for each in programs]
    launched = parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
    values = ", ".join(f"%in{i}" for i in range(len(types)))
    kinds = ", ".join(types)
    text = "\n".join(str(each.get_asm(use_local_scope=True)) for each in programs)
    return f"""module {{
      func.func @main({", ".join([*inputs, *outputs])}) attributes {{ascend.entry}} {{
        func.call @{name}({values}) {{ascend.blocks = {attribute(programs[0], "ascend.blocks", 1)}}}
          : ({kinds}) -> ()
        return
      }}
      func.func private @{name}({kinds}) attributes {{ascend.launch = {launched}}}
      module @kernels {{
        {text}
      }}
    }}"""


def texts_of(module: ir.Module) -> dict[str, str]:
    """For each kernel of a lowered model the module that launches it once, by its name."""
    with module.context, ir.Location.unknown():
        found = programs_of(module)
        return {name: our_module(name, programs) for name, programs in found.items()}


def arrays_for(types: Sequence[str], rng: np.random.Generator) -> tuple[list[Given], Arrays]:
    """An array for each argument, and what it is; integers are small and not negative."""
    given, arrays = [], {}
    for number, kind in enumerate(types):
        *sizes, element = re.findall(r"\w+", kind.removeprefix("memref"))[0].split("x")
        shape = tuple(map(int, sizes))
        given.append(Given(f"a{number}", shape, element))
        if element in FLOATS:
            arrays[f"a{number}"] = rng.standard_normal(shape).astype(FLOATS[element])
        else:
            arrays[f"a{number}"] = rng.integers(0, 9, shape).astype(INTEGERS[element])
    return given, arrays


def outcome(kernel: WrittenKernel, ours: str, rng: np.random.Generator) -> str:
    """The verdict on a kernel: "same" if both leave the same bytes, "faults" if ours cannot run on
    these arrays, else the message of what is wrong."""
    try:
        verify(kernel.text)
    except DavinciError as error:
        return f"their verifier: {error.found or error}"
    given, arrays = arrays_for(kernel.types, rng)
    try:
        expected = davinci.compile(ours, machine=MACHINE).run(arrays)
    except DeviceFault:
        return "faults"
    try:
        module = launch(kernel.text, [kernel.blocks], given)
        made = davinci.compile(module, machine=MACHINE).run(arrays)
    except DavinciError as error:
        return f"read back: {type(error).__name__}: {error}"
    wrong = [n for n in made if made[n].tobytes() != expected[n].tobytes()]
    return f"other bytes of {', '.join(wrong)}" if wrong else "same"


def opened(name: str, quantize: bool) -> Any:
    """A model by its name, with products of bytes if asked."""
    source = job.open_source(name)
    proto = source.proto()
    if quantize and proto is not None:
        return davinci.quantize(proto, job.random_samples(source, 2), layers="all").model
    return source.model


def checked(model: Any, rng: np.random.Generator) -> Counter[str]:
    """Counts of outcomes of a model's kernels; what is wrong is printed."""
    found = as_hivm(model)
    counts = Counter({"refused": len(found.refused)})
    for kernel, why in found.refused.items():
        print(f"  {kernel} is refused: {why}", flush=True)
    # Theirs may have kernels apart that are one of ours, whose loads come before phases meet.
    modules = [
        lowered(model, MACHINE, 0, joined=False, chained=chained) for chained in (False, True)
    ]
    ours = {name: each for module in modules for name, each in texts_of(module).items()}
    with modules[0].context, ir.Location.unknown():
        for kernel in found.kernels:
            if not kernel.types:
                continue
            result = outcome(kernel, ours[kernel.name], rng)
            counts[result if result in ("same", "faults") else "wrong"] += 1
            if result not in ("same", "faults"):
                print(f"  {kernel.name}: {result}", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--quantize", action="store_true")
    arguments = parser.parse_args()
    total: Counter[str] = Counter()
    for name in arguments.models:
        counts = checked(opened(name, arguments.quantize), np.random.default_rng(0))
        print(name, dict(counts), flush=True)
        total += counts
    print("all", dict(total))
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
