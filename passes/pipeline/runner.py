"""Runs a pipeline over a module: passes written in Python, and runs of upstream passes.

The whole pipeline is checked before anything runs, so a misspelt last pass is found at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TextIO

from davinci import mlir
from davinci.dialects.base import alike_once
from davinci.errors import CompileError, InputError, did_you_mean
from davinci.mlir import Op, ir, passmanager
from davinci.passes.pipeline import declarations, pipelines, registry
from davinci.passes.pipeline.base import Pass
from davinci.passes.pipeline.pipeline_text import ROOT, WHERE, PassNode, fail_at, parse


class _EveryPass:
    """Contains the name of every pass."""

    def __contains__(self, name: object) -> bool:
        return True


EVERY_PASS = _EveryPass()


@dataclass
class Instrumentation:
    """What to observe while a pipeline runs.

    Attributes:
        print_before: passes before which the IR is printed; `EVERY_PASS` for all.
        print_after: passes after which the IR is printed.
        only_changes: leave out what a pass of `print_after` did not change.
        debug_info: print locations.
        elide: longest elements attribute printed in full; None prints all.
        elide_resources: the same of `dense_resource` data, in characters.
        verify_each: verify after each pass, not only behind the last one.
        timing: if not None, seconds spent by pass are added to it.
        stream: where the IR is printed.
    """

    print_before: Container[str] = ()
    print_after: Container[str] = ()
    only_changes: bool = False
    debug_info: bool = False
    elide: int | None = None
    elide_resources: int | None = None
    verify_each: bool = True
    timing: dict[str, float] | None = None
    stream: TextIO = field(default_factory=lambda: sys.stderr)

    @property
    def each_pass(self) -> bool:
        """Whether upstream passes must be run one by one."""
        return any((self.print_before, self.print_after, self.timing is not None))

    def text(self, op: Op) -> str:
        return str(
            op.get_asm(
                large_elements_limit=self.elide,
                large_resource_limit=self.elide_resources,
                enable_debug_info=self.debug_info,
            )
        )

    def banner(self, when: str, step: Pass, text: str) -> None:
        title = f"IR Dump {when} {type(step).__name__} ({step.NAME})"
        print(f"// -----// {title} //----- //", file=self.stream)
        print(text, "\n", file=self.stream, flush=True)

    def add(self, name: str, seconds: float) -> None:
        if self.timing is not None:
            self.timing[name] = self.timing.get(name, 0.0) + seconds


AT_THE_END = Instrumentation(verify_each=False)
"""Observes nothing, and verifies what comes out of the last pass only: a tenth of the time less."""


@dataclass(frozen=True)
class Upstream:
    """Consecutive passes that MLIR runs, as pipeline text without its anchor.

    `name` is that of the pass if there is only one, else "".
    """

    text: str
    name: str = ""


@dataclass(frozen=True)
class Nested:
    """Steps to run on every operation of kind `anchor` directly inside the current one."""

    anchor: str
    steps: tuple[Step, ...]


Step = Pass | Upstream | Nested


def run(module: Op, text: str, instrumentation: Instrumentation | None = None) -> None:
    """Runs the pipeline `text` on the operation `module` in place, verifying after each pass
    of this project and each run of upstream's, or at the end.

    Raises:
        InputError: the pipeline is malformed or names an unknown pass or option.
        CompileError: a pass reports that the program cannot be compiled.
        MLIRError: an upstream pass or a verifier failed; it carries the diagnostics.
    """
    watch = instrumentation or Instrumentation()
    with module.context, ir.Location.unknown():
        _run_steps(module, ROOT, _planned(text, watch.each_pass), watch)
        if not watch.verify_each:
            _verify(module, "the last pass", watch)


@lru_cache(maxsize=64)
def _planned(text: str, each_pass: bool) -> tuple[Step, ...]:
    """Pipelines that run again and again are checked once; passes keep no state."""
    return plan(parse(text), each_pass)


def plan(root: PassNode, each_pass: bool = False) -> tuple[Step, ...]:
    """Checks the nodes inside an anchor and joins upstream neighbours, unless `each_pass`."""
    steps: list[Step] = []
    for node in root.children or ():
        for step in _plan_node(node, root.name, each_pass):
            last = steps[-1] if steps else None
            if isinstance(step, Upstream) and isinstance(last, Upstream) and not each_pass:
                steps[-1] = Upstream(f"{last.text},{step.text}")
            else:
                steps.append(step)
    return tuple(steps)


def _plan_node(node: PassNode, anchor: str, each_pass: bool) -> Sequence[Step]:
    if node.children is not None:
        if registry.find(node.name) or node.name in pipelines.PIPELINES:
            message = f"'{node.name}' is a pass and cannot hold passes"
            fail_at(node.column, message, expected="an anchor operation, or ',' between passes")
        inner = plan(node, each_pass)
        if any(not isinstance(step, Upstream) for step in inner):
            return [Nested(node.name, inner)]
        whole = _upstream(node, anchor)
        return [Nested(node.name, inner)] if each_pass else [whole]
    if node.name in pipelines.PIPELINES:
        if anchor != ROOT:
            fail_at(node.column, f"pipeline '{node.name}' cannot run on '{anchor}'", expected=ROOT)
        text = pipelines.build(node)
        return plan(parse(text), each_pass)
    cls = registry.find(node.name)
    if cls is None:
        return [_upstream(node, anchor)]
    if cls.ANCHOR != anchor:
        expected = f"{cls.ANCHOR}({node.name})"
        fail_at(node.column, f"pass '{node.name}' cannot run on '{anchor}'", expected=expected)
    return [registry.instantiate(cls, node)]


def _upstream(node: PassNode, anchor: str) -> Upstream:
    """Checks by MLIR's own parser; its message is kept where it says more than ours."""
    mlir.register_passes()
    try:
        passmanager.PassManager.parse(f"{anchor}({node})")
    except ValueError as error:
        message = str(error)
        if "does not refer to a registered pass" in message and node.children is None:
            known = [declared.name for declared in declarations.all_declarations()]
            hint = did_you_mean(node.name, [*known, *pipelines.PIPELINES, *registry.UPSTREAM])
            fail_at(
                node.column,
                f"unknown pass '{node.name}'",
                hint=hint or "npu-opt --help lists the passes of this project",
            )
        detail = message.removeprefix("MLIR Textual PassPipeline Parser:").strip().splitlines()[0]
        raise InputError(f"'{node}': {detail}", where=f"{WHERE}:{node.column}") from None
    return Upstream(str(node), "" if node.children is not None else node.name)


