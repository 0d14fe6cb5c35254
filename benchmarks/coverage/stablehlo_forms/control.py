"""Forms of `while`, `if` and `case`."""

from __future__ import annotations

from stablehlo_forms import ALL, FEW, form

_counted = """%zero = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%end = stablehlo.constant dense<{trips}> : tensor<i32>
%r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<4x5xT>
 cond {{
  %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
}} do {{
  %n = stablehlo.add %i, %one : tensor<i32>
  %y = stablehlo.{body} : tensor<4x5xT>
  stablehlo.return %n, %y : tensor<i32>, tensor<4x5xT>
}}
return %r#0, %r#1 : tensor<i32>, tensor<4x5xT>"""
for _name, _trips in (("counted", 3), ("never", 0), ("long", 20000)):
    form(
        "while",
        _name,
        ["tensor<4x5xT>"],
        _counted.format(trips=_trips, body="xor %x, %a" if _name == "long" else "add %x, %a"),
        types=("i32", "ui8", "i64", "i1") if _name == "long" else ALL,
    )
form(
    "while",
    "computed condition",
    ["tensor<4xT>", "tensor<T>"],
    """
%zero = stablehlo.constant dense<0> : tensor<i32>
%end = stablehlo.constant dense<9> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%r:4 = stablehlo.while(%i = %zero, %x = %a, %y = %a, %s = %b) :
    tensor<i32>, tensor<4xT>, tensor<4xT>, tensor<T>
 cond {
  %l = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %q = stablehlo.compare NE, %s, %b : (tensor<T>, tensor<T>) -> tensor<i1>
  %f = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %o = stablehlo.or %q, %f : tensor<i1>
  %c = stablehlo.and %o, %l : tensor<i1>
  stablehlo.return %c : tensor<i1>
} do {
  %n = stablehlo.add %i, %one : tensor<i32>
  %t = stablehlo.add %s, %b : tensor<T>
  %v = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<T>) -> tensor<4xT>
  %z = stablehlo.add %x, %v : tensor<4xT>
  stablehlo.return %n, %y, %z, %t : tensor<i32>, tensor<4xT>, tensor<4xT>, tensor<T>
}
return %r#0, %r#1, %r#2, %r#3 : tensor<i32>, tensor<4xT>, tensor<4xT>, tensor<T>""",
    types=ALL,
)
form(
    "while",
    "nested",
    ["tensor<3x4xT>"],
    """
%zero = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%two = stablehlo.constant dense<2> : tensor<i32>
%r:3 = stablehlo.while(%i = %zero, %j = %two, %x = %a) : tensor<i32>, tensor<i32>, tensor<3x4xT>
 cond {
  %c = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
} do {
  %n = stablehlo.add %i, %one : tensor<i32>
  %w:2 = stablehlo.while(%k = %zero, %y = %x) : tensor<i32>, tensor<3x4xT>
   cond {
    %d = stablehlo.compare LE, %k, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %d : tensor<i1>
  } do {
    %m = stablehlo.add %k, %one : tensor<i32>
    %z = stablehlo.reverse %y, dims = [1] : tensor<3x4xT>
    %s = stablehlo.add %z, %a : tensor<3x4xT>
    stablehlo.return %m, %s : tensor<i32>, tensor<3x4xT>
  }
  stablehlo.return %n, %j, %w#1 : tensor<i32>, tensor<i32>, tensor<3x4xT>
}
return %r#2 : tensor<3x4xT>""",
    types=FEW,
)
_t = "tensor<3x5xT>"
_branches = """%r:2 = "stablehlo.if"(%a) ({{
  %x = stablehlo.add %b, %c : tensor<3x5xT>
  stablehlo.return %x, %c : tensor<3x5xT>, tensor<3x5xT>
}}, {{
  {loop}
  stablehlo.return %c, %b : tensor<3x5xT>, tensor<3x5xT>
}}) : (tensor<i1>) -> (tensor<3x5xT>, tensor<3x5xT>)
return %r#0, %r#1 : tensor<3x5xT>, tensor<3x5xT>"""
form("if", "", ["tensor<i1>", _t, _t], _branches.format(loop=""), types=ALL)
_case = """%r = "stablehlo.case"(%a) ({
  %x = stablehlo.add %b, %c : tensor<3x5xT>
  stablehlo.return %x : tensor<3x5xT>
}, {
  %x = stablehlo.maximum %b, %c : tensor<3x5xT>
  stablehlo.return %x : tensor<3x5xT>
}, {
  stablehlo.return %b : tensor<3x5xT>
}) : (tensor<i32>) -> tensor<3x5xT>
return %r : tensor<3x5xT>"""
for _name in ("", "another index", "a third index"):
    form("case", _name, ["tensor<i32>", _t, _t], _case, types=ALL)
for _operator, _index in (("if", "i1"), ("case", "i32")):
    form(
        _operator,
        "branches with loops",
        [f"tensor<{_index}>", "tensor<3xT>"],
        f"""
    %r = "stablehlo.{_operator}"(%a) ({{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %w:2 = stablehlo.while(%i = %zero, %x = %b) : tensor<i32>, tensor<3xT> cond {{
        %c = "stablehlo.compare"(%i, %end) {{comparison_direction =
          #stablehlo<comparison_direction LT>}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %n = stablehlo.add %i, %one : tensor<i32>
        %y = stablehlo.add %x, %b : tensor<3xT>
        stablehlo.return %n, %y : tensor<i32>, tensor<3xT>
      }}
      stablehlo.return %w#1 : tensor<3xT>
    }}, {{ stablehlo.return %b : tensor<3xT> }}) : (tensor<{_index}>) -> tensor<3xT>
    return %r : tensor<3xT>""".replace(
            "%r =", "%end = stablehlo.constant dense<2> : tensor<i32>\n%r =", 1
        ),
        types=FEW,
    )
