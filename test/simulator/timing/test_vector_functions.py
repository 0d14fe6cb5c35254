"""Functions on vector registers, as the 950 has them: what they compute and what they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine, zoo
from davinci.errors import CompileError, DeviceFault, InputError
from davinci.isa import Pipe
from davinci.simulator import Device, LaunchProfile

MACHINE = machine.load("ascend950")
REGISTER = 256
Build = Callable[[Any], None]


def launch(new_asm: Callable[[], Any], build: Build, device: Device | None = None) -> LaunchProfile:
    """Runs a program on one vector core."""

    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        asm = new_asm()
        build(asm)
        core.consume(asm.array())

    target = device or Device(MACHINE, 1 << 16, data=False)
    return target.launch("test", {"AIV": program}, [], blocks=1)


def bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def on_tile(
    new_asm: Callable[[], Any],
    inputs: Sequence[np.ndarray[Any, Any]],
    count: int,
    body: Callable[[Any, int, list[int], int], None],
) -> np.ndarray[Any, Any]:
    """What `body` makes of inputs, register by register: it is given the offset, the addresses of
    the inputs and that of the result in UB, and issues `count` instructions."""
    device = Device(MACHINE, 1 << 20)
    size = inputs[0].nbytes
    gm = [device.allocate(size) for _ in range(len(inputs) + 1)]
    for address, array in zip(gm, inputs, strict=False):
        device.write(address, array)
    places = [i * size for i in range(len(inputs) + 1)]

    def build(asm: Any) -> None:
        blocks = {"n_burst": 1, "len_burst": size // 32}
        for source, place in zip(gm, places[:-1], strict=False):
            asm.emit("copy_gm_to_ubuf", dst=place, src=source, **blocks)
        asm.flag(Pipe.MTE2, Pipe.V)
        asm.emit("vf_call", count=count * (size // REGISTER))
        for at in range(0, size, REGISTER):
            body(asm, at, places[:-1], places[-1])
        asm.flag(Pipe.V, Pipe.MTE3)
        asm.emit("copy_ubuf_to_gm", dst=gm[-1], src=places[-1], **blocks)

    launch(new_asm, build, device)
    return device.read(gm[-1], inputs[0].dtype, inputs[0].shape)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_addition(new_asm: Callable[[], Any], dtype: type) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=8 * REGISTER // np.dtype(dtype).itemsize).astype(dtype) for _ in "xy")
    kind = "f16" if dtype is np.float16 else "f32"

    def body(asm: Any, at: int, sources: list[int], result: int) -> None:
        for i, source in enumerate(sources):
            asm.emit(f"vlds.{kind}", dst=i * REGISTER, src=source + at)
        asm.emit(f"vadd_reg.{kind}", dst=2 * REGISTER, src0=0, src1=REGISTER)
        asm.emit(f"vsts.{kind}", dst=result + at, src=2 * REGISTER)

    np.testing.assert_array_equal(on_tile(new_asm, [x, y], 4, body), x + y)


def test_gelu(new_asm: Callable[[], Any]) -> None:
    x = np.linspace(-6, 6, 16 * 64, dtype=np.float32)

    def body(asm: Any, at: int, sources: list[int], result: int) -> None:
        y = REGISTER
        asm.emit("vlds.f32", dst=0, src=sources[0] + at)
        asm.emit("vmul_reg.f32", dst=y, src0=0, src1=0)
        asm.emit("vmul_reg.f32", dst=y, src0=y, src1=0)
        asm.emit("vmuls_reg.f32", dst=y, src=y, value=bits(0.044715))
        asm.emit("vadd_reg.f32", dst=y, src0=0, src1=y)
        asm.emit("vmuls_reg.f32", dst=y, src=y, value=bits(-1.595769))
        asm.emit("vexp_reg.f32", dst=y, src=y)
        asm.emit("vadds_reg.f32", dst=y, src=y, value=bits(1))
        asm.emit("vdiv_reg.f32", dst=y, src0=0, src1=y)
        asm.emit("vsts.f32", dst=result + at, src=y)

    expected = x / (1 + np.exp(-1.595769 * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(on_tile(new_asm, [x], 10, body), expected, rtol=1e-5, atol=1e-6)


def test_softmax_of_a_register(new_asm: Callable[[], Any]) -> None:
    x = np.random.default_rng(1).normal(size=4 * 64).astype(np.float32)

    def body(asm: Any, at: int, sources: list[int], result: int) -> None:
        one, two = REGISTER, 2 * REGISTER
        asm.emit("vlds.f32", dst=0, src=sources[0] + at)
        asm.emit("vcmax_reg.f32", dst=one, src=0)
        asm.emit("vdup_reg.f32", dst=one, src=one)
        asm.emit("vsub_reg.f32", dst=0, src0=0, src1=one)
        asm.emit("vexp_reg.f32", dst=0, src=0)
        asm.emit("vcadd_reg.f32", dst=two, src=0)
        asm.emit("vdup_reg.f32", dst=two, src=two)
        asm.emit("vdiv_reg.f32", dst=0, src0=0, src1=two)
        asm.emit("vsts.f32", dst=result + at, src=0)

    rows = np.exp(x.reshape(4, 64) - x.reshape(4, 64).max(1, keepdims=True))
    found = on_tile(new_asm, [x], 9, body).reshape(4, 64)
    np.testing.assert_allclose(found, rows / rows.sum(1, keepdims=True), rtol=1e-5)


def cycles(new_asm: Callable[[], Any], instructions: Sequence[tuple[str, dict[str, int]]]) -> int:
    """Cycles of one function."""

    def build(asm: Any) -> None:
        asm.emit("vf_call", count=len(instructions))
        for mnemonic, values in instructions:
            asm.emit(mnemonic, **values)

    return launch(new_asm, build).cycles


UNIT = MACHINE.vector.functions
assert UNIT is not None
FIXED = UNIT.start_cycles + UNIT.drain_cycles


def loads(addresses: Sequence[int]) -> list[tuple[str, dict[str, int]]]:
    return [("vlds.f32", {"dst": i * REGISTER, "src": a}) for i, a in enumerate(addresses)]


def test_two_loads_pass_in_a_cycle_from_different_banks(new_asm: Callable[[], Any]) -> None:
    one = cycles(new_asm, loads([0]))
    apart = cycles(new_asm, loads([0, 256, 512, 768]))
    together = cycles(new_asm, loads([0, 512, 1024, 1536]))
    assert (apart - one, together - one) == (1, 3)


def test_what_waits_for_a_result_begins_after_its_latency(new_asm: Callable[[], Any]) -> None:
    muls = {"src": 0, "value": bits(2)}
    free = [("vmuls_reg.f32", {"dst": (i + 1) * REGISTER, **muls}) for i in range(6)]
    chain = [
        ("vmuls_reg.f32", {"dst": (i + 1) * REGISTER, **muls, "src": i * REGISTER})
        for i in range(6)
    ]
    assert cycles(new_asm, loads([0]) + chain) - cycles(new_asm, loads([0]) + chain[:1]) == 5 * 4
    assert cycles(new_asm, loads([0]) + free) - cycles(new_asm, loads([0]) + free[:2]) == 2


def test_special_functions_keep_one_of_two_units(new_asm: Callable[[], Any]) -> None:
    exps = [("vexp_reg.f32", {"dst": (i + 1) * REGISTER, "src": 0}) for i in range(6)]
    assert cycles(new_asm, loads([0]) + exps) - cycles(new_asm, loads([0]) + exps[:2]) == 2 * 4


def test_functions_follow_each_other(new_asm: Callable[[], Any]) -> None:
    def build(asm: Any) -> None:
        for _ in range(3):
            asm.emit("vf_call", count=1)
            asm.emit("vlds.f32", dst=0, src=0)

    assert launch(new_asm, build).cycles >= 3 * FIXED


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("vlds.f32", {"dst": 0, "src": 0})], "outside of a function"),
        ([("vf_call", {"count": 2}), ("pipe_barrier", {"pipe": 1})], "before a function is over"),
        ([("vf_call", {"count": 1}), ("vf_call", {"count": 1})], "before a function is over"),
        ([("vf_call", {"count": 2}), ("vlds.f32", {"dst": 0, "src": 0})], "function is not over"),
    ],
)
def test_what_is_no_function_is_refused(
    new_asm: Callable[[], Any], rows: list[tuple[str, dict[str, int]]], message: str
) -> None:
    def build(asm: Any) -> None:
        for mnemonic, values in rows:
            asm.emit(mnemonic, **values)

    with pytest.raises(DeviceFault, match=message):
        launch(new_asm, build)


def test_a_register_that_nobody_wrote(new_asm: Callable[[], Any]) -> None:
    def build(asm: Any) -> None:
        asm.emit("vf_call", count=1)
        asm.emit("vabs_reg.f32", dst=0, src=REGISTER)

    with pytest.raises(DeviceFault, match="VREG"):
        launch(new_asm, build, Device(MACHINE, 1 << 16))


def test_the_compiler_refuses_the_950_by_name() -> None:
    with pytest.raises(CompileError, match="makes no kernels for ascend950"):
        davinci.compile(zoo.build("mlp").proto, machine="ascend950")


@pytest.mark.parametrize(("key", "found"), [("VREG.bytes", 1 << 15), ("functions.window", 1000)])
def test_what_the_schedule_cannot_hold_is_refused(key: str, found: int) -> None:
    data = machine.read(machine.DIRECTORY / "ascend950.toml")
    if key == "VREG.bytes":
        data["buffers"]["VREG"]["bytes"] = found
    else:
        data["vector"]["functions"]["window"] = found
    with pytest.raises(InputError, match=key):
        machine.parse(data, "own.toml")
