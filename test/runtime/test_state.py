"""States: inputs that outputs are the next values of, kept from one step to the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import davinci
from davinci import InputError
from davinci.tools import npu_run
from onnx_support import model_of
from support import compile_text

CACHE = """func.func @main(%past: tensor<{whole}>, %new: tensor<{part}>, %at: tensor<i32>)
    -> ({results}) {{
  {first}
  %z = stablehlo.constant dense<0> : tensor<i32>
  %next = stablehlo.dynamic_update_slice %past, %new, %z, %at, %z :
    (tensor<{whole}>, tensor<{part}>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<{whole}>
  {more}
  return {values} : {results} }}"""

WHOLE = "tensor<2x9x64xf32>"
PAIR = {"arg0": "out0"}


def cache(values: str = "%next, %e", more: str = "", first: str = "") -> str:
    more = more if more or first else f"%e = stablehlo.add %next, %next : {WHOLE}"
    results = ", ".join([WHOLE] * (values.count(",") + 1))
    return CACHE.format(
        whole="2x9x64xf32",
        part="2x1x64xf32",
        values=values,
        first=first,
        more=more,
        results=results,
    )


def copies(executable: Any) -> int:
    return sum("copy" in one["kernel"] for one in executable.profile["launches_list"])


def rows(seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal((2, 1, 64), dtype=np.float32)


def test_steps() -> None:
    """A cache is written row by row, without a copy."""
    executable = compile_text(cache(), state=PAIR)
    wanted = np.zeros((2, 9, 64), np.float32)
    for step in range(4):
        new = rows(step)
        found = executable.step(new, np.int32(step + 3))
        wanted[:, step + 3] = new[:, 0]
        assert list(found) == ["out1"]
        np.testing.assert_array_equal(found["out1"], 2 * wanted)
        np.testing.assert_array_equal(executable.state["arg0"], wanted)
    assert copies(executable) == 0
    (state,) = executable.profile["state"]
    assert state == {"input": "arg0", "output": "out0", "bytes": 4608, "in_place": True}


def test_a_run_has_no_state() -> None:
    executable = compile_text(cache(), state=PAIR)
    executable.step(rows(0), np.int32(0))
    before = executable.state["arg0"]
    past = np.ones((2, 9, 64), np.float32)
    found = executable.run(past, rows(1), np.int32(1))
    assert list(found) == ["out0", "out1"]
    wanted = past.copy()
    wanted[:, 1] = rows(1)[:, 0]
    np.testing.assert_array_equal(found["out0"], wanted)
    np.testing.assert_array_equal(executable.state["arg0"], before)


def test_reset() -> None:
    executable = compile_text(cache(), state=PAIR)
    executable.step(rows(0), np.int32(0))
    executable.reset()
    assert not executable.state["arg0"].any()
    given = np.full((2, 9, 64), 3, np.float32)
    executable.reset({"arg0": given})
    executable.state["arg0"][:] = 7  # a copy
    found = executable.step(rows(0), np.int32(0))["out1"]
    np.testing.assert_array_equal(found[:, 1:], 6)
    with pytest.raises(InputError, match=r"reset: no such state; found 'arg1'; expected arg0"):
        executable.reset(arg1=given)
    with pytest.raises(InputError, match="input 'arg0': wrong shape or element type"):
        executable.reset(arg0=given[0])


def test_a_saved_one_has_its_state(tmp_path: Path) -> None:
    executable = compile_text(cache(), state=PAIR)
    executable.save(tmp_path / "net.davinci")
    loaded = davinci.load(tmp_path / "net.davinci")
    for one in (executable, loaded):
        one.step(rows(0), np.int32(2))
        one.step(rows(1), np.int32(4))
    np.testing.assert_array_equal(executable.state["arg0"], loaded.state["arg0"])
    assert copies(loaded) == 0


def test_a_fault_leaves_states_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = compile_text(cache(), state=PAIR)
    executable.step(rows(0), np.int32(2))
    before = executable.state["arg0"]
    executable.instruction_limit = 1
    with pytest.raises(davinci.DeviceFault):
        executable.step(rows(1), np.int32(3))
    np.testing.assert_array_equal(executable.state["arg0"], before)


MORE = {
    "the old value is read first": (
        cache("%next, %e", first=f"%e = stablehlo.abs %past : {WHOLE}"),
        PAIR,
        0,
    ),
    "the old value is read behind": (
        cache("%next, %e", f"%e = stablehlo.subtract %next, %past : {WHOLE}"),
        PAIR,
        2,
    ),
    "the old value is returned": (cache("%next, %past"), PAIR, 1),
    "the new value is returned twice": (cache("%next, %next"), PAIR, 0),
    "it stays as it is": (cache("%past, %next"), {"arg0": "out0"}, 1),
    "the new value is not made of it": (
        cache("%e, %e", f"%e = stablehlo.abs %next : {WHOLE}"),
        PAIR,
        None,
    ),
}


@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("plan", ["time", "sequential"])
def test_what_is_copied(name: str, plan: str) -> None:
    text, pair, wanted_copies = MORE[name]
    executable = compile_text(text, state=pair, plan=plan, fusion="none")
    stateless = compile_text(text, state={})
    past = np.zeros((2, 9, 64), np.float32)
    for step in range(3):
        found = executable.step(rows(step), np.int32(step))
        wanted = stateless.run(past, rows(step), np.int32(step))
        past = wanted["out0"]
        np.testing.assert_array_equal(executable.state["arg0"], past)
        np.testing.assert_array_equal(found["out1"], wanted["out1"])
    if wanted_copies is not None:
        assert copies(executable) == wanted_copies


def test_two_that_change_places() -> None:
    """Neither may be overwritten before it is read."""
    kind = "tensor<64xf32>"
    text = f"""func.func @main(%a: {kind}, %b: {kind}) -> ({kind}, {kind}) {{
      return %b, %a : {kind}, {kind} }}"""
    executable = compile_text(text, state={"arg0": "out0", "arg1": "out1"})
    a, b = np.zeros(64, np.float32), np.ones(64, np.float32)
    executable.reset(arg0=a, arg1=b)
    executable.step({})
    np.testing.assert_array_equal(executable.state["arg0"], b)
    np.testing.assert_array_equal(executable.state["arg1"], a)
    assert not all(one["in_place"] for one in executable.profile["state"])


COUNTERS = """func.func @main(%x: {kind}, %a: {kind}, %b: {kind})
    -> ({kind}, {kind}, {kind}, {kind}) {{
  %next = stablehlo.add %a, %x : {kind}
  %y = stablehlo.subtract %x, {other} : {kind}
  return %next, %next, %next, %y : {kind}, {kind}, {kind}, {kind} }}"""


@pytest.mark.parametrize(("other", "wanted_copies"), [("%x", 0), ("%b", 1)], ids=["unread", "read"])
def test_two_of_one_value(other: str, wanted_copies: int) -> None:
    """Two states with one next value: it is copied only where the values of both are read."""
    text = COUNTERS.format(other=other, kind="tensor<64xf32>")
    state = {"arg1": "out1", "arg2": "out2"}
    executable = compile_text(text, state=state, fusion="none")
    x = np.arange(64, dtype=np.float32)
    a, b = np.full(64, 5, np.float32), np.full(64, 70, np.float32)
    executable.reset(arg1=a, arg2=b)
    for _ in range(3):
        found = executable.step(x)
        np.testing.assert_array_equal(found["out3"], x - (x if other == "%x" else b))
        a = b = a + x
        for value in (found["out0"], executable.state["arg1"], executable.state["arg2"]):
            np.testing.assert_array_equal(value, a)
    assert copies(executable) == wanted_copies


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"past": "out0"}, r"state past=out0: no such input; found 'past'; expected arg0, arg1"),
        ({"arg0": "out2"}, r"state arg0=out2: no such output; found 'out2'; expected out0, out1"),
        ({"arg1": "out0"}, r"different types; found 'arg1'.*2x1x64.* and 'out0'.*keeps its shape"),
        ({"arg0": "out0", "arg1": "out0"}, "the next value of several inputs"),
        (["arg0"], r"state: bad value; found \['arg0'\]; expected a dictionary"),
    ],
)
def test_bad_pairs(state: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compile_text(cache(), state=state)


def test_no_state() -> None:
    executable = compile_text(cache(), state={})
    with pytest.raises(InputError, match=r"step: the model has no state; name inputs"):
        executable.step(rows(0), np.int32(0))
    with pytest.raises(InputError, match="too many inputs"):
        compile_text(cache(), state=PAIR).step(np.zeros((2, 9, 64)), rows(0), np.int32(0), 3)


@pytest.mark.parametrize(
    ("past", "present"),
    [
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_0", "present_key_0"),
        ("past_key_values.0.value", "present_key_values.0.value"),
    ],
)
def test_caches_are_known_by_their_names(past: str, present: str) -> None:
    """Where shapes are equal; a cache that grows is none."""
    x, new = np.zeros((9, 64), np.float32), np.ones((1, 64), np.float32)
    at = np.array([[-2]], np.int64)
    nodes = [helper.make_node("ScatterND", [past, "at", "new"], [present])]
    inputs = {past: x, "at": at, "new": new}
    executable = davinci.compile(model_of(nodes, inputs, [present]))
    assert executable.step(at=at, new=new) == {}
    np.testing.assert_array_equal(executable.state[past], np.arange(9)[:, None] * np.ones(64) == 7)
    assert copies(executable) == 0
    nodes = [helper.make_node("Concat", [past, "new"], [present], axis=0)]
    grown = davinci.compile(model_of(nodes, {past: x, "new": new}, [present]))
    assert not grown.states


def test_steps_of_npu_run(tmp_path: Path) -> None:
    """One value a step of the inputs that have as many; the others stay as they are."""
    source, inputs = tmp_path / "cache.mlir", tmp_path / "inputs.npz"
    source.write_text(cache())
    new = np.stack([rows(step) for step in range(3)])
    past = np.ones((2, 9, 64), np.float32)
    np.savez(inputs, arg0=past, arg1=new, arg2=np.array([4, 0, 7], np.int32))
    record, outputs = tmp_path / "record.json", tmp_path / "outputs.npz"
    words = ["--state", "arg0=out0", "--steps", "3", "--no-cache"]
    files = ["--inputs", str(inputs), "--outputs", str(outputs), "--json", str(record)]
    assert npu_run.main([str(source), *words, *files]) == 0
    for step, place in enumerate((4, 0, 7)):
        past[:, place] = new[step][:, 0]
    np.testing.assert_array_equal(np.load(outputs)["out1"], 2 * past)
    assert len(json.loads(record.read_text())["steps"]) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--state", "arg0"], "--state: bad value; found 'arg0'; expected IN=OUT"),
        (["--state", "arg0=out0", "--steps", "0"], "--steps: bad value; found 0"),
        (["--steps", "2"], "the model has no state"),
    ],
)
def test_bad_steps(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "cache.mlir"
    source.write_text(cache())
    assert npu_run.main([str(source), *words, "--no-cache"]) == 2
    assert message in capsys.readouterr().err


def test_donated_arguments_of_jax() -> None:
    jax = pytest.importorskip("jax")

    def step(cache: Any, new: Any, at: Any) -> Any:
        changed = jax.lax.dynamic_update_slice(cache, new, (0, at))
        return changed, changed.sum(1)

    x, new = np.zeros((3, 64), np.float32), np.ones((3, 1), np.float32)
    jitted = jax.jit(step, donate_argnums=0)
    executable = davinci.compile(jitted, example_inputs=(x, new, np.int32(0)))
    for at in (5, 9):
        found = executable.step(new=new, at=np.int32(at))
    np.testing.assert_array_equal(*found.values(), [2, 2, 2])
    assert copies(executable) == 0
