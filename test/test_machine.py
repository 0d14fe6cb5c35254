"""Machine files: what they say, and what is wrong with one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import davinci
from davinci import machine as machines
from davinci import zoo
from davinci.errors import CompileError, InputError
from davinci.reference import check
from davinci.tools import npu_run

TEXT = {name: (machines.DIRECTORY / f"{name}.toml").read_text() for name in machines.names()}


def test_the_files_of_the_package() -> None:
    assert machines.names() == ["ascend310", "ascend310p", "ascend910", "ascend910b"]


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
        ("ascend910b", "\nfixpipe = ", "\nvaddx = ", "key without use; found 'fixpipe'"),
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
        ("ascend910b", "count = 2 ", "count = 0 ", "bad value of 'core.AIV.count'"),
        ("ascend910b", "= 1099511627776", "= 512", "bad value of 'l2.bypass_offset_bytes'"),
        ("ascend910b", "= 1099511627776", "= 1099511627777", "expected a multiple of 512"),
        ("ascend910b", "= 40.5", "= -1", "bad value of 'mte2.nd2nz_fixed_cycles"),
    ],
)
def test_malformed(tmp_path: Path, name: str, before: str, after: str, message: str) -> None:
    assert before in TEXT[name]
    path = tmp_path / "mine.toml"
    path.write_text(TEXT[name].replace(before, after, 1))
    with pytest.raises(InputError, match=message.replace("'", ".").replace(" ", r"\s")):
        machines.load(str(path))


def test_a_file_name_that_is_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    assert npu_run.main(["zoo:mlp", "--machine", "a" * 5000 + ".toml"]) == 2
    assert capsys.readouterr().err.endswith("a: File name too long\n")


def test_ub_smaller_than_a_fractal(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(re.sub(r"(UB +)= { bytes = \d+", r"\1= { bytes = 1000", TEXT["ascend910"]))
    with pytest.raises(CompileError, match="expected sizes that fit"):
        davinci.compile(zoo.build("mlp").proto, machine=str(path))
