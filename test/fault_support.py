"""What tests of the simulator's checks share: the message of a fault, a buffer with contents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.errors import DeviceFault
from davinci.simulator import Device


def fault(asm: Any, device: Device, **options: Any) -> str:
    with pytest.raises(DeviceFault) as caught:
        asm.run(device, **options)
    return str(caught.value)


def buffer(device: Device, nbytes: int = 4096) -> int:
    address = device.allocate(nbytes)
    device.write(address, np.zeros(nbytes, dtype=np.uint8))
    return address
