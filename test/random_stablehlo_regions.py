"""Steps of random StableHLO programs whose operations have regions: loops, branches, sorts."""

from __future__ import annotations

import numpy as np

from random_stablehlo import FLOATS, Program, Step, Value, array, tensor


def comparison(predicate: str, kind: str, names: tuple[str, str], result: str = "%c") -> str:
    """A line that compares two values of rank 0."""
    t = tensor((), kind)
    return (
        f'{result} = "stablehlo.compare"({names[0]}, {names[1]}) <{{comparison_direction = '
        f"#stablehlo<comparison_direction {predicate}>}}> : ({t}, {t}) -> tensor<i1>"
    )


def body_name(x: Value, p: Program) -> str:
    """An operation on two values that stays small however often it is done."""
    names = ["maximum", "minimum"]
    return str(p.pick(names if x.kind in FLOATS or x.kind == "i1" else [*names, "add", "subtract"]))


def sort(p: Program, x: Value) -> None:
    if not x.shape or not x.exact:
        return
    dim = p.draw(0, len(x.shape) - 1)
    t = tensor((), x.kind)
    region = f""" ({{
    ^bb0(%l: {t}, %r: {t}):
      {comparison(p.pick(("LT", "GT")), x.kind, ("%l", "%r"))}
      stablehlo.return %c : tensor<i1>
  }})"""
    p.op("sort", [x], x.shape, x.kind, True, region, dimension=f"{dim} : i64", is_stable="true")


def branch(p: Program, x: Value) -> None:
    """An `if` or `case`, whose branches use values from outside."""
    y = p.argument(x.shape, x.kind)
    name = body_name(x, p)
    several = p.chance(0.5)
    chosen = p.scalar("i32" if several else "i1")
    blocks = [
        f"%b = stablehlo.{name} {x.name}, {y.name} : {x.type}\n      "
        f"stablehlo.return %b : {x.type}",
        f"stablehlo.return {y.name} : {x.type}",
        f"stablehlo.return {x.name} : {x.type}",
    ]
    regions = ", ".join(f"{{\n      {block}\n  }}" for block in blocks[: 3 if several else 2])
    p.op(
        "case" if several else "if",
        [chosen],
        x.shape,
        x.kind,
        x.exact and y.exact,
        f" ({regions})",
    )


def loop(p: Program, x: Value) -> None:
    """A loop over a known or computed number of iterations, whose body moves and combines."""
    y = p.argument(x.shape, x.kind)
    most = p.scalar("i8") if p.chance(0.5) else None
    dims = [i for i in range(len(x.shape)) if p.chance(0.5)]
    t, n = x.type, tensor((), "i8")
    bound = ""
    if most is not None:
        bound = f"%end = stablehlo.minimum {most.name}, %three : {n}"
    result = p.op(
        "while",
        [p.emit("stablehlo.constant dense<0> : ", (), "i8", True, typed=False), x],
        x.shape,
        x.kind,
        x.exact and y.exact,
        f""" ({{
    ^bb0(%i: {n}, %x: {t}):
      %three = stablehlo.constant dense<3> : {n}
      {bound}
      {comparison("LT", "i8", ("%i", "%end" if bound else "%three"))}
      stablehlo.return %c : tensor<i1>
  }}, {{
    ^bb0(%i: {n}, %x: {t}):
      %one = stablehlo.constant dense<1> : {n}
      %n = stablehlo.add %i, %one : {n}
      %m = "stablehlo.reverse"(%x) <{{dimensions = {array(dims)}}}> : ({t}) -> {t}
      %y = stablehlo.{body_name(x, p)} %m, {y.name} : {t}
      stablehlo.return %n, %y : {n}, {t}
  }})""",
    )
    line = p.lines[-1].replace(f"{result.name} =", f"{result.name}_both:2 =")
    p.lines[-1] = line[: line.rindex("->")] + f"-> ({n}, {t})"
    p.lines[-1] += f"\n  {result.name} = stablehlo.optimization_barrier {result.name}_both#1 : {t}"


def select_and_scatter(p: Program, x: Value) -> None:
    if not x.shape or 0 in x.shape or not x.exact or x.kind == "i1":
        return
    window, strides = ([p.pick((1, 2, 3)) for _ in x.shape] for _ in range(2))
    sizes = zip(x.shape, window, strides, strict=True)
    shape = tuple((n - w) // s + 1 for n, w, s in sizes)
    if min(shape) < 1:
        return
    source = p.argument(shape, x.kind)
    zero = p.emit(
        f"stablehlo.constant dense<0{'.0' if x.kind in FLOATS else ''}> : ",
        (),
        x.kind,
        True,
        typed=False,
    )
    t = tensor((), x.kind)
    region = f""" ({{
    ^bb0(%l: {t}, %r: {t}):
      {comparison(p.pick(("GE", "LE")), x.kind, ("%l", "%r"))}
      stablehlo.return %c : tensor<i1>
  }}, {{
    ^bb0(%l: {t}, %r: {t}):
      %s = stablehlo.add %l, %r : {t}
      stablehlo.return %s : {t}
  }})"""
    p.op(
        "select_and_scatter",
        [x, source, zero],
        x.shape,
        x.kind,
        x.kind not in FLOATS,
        region,
        window_dimensions=array(window),
        window_strides=array(strides),
    )


def map_(p: Program, x: Value) -> None:
    y = p.argument(x.shape, x.kind)
    t = tensor((), x.kind)
    region = f""" ({{
    ^bb0(%l: {t}, %r: {t}):
      {comparison("LT", x.kind, ("%l", "%r"))}
      %s = "stablehlo.if"(%c) ({{
        stablehlo.return %l : {t}
      }}, {{
        %d = stablehlo.{body_name(x, p)} %l, %r : {t}
        stablehlo.return %d : {t}
      }}) : (tensor<i1>) -> {t}
      stablehlo.return %s : {t}
  }})"""
    if x.exact and y.exact:
        dims = array(np.arange(len(x.shape)))
        p.op("map", [x, y], x.shape, x.kind, True, region, dimensions=dims)


REGION_STEPS: tuple[Step, ...] = (sort, branch, loop, select_and_scatter, map_)
