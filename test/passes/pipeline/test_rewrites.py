"""The catalogue of rewrites: lists of names, and that each name switches its rewrite off."""

from __future__ import annotations

import re

import pytest

import davinci
from davinci import zoo
from davinci.errors import InputError
from davinci.passes.pipeline import pipelines, registry
from davinci.passes.pipeline.rewrites import REWRITES, chosen, expected

EVERY = frozenset(name for name, rewrite in REWRITES.items() if rewrite.default)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("all", EVERY),
        ("none", set()),
        ("gelu, quantize", {"gelu", "quantize"}),
        ("-gelu", EVERY - {"gelu"}),
        ("none,gelu,-gelu,quantize", {"quantize"}),
    ],
)
def test_lists_of_names(text: str, names: set[str]) -> None:
    assert chosen(text) == names
    assert expected(text) == ""


@pytest.mark.parametrize("text", ["", "gelo", "all,-", "all,gelu,", "-all", "gelu quantize"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        chosen(text)
    with pytest.raises(InputError, match="rewrites"):
        davinci.compile("func.func @main() { return }\n", rewrites=text)


def test_a_misspelt_name_is_corrected() -> None:
    assert "did you mean 'gelu'" in expected("all,-gelo")


@pytest.mark.parametrize("name", REWRITES)
def test_each_is_done_by_a_pass_that_its_name_switches(name: str) -> None:
    place = REWRITES[name].place
    found = registry.find(place)
    assert found is not None
    stages = [
        ",".join(pipelines.PIPELINES["npu-pipeline"](pipelines.Options(rewrites=text)))
        for text in (name, f"{name},-{name}")
    ]
    on, off = (re.findall(rf"\b{place}(?:\{{[^}}]*\}})?(?:,|$)", stage) for stage in stages)
    assert len(on) == 1
    assert not off or f"rewrites={name},-{name}" in off[0]


@pytest.fixture(scope="module")
def whole() -> davinci.Executable:
    """bert-tiny with all rewrites."""
    return davinci.compile(zoo.build("bert-tiny").proto, timing_only=True)


def test_what_was_applied_is_in_the_record_and_what_is_off_is_not(
    whole: davinci.Executable,
) -> None:
    model = zoo.build("bert-tiny").proto
    counts = whole.details["rewrites"]
    assert {"gelu": 2, "merge-products": 4}.items() <= counts.items()
    assert counts.keys() <= REWRITES.keys()
    less = davinci.compile(model, timing_only=True, rewrites="all,-gelu").details["rewrites"]
    assert "gelu" not in less
    assert less["merge-products"] == counts["merge-products"]
    assert davinci.compile(model, timing_only=True, rewrites="none").details["rewrites"] == {}


def test_without_attention_its_products_and_softmax_are_kernels_of_their_own(
    whole: davinci.Executable,
) -> None:
    model = zoo.build("bert-tiny").proto
    apart = davinci.compile(model, timing_only=True, rewrites="all,-attention")
    assert whole.details["rewrites"]["attention"] == 2
    assert "attention" not in apart.details["rewrites"]
    for executable in (whole, apart):
        executable.run()
    assert len(apart.launches) >= len(whole.launches) + 4
