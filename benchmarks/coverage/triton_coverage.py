"""How much of a checkout of triton-ascend runs on the simulated 910B.

    git clone https://github.com/triton-lang/triton-ascend
    python benchmarks/coverage/triton_coverage.py triton-ascend/third_party/ascend

Scripts of `tutorials` and tests of `unittest/pytest_ut` run as they are, each file in a process of
its own; of each test, some cases. What they ask of the NPU's PyTorch is answered on the CPU, and
`kernel[grid](...)` goes to `davinci.triton`. Kernels of `unittest/kernels` come without data and
are left out. A folder or a file of others may be given, too.

A test that ends with a race runs again without checks, which tells whether the numbers that it
looks at are right all the same. With `--results F` the outcomes of each file are kept as soon as
it has run, and a later run of some files replaces theirs; `--go-on` leaves out files whose outcomes
are there, so that a run that was stopped goes on. `--write PAGE` writes the page from all of them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import triton_page
from triton_page import KINDS, MEASURED, Outcome, explained, refusals, summary

CASES = 2
SECONDS = 60
FILE_SECONDS = 300

REFUSED = re.compile(r"not supported yet; found (.*)", re.DOTALL)
VENDOR = re.compile(r"Triton does not compile|bishengir-compile|triton-adapter-opt")
MISSING = re.compile(
    r"has no attribute|cannot import name|No module named|is not defined|cannot access|"
    r"unexpected keyword argument|no such parameter"
)
NUMBERS = re.compile(
    r"not close|not equal|mismatch|Mismatched|method (equal|allclose)|equal\(|allclose|isclose|"
    r"all\(\)|error is|==|max",
    re.IGNORECASE,
)


def kind_of(record: dict[str, Any]) -> tuple[str, str]:
    """What the end of a case means, and what says so."""
    name, message = record.get("error"), record.get("message", "")
    if record.get("outcome") == "skipped":
        return "skipped", message
    if name is None:
        return "right", ""
    text = f"{name}: {message}"
    refused = REFUSED.search(message)
    frames = record.get("frames", [])
    checks = {
        "slow": name == "OutOfTime",
        "fault": "DeviceFault" in name or "device fault" in message,
        "refused": bool(refused),
        "newer": bool(MISSING.search(message)),
        "vendor": bool(VENDOR.search(message)),
        "wrong": name == "AssertionError" and not any(f.startswith("davinci") for f in frames)
        and bool(NUMBERS.search(message)),
    }  # fmt: skip
    kind = next((kind for kind, holds in checks.items() if holds), "other")
    return kind, refused.group(1) if refused else text


def run_file(path: Path, cases: int, seconds: int, most: int) -> list[Outcome]:
    """Runs a file in forked processes: another one each time that one dies."""
    import npu_on_cpu

    done, said = run_cases(path, npu_on_cpu.Cases(cases, seconds), most)
    raced = {record["end"] for record in done if races(record)}
    if raced:
        again, _ = run_cases(path, npu_on_cpu.Cases(cases, seconds, frozenset(raced), False), most)
        right = {record["end"] for record in again if kind_of(record)[0] == "right"}
        for record in done:
            record["race"] = record["end"] in raced & right
    return [explained(outcome) for outcome in grouped(path, done, said)]


def races(record: dict[str, Any]) -> bool:
    """Whether a case ended with a race between programs of the grid."""
    message = str(record.get("message", ""))
    return any(f"race between {what}" in message for what in ("blocks", "cores"))


def run_cases(path: Path, chosen: Any, most: int) -> tuple[list[dict[str, Any]], str]:
    """The ends of the cases of a file, and what it printed.

    Args:
        chosen: which of them, a `npu_on_cpu.Cases`.
        most: seconds for all of them.
    """
    import npu_on_cpu

    context = multiprocessing.get_context("fork")
    done: list[dict[str, Any]] = []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        notes, log = Path(folder) / "notes", Path(folder) / "log"
        notes.touch()
        while True:
            skip = {record["end"] for record in done}

            def work(skip: set[str] = skip) -> None:
                with log.open("ab") as file:
                    os.dup2(file.fileno(), 1)
                    os.dup2(file.fileno(), 2)
                os.chdir(folder)
                sys.path[:0] = [str(path.parent), *beside(path)]
                npu_on_cpu.run(path, notes, chosen, skip)

            process = context.Process(target=work)
            process.start()
            process.join(max(1.0, begin + most - time.monotonic()))
            alive = process.is_alive()
            process.kill()
            process.join()
            found = [json.loads(line) for line in notes.read_text().splitlines()]
            begun = [r for r in found if "begin" in r]
            done = [r for r in found if "end" in r]
            ended = {r["end"] for r in done}
            open_ = [r for r in begun if r["begin"] not in ended]
            for record in open_:
                error = "OutOfTime" if alive else "Died"
                lost = {"end": record["begin"], "test": record.get("test", ""), "error": error}
                lost |= {"seconds": time.monotonic() - begin, "message": f"{process.exitcode}"}
                done.append(lost)
                with notes.open("a") as file:
                    file.write(json.dumps(lost) + "\n")
            if alive or not open_ or time.monotonic() > begin + most:
                break
        said = log.read_text(errors="replace")
    return done, said


def beside(path: Path) -> list[str]:
    """Folders of helpers that tests and tutorials of a checkout import."""
    return [
        str(folder)
        for parent in path.parents
        for folder in (parent / "unittest" / "pytest_ut", parent / "ascend" / "unittest")
        if folder.is_dir()
    ]


def grouped(path: Path, records: Iterable[dict[str, Any]], log: str) -> Iterator[Outcome]:
    """An outcome for each test: the worst of its cases."""
    tests: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for record in records:
        if record.get("error") == "Died":
            kind, detail = "died", f"exit code {record['message']}"
        else:
            kind, detail = kind_of(record)
        if record.get("race"):
            kind = "race"
        tests.setdefault(record.get("test", ""), []).append((kind, detail, record))
    if not tests:
        tail = log.strip().splitlines()[-1:] or ["nothing ran"]
        if "no tests ran" not in tail[0] and "deselected" not in tail[0]:
            yield Outcome(path.name, "", "other", 0.0, tail[0])
        return
    order = ["skipped", "right", *(kind for kind in reversed(KINDS) if kind != "right")]
    for test, cases in tests.items():
        kind, detail, _ = max(cases, key=lambda case: order.index(case[0]))
        if kind != "skipped":
            most = {name: max(r.get(name, 0) for *_, r in cases) for name in MEASURED}
            yield Outcome(path.name, test, kind, detail=detail, cases=len(cases), **most)


def files_of(place: Path) -> list[Path]:
    """Scripts and tests in a folder; helpers of tests are neither."""
    if place.is_file():
        return [place]
    found = sorted(place.rglob("*.py"))
    return [
        path
        for path in found
        if path.name not in ("conftest.py", "test_common.py", "__init__.py")
        and ("pytest_ut" not in path.parts or path.name.startswith("test_"))
        and "kernels" not in path.parts
    ]


def run_all(
    paths: Sequence[Path], options: argparse.Namespace, known: list[Outcome]
) -> list[Outcome]:
    """Runs files, some at a time, tells of each, and keeps what is known in `options.results`.

    Args:
        known: outcomes of earlier runs, which those of a file that runs again replace.
    """
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [
            pool.submit(run_file, path, options.cases, options.seconds, options.file_seconds)
            for path in paths
        ]
        for job in as_completed(jobs):
            outcomes = job.result()
            for outcome in outcomes:
                detail = " ".join(outcome.detail.split())[:600]
                print(f"{outcome.kind:8} {outcome.seconds:6.1f} s  {outcome.name}  {detail}")
            sys.stdout.flush()
            known = triton_page.merged(known, outcomes)
            if options.results:
                triton_page.save(options.results, known)
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("place", type=Path, help="third_party/ascend of a checkout, or any file")
    parser.add_argument("--cases", type=int, default=CASES, help="of each test")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of the processor for a case")
    parser.add_argument("--file-seconds", type=int, default=FILE_SECONDS, help="most for a file")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time")
    parser.add_argument("--only", help="regular expression for names of files")
    parser.add_argument("--results", type=Path, help="JSON that keeps outcomes of several runs")
    parser.add_argument("--write", type=Path, help="page to write from all outcomes")
    parser.add_argument("--go-on", action="store_true", help="leave out files in the results")
    options = parser.parse_args()
    import npu_on_cpu

    npu_on_cpu.prepare()
    paths = [p.resolve() for p in files_of(options.place)]
    if options.only:
        paths = [path for path in paths if re.search(options.only, path.name)]
    known = triton_page.load(options.results) if options.results else []
    if options.go_on:
        done = {outcome.file for outcome in known}
        paths = [path for path in paths if path.name not in done]
    outcomes = run_all(paths, options, known)
    if options.write:
        options.write.write_text(triton_page.page(outcomes, options.cases, options.seconds))
    print(summary(outcomes))
    for name, count in refusals(outcomes).most_common():
        print(f"  not supported: {name} in {count}")


if __name__ == "__main__":
    main()
