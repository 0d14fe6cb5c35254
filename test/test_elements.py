"""Elements attributes and arrays: inverse for every type, and resources read without text."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from davinci import elements
from davinci.element_types import DTYPES
from davinci.mlir import ir, make_context


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 3, 17, 500, 5000])
def test_round_trip(name: str, count: int) -> None:
    with make_context(), ir.Location.unknown():
        element = ir.Type.parse(name)
        dtype = elements.dtype_of(element)
        values = np.random.default_rng(count).integers(0, 2 if name == "i1" else 100, (count, 1))
        array = values.astype(dtype)
        attr = elements.to_attribute(array, element)
        found = elements.to_array(attr)
        assert (found.dtype, found.shape) == (dtype, array.shape)
        np.testing.assert_array_equal(found, array)


def test_resource_of_parsed_text() -> None:
    data = np.arange(300, dtype=np.float32)
    with make_context(), ir.Location.unknown():
        attr = elements.to_attribute(data, ir.F32Type.get(), "weight")
        assert str(attr).startswith("dense_resource<weight>")
        function = ir.Operation.create(
            "stablehlo.constant", [attr.type], [], {"value": attr}
        ).get_asm()
    with make_context():
        module = ir.Module.parse(function)
        parsed = module.body.operations[0].attributes["value"]
        np.testing.assert_array_equal(elements.to_array(parsed), data)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("dense<-1> : tensor<3xi8>", [-1, -1, -1]),
        ("dense<[1, 255]> : tensor<2xui8>", [1, 255]),
        ("dense<true> : tensor<2xi1>", [True, True]),
        ("dense<0xFF800000> : tensor<1xf32>", [-np.inf]),
        ("dense<[1, -2]> : tensor<2xi4>", [1, -2]),
        ("dense<[1.0, -2.0]> : tensor<2xf8E4M3FN>", [1.0, -2.0]),
        ("dense<[1.0, -2.0]> : tensor<2xf4E2M1FN>", [1.0, -2.0]),
    ],
)
def test_parsed_attribute(text: str, values: list[float]) -> None:
    with make_context():
        assert elements.to_array(ir.Attribute.parse(text)).tolist() == values


def test_a_splat_takes_no_memory() -> None:
    with make_context():
        found = elements.to_array(ir.Attribute.parse("dense<1.0> : tensor<1000x1000xf32>"))
    assert found.strides == (0, 0)


def test_a_resource_made_here_is_not_copied() -> None:
    data = np.arange(300, dtype=np.float32)
    with make_context(), ir.Location.unknown():
        attr = elements.to_attribute(data, ir.F32Type.get(), "weight")
        other = elements.to_attribute(-data, ir.F32Type.get(), "weight")
        holder = ir.Operation.create("stablehlo.constant", [attr.type], [], {"value": attr})
        found = elements.to_array(holder.attributes["value"])
        assert np.shares_memory(found, data) and not found.flags.writeable
        np.testing.assert_array_equal(elements.to_array(other), -data)


def test_arrays_live_as_long_as_their_context() -> None:
    data = np.arange(300, dtype=np.float32)
    with make_context(), ir.Location.unknown():
        elements.to_attribute(data, ir.F32Type.get(), "weight")
    gone = weakref.ref(data)
    del data
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("number", [0, 1 << 63, (1 << 64) - 1])
def test_large_unsigned_numbers(number: int) -> None:
    with make_context():
        attr = elements.scalar_attribute(number, ir.IntegerType.get_unsigned(64))
    assert elements.scalar_value(attr) == number
