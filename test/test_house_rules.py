"""Rules of the house that no linter knows: see CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path, PurePath

import pytest

from davinci.isa import INSTRUCTIONS
from davinci.passes.pipeline import pipelines, registry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path
    for folder in ("dialects", "passes", "python", "simulator", "tools", "test", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
)
PRODUCT = [p for p in SOURCES if p.relative_to(ROOT).parts[0] not in ("test", "benchmarks")]
LIT_FILES = sorted((ROOT / "test").rglob("*.mlir"))
LOWERING_MODULES = [path.stem for path in (ROOT / "passes" / "ascend_to_cce").glob("[a-z]*.py")]
MACHINE_FILES = sorted((ROOT / "python" / "davinci" / "machine" / "files").glob("*.toml"))
LONGEST_MODULE = 500
REFUSE_NOTHING = (
    "ascend-absorb-transposes",
    "ascend-combine-operators",
    "ascend-cut-chains",
    "ascend-dequantize-sums",
    "ascend-drop-guards",
    "ascend-fuse",
    "ascend-hoist-slices",
    "ascend-legalize-layouts",
    "ascend-merge-products",
    "ascend-outline-loops",
    "ascend-scale-weights",
    "ascend-simplify-arithmetic",
    "ascend-simplify-moves",
    "ascend-sink-rearrangements",
    "ascend-split-moves",
    "ascend-split-reductions",
    "ascend-unfold-windows",
    "ascend-winograd",
    "chlo-keep-operators",
    "join-launches",
    "join-loads-and-products",
    "load-at-meetings",
    "load-before-meetings",
    "order-issue",
    "stablehlo-doubles-as-integers",
    "stablehlo-expand-operators",
    "stablehlo-expand-reduce",
    "stablehlo-fold-pads",
    "stablehlo-narrow-integers",
    "stablehlo-sign-integers",
    "stablehlo-fuse-locations",
    "stablehlo-join-updates",
    "stablehlo-outline-loops",
    "stablehlo-pixels-to-channels",
    "stablehlo-select-branches",
    "stablehlo-unroll-loops",
    "stablehlo-widen-half",
)
"""Passes that leave alone what they cannot change."""

DIRECTIVES = ("", "-NEXT", "-SAME", "-NOT", "-DAG", "-LABEL", "-EMPTY", "-COUNT-")
DIRECTIVE = re.compile(r"//\s*([A-Z][A-Z0-9_-]*)\s*:")
PREFIX = re.compile(r"--check-prefix(?:es)?[= ]([\w,-]+)")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def wrong_directives(text: str) -> list[str]:
    """Comments that look like FileCheck directives and are none, `CHECK-NO:` for example.

    FileCheck's Python version ignores what it does not know, so a misspelt check checks nothing.
    """
    found = PREFIX.findall(text)
    prefixes = [prefix for group in found for prefix in group.split(",")] + ["CHECK"]
    wrong = []
    for match in DIRECTIVE.finditer(text):
        word = match[1]
        owner = next((p for p in sorted(prefixes, key=len)[::-1] if word.startswith(p)), None)
        if owner is None:
            if word.startswith(("CHECK", "CHEK", "CEHCK")):
                wrong.append(match[0])
            continue
        suffix = re.sub(r"\d+$", "", word.removeprefix(owner))
        if suffix not in DIRECTIVES or match[0] != f"// {word}:":
            wrong.append(match[0])
    return wrong


@pytest.mark.parametrize("line", ["// CHECK-NO: x", "// CHECK-LABEL : x", "// CHECK-NXT: x"])
def test_misspelt_directives_are_found(line: str) -> None:
    assert wrong_directives(line) == [line.split(":")[0] + ":"]


@pytest.mark.parametrize("line", ["// CHECK: x", "// CHECK-COUNT-3: x", "// CHECK-SAME: x"])
def test_right_directives_pass(line: str) -> None:
    assert wrong_directives(line) == []


@pytest.mark.parametrize("path", LIT_FILES, ids=name_of)
def test_lit_file(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("// RUN:"), "the first line is not a RUN line"
    assert wrong_directives(text) == []
    checks = "FileCheck" not in text or re.search(r"// [A-Z0-9_-]+(-LABEL|-NEXT)?:", text)
    assert checks, "FileCheck without a check"


@pytest.mark.parametrize("path", LIT_FILES, ids=name_of)
def test_lit_file_is_named_after_what_it_tests(path: Path) -> None:
    """`<pass>.mlir` or `<pass>_<aspect>.mlir`; the same for pipelines, dialects, instructions."""
    passes = [cls.NAME for cls in registry.all_passes()]
    tools = [
        "verify-diagnostics",
        "split-input-file",
        "print-ir",
        "npu-to-asm",
        "timing",
        "options",
    ]
    operations = {record.name.replace("_", "-") for record in INSTRUCTIONS.values()}
    lowerings = [name.replace("_", "-") for name in LOWERING_MODULES]
    subjects = [
        *passes,
        *pipelines.PIPELINES,
        *tools,
        *lowerings,
        "ascend",
        "cce",
        "hivm",
        *operations,
    ]
    stem = path.stem.replace("_", "-")
    assert any(stem == s or stem.startswith(f"{s}-") for s in subjects)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_module_is_not_too_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_MODULE


@pytest.mark.parametrize("path", PRODUCT, ids=name_of)
def test_assertions_say_why_they_hold(path: Path) -> None:
    """What input can reach is an error with a place; what it cannot says why."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    assert [n.lineno for n in nodes if isinstance(n, ast.Assert) and n.msg is None] == []


