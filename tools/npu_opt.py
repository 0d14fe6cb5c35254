"""npu-opt: reads MLIR, runs a pipeline of upstream passes and ours, prints MLIR. As mlir-opt."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from davinci import errors
from davinci.errors import InputError
from davinci.files import check_writable, write_atomically
from davinci.tools.command import Parser, guarded

SPLIT_MARKER = re.compile(r"^// -----\s*$", re.MULTILINE)


def make_parser() -> Parser:
    parser = Parser(
        prog="npu-opt",
        usage="npu-opt [FILE|-] [--pass-pipeline='builtin.module(...)' | --PASS ...] [options]",
        description="Reads MLIR, runs passes over it, and prints it.",
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
    add("--mlir-print-op-generic", action="store_true", help="print the generic form")
    add("--mlir-elide-elementsattrs-if-larger", type=int, metavar="N", help="shorten constants")
    add(
        "--mlir-elide-resource-strings-if-larger", type=int, metavar="N", help="the same of weights"
    )
    add("--mlir-timing", action="store_true", help="print the time each pass took")
    add("--npu-to-asm", action="store_true", help="print the instruction stream of each kernel")
    add("--list-passes", action="store_true", help="print the names of all passes and pipelines")
    add("-h", "--help", action="store_true", help="print this and all passes with their options")
    return parser


@guarded
def main(argv: list[str] | None = None) -> int:
    """The command; returns the exit code of the contract in `davinci.errors`."""
    parser = make_parser()
    options, rest = parser.parse_known_args(argv)
    if options.help or options.list_passes:
        from davinci.tools import pass_list

        text = parser.format_help() + "\n" + pass_list.full() if options.help else pass_list.names()
        print(text)
        return errors.EXIT_OK
    return Session(options, pipeline_text(options.pass_pipeline, rest)).run()


def pipeline_text(pipeline: str | None, flags: list[str]) -> str | None:
    """The pipeline, given whole or as flags, `--plan-memory --insert-sync=machine=ascend310`.

    None means that no passes are to run.
    """
    if not flags:
        return pipeline
    if pipeline is not None or not all(flag.startswith("--") for flag in flags):
        raise InputError(
            "unknown argument",
            where="npu-opt",
            found=repr(flags[0]),
            expected="one FILE, and either --pass-pipeline or passes as flags",
            hint="npu-opt --help lists the options",
        )
    passes = (flag.removeprefix("--").partition("=") for flag in flags)
    words = [f"{name}{{{values}}}" if values else name for name, _, values in passes]
    return f"builtin.module({','.join(words)})"


class Session:
    """One run of npu-opt over the parts of a file."""

    def __init__(self, options: Any, pipeline: str | None) -> None:
        self.options, self.pipeline = options, pipeline
        self.timing: dict[str, float] | None = {} if options.mlir_timing else None
        self.code = errors.EXIT_OK

    def run(self) -> int:
        from davinci import mlir
        from davinci.passes import pipeline_text, runner

        if self.pipeline is not None:
            with mlir.make_context():
                runner.plan(pipeline_text.parse(self.pipeline))
        if self.options.output != "-":
            check_writable(self.options.output)
        self.text = self.read()
        parts = self.split() if self.options.split_input_file else [self.text]
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

    def read(self) -> str:
        file = self.options.file
        if file == "-" and sys.stdin is None:
            raise InputError("cannot read: standard input is closed", where=file)
        try:
            data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
            return data.decode("utf-8")
        except OSError as error:
            raise InputError(str(error.strerror), where=file) from None
        except UnicodeDecodeError:
            raise InputError("not a text file", where=file) from None

    def split(self) -> list[str]:
        """The parts, each behind as many empty lines as come before it, so lines stay right."""
        parts, line = [], 0
        for part in SPLIT_MARKER.split(self.text):
            parts.append("\n" * line + part)
            line += part.count("\n")
        return parts

    def process(self, text: str) -> str | None:
        """Runs the pipeline over one part; reports its diagnostics; returns what to print."""
        from davinci import diagnostics, mlir
        from davinci.frontends.marks import check_marks
        from davinci.passes import runner

        context = mlir.make_context()
        context.allow_unregistered_dialects = self.options.allow_unregistered_dialect
        instrumentation = runner.Instrumentation(
            print_before=self.options.mlir_print_ir_before_all,
            print_after=self.options.mlir_print_ir_after_all,
            elide=self.options.mlir_elide_elementsattrs_if_larger,
            elide_resources=self.options.mlir_elide_resource_strings_if_larger,
            timing=self.timing,
        )
        output: str | None = None
        code = errors.EXIT_BAD_INPUT
        with context, mlir.ir.Location.unknown(), diagnostics.collected(context) as found:
            module = self.parse(text)
            check_marks(module)
            code = errors.EXIT_CANNOT_COMPILE
            if self.pipeline is not None:
                runner.run(module.operation, self.pipeline, instrumentation)
            output = self.render(module)
        self.report([diagnostics.moved(d, self.options.file) for d in found], text, code)
        return output

    def parse(self, text: str) -> Any:
        from davinci.mlir import ir

        # Only a file gives the locations its name, which listings and reports show.
        if self.options.file != "-" and not self.options.split_input_file:
            return ir.Module.parseFile(self.options.file)
        return ir.Module.parse(text)

    def render(self, module: Any) -> str:
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
                print_generic_op_form=self.options.mlir_print_op_generic,
            )
        )
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
