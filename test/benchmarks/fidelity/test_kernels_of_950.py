"""Kernels by hand for the 950: what they compute, and that races between their cores are found."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import mx
from davinci.simulator import Device

MACHINE = machine.load("ascend950")
SIZE = (128, 128, 256)


@pytest.fixture(scope="module")
def products(benchmark_script: Any) -> Any:
    return benchmark_script("published_products")


@pytest.fixture(scope="module")
def with_gelu(products: Any, benchmark_script: Any) -> Any:
    return benchmark_script("product_950")


@pytest.fixture(scope="module")
def attention(products: Any, benchmark_script: Any) -> Any:
    return benchmark_script("attention_950")


def small(products: Any) -> Any:
    """A product of two cores with two blocks each."""
    return products.Product(1, 2, 128, 64, 64, 64, 64, 2, 2, size=SIZE, itemsize=4, machine=MACHINE)


def operands() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    rows, columns, depth = SIZE
    a, b = (rng.normal(size=(n, depth)).astype(np.float16) / 4 for n in (rows, columns))
    return a, b


def launched(launch: Any) -> Any:
    """C, where `launch` is given a device with A and B behind byte 512."""
    device = Device(MACHINE, 1 << 20)
    a, b = operands()
    device.write(512, a)
    device.write(512 + a.nbytes, b)
    launch(device)
    return device.read(512 + a.nbytes + b.nbytes, np.float32, SIZE[:2])


def test_product(products: Any) -> None:
    how = small(products)

    def launch(device: Device) -> None:
        def body(s: Any, block: int) -> None:
            left = block * how.share_n
            products.Rows(s, how, True).blocks(0, range(2), left, left + how.share_n)

        products.run(device, body, "AIC", how.cores)

    a, b = operands()
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_allclose(launched(launch), expected, rtol=1e-5, atol=1e-5)


def test_product_with_gelu(products: Any, with_gelu: Any) -> None:
    found = launched(with_gelu.WithGelu(small(products), MACHINE).run)
    a, b = operands()
    x = a.astype(np.float32) @ b.astype(np.float32).T
    expected = x / (1 + np.exp(-1.595769 * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_block_that_is_overwritten_too_early(
    products: Any, with_gelu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = with_gelu._Cube.leave

    def without_waiting(cube: Any, top: int, column: int, n: int) -> None:
        written, cube.blocks_left = cube.blocks_left, 0
        leave(cube, top, column, n)
        cube.blocks_left += written

    def end(cube: Any) -> None:
        for _ in range(cube.blocks_left):
            cube.s.emit("wait_flag_dev", flag=with_gelu.FREE)

    monkeypatch.setattr(with_gelu._Cube, "leave", without_waiting)
    monkeypatch.setattr(with_gelu._Cube, "end", end)
    with pytest.raises(DeviceFault, match=r"race between cores: .*UB \[0x"):
        launched(with_gelu.WithGelu(small(products), MACHINE).run)


@pytest.mark.parametrize(("queries", "keys"), [(128, 128), (256, 384)])
def test_attention(attention: Any, queries: int, keys: int) -> None:
    how = attention.Attention(MACHINE, queries, keys)
    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=(n, 128)).astype(np.float16) for n in (queries, keys, keys))
    device = Device(MACHINE, how.gm_bytes)
    for address, array in zip(how.places, (q, k, v), strict=False):
        device.write(address, array)
    how.run(device)
    scores = q.astype(np.float32) @ k.astype(np.float32).T / np.sqrt(128)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights @ v.astype(np.float32) / weights.sum(1, keepdims=True)
    found = device.read(how.places[3], np.float32, (queries, 128))
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.fixture(scope="module")
def scaled(products: Any, benchmark_script: Any) -> Any:
    return benchmark_script("product_mx")


def numbers(kind: str, raw: Any, scales: Any) -> Any:
    """The numbers that the bytes of a format and their scales stand for."""
    each = mx.FORMATS[kind][raw].reshape(len(raw), -1)
    return each * np.repeat(mx.SCALES[scales], 32, axis=1)


@pytest.mark.parametrize(("kind", "bits"), [("e4m3", 8), ("e5m2", 8), ("e2m1", 4), ("e1m2", 4)])
def test_product_of_scaled_numbers(products: Any, scaled: Any, kind: str, bits: int) -> None:
    size = 64, 96, 640
    how = scaled.ScaledProduct(MACHINE, kind, bits, size, 2, 1, (32, 48, 128), 1, 3)
    rng = np.random.default_rng(0)
    finite = {"e4m3": 0xBF, "e5m2": 0xB7}.get(kind, 0xFF)
    raw = [
        rng.integers(0, 256, size=(n, 640 * bits // 8), dtype=np.uint8) & finite for n in size[:2]
    ]
    scales = [rng.integers(120, 132, size=(n, 20), dtype=np.uint8) for n in size[:2]]
    device = Device(MACHINE, how.places[-1])
    for address, array in zip(how.places, [*raw, *scales], strict=False):
        device.write(address, array)
    products.run(device, how.body, "AIC", how.cores)
    found = device.read(how.places[4], ml_dtypes.bfloat16, size[:2]).astype(np.float32)
    a, b = (numbers(kind, r, s) for r, s in zip(raw, scales, strict=True))
    expected = a @ b.T
    assert np.abs(found - expected).max() < np.abs(expected).max() / 100
