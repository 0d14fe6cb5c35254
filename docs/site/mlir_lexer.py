"""Colours for MLIR text on the site; Pygments has no lexer for it."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)


class MlirLexer(RegexLexer):
    """Tells apart what MLIR's grammar tells apart by its first character, and names of operations
    and types. Any text is accepted: pages leave out parts with `...`."""

    name = "MLIR"
    aliases: ClassVar = ["mlir"]
    filenames: ClassVar = ["*.mlir"]

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"//.*", Comment.Single),
            (r'"[^"\n]*"', String),
            (r"%[\w.$#-]+", Name.Variable),
            (r"@[\w.$-]+", Name.Function),
            (r"\^[\w.$-]+", Name.Label),
            (r"[#!][\w.$-]+", Name.Decorator),
            (r"(?:\d+x|\?x)+(?=[a-z!])", Number),
            (r"(?:memref|tensor|vector|UB|L1|L0A|L0B|L0C)(?=<)", Keyword.Type),
            (r"(?:index|bf16|f8\w+|(?:s|u)?i\d+|f\d+)\b", Keyword.Type),
            (r"\b[a-z]\w*(?:\.\w+)+", Name.Builtin),
            (r"\b(?:module|func|return|to|step|iter_args|else|attributes|private)\b", Keyword),
            (r"-?\b(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)", Number),
            (r"->|[=:]", Operator),
            (r"[(){}\[\]<>,]", Punctuation),
            (r"[A-Za-z_]\w*|.", Text),
        ],
    }
