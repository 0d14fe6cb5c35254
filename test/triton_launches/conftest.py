"""These tests need the vendor's compilers, which the extra `triton` installs."""

from __future__ import annotations

import importlib.util

collect_ignore = []
if importlib.util.find_spec("triton") is None or importlib.util.find_spec("ascendnpuir") is None:
    collect_ignore += ["test_kernels.py", "test_launch.py"]