def test_no_file_has_marks_of_a_merge() -> None:
    texts = [*SOURCES, *LIT_FILES, *ROOT.glob("*.*"), *(ROOT / "docs").glob("*.md")]
    mark = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    assert [
        name_of(path) for path in texts if path.is_file() and mark.search(path.read_text())
    ] == []


@pytest.mark.parametrize("path", MACHINE_FILES, ids=name_of)
def test_every_number_of_a_machine_file_has_a_source(path: Path) -> None:
    """A section of docs/hardware.md or `assumed`, on its line or on the line of its table. Where a
    part of the page has sections, one of them: the article "a" is none."""
    page = (ROOT / "docs" / "hardware.md").read_text().lower()
    found = re.findall(r"^###? \(?([a-g]\d?)\)?[. ]", page, re.MULTILINE)
    sections = {name for name in found if len(name) > 1 or f"{name}1" not in found}
    table_source = ""
    for line in path.read_text().splitlines():
        value, _, comment = line.partition("#")
        if value.startswith("["):
            table_source = comment
        if not re.search(r"=[^\"]*\d", value):
            continue
        source = comment.strip() or table_source.strip()
        cited = re.match(r"([a-g]\d?)(?=,|;|$| *\()", source)
        known = source.startswith("assumed")
        assert known or (cited and cited[1] in sections), line


@pytest.mark.parametrize("cls", registry.all_passes(), ids=lambda cls: cls.NAME)
def test_pass_file_and_class_have_one_name(cls: type) -> None:
    stem = cls.__module__.rsplit(".", 1)[-1]
    words = cls.NAME.split("-")
    assert stem == "_".join(words)
    assert cls.__name__ == "".join(word.capitalize() for word in words) + "Pass"
    assert registry.summary(cls).endswith("."), "the docstring does not start with a sentence"


@pytest.mark.parametrize("cls", registry.all_passes(), ids=lambda cls: cls.NAME)
def test_pass_has_a_test(cls: type) -> None:
    stem = cls.NAME.replace("-", "_")
    tests = [*(ROOT / "test").rglob(f"*{stem}*.mlir"), *(ROOT / "test").rglob(f"test_{stem}*.py")]
    assert tests


