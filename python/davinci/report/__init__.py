"""Reports of a run: its record, tables, a page, CSV files, and the comparison of two records."""

from davinci.report.record import (
    Kernel,
    Program,
    Record,
    build,
    describe,
    kernel_names,
    memref_bytes,
)

__all__ = ["Kernel", "Program", "Record", "build", "describe", "kernel_names", "memref_bytes"]
