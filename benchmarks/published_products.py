"""V1 of the published measurements: f16 products of 8192 x 8192 x 8192, A and B with k along the
rows, by versions of a program that get faster step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from published import FIX, MTE1, MTE2, M, Row, device, microseconds, nd2nz
from streams import Body, Stream, run

SIZE = 8192
STEPS = 4
"""Steps of k that one transfer brings in the versions with large transfers."""


@dataclass(frozen=True)
class Product:
    """A version of the product.

    Attributes:
        across: cores along the columns of C; 2 along the rows if there are several.
        m, n, k: block of one mad.
        steps: blocks along k that a transfer to L1 brings; with one, transfers and loads take
            turns; with more, everything has two buffers.
    """

    cores: int
    across: int
    m: int
    n: int
    k: int
    steps: int = 1


@dataclass(frozen=True)
class PipeTimes:
    """Microseconds of a core for the whole product."""

    cube: float
    mte1: float
    mte2: float


def product(how: Product, columns: int = 0) -> PipeTimes:
    """Simulates one row of blocks on each core, with the L2 as the row before leaves it.

    The part is scaled by the number of rows, and for one core by that of its columns, of which
    only `columns` are simulated: they are all alike.
    """
    down = how.cores // how.across
    share = -(-SIZE // how.across)
    taken = columns or share
    a, b = 512, 512 + 2 * SIZE * SIZE
    c = b + 2 * SIZE * SIZE

    def body_of(row: int) -> Body:
        def body(s: Stream, block: int) -> None:
            top = (block // how.across * (SIZE // down)) + row * how.m
            left = block % how.across * share
            right = min(left + taken, SIZE)
            one_row(s, how, (a, b, c), top, left, right)

        return body

    target = device(c + 2 * SIZE * SIZE)
    run(target, body_of(0), "AIC", how.cores)
    profile = run(target, body_of(1), "AIC", how.cores)
    scale = SIZE / down / how.m * share / taken / how.cores
    times = (microseconds(profile.pipes[f"PIPE_{p.name}"]) * scale for p in (M, MTE1, MTE2))
    return PipeTimes(*times)


def one_row(
    s: Stream, how: Product, at: tuple[int, int, int], top: int, left: int, right: int
) -> None:
    """The blocks of C in one row, from column `left` to `right`."""
    a, b, c = at
    buffers = 2 if how.steps > 1 else 1
    a_bytes, b_bytes = 2 * how.m * how.k * how.steps, 2 * how.n * how.k * how.steps
    s.lend(MTE2, MTE1, buffers)
    s.lend(MTE1, M, buffers)
    s.lend(M, FIX)
    count = 0
    for column in range(left, right, how.n):
        n = min(how.n, right - column)
        padded = n + -n % 16
        s.wait(FIX, M)
        for k in range(0, SIZE, how.k * how.steps):
            event = count // how.steps % buffers
            l1 = event * (a_bytes + b_bytes)
            s.wait(MTE1, MTE2, event)
            for place, rows, first in (
                (l1, how.m, a + 2 * SIZE * top),
                (l1 + a_bytes, n, b + 2 * SIZE * column),
            ):
                nd2nz(s, place, first + 2 * k, rows, how.k * how.steps, SIZE)
            s.flag(MTE2, MTE1, event)
            for step in range(how.steps):
                slot = count % buffers
                count += 1
                l0a, l0b = slot * 2 * how.m * how.k, slot * 2 * how.n * how.k
                s.wait(M, MTE1, slot)
                load(s, "load_cbuf_to_ca.f16", l0a, l1 + step * 2 * how.m * how.k, how.m * how.k)
                load(
                    s,
                    "load_cbuf_to_cb.f16",
                    l0b,
                    l1 + a_bytes + step * 2 * padded * how.k,
                    padded * how.k,
                )
                s.flag(MTE1, M, slot)
                s.emit(
                    "mad.f162f32",
                    c=0,
                    a=l0a,
                    b=l0b,
                    m=how.m,
                    k=how.k,
                    n=n,
                    init=int(k == step == 0),
                )
                s.set(M, MTE1, slot)
            s.set(MTE1, MTE2, event)
        s.flag(M, FIX)
        sizes = {"n_size": n, "m_size": how.m, "dst_stride": SIZE, "src_stride": how.m, "nz2nd": 1}
        s.emit("fixpipe.f322f16", dst=c + 2 * (SIZE * top + column), src=0, **sizes)
        s.set(FIX, M)
    s.collect(M, FIX)
    s.collect(MTE1, M, buffers)
    s.collect(MTE2, MTE1, buffers)


def load(s: Stream, mnemonic: str, dst: int, src: int, elements: int) -> None:
    """Loads the fractals of a block from L1."""
    s.emit(mnemonic, dst=dst, src=src, src_stride=1, repeat=elements // 256)


PRODUCTS = [
    ("C0, 1 core, 64 x 64 x 64", Product(1, 1, 64, 64, 64), 256, (141699, 162104, 582516)),
    ("C1, 1 core, 128 x 256 x 64", Product(1, 1, 128, 256, 64), 512, (81477, 52004, 195613)),
    ("C2, 24 cores", Product(24, 12, 128, 256, 64), 0, (3463, 2261, 10178)),
    ("C4, large transfers", Product(24, 12, 128, 256, 64, STEPS), 0, (3116, 2333, 4051)),
    ("C8, unit flag", Product(24, 12, 128, 256, 64, STEPS), 0, (3076, 2534, 3436)),
]
"""Name, version, columns simulated, measured times of cube, MTE1 and MTE2."""

LACKS = {
    ("C4, large transfers", "MTE2"): "not certain; probably transfers that wait for L1 while loads "
    "read from it, and a schedule whose accesses meet in the L2 more often than here",
    ("C8, unit flag", "MTE1"): "probably loads that wait for L1 while transfers write to it; "
    "C4 shows less of it at nearly the same rate",
}


def products() -> Iterator[Row]:
    """BP: a product made faster step by step."""
    known: dict[Product, PipeTimes] = {}
    for name, how, columns, measured in PRODUCTS:
        if how not in known:
            known[how] = product(how, columns)
        times = known[how]
        for pipe, real, simulated, target in zip(
            ("cube", "MTE1", "MTE2"),
            measured,
            (times.cube, times.mte1, times.mte2),
            (0.05, 0.05, 0.15),
            strict=True,
        ):
            missing = LACKS.get((name, pipe), "")
            yield Row(
                "V1 product of 8192", f"{name}: {pipe}", "us", real, simulated, target, missing
            )