@pytest.mark.parametrize("cls", registry.all_passes(), ids=lambda cls: cls.NAME)
def test_pass_is_run_twice_and_on_what_it_refuses(cls: type) -> None:
    """A second run changes nothing: one lit file runs the pass twice against the same checks."""
    stem = cls.NAME.replace("-", "_")
    files = {path.stem: path.read_text() for path in LIT_FILES if path.stem.startswith(stem)}
    options = r"(\{[^}]*\})?"
    twice = re.compile(rf"RUN:.*{cls.NAME}{options},{cls.NAME}{options}.*FileCheck")
    assert any(twice.search(text) for text in files.values())
    assert any(name.endswith("_invalid") for name in files) or cls.NAME in REFUSE_NOTHING


@pytest.mark.parametrize("folder", ["dialects", "passes", "python/davinci", "simulator", "tools"])
def test_every_folder_of_modules_is_a_package(folder: str) -> None:
    """Only packages with an `__init__.py` are part of the wheel."""
    modules = {path.parent for path in (ROOT / folder).rglob("*.py")}
    assert [name_of(d) for d in sorted(modules) if not (d / "__init__.py").exists()] == []


OPERATIONS_OF_TWO_DIALECTS = {"GetBlockIdxOp", "GetBlockNumOp"}
"""Classes of operations that both dialects have under the same name."""


