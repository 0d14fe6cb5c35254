"""The text form of pass pipelines: `builtin.module(a,b{x=1 y=os},func.func(c))`.

The grammar is upstream's, so a pipeline written for mlir-opt is a pipeline here. Upstream's parser
knows nothing of passes written in Python, therefore the text is parsed here and
`davinci.passes.pipeline.runner` hands runs of upstream passes back to MLIR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from davinci.errors import InputError

WHERE = "--pass-pipeline"
ROOT = "builtin.module"


@dataclass(frozen=True)
class PassNode:
    """A pass with its options, or an anchor operation with the passes nested in it.

    Attributes:
        name: `plan-memory`, or `func.func` for an anchor.
        column: 1-based position of the name in the text.
        options: the text between the braces, "" for none.
        children: nested nodes of an anchor; None for a pass.
    """

    name: str
    column: int
    options: str = ""
    children: tuple[PassNode, ...] | None = None

    def __str__(self) -> str:
        options = f"{{{self.options}}}" if self.options else ""
        if self.children is None:
            return f"{self.name}{options}"
        return f"{self.name}({','.join(map(str, self.children))}){options}"


MOST_ANCHORS = 100
"""Anchors may be nested, and the parser calls itself for each."""


def parse(text: str) -> PassNode:
    """Parses pipeline text whose outermost anchor is `builtin.module`.

    Raises:
        InputError: malformed text; the message carries the column.
    """
    if not text.strip():
        raise InputError("the pipeline is empty", where=WHERE, expected=f"'{ROOT}(PASS,...)'")
    if text.count("(") > MOST_ANCHORS:
        raise InputError(
            "the pipeline has too many anchor operations",
            where=WHERE,
            found=str(text.count("(")),
            expected=f"at most {MOST_ANCHORS}",
        )
    nodes = _Parser(text).parse()
    if len(nodes) != 1 or nodes[0].name != ROOT or nodes[0].children is None:
        raise InputError(
            "the pipeline has no anchor operation",
            where=WHERE,
            found=repr(text.strip()),
            expected=f"'{ROOT}(...)' around all passes",
        )
    return nodes[0]


def parse_options(node: PassNode) -> dict[str, str]:
    """`x=1 y=os flag` as {"x": "1", "y": "os", "flag": "true"}; quotes, braces protect spaces."""
    result: dict[str, str] = {}
    for word in _split_options(node):
        key, equals, value = word.partition("=")
        if not key or key in result:
            fail_at(node.column, f"malformed option of pass '{node.name}'", repr(word), "key=value")
        if len(value) >= 2 and (value[0], value[-1]) in (("'", "'"), ('"', '"'), ("{", "}")):
            value = value[1:-1]
        result[key] = value if equals else "true"
    return result


def format_options(options: dict[str, object]) -> str:
    """The reverse: {"x": 1, "flag": True} as `{x=1 flag=true}`; "" when there are none."""

    def text(value: object) -> str:
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        return f"'{shown}'" if " " in shown else shown

    words = [f"{key.replace('_', '-')}={text(value)}" for key, value in options.items()]
    return f"{{{' '.join(words)}}}" if words else ""


def fail_at(
    column: int, message: str, found: str = "", expected: str = "", hint: str = ""
) -> NoReturn:
    """Raises an `InputError` about the pipeline text at `column`."""
    raise InputError(message, where=f"{WHERE}:{column}", found=found, expected=expected, hint=hint)


def _split_options(node: PassNode) -> Sequence[str]:
    words: list[str] = []
    word, closers = "", ""
    for char in node.options:
        if closers and char == closers[-1]:
            closers = closers[:-1]
        elif char == "{":
            closers += "}"
        elif char in "'\"" and not closers:
            closers += char
        if char.isspace() and not closers:
            words.append(word)
            word = ""
        else:
            word += char
    if closers:
        expected = repr(closers[-1])
        fail_at(node.column, f"unbalanced options of pass '{node.name}'", expected=expected)
    return [w for w in (*words, word) if w]


class _Parser:
    """Recursive descent over the text; `at` is the index of the next character."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def parse(self) -> tuple[PassNode, ...]:
        nodes = self.nodes()
        if self.peek():
            self.fail("unbalanced parentheses", repr(self.peek()), "end of the pipeline")
        return nodes

    def nodes(self) -> tuple[PassNode, ...]:
        found = [self.node()]
        while self.peek() == ",":
            self.at += 1
            found.append(self.node())
        return tuple(found)

    def node(self) -> PassNode:
        self.peek()
        start = self.at
        while self.at < len(self.text) and (
            self.text[self.at].isalnum() or self.text[self.at] in "-_.*"
        ):
            self.at += 1
        name = self.text[start : self.at]
        if not name:
            self.fail("a pass or an anchor operation is missing", self.shown(), "a name")
        children: tuple[PassNode, ...] | None = None
        if self.peek() == "(":
            opened = self.at
            self.at += 1
            children = () if self.peek() == ")" else self.nodes()
            if self.peek() != ")":
                expected = f"')' for the '(' at column {opened + 1}"
                self.fail("unbalanced parentheses", self.shown(), expected)
            self.at += 1
            if self.peek() == "{":
                self.fail("an anchor operation takes no options", "'{'", "',' or ')'")
        return PassNode(name, start + 1, self.options(), children)

    def options(self) -> str:
        if self.peek() != "{":
            return ""
        start, depth = self.at, 0
        while self.at < len(self.text):
            depth += {"{": 1, "}": -1}.get(self.text[self.at], 0)
            self.at += 1
            if depth == 0:
                return self.text[start + 1 : self.at - 1].strip()
        self.fail("unbalanced braces", "end of the pipeline", f"'}}' for column {start + 1}")

    def peek(self) -> str:
        """The next character that is not a space, "" at the end."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def shown(self) -> str:
        return repr(self.text[self.at]) if self.at < len(self.text) else "end of the pipeline"

    def fail(self, message: str, found: str, expected: str) -> NoReturn:
        fail_at(self.at + 1, message, found, expected)
