"""Vector cores beside the AI cores of a coupled machine, as a machine of their own.

The 310P has them: cores with a scalar and a vector unit, UB and the pipes between UB and global
memory, without a cube unit and what feeds it. They run launches of their own while the AI cores run
others. `load("ascend310p:vector")` gives them as a machine that compiler and simulator take like
any other.
"""

from __future__ import annotations

from davinci.errors import InputError
from davinci.machine.schema import CoreType, CoreTypes, Machine
from davinci.machine.views import legal_intrinsics

SUFFIX = ":vector"
"""Behind the name of a machine: its vector cores."""


def machine_of_vector_cores(machine: Machine) -> Machine:
    """The vector cores of a machine: their count, clock and rates, and the instructions that need
    no pipe or memory which they lack.

    Raises:
        InputError: the machine has none beside its AI cores.
    """
    cores = machine.vector_cores
    if cores is None:
        raise InputError(
            f"{machine.name} has no vector cores that run launches of their own",
            where="--machine",
            found=machine.name + SUFFIX,
            expected=f"{machine.name}, or a machine whose file has a [vector_cores] section",
        )
    core = CoreType(count=1, pipes=["S", "V", "MTE2", "MTE3"], memories=["UB"])
    rates = {
        "read_bytes_per_cycle": cores.gm_read_bytes_per_cycle,
        "write_bytes_per_cycle": cores.gm_write_bytes_per_cycle,
    }
    l2_rates = {
        "read_bytes_per_cycle": cores.l2_read_bytes_per_cycle,
        "write_bytes_per_cycle": cores.l2_write_bytes_per_cycle,
    }
    made = machine.model_copy(
        update={
            "name": machine.name + SUFFIX,
            "cores": cores.count,
            "clock_mhz": cores.clock_mhz,
            "core": CoreTypes(AICORE=core),
            "gm": machine.gm.model_copy(update=rates),
            "l2": machine.l2.model_copy(update=l2_rates),
            "vector_cores": None,
        }
    )
    return made.model_copy(update={"intrinsics": legal_intrinsics(made)})