def is_pass(name: str) -> bool:
    """Whether a pipeline may name it: a pass of this project or upstream's, or a pipeline."""
    if registry.find(name) or name in pipelines.PIPELINES:
        return True
    mlir.register_passes()
    try:
        with mlir.ir.Context():
            passmanager.PassManager.parse(f"any({name})")
    except ValueError as error:
        return "does not refer to a registered pass" not in str(error)
    return True


def names_of(steps: Sequence[Step]) -> Iterator[str]:
    """Names of the passes of a plan made with `each_pass`, in order."""
    for step in steps:
        if isinstance(step, Nested):
            yield from names_of(step.steps)
        else:
            yield step.name if isinstance(step, Upstream) else step.NAME


def _run_steps(op: Op, anchor: str, steps: Sequence[Step], watch: Instrumentation) -> None:
    for step in steps:
        if isinstance(step, Nested):
            for child in _children(op, step.anchor):
                _run_steps(child, step.anchor, step.steps, watch)
        elif isinstance(step, Upstream):
            _run_upstream(op, anchor, step, watch)
        else:
            _run_python(op, step, watch)


def _run_python(op: Op, step: Pass, watch: Instrumentation) -> None:
    printed_after = step.NAME in watch.print_after
    before = ""
    if step.NAME in watch.print_before or (printed_after and watch.only_changes):
        before = watch.text(op)
    if step.NAME in watch.print_before:
        watch.banner("Before", step, before)
    start = time.perf_counter()
    step.run(op)
    watch.add(step.NAME, time.perf_counter() - start)
    if watch.verify_each:
        _verify(op, f"pass '{step.NAME}'", watch)
    if printed_after and (text := watch.text(op)) != (before if watch.only_changes else None):
        watch.banner("After", step, text)


def _run_upstream(op: Op, anchor: str, step: Upstream, watch: Instrumentation) -> None:
    manager = passmanager.PassManager.parse(f"{anchor}({step.text})")
    manager.enable_verifier(False)  # once, behind the last pass: Python's verifiers take longer
    before, after = step.name in watch.print_before, step.name in watch.print_after
    if before or after:
        op.context.enable_multithreading(False)
        manager.enable_ir_printing(
            print_before_all=before,
            print_after_all=after,
            print_after_change=after and watch.only_changes,
            large_elements_limit=watch.elide,
            large_resource_limit=watch.elide_resources,
            enable_debug_info=watch.debug_info,
        )
        watch.stream.flush()
    start = time.perf_counter()
    manager.run(op)
    watch.add(step.text, time.perf_counter() - start)
    if watch.verify_each:
        _verify(op, f"pass '{step.text}'", watch)


def _verify(op: Op, after: str, watch: Instrumentation) -> None:
    start = time.perf_counter()
    with alike_once():
        valid = op.verify()
    if not valid:
        raise CompileError(f"the IR is not valid after {after}")
    watch.add("(verifier)", time.perf_counter() - start)


def _children(op: Op, anchor: str) -> list[Op]:
    """Operations of kind `anchor` directly inside `op`, in order."""
    inner = (o.operation for region in op.regions for block in region for o in block)
    return [o for o in inner if anchor in (o.name, "any")]
