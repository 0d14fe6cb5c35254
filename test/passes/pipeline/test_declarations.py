"""Declarations of passes, read from their source, are those of the classes."""

from __future__ import annotations

import dataclasses

import pytest

from davinci.passes.pipeline import pipelines, registry
from davinci.passes.pipeline.declarations import Option, all_declarations, declarations_in

TWO = '''
from somewhere import nothing

@register_pass
@dataclass(frozen=True)
class OnePass(Pass):
    """Does one thing.

    And says more of it.
    """

    NAME = "one"
    ANCHOR = "func.func"

    tile: int = option(
        16, "a size that "
        "takes two lines"
    )
    precision: str = option("mixed", "a policy", PRECISIONS)
    fusion: str = option("all", pipelines.LIMIT_HELP, pipelines.FUSION)

    def run(self, op):
        local = 1

def helper(
    a: int,
) -> None:
    """Stands between the two."""

@register_pass
class TwoPass(Pass):
    """Does another thing."""
    NAME = "two"
CONSTANT = 3
'''


def test_what_is_read_is_what_the_classes_are() -> None:
    classes = registry.all_passes()
    declared = all_declarations()
    assert [d.name for d in declared] == [cls.NAME for cls in classes]
    for one, cls in zip(declared, classes, strict=True):
        assert one.summary == registry.summary(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        assert one.options == tuple(map(Option.of, fields))


def test_passes_of_a_module() -> None:
    one, two = declarations_in(TWO)
    assert (one.name, one.summary) == ("one", "Does one thing.")
    assert one.options == (
        Option("tile", 16, "a size that takes two lines", ()),
        Option("precision", "mixed", "a policy", pipelines.PRECISIONS),
        Option("fusion", "all", pipelines.LIMIT_HELP, pipelines.FUSION),
    )
    assert (two.name, two.summary, two.options) == ("two", "Does another thing.", ())


def test_a_module_without_passes_declares_none() -> None:
    assert declarations_in("CONSTANT = 1\n") == []


def test_an_option_must_be_readable() -> None:
    with pytest.raises(ValueError, match="malformed node"):
        declarations_in(TWO.replace("16, ", "math.prod(SIZES), "))
