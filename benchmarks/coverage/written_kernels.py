"""Kernels as text of AscendNPU-IR, each against the kernel of ours that it was made of.

    python benchmarks/coverage/written_kernels.py [MODEL ..] [--quantize] [--results F [--go-on]]
                                                  [--write]

Models are named as npu-run names them, the text is that of `davinci.hivm_out`. Each kernel's text
is verified by `bishengir-opt`, read back and run on the simulated 910B with random arrays, and so
is our own kernel: all arrays that they may write have the same bytes, or the kernel is printed.
Kernels that need what random arrays are not, such as places of elements, fault and are counted.

Without names all networks of the zoo come, at the sizes of `network_check.py`. With `--results F`
what is found of each is kept, and `--go-on` leaves out networks that are there, so that a run that
was stopped goes on. `--write` writes the table on docs/triton.md, of all that is kept.

--quantize has products of bytes instead, calibrated with two random samples.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))

from network_check import ZOO
from page_section import put_section

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

PAGE = Path(__file__).parents[2] / "docs" / "triton.md"
SECTION = "kernels in their text"
HEAD = """| network | kernels | refused | verified | same bytes | no random arrays |
|---|---:|---:|---:|---:|---:|
"""


@dataclass
class WrittenOutcomes:
    """What became of the kernels of a network.

    Attributes:
        network: its name.
        refused: by name, what AscendNPU-IR has no operation for.
        unverified: by name, what their verifier says.
        wrong: by name, what is wrong when it is read back, or the arrays with other bytes.
        same: kernels that leave the same bytes.
        faults: verified kernels that cannot run on random arrays, ours neither.
    """

    network: str
    refused: dict[str, str] = field(default_factory=dict)
    unverified: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    same: int = 0
    faults: int = 0

    @property
    def verified(self) -> int:
        """Kernels that their verifier takes."""
        return self.same + self.faults + len(self.wrong)

    @property
    def kernels(self) -> int:
        """The number of kernels of the network, whatever came of them."""
        return self.verified + len(self.unverified) + len(self.refused)

    @property
    def counts(self) -> tuple[int, ...]:
        """The cells of its row in the table."""
        return self.kernels, len(self.refused), self.verified, self.same, self.faults


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


def compare(
    kernel: WrittenKernel, ours: str, rng: np.random.Generator, found: WrittenOutcomes
) -> None:
    """Verifies a kernel's text, runs it and ours on the same arrays, and keeps what comes out."""
    try:
        verify(kernel.text)
    except DavinciError as error:
        found.unverified[kernel.name] = str(error.found or error)
        return
    given, arrays = arrays_for(kernel.types, rng)
    try:
        expected = davinci.compile(ours, machine=MACHINE).run(arrays)
    except DeviceFault:
        found.faults += 1
        return
    try:
        module = launch(kernel.text, [kernel.blocks], given)
        made = davinci.compile(module, machine=MACHINE).run(arrays)
    except DavinciError as error:
        found.wrong[kernel.name] = f"{type(error).__name__}: {error}"
        return
    other = [n for n in made if made[n].tobytes() != expected[n].tobytes()]
    if other:
        found.wrong[kernel.name] = f"other bytes of {', '.join(other)}"
    else:
        found.same += 1


def opened(name: str, quantize: bool) -> Any:
    """A model by its name, with products of bytes if asked."""
    source = job.open_source(name)
    proto = source.proto()
    if quantize and proto is not None:
        return davinci.quantize(proto, job.random_samples(source, 2), layers="all").model
    return source.model


def checked(model: Any, rng: np.random.Generator, network: str = "") -> WrittenOutcomes:
    """What becomes of a model's kernels."""
    written = as_hivm(model)
    found = WrittenOutcomes(network, refused=dict(written.refused))
    kernels = [kernel for kernel in written.kernels if kernel.types]
    ours = our_kernels(model, {kernel.name for kernel in kernels})
    for kernel in kernels:
        compare(kernel, ours[kernel.name], rng, found)
    return found


