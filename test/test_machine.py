"""Machine files: what they say, and what is wrong with one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci import machine as machines
from davinci import zoo
from davinci.errors import CompileError, InputError
from davinci.reference import check
from davinci.tools import npu_run
from random_machines import edited, toml, try_machine
from support import run_text

TEXT = {name: (machines.DIRECTORY / f"{name}.toml").read_text() for name in machines.names()}


def test_the_files_of_the_package() -> None:
    assert machines.names() == ["ascend310", "ascend310p", "ascend910", "ascend910b", "ascend950"]


def test_split_machine() -> None:
    machine = machines.load("ascend910b")
    assert machine.split and machine.cores == 24
    assert {name: core.count for name, core in machine.core_types.items()} == {"AIC": 1, "AIV": 2}
    assert machine.buffer("UB").bytes == 192 * 1024
    assert machine.l0c is None and machine.fixpipe is not None


def test_coupled_machine() -> None:
    machine = machines.load("ascend910")
    assert not machine.split and list(machine.core_types) == ["AICORE"]
    assert machine.fixpipe is None and machine.cross_core is None


@pytest.mark.parametrize("text", ["mlp", "bert,layers=1,hidden=64,heads=2,seq=17"])
def test_networks_on_the_310p(text: str) -> None:
    network = zoo.build(text)
    executable = davinci.compile(network.proto, machine="ascend310p")
    inputs = network.inputs(0)
    outputs = executable.run(inputs)
    errors = check.compare(outputs, check.reference_onnx(network.proto, inputs))
    check.require(errors, "mixed")
    assert executable.profile["cores"] == 8 and executable.profile["clock_mhz"] == 1060


@pytest.mark.parametrize(
    ("name", "before", "after", "message"),
    [
        ("ascend910", 'kind = "coupled"', 'kind = "split"', "wrong core types for kind 'split'"),
        ("ascend910", 'kind = "coupled"', 'kind = "single"', "bad value of 'kind'"),
        ("ascend910b", "[core.AIV]", "[core.AIW]", "did you mean 'AIV'"),
        ("ascend910b", '"MTE1", ', '"MTE9", ', "bad value of 'core.AIC.pipes.2'"),
        ("ascend910b", "[fixpipe]", "[fixpip]", "did you mean 'fixpipe'"),
        (
            "ascend910b",
            "\nfixpipe = ["
            '"f32", "f322f16", "s32", "f322bf16", '
            '"s322f16", "s322f16v", "f322b8", "f322b8v", "s322b8", "s322b8v"]\n'
            "fixpipe_to_l1 = ["
            '"f322f16", "f322bf16", '
            '"s322f16", "s322f16v", "f322b8", "f322b8v", "s322b8", "s322b8v"]',
            "",
            "key without use; found 'fixpipe'",
        ),
        ("ascend910", "\nvadd = ", "\nfixpipe = ", "missing key; expected 'fixpipe'"),
        (
            "ascend910",
            "l1_to_ub_bytes_per_cycle = 128    # a1\n",
            "",
            "missing key; expected 'mte1.l1_to_ub_bytes_per_cycle'",
        ),
        ("ascend910", "\nvadd = [", "\nvadd = [1, ", "bad value of 'intrinsics.vadd.0'"),
        (
            "ascend910",
            "block_bytes = 32 ",
            "block_bytes = 64 ",
            "bad value of 'vector.block_bytes'",
        ),
        ("ascend910", "line_bytes = 512 ", "line_bytes = 500 ", "bad value of 'gm.line_bytes'"),
        ("ascend910", "line_bytes = 512 ", "line_bytes = 16 ", "a power of two, at least 32"),
        ("ascend910", "align_bytes = 64 ", "align_bytes = 48 ", "bad value of 'buffers.L0C.align"),
        (
            "ascend910",
            "L0A = { bytes = 65536,",
            "L0A = { bytes = 2048,",
            "bad value of 'buffers.L0A.bytes'; found 2048; expected at least 4096",
        ),
        (
            "ascend910",
            "L0C = { bytes = 262144,",
            "L0C = { bytes = 1024,",
            "bad value of 'buffers.L0C.bytes'",
        ),
        ("ascend910", "align_bytes = 1 ", "align_bytes = 3 ", "bad value of 'gm.align_bytes'"),
        ("ascend910", 'pipes = ["S", "M"]', 'pipes = ["M"]', "found M; expected S and others"),
        ("ascend910", "event_ids = 4 ", "event_ids = 17 ", "expected less than or equal to 16"),
        ("ascend910", "queue_depth = 32 ", "queue_depth = 99999999999999999999 ", "1000000000"),
        (
            "ascend910",
            "UB  = { bytes = 262144",
            "UB  = { bytes = 1099511627776",
            "'buffers.UB.bytes'",
        ),
        ("ascend910", "\nvadd = ", "\nvaddd = ", "found 'vaddd'; did you mean 'vadd'"),
        ("ascend910", "\nvadd = [", "\nvadd = ['f64', ", "in 'intrinsics.vadd'; found 'f64'"),
        ("ascend310", '"MTE2", ', "", "no core can execute copy_gm_to_ubuf of [intrinsics]"),
        ("ascend310", '"L0B", ', "", "which a core of ascend310 has not"),
        ("ascend310p", "\nn = 16 ", "\nn = 32 ", "bad value of 'cube.n'; found 32; expected 16"),
        ("ascend910", "L1  = { bytes = 1048576,", "L1  = { bytes = 2048,", "at least 8192"),
        ("ascend910b", "count = 2 ", "count = 0 ", "bad value of 'core.AIV.count'"),
        ("ascend910b", "= 1099511627776", "= 512", "bad value of 'l2.bypass_offset_bytes'"),
        ("ascend910", "[2.5, 5, 8.55]", "[5, 2.5]", "bad value of 'launch.all_cores_us_range'"),
        ("ascend910b", "= 1099511627776", "= 1099511627777", "expected a multiple of 512"),
        ("ascend910b", "= 40.5", "= -1", "bad value of 'mte2.nd2nz_fixed_cycles"),
    ],
)
def test_malformed(tmp_path: Path, name: str, before: str, after: str, message: str) -> None:
    assert before in TEXT[name]
    path = tmp_path / "mine.toml"
    path.write_text(TEXT[name].replace(before, after, 1))
    with pytest.raises(InputError, match=re.escape(message)):
        machines.load(str(path))


def test_a_file_name_that_is_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    assert npu_run.main(["zoo:mlp", "--machine", "a" * 5000 + ".toml"]) == 2
    assert capsys.readouterr().err.endswith("a: File name too long\n")


def test_ub_smaller_than_a_fractal(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(re.sub(r"(UB +)= { bytes = \d+", r"\1= { bytes = 1000", TEXT["ascend910"]))
    with pytest.raises(InputError, match="found 1000; expected at least 16384"):
        davinci.compile(zoo.build("mlp").proto, machine=str(path))


def own_file(path: Path, clock_mhz: int = 680) -> str:
    """A machine file that the user edits: an ascend310 of another clock."""
    path.write_text(TEXT["ascend310"].replace("clock_mhz = 680", f"clock_mhz = {clock_mhz}"))
    return str(path)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('vcadd = ["f16", "f32"]', 'vcadd = ["f16"]', "found no vcadd of type f32"),
        ('set_va_reg = [""]', "set_va_reg = []", "found no set_va_reg"),
        (
            "L0A = { bytes = 65536, align_bytes = 512",
            "L0A = { bytes = 65536, align_bytes = 1024",
            "in buffers.L0A.align_bytes; found 1024",
        ),
    ],
)
def test_what_kernels_are_made_of(tmp_path: Path, before: str, after: str, message: str) -> None:
    """A model is refused before it is compiled; kernels by hand run on such a machine."""
    assert before in TEXT["ascend910"]
    path = tmp_path / "mine.toml"
    path.write_text(TEXT["ascend910"].replace(before, after, 1))
    assert machines.load(str(path)).name == "ascend910"
    stages: list[str] = []
    with pytest.raises(CompileError, match=re.escape(message)):
        davinci.compile(zoo.build("mlp").proto, machine=str(path), progress=stages.append)
    assert stages == ["reading the model"]


@pytest.mark.parametrize("name", machines.names())
def test_random_edits(tmp_path: Path, name: str) -> None:
    """What benchmarks/proofs/machine_edits.py does with larger networks."""
    network = zoo.build("mlp")
    for seed in range(3):
        data, _ = edited(name, seed)
        path = tmp_path / f"{seed}.toml"
        path.write_text(toml(data), encoding="utf-8")
        try_machine(path, network)


def test_a_file_that_is_edited_is_read_again(tmp_path: Path) -> None:
    proto = zoo.build("mlp").proto
    clocks = []
    for clock in (680, 700, 680):
        path = own_file(tmp_path / "mine.toml", clock)
        clocks.append(davinci.compile(proto, machine=path).machine.clock_mhz)
    assert clocks == [680, 700, 680]


def test_equal_texts_are_one_machine(tmp_path: Path) -> None:
    path = own_file(tmp_path / "mine.toml")
    first = machines.load(path)
    own_file(tmp_path / "mine.toml", 700)
    assert machines.load(path) is not first
    own_file(tmp_path / "mine.toml")
    assert machines.load(path) is first


def test_a_compilation_reads_a_file_once(tmp_path: Path) -> None:
    path = own_file(tmp_path / "mine.toml")

    def edit(stage: str) -> None:
        own_file(tmp_path / "mine.toml", 700)

    executable = davinci.compile(zoo.build("mlp").proto, machine=path, progress=edit)
    assert executable.machine.clock_mhz == 680
    with machines.read_once():
        assert machines.load(path).clock_mhz == 700
        own_file(tmp_path / "mine.toml")
        with machines.read_once():
            assert machines.load(path).clock_mhz == 700
    assert machines.load(path).clock_mhz == 680


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("event_ids = 4 ", "event_ids = 1 "),
        ("L0C = { bytes = 262144,", "L0C = { bytes = 2048,"),
        ("L0A = { bytes = 65536,", "L0A = { bytes = 4096,"),
        ("L0B = { bytes = 65536,", "L0B = { bytes = 4096,"),
        ("L1  = { bytes = 1048576,", "L1  = { bytes = 8192,"),
        ("UB  = { bytes = 262144,", "UB  = { bytes = 16384,"),
    ],
)
def test_products_on_the_smallest_machines(old: str, new: str, tmp_path: Path) -> None:
    assert old in TEXT["ascend910"]
    path = tmp_path / "small.toml"
    path.write_text(TEXT["ascend910"].replace(old, new), encoding="utf-8")
    program = """
    func.func @main(%a: tensor<33x40xf32>, %b: tensor<40x50xf32>, %c: tensor<50xf32>)
        -> tensor<33x50xf32> {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] :
        (tensor<33x40xf32>, tensor<40x50xf32>) -> tensor<33x50xf32>
      %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<50xf32>) -> tensor<33x50xf32>
      %2 = stablehlo.add %0, %1 : tensor<33x50xf32>
      %3 = stablehlo.tanh %2 : tensor<33x50xf32>
      return %3 : tensor<33x50xf32>
    }"""
    rng = np.random.default_rng(5)
    a, b = (rng.uniform(-0.2, 0.2, shape).astype(np.float32) for shape in ((33, 40), (40, 50)))
    c = rng.uniform(-0.5, 0.5, 50).astype(np.float32)
    (found,) = run_text(program, a, b, c, machine=str(path), cores=2)
    np.testing.assert_allclose(found, np.tanh(a @ b + c), atol=2e-3)


def test_vector_cores_are_a_machine_without_a_matrix_unit() -> None:
    cores = machines.load("ascend310p:vector")
    assert (cores.name, cores.cores, cores.clock_mhz) == ("ascend310p:vector", 7, 1000)
    assert cores.gm.read_bytes_per_cycle == 9 and cores.l2.read_bytes_per_cycle == 57
    assert "vadd" in cores.intrinsics and "mad" not in cores.intrinsics
    assert machines.not_compilable(cores) is None
    assert cores is machines.load("ascend310p:vector")
    assert machines.load("ascend310p").cores == 8


def test_machines_without_vector_cores_say_so() -> None:
    with pytest.raises(InputError, match="ascend310 has no vector cores"):
        machines.load("ascend310:vector")
    with pytest.raises(InputError, match="no such machine"):
        machines.load("ascend310x:vector")
