"""The page about the coverage of Triton kernels, from the outcomes of runs, and what is known of
tests that do not pass although nothing is wrong here."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

KINDS = {
    "right": "runs to its end, with the comparisons that are in it",
    "race": "its numbers are right in the order in which the simulator runs the programs, but its "
    "programs store different numbers to the same place, which the test does not look at",
    "unsound": "its data has no right answer, or it reads behind its arrays, see below",
    "miscompiled": "the published compilers make another kernel of it, see below",
    "wrong": "numbers differ from what the test expects",
    "fault": "the simulated machine found a fault",
    "refused": "an operation that is not supported, by name",
    "vendor": "the vendor's compilers do not take the kernel",
    "newer": "needs functions that the published triton-ascend 3.2.0 has not",
    "slow": "longer than the time limit",
    "died": "the process died",
    "other": "something else",
}

EXPLAINED = {
    "test_indirect_scalar_load_offset.py:test_gather_after_reduce": (
        "miscompiled",
        "the address of `logits_ptr + req_idx * logits_stride + topk_id` has lost its middle part",
    ),
    "test_paged_kvcache_krope.py:test_bubbleup_extract_nonzero_offset": (
        "miscompiled",
        "`tl.arange(HEAD_DIM_V, HEAD_DIM)` begins at 0: the test is there for that",
    ),
    "test_atomic_cas.py:test_atomic_cas_return_value": (
        "miscompiled",
        "the old numbers are loaded behind the store of the new ones",
    ),
    "test_atomic_cas.py:test_atomic_cas_without_full": (
        "miscompiled",
        "the old numbers are loaded behind the store of the new ones",
    ),
    "test_implicit_atomic.py:test_addptr_implicit_perm_atomic_cas_2d": (
        "miscompiled",
        "the old numbers are loaded behind the store of the new ones",
    ),
    "test_cdiv.py:test_cdiv": ("unsound", "its random divisors hold zeros"),
    "test_permuted_boundary_check.py:test_permute_boundary_check": (
        "unsound",
        "its `boundary_check` leaves out columns, of which it loads 4 of 3, behind its array",
    ),
    "test_linearize_permute.py:test_k_load_perm_select": (
        "unsound",
        "its mask `xmask | ymask` lets it load behind the end of its array",
    ),
    "test_linearize_permute.py:test_k_store_perm_select": (
        "unsound",
        "its mask `xmask | ymask` lets it store behind the end of its array",
    ),
    "test_if_tensor.py:test_reverse_sequence_kernel": (
        "unsound",
        "its rows are as far apart as batches are, and the last ones lie behind its array",
    ),
    "test_implicit_permute.py:test_make_tensor_ptr_implicit_perm_load_store_3d_static_stride": (
        "unsound",
        "a load by a block pointer without `boundary_check` goes behind its array",
    ),
}
"""Tests whose numbers differ or that fault, and why, from the text of the kernel that was run."""

NOT_OURS = ("vendor", "newer", "miscompiled", "unsound")
"""Kinds of tests that published compilers cannot pass, on no machine."""

NEWER_OPTIONS = ("auto_blockify_size", "optimize_dynamic_offset")
"""Options of launches that newer releases of triton-ascend have, which only say how their compilers
go about a kernel: the published ones have nothing to go about, and do without."""

OPERATION = re.compile(r"(.+?) \((\d+)x\)(?:, )?")
FOLDERS = re.compile(r"(?:/[\w.+-]+)+/([\w.+-]+)")
MOST = 220
QUICK_SECONDS = 10


MEASURED = ("seconds", "launches", "launch_seconds", "slowest_launch")
"""What is measured of a case, and kept of a test for the case with the most."""


@dataclass
class Outcome:
    """The end of a script, or of the cases of a test.

    Attributes:
        seconds: of the processor, those of compilers and of PyTorch included.
        launches: of kernels.
        launch_seconds, slowest_launch: seconds of the processor of all launches and of the longest
            one, compilation included.
    """

    file: str
    test: str
    kind: str
    seconds: float
    detail: str = ""
    cases: int = 1
    launches: int = 0
    launch_seconds: float = 0.0
    slowest_launch: float = 0.0

    @property
    def name(self) -> str:
        """File and test."""
        return f"{self.file}:{self.test}" if self.test else self.file


def explained(outcome: Outcome) -> Outcome:
    """The outcome, with the reason where it is known."""
    known = EXPLAINED.get(outcome.name)
    if known is not None and outcome.kind in ("wrong", "other", "fault"):
        outcome.kind, outcome.detail = known
    return outcome


def load(path: Path) -> list[Outcome]:
    """The outcomes of earlier runs."""
    found = json.loads(path.read_text()) if path.is_file() else []
    return [explained(Outcome(**each)) for each in found]


def merged(before: Iterable[Outcome], now: Sequence[Outcome]) -> list[Outcome]:
    """Outcomes of earlier runs, replaced where a file has run again."""
    files = {outcome.file for outcome in now}
    found = [outcome for outcome in before if outcome.file not in files]
    return sorted([*found, *now], key=lambda outcome: (outcome.file, outcome.test))


def save(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Writes outcomes for `load`; a run that is stopped meanwhile leaves those of before."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    fresh.replace(path)


def refusals(outcomes: Iterable[Outcome]) -> Counter[str]:
    """In how many tests each operation without a lowering stands in the way."""
    found: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.kind == "refused":
            found.update({name for name, _ in OPERATION.findall(outcome.detail)})
    return found


def summary(outcomes: Sequence[Outcome]) -> str:
    """Counts of all kinds, and the share of right ones among all and among those that count."""
    kinds = Counter(outcome.kind for outcome in outcomes)
    listed = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind])
    right, able = kinds["right"], len(outcomes) - sum(kinds[kind] for kind in NOT_OURS)
    share = f"{right / max(1, len(outcomes)):.1%} right"
    return f"{len(outcomes)}: {listed}; {share}, {right / max(1, able):.1%} of what can be"


def page(outcomes: Sequence[Outcome], cases: int, seconds: int) -> str:
    """The page, in Markdown."""
    kinds = Counter(outcome.kind for outcome in outcomes)
    right, able = kinds["right"], len(outcomes) - sum(kinds[kind] for kind in NOT_OURS)
    done = [o for o in outcomes if o.kind == "right"]
    quick = sum(o.seconds < QUICK_SECONDS for o in done)
    # Of outcomes from before launches were noted, all seconds count.
    launched = sum((o.slowest_launch or o.seconds) < QUICK_SECONDS for o in done)
    tutorials = sum(outcome.file[:1].isdigit() for outcome in outcomes)
    what = f"{len(outcomes) - tutorials} tests of `unittest/pytest_ut`"
    if tutorials:
        what += f" and {tutorials} of its tutorials"
    lines = [
        "# Triton coverage",
        "",
        "Made by `python benchmarks/coverage/triton_coverage.py DIR --write F`, of a checkout of "
        "triton-ascend that is newer than the published compilers (3.2.0): "
        f"{what}, with {cases} case{'s' * (cases > 1)} of each test, which may take {seconds} s. "
        "The kernels are compiled by the vendor's compilers and run on "
        "the simulated 910B with data and with all checks; see [Kernels of Triton](triton.md). "
        "Options that only newer compilers have, and that only say how they go about a kernel "
        f"({', '.join(f'`{name}`' for name in NEWER_OPTIONS)}), are left out.",
        "",
        f"**{right} of {len(outcomes)} are right, {right / max(1, able):.0%} of the {able} that "
        f"the published compilers can pass**; {quick} of the {right} take less than "
        f"{QUICK_SECONDS} s of the processor, compilation included, and in {launched} each launch "
        "does.",
        "",
        "| outcome | tests | meaning |",
        "|---|---|---|",
        *(f"| {kind} | {kinds[kind]} | {KINDS[kind]} |" for kind in KINDS if kinds[kind]),
        "",
    ]
    refused = refusals(outcomes)
    if refused:
        lines += [
            "## Operations that are not supported",
            "",
            "| operation | tests |",
            "|---|---|",
            *(f"| {cell(name)} | {count} |" for name, count in refused.most_common()),
            "",
        ]
    long = [o for o in done if o.seconds >= QUICK_SECONDS]
    if long:
        lines += [
            f"## Right ones that take {QUICK_SECONDS} s or more",
            "",
            "| test | seconds of the processor | launches | seconds of all launches, their "
            "compilation included | seconds of the longest launch |",
            "|---|---|---|---|---|",
            *(
                f"| `{o.name}` | {o.seconds:.0f} | {o.launches:,} | {o.launch_seconds:.0f} "
                f"| {o.slowest_launch:.1f} |"
                for o in sorted(long, key=lambda o: -o.seconds)
            ),
            "",
        ]
    lines += [
        "## Tests that are not right",
        "",
        "| test | outcome | what it says |",
        "|---|---|---|",
    ]
    order = {kind: number for number, kind in enumerate(KINDS)}
    for outcome in sorted(outcomes, key=lambda o: (order[o.kind], o.file)):
        if outcome.kind != "right":
            lines.append(f"| `{outcome.name}` | {outcome.kind} | {cell(outcome.detail)} |")
    return "\n".join([*lines, ""])


def cell(text: str) -> str:
    """A message as the cell of a table: one line, without folders of the machine."""
    line = FOLDERS.sub(r"\1", " ".join(text.split())).replace("|", "\\|")
    if "`" not in line:
        line = line.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")
    return line if len(line) <= MOST else line[:MOST].rstrip("\\") + " .."
