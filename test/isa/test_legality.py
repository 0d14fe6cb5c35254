"""What each kind of core has."""

import pytest

from davinci import machine as machines
from davinci.isa import BY_NAME, INSTRUCTIONS, Pipe
from davinci.machine.legality import illegal_instruction, illegal_pipes

CORES = [(name, core) for name in machines.names() for core in machines.load(name).core_types]


def cores_with(mnemonic):
    record = INSTRUCTIONS[mnemonic]
    return {
        f"{name} {core}"
        for name, core in CORES
        if not illegal_instruction(machines.load(name), core, record)
    }


COUPLED = {"ascend310 AICORE", "ascend310p AICORE", "ascend910 AICORE"}
AIC, AIV = {"ascend910b AIC"}, {"ascend910b AIV"}
AIC_950, AIV_950 = {"ascend950 AIC"}, {"ascend950 AIV"}
SPLIT = AIC | AIV | AIC_950 | AIV_950


@pytest.mark.parametrize(
    ("mnemonic", "cores"),
    [
        ("fixpipe.f32", AIC | AIC_950),
        ("copy_gm_to_cbuf_multi_nd2nz.b16", AIC | AIC_950),
        ("copy_gm_to_cbuf", COUPLED | AIC | AIC_950),
        ("load_gm_to_ca.f16", COUPLED | AIC),
        ("fixpipe_to_ub.f32", AIC_950),
        ("fixpipe_to_l1.f322f16", AIC),
        ("copy_gm_to_ubuf_align.b8", AIV),
        ("ffts_cross_core_sync", SPLIT),
        ("wait_flag_dev", SPLIT),
        ("copy_cbuf_to_ubuf", COUPLED),
        ("copy_ubuf_to_cbuf", COUPLED | AIV_950),
        ("copy_matrix_cc_to_ubuf.f32", COUPLED),
        ("copy_matrix_cc_to_ubuf.s322f16v", COUPLED),
        ("set_deqscale", COUPLED),
        ("mad.f162f32", COUPLED | AIC),
        ("mad_nz.f162f32", AIC_950),
        ("mad.f162f16", COUPLED),
        ("vadd.f32", COUPLED | AIV),
        ("set_flag", COUPLED | SPLIT),
        ("vlds.f32", AIV_950),
        ("vexp_reg.f16", AIV_950),
        ("vf_call", AIV_950),
    ],
)
def test_who_has_it(mnemonic, cores):
    assert cores_with(mnemonic) == cores


@pytest.mark.parametrize("mnemonic", INSTRUCTIONS)
def test_some_core_has_every_instruction(mnemonic):
    assert cores_with(mnemonic)


@pytest.mark.parametrize("name", machines.names())
def test_machine_files_name_instructions_and_types(name):
    for instruction, types in machines.load(name).intrinsics.items():
        assert set(types) <= set(BY_NAME[instruction])


@pytest.mark.parametrize(
    ("machine", "core", "mnemonic", "message"),
    [
        ("ascend910", "AICORE", "fixpipe.f32", "ascend910 has no instruction fixpipe"),
        ("ascend910b", "AIC", "mad.f162f16", "no mad of type f162f16, only of f162f32, s82s32"),
        (
            "ascend910b",
            "AIC",
            "vadd.f32",
            "needs PIPE_V and UB, which a cube core (AIC) of ascend910b has not",
        ),
    ],
)
def test_messages(machine, core, mnemonic, message):
    found = illegal_instruction(machines.load(machine), core, INSTRUCTIONS[mnemonic])
    assert message in found


def test_pipes_of_flags():
    machine, flag = machines.load("ascend910b"), INSTRUCTIONS["set_flag"]
    values = {"src_pipe": Pipe.MTE2, "dst_pipe": Pipe.V, "event": 0}
    assert illegal_pipes(machine, "AIV", flag, values) == ""
    assert "names PIPE_V, which a cube core (AIC)" in illegal_pipes(machine, "AIC", flag, values)
