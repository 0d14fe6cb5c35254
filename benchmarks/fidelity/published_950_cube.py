"""The published measurements of the cube cores of a 950 (docs/hardware.md f): products of 8192."""

from __future__ import annotations

from collections.abc import Iterator

from product_950 import WithGelu
from product_mx import ScaledProduct
from published import Row, evidence
from published_950 import MACHINE
from published_products import NAMES, TARGETS, Product, product

GROUPS = (
    "product of 8192 f16 on a 950",
    "product of 8192 f16 with GELU on a 950",
    "products of MX formats on a 950",
)

BLOCK = (256, 256, 64)
SPLIT = (4, 8, 2048, 1024)

PRODUCTS: list[tuple[str, Product, int, tuple[float, ...]]] = [
    (
        "C0, 1 core, 64 x 64 x 64",
        Product(1, 1, 8192, 8192, 64, 64, 64, turns=True, machine=MACHINE),
        256,
        (198351.65, 115705.132, 960571.993, 28615.988, 1096626.431),
    ),
    (
        "C1, 1 core, 256 x 256 x 64",
        Product(1, 1, 8192, 8192, *BLOCK, turns=True, machine=MACHINE),
        512,
        (88685.142, 22489.156, 106793.342, 4200.385, 130560.475),
    ),
    (
        "C2, 32 cores, 2 x 16",
        Product(2, 16, 4096, 512, *BLOCK, turns=True, machine=MACHINE),
        0,
        (2788.781, 707.592, 3540.645, 141.876, 4294.619),
    ),
    (
        "C4, large transfers",
        Product(*SPLIT, *BLOCK, 2, 4, machine=MACHINE),
        0,
        (2571.074, 799.378, 2531.912, 33.864, 2668.224),
    ),
    (
        "C5, larger ones",
        Product(*SPLIT, *BLOCK, 4, 4, machine=MACHINE),
        0,
        (2547.046, 834.311, 1926.358, 35.44, 2591.366),
    ),
    (
        "C8, unit flag",
        Product(4, 8, 1024, 1024, *BLOCK, 4, 4, 2, unit_flag=True, machine=MACHINE),
        0,
        (2549.657, 835.579, 1900.322, 213.789, 2558.155),
    ),
]
"""Name, version, columns simulated, measured times of cube, MTE1, MTE2, fixpipe and the task. C3,
C6 and C7 of the same publication are kept aside."""

FITTED = {
    "mte2.nd2nz_fixed_cycles, nd2nz_row_cycles": [("C0", "MTE2"), ("C1", "MTE2")],
    "mte1.fixed_cycles": [("C0", "MTE1"), ("C1", "MTE1")],
    "cube.latency_cycles": [("C0", "cube"), ("C1", "cube")],
    "cube.occupancy_cycles": [("C5", "cube"), ("C8", "cube")],
    "mte1.stall_bytes": [("C5", "MTE1")],
    "gm.same_line_percent": [("C2", "MTE2")],
    "fixpipe.port_bytes_per_cycle": [("C5", "fixpipe")],
}
"""Keys of the machine file, and the rows that were in view when they were set."""

WAITS = (
    "what the fixpipe column holds besides writing, as on the 910B: in C4 and C5 it is the time "
    "of the bytes, in C0 to C2 3.0 to 3.2 steps along k more for each block, whose steps take "
    "863, 1,644 and 1,730 cycles, so waits count from when the scalar unit has issued it (below: "
    "with as many instructions a step as here they would be 35 to 41 % too long). In C8, which has "
    "the unit flag, fixpipe itself waits, from its issue on, too"
)
SHORT = (
    "what rows of 256 bytes cost: C4 differs from C5 by two steps of A a transfer, not four, and "
    "takes 31 % longer in MTE2; rows and transfers as C0 and C1 have them explain 14 %. See "
    "products of MX formats for what else differs"
)
LACKS = {(name, "fixpipe"): WAITS for name, *_ in PRODUCTS} | {
    ("C4, large transfers", "MTE2"): SHORT
}


def products() -> Iterator[Row]:
    """BP: f16, A and B with k along the rows, by versions of a program that get faster."""
    for name, how, columns, measured in PRODUCTS:
        version = name.split(",")[0]
        times = product(how, columns).columns
        for pipe, real, found, target in zip(NAMES, measured, times, TARGETS, strict=True):
            keys = ", ".join(keys for keys, rows in FITTED.items() if (version, pipe) in rows)
            title = f"{name}: {pipe}"
            missing = LACKS.get((name, pipe), "")
            yield Row(GROUPS[0], title, "us", real, found, target, missing, evidence(keys))


def product_with_gelu() -> Iterator[Row]:
    """BP: the same product to f32 with GELU, of blocks that go from L0C to UB."""
    how = Product(*SPLIT, *BLOCK, 4, 4, itemsize=4, machine=MACHINE)
    measured = (2573.584, 2565.251, 819.934, 60.438)
    names = ("task", "cube", "MTE1", "vector unit")
    targets = (0.15, 0.05, 0.05, 0.05)
    times = WithGelu(how, MACHINE, rows=2).times()
    for name, real, found, target in zip(names, measured, times, targets, strict=True):
        yield Row(GROUPS[1], name, "us", real, found, target)


MX_GROUP = GROUPS[2]
HALVES = ScaledProduct(MACHINE, "e1m2", 4, (8192,) * 3, 4, 8, (256, 256, 256), 2, 4)
BYTES = ScaledProduct(MACHINE, "e5m2", 8, (6144,) * 3, 4, 8, (128, 256, 128), 4, 8)

MX_PRODUCTS = (
    ("e1m2, 8192, basic API", HALVES, 2, (640.16, 312.728, 588.736, 32.422, 681.056)),
    ("e5m2, 6144, PTO", BYTES, 3, (551.4, 344.9, 591.2, 21.1, 602.0)),
)
"""Name, version, rows of blocks that run, measured times of cube, MTE1, MTE2, fixpipe and the task.
The other versions and sizes of both publications are kept aside."""

MX_LACKS = {
    "MTE1": "what loads of scales take besides the official 30 cycles and 32 bytes a cycle: 16 "
    "more each for blocks of 256 x 256 x 256, none for those of 128 x 256 x 128",
    "MTE2": "what rows cost by how far they lie apart: transfers of 256 rows of 256 bytes are 16 "
    "% too long here, where rows are 4 KB apart, and of 512 bytes 13 % at 6 KB, but those of C4 "
    "of the product of f16, where A has the same rows 16 KB apart, 16 % too short. That transfers "
    "which follow each other hide their start is not it: 187 cycles, not 280, would put both "
    "formats within 4 %, but C4 and C5 of the product 23 and 10 % short (below). Two distances "
    "are no form of a cost",
    "task": "as MTE2, which bounds the task here",
}


def scaled_products() -> Iterator[Row]:
    """BP and PTO: products of MX formats to bf16, with a scale for each 32 numbers along k."""
    for name, how, rows, measured in MX_PRODUCTS:
        times = how.times(rows).columns
        for pipe, real, found, target in zip(NAMES, measured, times, TARGETS, strict=True):
            missing = MX_LACKS.get(pipe, "")
            yield Row(MX_GROUP, f"{name}: {pipe}", "us", real, found, target, missing)
