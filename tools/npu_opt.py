"""npu-opt: reads MLIR or ONNX, runs a pipeline of upstream passes and ours, prints MLIR.

As mlir-opt, whose options it takes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from davinci import errors
from davinci.errors import InputError, did_you_mean
from davinci.files import check_writable, write_atomically
from davinci.tools.command import Parser, guarded, version

if TYPE_CHECKING:
    from davinci.mlir import ir

ONNX = ".onnx"
SPLIT_MARKER = re.compile(r"^// -----\s*$", re.MULTILINE)


def make_parser() -> Parser:
    parser = Parser(
        prog="npu-opt",
        usage="npu-opt [FILE|-] [--pass-pipeline='builtin.module(...)' | --PASS ...] [options]",
        description="Reads MLIR (or an .onnx file, which it imports), runs passes, and prints it.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="input; - is standard input")
    add("-o", dest="output", default="-", metavar="FILE", help="output; - is standard output")
    add("--pass-pipeline", metavar="TEXT", help="passes to run, 'builtin.module(a,b{x=1})'")
    add("--split-input-file", action="store_true", help="treat parts between '// -----' apart")
    add("--verify-diagnostics", action="store_true", help="check expected-error comments")
    add("--allow-unregistered-dialect", action="store_true", help="accept unknown operations")
    add("--mlir-print-ir-before-all", action="store_true", help="print the IR before each pass")
    add("--mlir-print-ir-after-all", action="store_true", help="print the IR after each pass")
    add("--mlir-print-ir-before", metavar="PASS[,PASS]", help="print the IR before these passes")
    add("--mlir-print-ir-after", metavar="PASS[,PASS]", help="print the IR after these passes")
    add(
        "--mlir-print-ir-after-change",
        action="store_true",
        help="after passes, print the IR only where it changed",
    )
    add("--mlir-print-debuginfo", action="store_true", help="print locations")
    add("--round-trip", action="store_true", help="print text that other tools of MLIR read, too")
    add("--mlir-print-op-generic", action="store_true", help="print the generic form")
    add("--mlir-elide-elementsattrs-if-larger", type=int, metavar="N", help="shorten constants")
    add(
        "--mlir-elide-resource-strings-if-larger", type=int, metavar="N", help="the same of weights"
    )
    add("--mlir-timing", action="store_true", help="print the time each pass took")
    add("--npu-to-asm", action="store_true", help="print the instruction stream of each kernel")
    add("--list-passes", action="store_true", help="print the names of all passes and pipelines")
    parser.add_help_and_version("print this and all passes with their options")
    return parser


@guarded
def main(argv: list[str] | None = None) -> int:
    """The command; returns the exit code of the contract in `davinci.errors`."""
    parser = make_parser()
    options, rest = parser.parse_known_args(argv)
    if options.version:
        print(version("npu-opt"))
        return errors.EXIT_OK
    if options.help or options.list_passes:
        from davinci.tools import pass_list

        text = parser.format_help() + "\n" + pass_list.full() if options.help else pass_list.names()
        print(text)
        return errors.EXIT_OK
    return Session(options, pipeline_text(parser, options.pass_pipeline, rest)).run()


def pipeline_text(parser: Parser, pipeline: str | None, flags: list[str]) -> str | None:
    """The pipeline, given whole or as flags, `--plan-memory --insert-sync=machine=ascend310`.

    None means that no passes are to run.
    """
    if not flags:
        return pipeline
    from davinci.passes.pipeline import declarations, pipelines, registry, runner

    passes = [flag.removeprefix("--").partition("=") for flag in flags]
    for flag, (name, *_) in zip(flags, passes, strict=True):
        if not flag.startswith("--") or not runner.is_pass(name):
            ours = [declared.name for declared in declarations.all_declarations()]
            known = [*ours, *pipelines.PIPELINES, *registry.UPSTREAM]
            parser.reject(flag, (f"--{name}" for name in known))
    if pipeline is not None:
        raise InputError(
            "passes are given twice",
            where="npu-opt",
            found=f"{flags[0]} and --pass-pipeline",
            expected="either --pass-pipeline or passes as flags",
        )
    words = [f"{name}{{{values}}}" if values else name for name, _, values in passes]
    return f"builtin.module({','.join(words)})"


def chosen_passes(option: str, text: str | None, every: bool, known: set[str]) -> Container[str]:
    """The passes that `--mlir-print-ir-before` or `-after` names, or all.

    Raises:
        InputError: a pass that the pipeline has not, so nothing would be printed.
    """
    from davinci.passes.pipeline.runner import EVERY_PASS

    names = text.split(",") if text is not None else []
    for name in names:
        if name not in known:
            raise InputError(
                "the pipeline has no such pass",
                where=option,
                found=repr(name),
                expected=f"one of {', '.join(sorted(known))}" if known else "a pipeline",
                hint=did_you_mean(name, known),
            )
    return EVERY_PASS if every else frozenset(names)


def split(text: str) -> list[str]:
    """The parts, each behind as many empty lines as come before it, so lines stay right."""
    parts, line = [], 0
    for part in SPLIT_MARKER.split(text):
        parts.append("\n" * line + part)
        line += part.count("\n")
    return parts


class Session:
    """One run of npu-opt over the parts of a file."""

    def __init__(self, options: Any, pipeline: str | None) -> None:
        self.options, self.pipeline = options, pipeline
        self.bytecode = b""
        self.timing: dict[str, float] | None = {} if options.mlir_timing else None
        self.code = errors.EXIT_OK

    def run(self) -> int:
        from davinci import mlir
        from davinci.passes.pipeline import pipeline_text, runner

        known: set[str] = set()
        if self.pipeline is not None:
            with mlir.make_context():
                steps = runner.plan(pipeline_text.parse(self.pipeline), each_pass=True)
                known = set(runner.names_of(steps))
        given = self.options
        self.before, self.after = (
            chosen_passes(f"--mlir-print-ir-{when}", text, every, known)
            for when, text, every in (
                ("before", given.mlir_print_ir_before, given.mlir_print_ir_before_all),
                ("after", given.mlir_print_ir_after, given.mlir_print_ir_after_all),
            )
        )
        if self.options.output != "-":
            check_writable(self.options.output)
        parts = self.read()
        outputs = [self.process(part) for part in parts]
        if self.timing is not None:
            from davinci.tools import pass_list

            pass_list.print_timing(self.timing)
        if self.code == errors.EXIT_OK and not self.options.verify_diagnostics:
            text = "// -----\n".join(o for o in outputs if o is not None)
            if self.options.output == "-":
                sys.stdout.write(text)
            else:
                write_atomically(self.options.output, text.encode())
        return self.code

    def read(self) -> list[str]:
        """The parts of the text; one, empty, of a file that has no text."""
        from davinci.frontends.mlir_source import check_source
        from davinci.frontends.portable import is_bytecode

        file = self.options.file
        if file.endswith(ONNX):
            return [""]
        if file == "-" and sys.stdin is None:
            raise InputError("cannot read: standard input is closed", where=file)
        try:
            data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        except OSError as error:
            raise InputError(str(error.strerror), where=file) from None
        if is_bytecode(data):
            self.bytecode = data
            return [""]
        check_source(data, file)
        text = data.decode("utf-8")
        return split(text) if self.options.split_input_file else [text]

    def process(self, text: str) -> str | None:
        """Runs the pipeline over one part; reports its diagnostics; returns what to print."""
        from davinci import diagnostics, mlir
        from davinci.frontends.marks import check_marks
        from davinci.passes.pipeline import runner

        context = mlir.make_context()
        context.allow_unregistered_dialects = self.options.allow_unregistered_dialect
        instrumentation = runner.Instrumentation(
            print_before=self.before,
            print_after=self.after,
            only_changes=self.options.mlir_print_ir_after_change,
            debug_info=self.options.mlir_print_debuginfo,
            elide=self.options.mlir_elide_elementsattrs_if_larger,
            elide_resources=self.options.mlir_elide_resource_strings_if_larger,
            timing=self.timing,
        )
        output: str | None = None
        code = errors.EXIT_BAD_INPUT
        with context, mlir.ir.Location.unknown(), diagnostics.collected(context) as found:
            module = self.parse(text, context)
            check_marks(module)
            code = errors.EXIT_CANNOT_COMPILE
            if self.pipeline is not None:
                runner.run(module.operation, self.pipeline, instrumentation)
            output = self.render(module)
        self.report([diagnostics.moved(d, self.options.file) for d in found], text, code)
        return output

    def parse(self, text: str, context: ir.Context) -> Any:
        from davinci.frontends.mlir_text import read_text

        if self.options.file.endswith(ONNX):
            from davinci import frontends

            return frontends.load(Path(self.options.file), context)
        if self.bytecode:
            from davinci.frontends import portable

            return portable.read(self.bytecode, context, self.options.file)
        # Only a file gives the locations its name, which listings and reports show.
        whole = self.options.file != "-" and not self.options.split_input_file
        return read_text(text, self.options.file if whole else "", context)

    def render(self, module: ir.Module) -> str:
        if self.options.npu_to_asm:
            from davinci.runtime.listing import list_module

            text = list_module(module)
            if not text:
                raise InputError(
                    "there are no kernels to list",
                    where="--npu-to-asm",
                    hint="run --npu-pipeline first, which makes kernels of @main",
                )
            return text
        text = str(  # one line end, whether or not resources follow
            module.operation.get_asm(
                large_elements_limit=self.options.mlir_elide_elementsattrs_if_larger,
                large_resource_limit=self.options.mlir_elide_resource_strings_if_larger,
                enable_debug_info=self.options.mlir_print_debuginfo,
                print_generic_op_form=self.options.mlir_print_op_generic,
            )
        )
        if not (self.options.round_trip or self.options.mlir_print_op_generic):
            from davinci.dialects.short_form import shorten

            text = shorten(text)
        return text.rstrip("\n") + "\n"

    def report(self, found: list[Any], text: str, code: int) -> None:
        """Prints diagnostics, or compares them with the expected ones; sets the exit code."""
        from davinci import diagnostics

        if self.options.verify_diagnostics:
            found = diagnostics.mismatches(diagnostics.expectations(text), found, self.options.file)
            code = errors.EXIT_CHECK_FAILED
        for diagnostic in found:
            print(diagnostic.format(text.splitlines()), file=sys.stderr)
        failed = [d.exit_code or code for d in found if d.severity == "error"]
        self.code = self.code or next(iter(failed), errors.EXIT_OK)


if __name__ == "__main__":
    sys.exit(main())
