"""What the lines above the kernel table say."""

from __future__ import annotations

from davinci.report.tables import speed_summary


def test_speed() -> None:
    kernels = [{"instructions": 3000, "macs": 5_000_000}, {"instructions": 1000, "macs": 0}]
    record = {"simulate_seconds": 2.0, "kernels": kernels}
    assert speed_summary(record) == "2,000 instructions and 2.5 million MACs a second"
