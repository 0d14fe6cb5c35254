"""IR in docstrings of passes is legal: each statement that leaves nothing out parses and verifies.

A docstring shows what a pass finds and what it leaves, as statements. One with `..` in it leaves
something out and is for readers only; every other is parsed by itself, with operands of the types
that its own signature has, and verified by its dialect.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from davinci.mlir import MLIRError, ir, make_context
from davinci.passes.pipeline import registry

HEADS = ("before:", "after:")
LEFT_OUT = ".."
LEAST_STATEMENTS = 80
"""Statements that are verified, at least: a docstring that shows nothing legal shows nothing."""

CONTEXT = make_context()

NOTE = re.compile(r" {3,}| *//")
"""Separates a line of IR in a docstring from a remark behind it: three spaces, or `//`."""

NAME = re.compile(r"%[\w']+(?:#\d+)?")


def shown(docstring: str) -> Iterator[str]:
    """Statements behind `before:` and `after:`; a line further in continues the one before."""
    inside, margin, statement = False, 0, ""
    for line in [*docstring.splitlines(), ""]:
        head = NOTE.split(line.strip())[0]
        if head in HEADS:
            inside, margin = True, 0
            continue
        if not inside or not head:
            if statement:
                yield statement
            inside, statement = inside and bool(head), ""
            continue
        depth = len(line) - len(line.lstrip())
        if not depth:
            yield statement
            inside, statement = False, ""
            continue
        margin = margin or depth
        if statement and depth > margin:
            statement += " " + head
            continue
        if statement:
            yield statement
        statement = head
    if statement:
        yield statement


def split(text: str) -> list[str]:
    """Parts between commas that are in no brackets."""
    found, depth, part = [], 0, ""
    for letter in text.replace("->", "=>"):
        depth += (letter in "(<[{") - (letter in ")>]}" and not part.endswith("="))
        if letter == "," and not depth:
            found.append(part.strip())
            part = ""
            continue
        part += letter
    return [*found, part.strip()] if part.strip() else found


def signature(statement: str) -> tuple[str, str]:
    """What stands in front of the last colon that is in no brackets, and the types behind it."""
    depth, place = 0, 0
    for i, letter in enumerate(statement):
        depth += (letter in "({[") - (letter in ")}]")
        if not depth and statement.startswith(" : ", i):
            place = i
    return statement[:place], statement[place + 3 :]


def is_whole(statement: str) -> bool:
    """Whether a statement is one operation with a signature, and nothing left out."""
    balanced = all(statement.count(a) == statement.count(b) for a, b in ("{}", "()", "[]"))
    returns = statement.startswith("return ")
    return bool(balanced and not returns and LEFT_OUT not in statement and signature(statement)[0])


def module(statement: str) -> str:
    """A function around one operation, whose arguments are its operands, and what it refers to."""
    head, types = signature(statement)
    results, code = head.split(" = ", 1) if head.startswith("%") else ("", head)
    given, _, made = types.replace(" to ", " -> ").partition(" -> ")
    kinds = split(given.removeprefix("(").removesuffix(")") if given.startswith("(") else given)
    names = list(dict.fromkeys(NAME.findall(code)))
    # Of fewer types than operands the last one is that of all others.
    kinds += kinds[-1:] * (len(NAME.findall(code)) - len(kinds))
    of_name = dict(zip(NAME.findall(code), kinds, strict=False))
    arguments = ", ".join(f"%a{i}: {of_name[name]}" for i, name in enumerate(names))
    renamed = NAME.sub(lambda found: f"%a{names.index(found[0])}", code)
    _, colon, count = results.partition(":")
    left = f"%r{colon}{count} = " if results else ""
    body = f"func.func @f({arguments}) {{ {left}{renamed} : {types}\nreturn }}"
    if callee := re.match(r"(?:func\.)?call (@\w+)", code):
        body += f"\nfunc.func private {callee[1]}({given.strip('()')}) -> {made or '()'}"
    if name := re.match(r"memref\.get_global (@\w+)", code):
        body += f"\nmemref.global {name[1]} : {types}"
    return body


STATEMENTS = [
    pytest.param(statement, id=f"{cls.NAME}-{number}")
    for cls in registry.all_passes()
    for number, statement in enumerate(shown(inspect.getmodule(cls).__doc__ or ""))
    if is_whole(statement)
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statement_verifies(statement: str) -> None:
    text = module(statement)
    try:
        ir.Module.parse(text, CONTEXT).operation.verify()
    except MLIRError as error:
        pytest.fail(f"{statement}\n{text}\n{error}")


def test_docstrings_show_statements() -> None:
    assert len(STATEMENTS) >= LEAST_STATEMENTS
