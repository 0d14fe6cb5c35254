"""Loads of windows, through cce and hivm on the simulated machine, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from runtime.kernel_harness import BARRIER, run

Array = np.ndarray[Any, Any]


def columns(image: Array, case: dict[str, Any], count: int) -> Array:
    """[windows][elements of the kernel][c] of an image [c1][h][w][c]."""
    blocks, height, width, lanes = image.shape
    (kh, kw), (sh, sw), (dh, dw) = case["kernel"], case["strides"], case["dilations"]
    left, right = case["pads"]
    of_row = (left + width + right - (kw - 1) * dw - 1) // sw + 1
    found = np.zeros((count, blocks * kh * kw, lanes), image.dtype)
    for p in range(count):
        row, column = divmod(case["first"] + p, of_row)
        for e in range(blocks * kh * kw):
            y = case["top"] + sh * row + dh * (e // kw % kh)
            x = sw * column - left + dw * (e % kw)
            if 0 <= y < height and 0 <= x < width:
                found[p, e] = image[e // (kh * kw), y, x]
    return found


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    width, blocks = draw(st.integers(1, 20)), draw(st.integers(1, 3))
    kernel = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    dilations = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    reach = (kernel[1] - 1) * dilations[1] + 1
    least = max(0, reach - width)
    pads = draw(st.integers(least, least + 2)), draw(st.integers(0, 3))
    total = blocks * kernel[0] * kernel[1]
    element = draw(st.integers(0, total - 1))
    return {
        "width": width,
        "height": draw(st.integers(1, 6)),
        "blocks": blocks,
        "kernel": kernel,
        "dilations": dilations,
        "strides": (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        "pads": pads,
        "element": element,
        "elements": draw(st.integers(1, min(total - element, 6))),
        "windows": draw(st.integers(1, 4)),
        "first": draw(st.integers(0, 40)),
        "top": draw(st.integers(-3, 3)),
        "to": draw(st.sampled_from(["L0A", "L0B"])),
        "dynamic": draw(st.booleans()),
    }


@given(case=cases())
def test_load3d(case: dict[str, Any]) -> None:
    """The fractals times a unit matrix; the first window is known, or comes from the block."""
    image_shape = [case["blocks"], case["height"], case["width"], 16]
    m, e, to_a = case["windows"], case["elements"], case["to"] == "L0A"
    index = f"""%first0 = arith.constant {case["first"]} : index
      %top0 = arith.constant {case["top"]} : index"""
    first, top = "%first0", "%top0"
    if case["dynamic"]:
        first, top = "%first1", "%top1"
        index += """
      %block = "cce.get_block_idx"() : () -> index
      %first1 = arith.addi %block, %first0 : index
      %top1 = arith.addi %block, %top0 : index"""
    numbers = ", ".join(
        f"{name} = array<i64: {case[name][0]}, {case[name][1]}>"
        for name in ("kernel", "strides", "dilations", "pads")
    )
    image, unit = "x".join(map(str, [*image_shape, "f16"])), f"{e}x{e}x16x16xf16"
    windows = f"{m}x{e}x16x16xf16" if to_a else f"{e}x{m}x16x16xf16"
    # C is [n][m]: of A times one [elements][windows], of one times B [windows][elements].
    result = f"{e}x{m}x16x16" if to_a else f"{m}x{e}x16x16"
    image_l1, unit_l1 = on(image, "L1"), on(unit, "L1")
    windows_l0, unit_l0 = on(windows, case["to"]), on(unit, "L0B" if to_a else "L0A")
    c, u = on(f"{result}xf32", "L0C"), on(f"{result}xf16", "UB")
    factors, kinds = "%w, %u0", f"{windows_l0}, {unit_l0}"
    if not to_a:
        factors, kinds = "%u0, %w", f"{unit_l0}, {windows_l0}"
    text = f"""
    func.func @k(%x: memref<{image}>, %i: memref<{unit}>, %o: memref<{result}xf16>)
        attributes {{ascend.kernel}} {{
      {index}
      %true = arith.constant true
      %a = memref.alloc() {{cce.address = 0 : i64}} : {image_l1}
      %b = memref.alloc() {{cce.address = 524288 : i64}} : {unit_l1}
      %w = memref.alloc() {{cce.address = 0 : i64}} : {windows_l0}
      %u0 = memref.alloc() {{cce.address = 0 : i64}} : {unit_l0}
      %c = memref.alloc() {{cce.address = 0 : i64}} : {c}
      %u = memref.alloc() {{cce.address = 0 : i64}} : {u}
      "cce.copy"(%x, %a) : (memref<{image}>, {image_l1}) -> ()
      "cce.copy"(%i, %b) : (memref<{unit}>, {unit_l1}) -> ()
      {BARRIER}
      "cce.load3d"(%a, {first}, {top}, %w) {{{numbers}, element = {case["element"]} : i64}}
        : ({image_l1}, index, index, {windows_l0}) -> ()
      "cce.load2d"(%b, %u0) : ({unit_l1}, {unit_l0}) -> ()
      {BARRIER}
      "cce.mad"({factors}, %c, %true) : ({kinds}, {c}, i1) -> ()
      {BARRIER}
      "cce.copy_l0c"(%c, %u) : ({c}, {u}) -> ()
      {BARRIER}
      "cce.copy"(%u, %o) : ({u}, memref<{result}xf16>) -> ()
      return
    }}"""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(image_shape).astype(np.float16)
    identity = np.eye(16 * e, dtype=np.float16).reshape(e, 16, e, 16).swapaxes(1, 2).copy()
    zeros = np.zeros((e * m, 16, 16) if to_a else (m * e, 16, 16), np.float16)
    found = run(text, [x, identity, zeros])[2]
    want = columns(x, case, 16 * m)[:, case["element"] :][:, :e].reshape(m, 16, e, 16)
    want = want.transpose(2, 0, 1, 3) if to_a else want.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(found, want.reshape(-1, 16, 16))


def on(text: str, memory: str) -> str:
    return f'memref<{text}, #cce.space<"{memory}">>'