def our_kernels(model: Any, names: Set[str]) -> dict[str, str]:
    """For each of these kernels of a model the module that launches ours once. Some that are parts
    of one kernel of ours, whose loads come before phases meet, are compiled apart."""
    ours = texts_of(lowered(model, MACHINE, 0, joined=False))
    if names - ours.keys():
        ours = texts_of(lowered(model, MACHINE, 0, joined=False, chained=False)) | ours
    return ours


def told(found: WrittenOutcomes) -> str:
    """The counts of a network in a line, and a line for each kernel that is not as it should be."""
    kernels, refused, verified, same, faults = found.counts
    lines = [
        f"{found.network}: {kernels} kernels, {refused} refused, {verified} verified, {same} leave "
        f"the same bytes, {faults} need other arrays"
    ]
    kinds = (("refused", found.refused), ("not verified", found.unverified), ("wrong", found.wrong))
    lines += [f"  {name} is {kind}: {why}" for kind, those in kinds for name, why in those.items()]
    return "\n".join(lines)


def table(outcomes: Sequence[WrittenOutcomes]) -> str:
    """The table of the page: a row for each network and one for all."""
    rows = [(found.network, *found.counts) for found in outcomes]
    total = [sum(column) for column in zip(*(found.counts for found in outcomes), strict=True)]
    cells = (" | ".join(map(str, row)) for row in [*rows, ("all", *total)])
    return HEAD + "\n".join(f"| {row} |" for row in cells)


def remarks(outcomes: Sequence[WrittenOutcomes]) -> str:
    """What the table does not show, a paragraph each: refused kernels with what has no counterpart,
    and networks of the zoo that were not run."""
    refused = [
        f"`{name}` of {found.network} ({why})"
        for found in outcomes
        for name, why in found.refused.items()
    ]
    missing = set(ZOO) - {found.network for found in outcomes}
    lines = [f"Refused: {', '.join(refused)}."] if refused else []
    if missing:
        lines.append(f"Not run: {'; '.join(sorted(missing, key=ZOO.index))}.")
    return "".join(f"\n\n{line}" for line in lines)


def place_in_zoo(network: str) -> tuple[int, str]:
    """By which networks are sorted: their order in the list of the zoo, others behind them."""
    return (ZOO.index(network) if network in ZOO else len(ZOO)), network


def kept(path: Path | None) -> list[WrittenOutcomes]:
    """The outcomes of earlier runs."""
    if path is None or not path.is_file():
        return []
    return [WrittenOutcomes(**each) for each in json.loads(path.read_text(encoding="utf-8"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("models", nargs="*", help="default: all networks of the zoo, small ones")
    parser.add_argument("--quantize", action="store_true")
    parser.add_argument("--results", type=Path, help="JSON that keeps the outcomes of several runs")
    parser.add_argument("--go-on", action="store_true", help="leave out networks in the results")
    parser.add_argument("--write", action="store_true", help="write the table on docs/triton.md")
    options = parser.parse_args()
    outcomes = {found.network: found for found in kept(options.results)}
    for model in options.models or [f"{job.ZOO}{name}" for name in ZOO]:
        network = model.removeprefix(job.ZOO) + " of bytes" * options.quantize
        if options.go_on and network in outcomes:
            continue
        found = checked(opened(model, options.quantize), np.random.default_rng(0), network)
        print(told(found), flush=True)
        outcomes[network] = found
        if options.results:
            text = json.dumps([asdict(each) for each in outcomes.values()], indent=1)
            options.results.write_text(text, encoding="utf-8")
    ordered = [outcomes[name] for name in sorted(outcomes, key=place_in_zoo)]
    rows = table(ordered) + remarks(ordered)
    print(rows)
    if options.write:
        put_section(PAGE, SECTION, rows)
    return 1 if any(each.wrong or each.unverified for each in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
