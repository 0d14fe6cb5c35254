"""How much of a checkout of triton-ascend runs on the simulated 910B.

    git clone https://github.com/triton-lang/triton-ascend    # or any other folder of scripts
    python benchmarks/coverage/triton_coverage.py triton-ascend/third_party/ascend/tutorials

Each file is run as it is, in a process of its own: a script as a script, one with tests by pytest.
What it asks of the NPU's PyTorch is answered on the CPU, and `kernel[grid](...)` goes to
`davinci.triton`. A file is `ok` if it comes to its end, with the comparisons that are in it;
`refused` if a kernel has an operation that is not supported, whose names are counted; `wrong` if
one of its comparisons fails; `fault` if the simulated machine found something; `other` if something
else fails first, a package that is missing for example.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

SECONDS = 120
ON_CPU = Path(__file__).with_name("npu_on_cpu.py")
REFUSED = re.compile(r"not supported yet; found (.*)")
OPERATION = re.compile(r"(.+?) \((\d+)x\)(?:, )?")
ERROR = re.compile(r"^(?:E\s+)?([\w.]*(?:Error|Fault|Exception)[\w.]*): (.*)$", re.MULTILINE)


@dataclass
class Outcome:
    """What became of a file."""

    name: str
    kind: str
    seconds: float
    detail: str = ""


def run(path: Path, seconds: float) -> Outcome:
    """Runs a file to its end, or for so long."""
    begin = time.monotonic()
    command = [sys.executable, str(ON_CPU), str(path)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, cwd=path.parent
        )
    except subprocess.TimeoutExpired:
        return Outcome(path.name, "slow", time.monotonic() - begin, f"more than {seconds} s")
    taken = time.monotonic() - begin
    if not done.returncode:
        return Outcome(path.name, "ok", taken)
    return Outcome(path.name, *judged(done.stdout + done.stderr, done.returncode, taken))


def judged(log: str, code: int, taken: float) -> tuple[str, float, str]:
    """Why a file failed: the first reason that says something about us, else the last error."""
    if code < 0:
        return "died", taken, f"signal {-code}"
    refused = REFUSED.search(log)
    if refused:
        return "refused", taken, refused.group(1)
    errors = ERROR.findall(log)
    for name, message in errors:
        if name.endswith("DeviceFault"):
            return "fault", taken, message[:200]
    name, message = errors[-1] if errors else ("", log.strip().splitlines()[-1:][0] if log else "")
    kind = "wrong" if name == "AssertionError" else "other"
    return kind, taken, f"{name}: {message}"[:200]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="of scripts and tests; or one file")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="most for a file")
    parser.add_argument("--page", type=Path, help="write the table as Markdown, too")
    options = parser.parse_args()
    folder = options.folder
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    outcomes = []
    for path in files:
        outcome = run(path.resolve(), options.seconds)
        outcomes.append(outcome)
        print(
            f"{outcome.name:44} {outcome.kind:8} {outcome.seconds:6.1f} s  {outcome.detail}",
            flush=True,
        )
    kinds = Counter(outcome.kind for outcome in outcomes)
    print(", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    operations: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.kind == "refused":
            for name, count in OPERATION.findall(outcome.detail):
                operations[name] += int(count)
    for name, count in operations.most_common():
        print(f"  not supported: {name} {count}x")
    if options.page is not None:
        rows = [f"| {o.name} | {o.kind} | {o.seconds:.1f} | {o.detail} |" for o in outcomes]
        head = ["| file | outcome | seconds | detail |", "|---|---|---|---|"]
        options.page.write_text("\n".join([*head, *rows]) + "\n")


if __name__ == "__main__":
    main()