def test_class_names_mean_one_thing() -> None:
    owners: dict[str, list[str]] = {}
    for path in SOURCES:
        if path.relative_to(ROOT).parts[0] not in ("test", "benchmarks"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    owners.setdefault(node.name, []).append(name_of(path))
    shared = {name: paths for name, paths in owners.items() if len(paths) > 1}
    assert set(shared) == OPERATIONS_OF_TWO_DIALECTS, f"a name of another class was taken: {shared}"


PRICED = re.compile(
    r"\.(fixed_cycles_of|cycles_per_repeat|completion_cycles|copy_bytes_per_cycle"
    r"|sorted_per_cycle|occupancy_cycles|latency_cycles|fractal_cycles|stride_cycles|row_cycles"
    r"|most_cycles|l0b_cycles|of_fractal|on_average|l0a_bytes_per_cycle|l0b_bytes_per_cycle"
    r"|l1_to_ub_bytes_per_cycle|on_chip_start_cycles|port_bytes_per_cycle"
    r"|l1_port_bytes_per_cycle|nd2nz_\w+|ub_to_l1_bytes_per_cycle|to_ub_bytes_per_cycle"
    r"|elements_per_cycle|gm_access_cycles|ub_access_cycles)\b"
    r"|vector\.fixed_cycles|mte[123]\.(start|issue|fixed|row_miss)_cycles"
)
"""Numbers of a machine file from which the price of an instruction is made."""

PRICED_ELSEWHERE = {
    "simulator/timing/rules.py": "what passes of an instruction while others begin or end",
    "python/davinci/report/limits.py": "the most that ports carry, for the report",
    "python/davinci/report/what_if.py": "keys that a user may scale, by name",
}


def test_prices_are_made_in_one_place() -> None:
    found = {
        name_of(path)
        for path in PRODUCT
        if "python/davinci/machine" not in name_of(path) and PRICED.search(path.read_text())
    }
    assert found == set(PRICED_ELSEWHERE), "ask davinci.machine.prices"


def test_files_beside_modules_are_installed() -> None:
    """Templates, styles and machine files that pyproject.toml does not name are in no wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["davinci"]
    package = ROOT / "python" / "davinci"
    beside = {
        path.relative_to(package)
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc", ".nbi", ".nbc")
    }
    left_out = [p for p in beside if not any(PurePath(p).match(pattern) for pattern in patterns)]
    assert not left_out


ORDINARY = {*range(65), 100, 128, 255, 256, 512, 1000, 1024, 2000, 2048, 4096, 8192, 16384}
"""Numbers of machine files that code has for other reasons: blocks, bits, bytes, milliseconds,
percents, lanes of the host."""

MACHINES_KNOW_NOTHING = ("dialects", "passes", "simulator", "python/davinci/schedule")
"""Rooms of product code that may ask a machine file, and may not know what it says."""


def numbers_of(value: object) -> set[float]:
    """Numbers of a machine file."""
    if isinstance(value, dict):
        return {n for each in value.values() for n in numbers_of(each)}
    if isinstance(value, list):
        return {n for each in value for n in numbers_of(each)}
    return {value} if isinstance(value, (int, float)) and not isinstance(value, bool) else set()


def test_no_number_of_a_machine_stands_in_code() -> None:
    """Capacities, rates and latencies: whoever needs one asks the machine."""
    known = {n for path in MACHINE_FILES for n in numbers_of(tomllib.loads(path.read_text()))}
    machine = {n for n in known if isinstance(n, int)} - ORDINARY
    assert {65536, 262144, 1048576, 265, 220} <= machine
    found = [
        f"{name_of(path)}:{node.lineno}: {node.value}"
        for room in MACHINES_KNOW_NOTHING
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in machine
    ]
    assert not found


SAYS_NOTHING_OF_MLIR = re.compile(
    r"((dict|Mapping)\[str, Any\]|(Operand|Result|Field|NDArray|dtype|type)\[Any\])$"
)
"""Where `Any` stands for no value of MLIR: attributes as Python values, by name; fields of classes;
arrays and what they hold."""

ANY_IS_MEANT = {
    "dialects/base.py": (
        10,
        "Python values of attributes, classes of operations and their fields, and checks that are "
        "methods of those: the bindings make them at run time",
    ),
    "passes/ascend/dequantized_parts.py": (1, "a float, or an array of them"),
    "passes/ascend/host_function.py": (1, "a number, or an elements attribute, by the kind"),
    "passes/ascend/part_rules.py": (1, "None where a rule reads no part of an operand"),
    "passes/ascend_to_cce/attention/kernel.py": (1, "arguments of a class, of several types"),
    "passes/ascend_to_cce/groups.py": (2, "schedules, each of its own kind"),
    "passes/ascend_to_cce/loops/products.py": (1, "plans, each of its own kind"),
    "passes/ascend_to_cce/products/split_k.py": (1, "what a builder returns, which nobody reads"),
    "passes/ascend_to_cce/vector/phased_group.py": (2, "values and layouts of schedules"),
    "passes/ascend_to_cce/vector/tile_builder.py": (2, "schedules, and work of theirs"),
    "passes/hir_to_hivm/elements_arithmetic.py": (1, "classes of operations of the bindings"),
    "passes/pipeline/base.py": (1, "a field of a dataclass stands for its value"),
    "passes/pipeline/declarations.py": (2, "defaults of options"),
}
"""How often `Any` stands in a module of dialects and passes, and for what: who needs it less often
lowers the number."""


def anys_of(path: Path) -> int:
    """How many annotations and aliases of a module say `Any` of what may be a value of MLIR."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    meant = [n for n in nodes if isinstance(n, ast.Subscript)]
    meant = [n for n in meant if SAYS_NOTHING_OF_MLIR.search(ast.unparse(n))]
    meant += [n.kwarg for n in nodes if isinstance(n, ast.arguments) and n.kwarg]
    inside = {id(each) for node in meant for each in ast.walk(node)}
    return sum(isinstance(n, ast.Name) and n.id == "Any" and id(n) not in inside for n in nodes)


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("def f(op: Any) -> None: ...", 1),
        ("def f(*, at: int) -> list[Any]: ...", 1),
        ("class A:\n    ops: dict[Any, Any]", 2),
        ("Lowering = Callable[[Any], None]", 1),
        ("def f(op: Op, given: Mapping[str, Any], **attributes: Any) -> ir.Value: ...", 0),
    ],
)
def test_any_is_counted_where_it_may_stand_for_a_value(
    code: str, count: int, tmp_path: Path
) -> None:
    path = tmp_path / "module.py"
    path.write_text(code)
    assert anys_of(path) == count


def test_values_of_mlir_have_types() -> None:
    """A value is an `ir.Value`, an operation an `Op`, a type an `ir.Type`; `Any` says neither."""
    found = {
        name_of(path): count
        for room in ("dialects", "passes")
        for path in sorted((ROOT / room).rglob("*.py"))
        if (count := anys_of(path))
    }
    assert found == {name: count for name, (count, _) in ANY_IS_MEANT.items()}
