"""Text of AscendNPU-IR as MLIR that the bindings parse.

What `bishengir-compile` prints with `--mlir-print-ir-before=convert-hivm-to-std` and
`--mlir-print-op-generic` is MLIR with dialects that the bindings have not, one of which has the
name of ours. Their operations become those of an unregistered dialect `hir`, whose attributes are
read as text; memories become strings; properties become attributes; what describes the target is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from davinci.diagnostics import first_diagnostic
from davinci.errors import InputError
from davinci.mlir import MLIRError, ir

FOREIGN = "hivm.hir."
"""What names of the other compiler's operations begin with."""

DIALECT = "hir"

DUMP = re.compile(r"^// -----// IR Dump [^\n]*\n", re.MULTILINE)
"""The line above a dump; a log may have several, of which the last one counts."""

LOG = re.compile(
    r"^(\[[A-Z]+\] |loc\([^\n]*\): (error|warning)|<unknown>:|[^\s\"#}][^\n]*: error:)"
)
"""Lines of a log around and behind a dump."""

PRETTY = re.compile(rf"(?<!\"){re.escape(FOREIGN)}\w+")
ALIAS = re.compile(r"#loc\d*\b")
CALL = re.compile(r"^(#loc\d*) = loc\(callsite\(#loc\d* at (#loc\d*)\)\)\n", re.MULTILINE)
"""The definition of a place inside a function that another one calls."""

ASSUME = re.compile(r'^ *"llvm\.intr\.assume"\([^\n]*$', re.MULTILINE)
"""A promise of a kernel about its arguments, for which no code is made."""

RESHAPES = ("collapse_shape", "expand_shape")
TARGET = "dlti.target_system_spec"
OPEN, CLOSE = "<([{", ">)]}"


def is_hivm(text: str) -> bool:
    """Whether a text is of AscendNPU-IR."""
    return FOREIGN in text


def is_renamed(text: str) -> bool:
    """Whether a text has operations of AscendNPU-IR as we print them, `hir.load`."""
    return f'"{DIALECT}.' in text


def normalized(text: str, where: str = "<text>") -> str:
    """The text as the bindings parse it, with the same lines where it has locations of its own.

    Raises:
        InputError: operations are not in generic form.
    """
    dump = dump_of(text)
    found = PRETTY.search(dump)
    if found:
        raise InputError(
            "operations of AscendNPU-IR are not in generic form",
            where=where,
            found=found.group(0),
            expected=f'"{found.group(0)}"(..)',
            hint="print it with --mlir-print-op-generic, of bishengir-opt or bishengir-compile",
        )
    made = re.sub(r"#hivm\.address_space<(\w+)>", r'"\1"', ASSUME.sub("", dump))
    made = made.replace(f'"{FOREIGN}', f'"{DIALECT}.').replace("#hivm.", f"#{DIALECT}.")
    for name in RESHAPES:
        # Newer verifiers expect other strides in their types than the other compiler writes.
        made = made.replace(f'"memref.{name}"', f'"{DIALECT}.{name}"')
    return "".join(with_attributes(without_target(of_callers(made))))


def of_callers(text: str) -> str:
    """The text with the place of the call in place of that in a function of a library: what an
    author of a kernel knows is the own line."""
    aliases = dict(CALL.findall(text))
    if not aliases:
        return text

    def resolved(found: re.Match[str]) -> str:
        name = found.group(0)
        while name in aliases:
            name = aliases[name]
        return name

    return ALIAS.sub(resolved, CALL.sub("", text))


def dump_of(text: str) -> str:
    """The last dump in a log, without lines of the log; a text without dumps is one."""
    starts = list(DUMP.finditer(text))
    lines = (text[starts[-1].end() :] if starts else text).splitlines(keepends=True)
    kept = [line for line in lines if not LOG.match(line)]
    return "".join(kept)


def without_target(text: str) -> str:
    """The text without the attribute that describes the target."""
    begin = text.find(TARGET)
    if begin < 0:
        return text
    end = closing(text, text.index("<", begin)) + 1
    if text[end : end + 1] == ",":
        end += 1
    return text[:begin] + text[end:].lstrip(" ")


def closing(text: str, begin: int) -> int:
    """Where the bracket at `begin` is closed; brackets in strings and arrows do not count."""
    depth, quoted = 0, False
    for i in range(begin, len(text)):
        c = text[i]
        if c == '"' and text[i - 1] != "\\":
            quoted = not quoted
        if quoted:
            continue
        if c in OPEN:
            depth += 1
        elif c in CLOSE and not (c == ">" and text[i - 1] == "-"):
            depth -= 1
            if not depth:
                return i
    return len(text)


def with_attributes(text: str) -> Iterator[str]:
    """Pieces of the text, in which properties of `hir` operations are attributes: the bindings do
    not show properties of operations that they do not know."""
    place = 0
    head = re.compile(rf'"{DIALECT}\.\w+"\([^)]*\) <(?={{)')
    for found in head.finditer(text):
        if found.start() < place:
            continue
        begin = found.end()
        end = closing(text, begin)
        yield text[place : begin - 1]
        inside = text[begin + 1 : end]
        place = end + 2  # behind `}>`
        if text.startswith(" {", place):
            inside += ", "
            place += 2
            yield "{" + inside
        else:
            yield "{" + inside + "}"
    yield text[place:]


def parse(text: str, context: ir.Context, where: str = "<text>") -> ir.Module:
    """The module of a text of AscendNPU-IR, in a context that is told to allow its operations.

    Raises:
        InputError: operations are not in generic form, or the text does not parse.
    """
    context.allow_unregistered_dialects = True
    made = normalized(text, where)
    try:
        return ir.Module.parse(made, context)
    except MLIRError as error:
        raise InputError(first_diagnostic(error, where)) from None
