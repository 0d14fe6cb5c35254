"""The short form of operations and types, which npu-opt prints and every reader of text takes.

MLIR prints operations that are defined in Python in its generic form only, which says more than a
reader wants. One operation is one line, so lines are rewritten, and each can be written back:

    "cce.vadds"(%a, %c, %b) : (memref<64xf32, #cce.space<"UB">>, f32, memref<64xf32, ..>) -> ()
    cce.vadds %a, %c, %b : UB<64xf32>, f32, UB<64xf32>

    %1 = "ascend.exp"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = ascend.exp %0 : tensor<4x8xf32>

    "hivm.vexp"(%d, %a) {repeat = 8 : i64, type = "f32"} : (!llvm.ptr<6>, !llvm.ptr<6>) -> ()
    hivm.vexp %d, %a {repeat = 8, type = "f32"} : ptr<UB>

A type stands once if all operands have it, and the result too; integers are i64. A line whose short
form would not come back as it was stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from davinci.isa import Space

RESOURCES = "\n{-#"
"""What the bytes of large constants start with, behind the operations."""

_SPACES = "|".join(space.name for space in Space if space != Space.GM)
_NUMBERS = "|".join(str(int(space)) for space in Space)
_RESULTS = r"(\s*)((?:%[^=\"]+ = )?)"
_GENERIC = re.compile(_RESULTS + r'"((?:ascend|cce|hivm)\.\w+)"\(([^()]*)\) ')
_SHORT = re.compile(_RESULTS + r"((?:ascend|cce|hivm)\.\w+)(?= |$)")
_OPERANDS = re.compile(r" (%[\w$.#-]+(?:, %[\w$.#-]+)*)")
_MEMREF = re.compile(rf'memref<((?:(?!memref<)[^"])*?), #cce\.space<"({_SPACES})">>')
_BUFFER = rf"(?<![\w.!#\"])({_SPACES})<((?:[^<>\"]|<[^<>\"]*>)*)>"
_POINTER = re.compile(rf"!llvm\.ptr<({_NUMBERS})>")
_SHORT_POINTER = rf"(?<![\w.!])ptr<(GM|{_SPACES})>"
_I64 = re.compile(r"(= -?\d+) : i64(?=[,}])")
_BARE = re.compile(r"(= -?\d+)(?=[,}])")
_STRING = r'"(?:[^"\\]|\\.)*"'
_DIGITS = re.compile(r'"0x([0-9A-Fa-f]{64,})"')
_NUMBER = '"0x#'
_NUMBERED = re.compile(_NUMBER + r'(\d+)"')
_BRACKET = re.compile(_STRING + r"|[()\[\]{}]")
_CODE = re.compile(rf'(?:[^"/]|{_STRING}|/(?!/))*')
_ANY_SHORT = re.compile(
    rf"{_SHORT_POINTER}|{_BUFFER}|^[ \t]*(?:%[^=\"\n]+ = )?(?:ascend|cce|hivm)\.\w+(?= |$)",
    re.MULTILINE,
)
_TYPE_OR_STRING = re.compile(f"{_STRING}|{_BUFFER}|{_SHORT_POINTER}")


def shorten(text: str) -> str:
    """The text of a module with operations and types in their short form."""
    bare, constants = _apart(text)
    return _together(_by_line(bare, _shortened), constants)


def expand(text: str) -> str:
    """The text that MLIR reads, of one that may have short forms; lines stay lines."""
    bare, constants = _apart(text)
    if not _ANY_SHORT.search(bare):
        return text
    return _together(_by_line(bare, _expanded), constants)


def _apart(text: str) -> tuple[str, list[str]]:
    """The text with a number for the digits of each large constant, and these digits: to look for
    short forms among millions of digits takes seconds."""
    constants: list[str] = []

    def number(match: re.Match[str]) -> str:
        constants.append(match[1])
        return f'{_NUMBER}{len(constants) - 1}"'

    return (text, []) if _NUMBER in text else (_DIGITS.sub(number, text), constants)


def _together(text: str, constants: list[str]) -> str:
    """The text with the digits of large constants back where `_apart` put their numbers."""
    if not constants:
        return text
    return _NUMBERED.sub(lambda match: f'"0x{constants[int(match[1])]}"', text)


def _by_line(text: str, change: Callable[[str], str]) -> str:
    code, mark, resources = text.partition(RESOURCES)
    return "\n".join(map(change, code.split("\n"))) + mark + resources


def _shortened(line: str) -> str:
    found = _short_operation(line) or line
    found = _MEMREF.sub(lambda m: f"{m[2]}<{m[1]}>", found)
    found = _POINTER.sub(lambda m: f"ptr<{Space(int(m[1])).name}>", found)
    return found if found == line or _expanded(found) == line else line


def _expanded(line: str) -> str:
    if not _ANY_SHORT.search(line):
        return line
    match = _CODE.match(line)
    code = match[0].rstrip() if match else line
    comment = line[len(code) :]
    code = _TYPE_OR_STRING.sub(_full_type, code)
    return (_generic_operation(code) or code) + comment


def _full_type(match: re.Match[str]) -> str:
    """What MLIR reads for a short type; strings stay."""
    space, body, address_space = match.groups()
    if space:
        return f'memref<{body}, #cce.space<"{space}">>'
    return f"!llvm.ptr<{int(Space[address_space])}>" if address_space else match[0]


def _short_operation(line: str) -> str | None:
    """The short form of a line that holds an operation of ours, None if it does not."""
    match = _GENERIC.match(line)
    if match is None:
        return None
    indent, results, name, operands = match.groups()
    attributes, rest = _attributes(line[match.end() :])
    rest = rest.removeprefix(" ")
    if not rest.startswith(": ("):
        return None
    close = _closing(rest, 2)
    types = _split(rest[3:close])
    made, location = _before_location(rest[close + 1 :].removeprefix(" -> "))
    same = len(set(types)) == 1
    text = f"{indent}{results}{name}"
    text += f" {operands}" if operands else ""
    text += " " + _I64.sub(r"\1", attributes) if attributes else ""
    if types:
        text += f" : {types[0] if same else ', '.join(types)}"
    if made != "()" and not (same and made == types[0]):
        text += f" -> {made}"
    return text + location


def _generic_operation(line: str) -> str | None:
    """The generic form of a line that holds an operation in its short form, else None."""
    match = _SHORT.match(line)
    if match is None:
        return None
    indent, results, name = match.groups()
    rest = line[match.end() :]
    found = _OPERANDS.match(rest)
    operands = _split(found[1]) if found else []
    rest = rest[found.end() :] if found else rest
    attributes = ""
    if rest.startswith(" {"):
        attributes, rest = _attributes(rest[1:])
    rest, location = _before_location(rest)
    given, arrow, made = rest.rpartition("-> ") if "-> " in rest else (rest, "", "")
    types = _split(given.removeprefix(" : "))
    if len(types) == 1:
        types *= max(1, len(operands))
    if not arrow:
        made = types[0] if results and types else "()"
    text = f'{indent}{results}"{name}"({", ".join(operands)}) '
    text += _BARE.sub(r"\1 : i64", attributes) + " " if attributes else ""
    return f"{text}: ({', '.join(types)}) -> {made.strip()}{location}"


def _attributes(text: str) -> tuple[str, str]:
    """The dictionary that `text` starts with, "" if it starts with none, and what follows."""
    if not text.startswith("{"):
        return "", text
    close = _closing(text, 0)
    return text[: close + 1], text[close + 1 :]


def _before_location(text: str) -> tuple[str, str]:
    """`text` in front of ` loc(..)`, and that."""
    at = text.find(" loc(")
    return (text, "") if at < 0 else (text[:at], text[at:])


def _closing(text: str, start: int) -> int:
    """Where the bracket at `start` closes; strings may hold others."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        depth += (match[0] in "([{") - (match[0] in ")]}")
        if depth == 0:
            return match.start()
    return len(text)


def _split(text: str) -> list[str]:
    """The parts of a list with commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([{<") - (letter in ")]}>" and text[i - 1 : i + 1] != "->")
        if letter == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text.strip() else []
