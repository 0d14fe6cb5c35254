"""The text form of pipelines: parsing, options, printing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.errors import InputError
from davinci.passes.pipeline.pipeline_text import PassNode, format_options, parse, parse_options

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
VALUES = st.from_regex(r"[a-z0-9.]{1,6}", fullmatch=True)
OPTIONS = st.dictionaries(NAMES, VALUES, max_size=3).map(
    lambda options: " ".join(f"{key}={value}" for key, value in options.items())
)
PASSES = st.builds(PassNode, NAMES, st.just(0), OPTIONS)
ANCHORS = st.recursive(
    PASSES,
    lambda inner: st.builds(
        PassNode,
        st.just("func.func"),
        st.just(0),
        st.just(""),
        st.lists(inner, min_size=1, max_size=3).map(tuple),
    ),
    max_leaves=6,
)


@given(st.lists(ANCHORS, min_size=1, max_size=4))
def test_printed_text_parses_to_the_same(nodes: list[PassNode]) -> None:
    text = str(PassNode("builtin.module", 1, "", tuple(nodes)))
    assert str(parse(text)) == text


def test_spaces_and_lines_do_not_matter() -> None:
    spread = "builtin.module(\n  a ,\n  b{ x=1  y=os } ,\n  func.func( c )\n)"
    assert str(parse(spread)) == "builtin.module(a,b{x=1  y=os},func.func(c))"


def test_columns_are_those_of_the_names() -> None:
    children = parse("builtin.module(one, two)").children or ()
    assert [node.column for node in children] == [16, 21]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("x=1", {"x": "1"}),
        ("x=1 y=os  z=a,b", {"x": "1", "y": "os", "z": "a,b"}),
        ("flag", {"flag": "true"}),
        ("path='my file.toml'", {"path": "my file.toml"}),
        ("list={1 2 3}", {"list": "1 2 3"}),
    ],
)
def test_options(text: str, expected: dict[str, str]) -> None:
    assert parse_options(PassNode("p", 1, text)) == expected


@pytest.mark.parametrize("text", ["=1", "x=1 x=2", "x='1"])
def test_malformed_options(text: str) -> None:
    with pytest.raises(InputError, match="of pass 'p'"):
        parse_options(PassNode("p", 1, text))


def test_options_are_printed_as_they_are_read() -> None:
    options = {"matmul_strategy": "is", "m": 32, "exact": True, "path": "my file.toml"}
    text = format_options(options)
    assert text == "{matmul-strategy=is m=32 exact=true path='my file.toml'}"
    assert parse_options(PassNode("p", 1, text[1:-1]))["path"] == "my file.toml"
    assert format_options({}) == ""
