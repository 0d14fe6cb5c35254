"""Elementwise vector instructions against a reference that visits lane after lane.

The reference takes its strides, blocks and masks from the text of the reference page, not from the
records' regions.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.isa import DTYPES, INSTRUCTIONS, Registers, Space

DST, SRC0, SRC1 = 0x10000, 0x0, 0x8000
FLOATS = ("f16", "f32")
ARITHMETIC = (*FLOATS, "s32")
MASKS = st.one_of(
    st.just(2**64 - 1),
    st.integers(0, 64).map(lambda n: 2**n - 1),
    st.integers(0, 2**64 - 1),
)


def exactly(function):
    """The function in the precision of its operands."""
    return lambda *x: function(*x).astype(x[0].dtype)


def in_double(function):
    """The function in double precision, rounded to the type of its first operand."""
    return lambda *x: function(*(v.astype(np.float64) for v in x)).astype(x[0].dtype)


BINARY = {
    "vadd": ((*ARITHMETIC, "s16"), exactly(lambda a, b: a + b)),
    "vsub": ((*ARITHMETIC, "s16"), exactly(lambda a, b: a - b)),
    "vmul": ((*ARITHMETIC, "s16"), exactly(lambda a, b: a * b)),
    "vmax": ((*ARITHMETIC, "s16"), lambda a, b: np.where(a > b, a, b)),
    "vmin": ((*ARITHMETIC, "s16"), lambda a, b: np.where(a < b, a, b)),
    "vdiv": (FLOATS, exactly(lambda a, b: a / b)),
    "vand": (("s16",), lambda a, b: a & b),
    "vor": (("s16",), lambda a, b: a | b),
    "vaddrelu": ((*FLOATS, "s16"), exactly(lambda a, b: np.where(a + b > 0, a + b, a * 0))),
    "vsubrelu": ((*FLOATS, "s16"), exactly(lambda a, b: np.where(a > b, a - b, a * 0))),
}
MULTIPLY_ADD = {
    "vmla": lambda old, a, b: old + a * b,
    "vmadd": lambda old, a, b: old * a + b,
}
UNARY = {
    "vexp": (FLOATS, in_double(np.exp)),
    "vln": (FLOATS, in_double(np.log)),
    "vsqrt": (FLOATS, in_double(np.sqrt)),
    "vrsqrt": (FLOATS, in_double(lambda a: a**-0.5)),
    "vrec": (FLOATS, in_double(lambda a: 1 / a)),
    "vabs": (FLOATS, lambda a: np.where(a < 0, -a, a)),
    "vrelu": (ARITHMETIC, lambda a: np.where(a > 0, a, a * 0)),
    "vnot": (("s16",), lambda a: -1 - a),
}


def numbers(rng, dtype, count):
    """Random positive and negative elements of a type; positive only where `positive`."""
    element = DTYPES[dtype]
    if element.kind == "f":
        return (rng.normal(size=count) * 4).astype(element)
    return rng.integers(-9, 10, count).astype(element)


def active_lanes(low, high, lanes):
    return [i for i in range(lanes) if ((low, high)[i // 64] >> i % 64) & 1]


def offsets(values, name, lanes, itemsize, low, high):
    """Byte offsets [repeat, active lane] of an operand, from the definition of the strides."""
    block_lanes = 32 // itemsize
    return np.array(
        [
            [
                32 * r * values.get(f"{name}_rep_stride", 0)
                + 32 * (i // block_lanes) * values[f"{name}_blk_stride"]
                + i % block_lanes * itemsize
                for i in active_lanes(low, high, lanes)
            ]
            for r in range(values["repeat"])
        ],
        dtype=np.int64,
    )


def gather(memory, places, dtype):
    size = DTYPES[dtype].itemsize
    index = places.reshape(-1, 1) + np.arange(size)
    return memory[index].reshape(-1).view(DTYPES[dtype])


def scatter(memory, places, array):
    size = array.dtype.itemsize
    data = np.ascontiguousarray(array).view(np.uint8).reshape(places.size, size)
    memory[places.reshape(-1, 1) + np.arange(size)] = data


@st.composite
def stride_fields(draw, sources, blocks=8):
    """Strides of all operands such that no two lanes of the destination share a place."""
    blk = draw(st.integers(1, 3))
    values = {"dst_blk_stride": blk, "dst_rep_stride": blk * blocks + draw(st.integers(0, 2))}
    for name in sources:
        values[f"{name}_blk_stride"] = draw(st.integers(0, 3))
        values[f"{name}_rep_stride"] = draw(st.integers(0, 26))
    contiguous = draw(st.booleans())
    if contiguous:
        values = {key: 1 if "blk" in key else blocks for key in values}
    return values | {"repeat": draw(st.integers(0, 4))}


def check(bench, mnemonic, sources, dtypes, function, fields, low, high, tolerance=0.0, old=False):
    """Runs one instruction and compares all of UB with the lane-by-lane reference.

    With `old` the function also takes what was in the destination, first.
    """
    out = dtypes[0]
    lanes = 256 // max(DTYPES[t].itemsize for t in dtypes)
    addresses = dict(zip(("dst", *sources), (DST, SRC0, SRC1), strict=False))
    before = bench.memory[Space.UB].copy()
    places = [
        addresses[n] + offsets(fields, n, lanes, DTYPES[t].itemsize, low, high)
        for n, t in zip(("dst", *sources), dtypes, strict=True)
    ]
    arrays = [gather(before, p, t) for p, t in zip(places, dtypes, strict=True)][not old :]
    with np.errstate(all="ignore"):
        expected = function(*arrays)
    assert expected.dtype == DTYPES[out]
    bench.registers = Registers(mask_low=low, mask_high=high)
    bench.run(mnemonic, **addresses, **fields)
    found = gather(bench.memory[Space.UB], places[0], out)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=0)
    scatter(before, places[0], found)
    assert np.array_equal(bench.memory[Space.UB], before), "bytes outside the destination changed"


def fill(bench, seed, dtype, positive=False):
    """Puts elements of one type everywhere in UB."""
    rng = np.random.default_rng(seed)
    array = numbers(rng, dtype, bench.memory[Space.UB].size // DTYPES[dtype].itemsize)
    bench.put(Space.UB, 0, np.abs(array) + array.dtype.type(0.125) if positive else array)


BINARY_CASES = [(name, dtype) for name, (dtypes, _) in BINARY.items() for dtype in dtypes]
UNARY_CASES = [(name, dtype) for name, (dtypes, _) in UNARY.items() for dtype in dtypes]


@pytest.mark.parametrize(("name", "dtype"), BINARY_CASES)
@given(fields=stride_fields(("src0", "src1")), low=MASKS, high=MASKS, seed=st.integers(0, 99))
def test_binary(make_bench, name, dtype, fields, low, high, seed):
    bench = make_bench()
    fill(bench, seed, dtype)
    check(
        bench,
        f"{name}.{dtype}",
        ("src0", "src1"),
        [dtype] * 3,
        BINARY[name][1],
        fields,
        low,
        high,
    )


@pytest.mark.parametrize(("name", "dtype"), UNARY_CASES)
@given(fields=stride_fields(("src",)), low=MASKS, high=MASKS, seed=st.integers(0, 99))
def test_unary(make_bench, name, dtype, fields, low, high, seed):
    bench = make_bench()
    fill(bench, seed, dtype, positive=name in ("vln", "vsqrt", "vrsqrt", "vrec"))
    # One unit in the last place: NumPy's functions in single precision are not rounded correctly.
    tolerance = 2 * float(np.finfo(DTYPES[dtype]).eps) if name in ("vexp", "vln", "vrsqrt") else 0.0
    tolerance = max(tolerance, 2.0**-22 if name == "vexp" and dtype == "f32" else 0.0)
    check(
        bench,
        f"{name}.{dtype}",
        ("src",),
        [dtype] * 2,
        UNARY[name][1],
        fields,
        low,
        high,
        tolerance,
    )


def test_every_elementwise_instruction_is_tested():
    tested = {f"{name}.{dtype}" for name, dtype in (*BINARY_CASES, *UNARY_CASES)}
    tested |= {f"{name}.{dtype}" for name in MULTIPLY_ADD for dtype in FLOATS}
    known = {
        mnemonic
        for mnemonic, record in INSTRUCTIONS.items()
        if record.compute.__module__.endswith("vector_regions") and record.timing == "vector"
    }
    assert known == tested


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", MULTIPLY_ADD)
@given(fields=stride_fields(("src0", "src1")), low=MASKS, high=MASKS)
def test_multiply_add(make_bench, name, dtype, fields, low, high):
    bench = make_bench()
    fill(bench, 4, dtype)
    sources = ("src0", "src1")
    function = MULTIPLY_ADD[name]
    check(bench, f"{name}.{dtype}", sources, [dtype] * 3, function, fields, low, high, old=True)


@pytest.mark.parametrize("dtype", FLOATS)
@given(fields=stride_fields(("src",)), low=MASKS, high=MASKS)
def test_axpy(make_bench, dtype, fields, low, high):
    bench = make_bench()
    fill(bench, 5, dtype)
    value = DTYPES[dtype].type(-1.5)
    fields = fields | {"value": bits_of(value, dtype)}
    types = [dtype] * 2
    function = lambda old, a: old + a * value  # noqa: E731
    check(bench, f"vaxpy.{dtype}", ("src",), types, function, fields, low, high, old=True)


@pytest.mark.parametrize("dtype", ["b16", "b32"])
@given(fields=stride_fields(("src",)), low=MASKS, high=MASKS)
def test_copy(make_bench, dtype, fields, low, high):
    check(make_bench(), f"vcopy.{dtype}", ("src",), [dtype] * 2, lambda a: a, fields, low, high)


@pytest.mark.parametrize("dtype", ["b16", "b32"])
def test_broadcast_of_elements_to_blocks(bench, dtype):
    element = DTYPES[dtype]
    source = np.arange(1, 17, dtype=element)
    bench.put(Space.UB, SRC0, source)
    before = bench.memory[Space.UB].copy()
    bench.registers = Registers(mask_low=1, mask_high=0)
    fields = {"dst_blk_stride": 2, "dst_rep_stride": 17, "repeat": 2}
    bench.run(f"vbrcb.{dtype}", dst=DST, src=SRC0, **fields)
    for i, value in enumerate(source):
        at = DST + 32 * (17 * (i // 8) + 2 * (i % 8))
        before[at : at + 32] = np.full(32 // element.itemsize, value).view(np.uint8)
    assert np.array_equal(bench.memory[Space.UB], before)


def bits_of(value, dtype):
    return int(np.array([value], DTYPES[dtype]).view(f"u{DTYPES[dtype].itemsize}")[0])


WITH_SCALAR = {
    "vadds": ((*FLOATS, "s16", "s32"), lambda a, value: a + value),
    "vmuls": ((*FLOATS, "s16", "s32"), lambda a, value: a * value),
    "vshl": (("s16", "s32"), lambda a, value: a << max(int(value), 0)),
    "vshr": (("s16", "s32"), lambda a, value: a >> max(int(value), 0)),
    "vmaxs": (("f16", "f32", "s16", "s32"), lambda a, value: np.where(a > value, a, value)),
    "vmins": (("f16", "f32", "s16", "s32"), lambda a, value: np.where(a < value, a, value)),
    "vlrelu": (FLOATS, lambda a, value: np.where(a > 0, a, a * value)),
}
SCALAR_CASES = [(name, dtype) for name, (dtypes, _) in WITH_SCALAR.items() for dtype in dtypes]


@pytest.mark.parametrize(("name", "dtype"), SCALAR_CASES)
@given(fields=stride_fields(("src",)), low=MASKS, high=MASKS, scalar=st.sampled_from([-3, 0, 0.5]))
def test_with_scalar(make_bench, name, dtype, fields, low, high, scalar):
    bench = make_bench()
    fill(bench, 1, dtype)
    value = DTYPES[dtype].type(abs(scalar) if name in ("vshl", "vshr") else scalar)
    fields = fields | {"value": bits_of(value, dtype)}
    function = WITH_SCALAR[name][1]
    check(
        bench,
        f"{name}.{dtype}",
        ("src",),
        [dtype] * 2,
        lambda a: function(a, value),
        fields,
        low,
        high,
    )


@pytest.mark.parametrize("dtype", ["f16", "f32", "s16", "s32"])
@given(fields=stride_fields(()), low=MASKS, high=MASKS)
def test_vector_dup(make_bench, dtype, fields, low, high):
    bench = make_bench()
    lanes = 256 // DTYPES[dtype].itemsize
    count = fields["repeat"] * len(active_lanes(low, high, lanes))
    expected = np.full(count, -7, DTYPES[dtype])
    fields = fields | {"value": bits_of(-7, dtype)}
    check(bench, f"vector_dup.{dtype}", (), [dtype], lambda: expected, fields, low, high)


def test_upper_half_of_the_scalar_word_is_ignored_by_half_precision(bench):
    fields = {"dst_blk_stride": 1, "dst_rep_stride": 8, "repeat": 1}
    bench.run("vector_dup.f16", dst=0, value=0xABCD3C00, **fields)
    assert (bench.get(Space.UB, 0, (128,), np.float16) == 1).all()


def test_overflow_gives_infinity(bench):
    bench.put(Space.UB, 0, np.full(128, 60000, np.float16))
    fields = {f"{n}_{k}_stride": v for n in ("dst", "src") for k, v in (("blk", 1), ("rep", 8))}
    bench.run("vadds.f16", dst=512, src=0, value=bits_of(60000, "f16"), **fields, repeat=1)
    assert np.isposinf(bench.get(Space.UB, 512, (128,), np.float16)).all()


def test_integers_wrap(bench):
    bench.put(Space.UB, 0, np.full(64, 2**31 - 1, np.int32))
    names = ("dst", "src0", "src1")
    fields = {f"{n}_{k}_stride": v for n in names for k, v in (("blk", 1), ("rep", 8))}
    bench.run("vadd.s32", dst=256, src0=0, src1=0, **fields, repeat=1)
    assert (bench.get(Space.UB, 256, (64,), np.int32) == -2).all()


@pytest.mark.parametrize("dtype", ["b16", "b32"])
@given(
    pattern=st.integers(1, 7),
    repeat=st.integers(0, 3),
    blk=st.integers(0, 3),
    rep=st.integers(0, 20),
)
def test_keeping_elements_by_a_pattern(make_bench, dtype, pattern, repeat, blk, rep):
    bench = make_bench()
    fill(bench, 6, dtype)
    before = bench.memory[Space.UB].copy()
    bench.registers = Registers(mask_low=1, mask_high=0)
    fields = {"src_blk_stride": blk, "src_rep_stride": rep, "repeat": repeat}
    bench.run(f"vreducev2.{dtype}", dst=DST, src=SRC0, pattern=pattern, **fields)
    size = DTYPES[dtype].itemsize
    ones = 2**64 - 1
    places = SRC0 + offsets(fields, "src", 256 // size, size, ones, ones)
    bits = {1: "10", 2: "01", 3: "1000", 4: "0100", 5: "0010", 6: "0001", 7: "1"}[pattern]
    kept = [place for i, place in enumerate(places.reshape(-1)) if bits[i % len(bits)] == "1"]
    source = gather(before, np.array(kept, dtype=np.int64), dtype)
    before[DST : DST + source.nbytes] = source.view(np.uint8)
    assert np.array_equal(bench.memory[Space.UB], before)


ROUND = {
    "": np.rint,
    "r": np.rint,
    "a": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "f": np.floor,
    "c": np.ceil,
    "z": np.trunc,
}


def conversion(mnemonic):
    """(from, to, rounding) of a vconv mnemonic."""
    types = ("f16", "f32", "bf16", "s16", "s32", "s64", "s8", "u8")
    for src in types:
        for dst in types:
            if mnemonic.startswith(f"vconv_{src}2{dst}"):
                return src, dst, mnemonic.removeprefix(f"vconv_{src}2{dst}")
    raise AssertionError(mnemonic)


def reference_conversion(dst, rounding):
    def convert(x):
        if dst == "f32" and rounding and x.dtype == np.float32:  # to whole numbers
            return np.array([ROUND[rounding](float(v)) for v in x], np.float32)
        if dst == "bf16":
            # A bf16 has 8 bits, its implicit one among them.
            _, exponents = np.frexp(x.astype(np.float64))
            units = 2.0 ** (np.maximum(exponents, -125) - 8)
            return (ROUND[rounding](x / units) * units).astype(DTYPES[dst])
        if dst[0] == "f":
            return x.astype(DTYPES[dst])
        info = np.iinfo(DTYPES[dst])
        return np.array(
            [min(max(int(ROUND[rounding](float(v))), info.min), info.max) for v in x],
            DTYPES[dst],
        )

    return convert


@pytest.mark.parametrize("mnemonic", [m for m in INSTRUCTIONS if m.startswith("vconv")])
@given(data=st.data(), low=MASKS, high=MASKS)
def test_conversion(make_bench, mnemonic, data, low, high):
    src, dst, rounding = conversion(mnemonic)
    lanes = 256 // max(DTYPES[src].itemsize, DTYPES[dst].itemsize)
    fields = data.draw(stride_fields(("src",), blocks=lanes * DTYPES[dst].itemsize // 32))
    bench = make_bench()
    fill(bench, 2, src)
    if src in ("f16", "f32", "bf16"):
        halves = (np.arange(-600, 600) / 2).astype(DTYPES[src])
        bench.put(Space.UB, 0, halves)
    check(
        bench,
        mnemonic,
        ("src",),
        [dst, src],
        reference_conversion(dst, rounding),
        fields,
        low,
        high,
    )


@pytest.mark.parametrize("dst", ["s8", "u8"])
@given(data=st.data(), low=MASKS, high=MASKS)
def test_product_and_conversion(make_bench, dst, data, low, high):
    """The product is rounded to f16 first."""
    fields = data.draw(stride_fields(("src0", "src1"), blocks=4))
    bench = make_bench()
    fill(bench, 3, "f16")
    convert = reference_conversion(dst, "")

    def product(x, y):
        return convert((x * y).astype(np.float16))

    mnemonic = f"vmulconv_f162{dst}"
    check(bench, mnemonic, ("src0", "src1"), [dst, "f16", "f16"], product, fields, low, high)


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        ("r", [np.inf, -np.inf, np.inf, 1.0]),
        ("a", [np.inf, -np.inf, np.inf, 1.0078125]),
        ("f", [np.inf, -np.inf, 3.3895314e38, 1.0]),
        ("c", [np.inf, -np.inf, np.inf, 1.0078125]),
        ("z", [np.inf, -np.inf, 3.3895314e38, 1.0]),
    ],
)
def test_limits_of_bf16(bench, rounding, expected):
    """Infinities, the largest f32, and 1 + 2^-8, which lies between two bf16; NaN stays one."""
    largest = np.finfo(np.float32).max
    given = np.array([np.inf, -np.inf, largest, 1 + 2.0**-8, np.nan], np.float32)
    bench.put(Space.UB, 0, np.resize(given, 64))
    fields = {f"{n}_{k}_stride": v for n in ("dst", "src") for k, v in (("blk", 1), ("rep", 8))}
    bench.run(f"vconv_f322bf16{rounding}", dst=256, src=0, repeat=1, **fields)
    found = bench.get(Space.UB, 256, (5,), DTYPES["bf16"]).astype(np.float32)
    assert found[:4].tolist() == np.array(expected, np.float32).tolist()
    assert np.isnan(found[4])


@pytest.mark.parametrize("mnemonic", ["vconv_f322s32z", "vconv_f322s32r"])
def test_conversion_to_integer_saturates(bench, mnemonic):
    bench.put(Space.UB, 0, np.resize(np.array([np.nan, np.inf, -np.inf, 3e9], np.float32), 64))
    fields = {f"{n}_{k}_stride": v for n in ("dst", "src") for k, v in (("blk", 1), ("rep", 8))}
    bench.run(mnemonic, dst=256, src=0, repeat=1, **fields)
    found = bench.get(Space.UB, 256, (4,), np.int32)
    assert found.tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1]
