"""Operations that are refused by name, with what to do."""

from __future__ import annotations

import pytest

import davinci
from davinci.errors import CompileError

X = "tensor<4xf32>"
CASES = {
    "rng": (
        f"""%a = stablehlo.constant dense<0.0> : tensor<f32>
        %s = stablehlo.constant dense<4> : tensor<1xi64>
        %r = stablehlo.rng %a, %a, %s, distribution = UNIFORM
          : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> {X}""",
        "draws random numbers",
        "pass them as an argument",
    ),
    "rng_bit_generator": (
        f"""%s = stablehlo.constant dense<1> : tensor<2xui64>
        %k, %b = stablehlo.rng_bit_generator %s, algorithm = DEFAULT
          : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
        %r = stablehlo.convert %b : (tensor<4xui32>) -> {X}""",
        "draws random numbers",
        "pass them as an argument",
    ),
    "infeed": (
        f"""%t = stablehlo.create_token : !stablehlo.token
        %r, %u = "stablehlo.infeed"(%t) {{infeed_config = ""}}
          : (!stablehlo.token) -> ({X}, !stablehlo.token)""",
        "talks to the host",
        "argument or a result",
    ),
    "all_reduce": (
        f"""%r = "stablehlo.all_reduce"(%x) ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %c = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %c : tensor<f32>
        }}) {{replica_groups = dense<0> : tensor<1x1xi64>}} : ({X}) -> {X}""",
        "talks to other devices",
        "one device",
    ),
    "custom_call": (
        f"%r = stablehlo.custom_call @cudnn_conv(%x) : ({X}) -> {X}",
        "found @cudnn_conv",
        "made for one device",
    ),
    "complex": (
        f"""%c = stablehlo.fft %x, type = RFFT, length = [4]
          : ({X}) -> tensor<3xcomplex<f32>>
        %d = stablehlo.real %c : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
        %e = stablehlo.slice %d [0:1] : (tensor<3xf32>) -> tensor<1xf32>
        %r = stablehlo.broadcast_in_dim %e, dims = [0] : (tensor<1xf32>) -> {X}""",
        "complex numbers",
        "real and imaginary part",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_by_name(case: str) -> None:
    body, reason, hint = CASES[case]
    text = f"func.func public @main(%x: {X}) -> {X} {{\n{body}\nreturn %r : {X}\n}}"
    with pytest.raises(CompileError, match=reason) as raised:
        davinci.compile(text)
    assert "stablehlo." in raised.value.message
    assert ":" in raised.value.where
    assert hint in raised.value.hint
