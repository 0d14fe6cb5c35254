"""Reports of a run: its record, tables, a page, CSV files, and the comparison of two records."""

from davinci.report.program import Kernel, ProgramFacts, describe, kernel_names, memref_bytes
from davinci.report.record import Record, build

__all__ = ["Kernel", "ProgramFacts", "Record", "build", "describe", "kernel_names", "memref_bytes"]
