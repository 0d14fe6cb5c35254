"""What `--what-if` foretells, beside what a changed machine file really gains.

    python benchmarks/fidelity/what_if.py [--network zoo:bert-base,seq=512] [--machine NAME]

For the network and for a product of 512 x 768 x 768, each number of `CHANGES` is changed in a copy
of the machine file. `foretold` are the cycles that `Executable.what_if` says are saved; `really`
those that the same program saves when it runs on the machine of that copy; `compiled anew` those
that the model saves when it is compiled for it, which also chooses other schedules. At the end the
time that the ranking of everything takes. Exits with 1 if a change foretold differs from the real
one by more than 1 %.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import davinci
from davinci import machine as machines
from davinci.arrays import random_inputs
from davinci.job import make, open_source
from davinci.machine.reader import DIRECTORY
from davinci.runtime.executable import Executable
from davinci.runtime.saved import MANIFEST

PRODUCT = """
func.func @main(%a: tensor<512x768xf16>, %b: tensor<768x768xf16>) -> tensor<512x768xf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<512x768xf16>, tensor<768x768xf16>) -> tensor<512x768xf16>
  return %0 : tensor<512x768xf16>
}
"""

CHANGES = [
    ("gm.read_bytes_per_cycle", "2x", 2),
    ("l2.read_bytes_per_cycle", "0.5x", 0.5),
    ("sync.flag_cycles", "0", 0),
    ("sync.barrier_cycles", "0", 0),
    ("vector.fixed_cycles", "2x", 0.5),
    ("cube.occupancy_cycles", "0", 0),
    ("mte1.fixed_cycles", "0", 0),
    ("mte2.start_cycles", "0.5x", 2),
    ("mte3.start_cycles", "0", 0),
]
"""Keys, how they are changed, and what the number in the file is multiplied by."""

LARGEST_ERROR = 0.01


def changed_file(name: str, key: str, times: float, folder: Path) -> Path:
    """A copy of a machine file in which one number is multiplied."""
    text = (DIRECTORY / f"{name}.toml").read_text(encoding="utf-8")
    section, number = key.split(".")
    pattern = rf"(?ms)(^\[{section}\][^\[]*?^{number} = )([\d.]+)"

    def multiplied(found: re.Match[str]) -> str:
        value = float(found[2]) * times
        return found[1] + (str(value) if "." in found[2] else str(round(value)))

    new, count = re.subn(pattern, multiplied, text)
    assert count == 1, f"{key} is in the file once"
    path = folder / f"{key}.toml"
    path.write_text(new, encoding="utf-8")
    return path


def on_another_machine(saved: Path, machine: Path) -> Executable:
    """The program in a file, for the machine of another file."""
    other = saved.with_suffix(".other.davinci")
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == MANIFEST:
                manifest = json.loads(data)
                manifest["machine"] = machines.load(str(machine)).model_dump(mode="json")
                data = json.dumps(manifest).encode()
            new.writestr(name, data)
    return davinci.load(other)


def cycles_of(executable: Executable) -> int:
    """That a run takes."""
    executable.run(random_inputs(executable.inputs, 0))
    return int(executable.profile["total_cycles"])


def compiled(model: str, machine: str) -> Executable:
    return make(open_source(model), lambda text: None, machine=machine, timing_only=True)


def measure(model: str, machine: str, folder: Path) -> bool:
    """Prints the table of a model; returns whether all is as foretold."""
    executable = compiled(model, machine)
    before, good = cycles_of(executable), True
    saved = folder / "program.davinci"
    executable.save(saved)
    print(f"\n{Path(model).name}: {before:,} cycles")
    print(f"{'change':34}{'foretold':>12}{'really':>12}{'error':>9}{'compiled anew':>16}")
    for key, how, times in CHANGES:
        (row,) = executable.what_if(f"{key}={how}")
        path = changed_file(machine, key, times, folder)
        really = before - cycles_of(on_another_machine(saved, path))
        anew = before - cycles_of(compiled(model, str(path)))
        foretold = row["saved_cycles"]
        error = (foretold - really) / abs(really) if really else float(foretold != 0)
        good &= abs(error) <= LARGEST_ERROR
        print(f"{key + '=' + how:34}{foretold:12,}{really:12,}{error:9.2%}{anew:16,}", flush=True)
    start = time.process_time()
    rows = executable.what_if("all")
    seconds = time.process_time() - start
    print(f"ranking: {seconds:.1f} s of the processor, {len(rows)} changes that gain; the largest:")
    for row in rows[:5]:
        print(f"  {row['change']:56}{row['saved_us']:10.1f} us{row['saved_ratio']:8.1%}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--network", default="zoo:bert-base,seq=512", help="as npu-run takes it")
    parser.add_argument("--machine", default="ascend910", help="by name")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        product = folder / "product 512 x 768 x 768.mlir"
        product.write_text(PRODUCT)
        models = [str(product), arguments.network]
        good = [measure(model, arguments.machine, folder) for model in models]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
