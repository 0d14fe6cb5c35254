"""One function of a library, from Python to the LLVM dialect."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from davinci.native.arrays import ADDRESSED, ELEMENTS, TYPES
from davinci.native.rows import LANES, OPERATIONS, VECTOR

INTEGER = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
FLOAT = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("eq", "oeq"), ast.NotEq: ("ne", "une"), ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"), ast.Gt: ("sgt", "ogt"), ast.GtE: ("sge", "oge"),
}  # fmt: skip
"""Operations of the LLVM dialect by those of Python, for integers and for doubles."""

ROW, ROWS = "row", "rows"

READ = {"i8": "i64", "f16": "f32"}
"""What elements of arrays become when they are read, by what they are stored as."""

CONVERSIONS = {
    ("i64", "f64"): "sitofp", ("i64", "i8"): "trunc", ("i8", "i64"): "zext",
    ("f16", "f32"): "fpext", ("f32", "f16"): "fptrunc",
    ("f32", "f64"): "fpext", ("f64", "f32"): "fptrunc",
}  # fmt: skip
"""Operations that convert a value from one type to another."""

Value = tuple[str, str]
"""Name of a value in the text, and its type: i64, f64, f32, the name of an array, row or rows."""


class Function:
    """One function, read from its source.

    Attributes:
        name: of the function.
        parameters: names and types.
        result: type of what it returns, i64 if nothing.
        address_name: of the function that returns where an entry is.
    """

    def __init__(
        self, function: Callable[..., Any], others: dict[str, Function], linkage: str
    ) -> None:
        self.name, self._linkage = function.__name__, linkage
        self.address_name = f"{self.name}.address"
        self._globals, self._others = inspect.unwrap(function).__globals__, others
        source = textwrap.dedent(inspect.getsource(function))
        (definition,) = ast.parse(source).body
        assert isinstance(definition, ast.FunctionDef), "entries are functions"
        self._body = definition.body
        self.parameters = [(a.arg, TYPES[ast.unparse(a.annotation)]) for a in
                           definition.args.args if a.annotation is not None]  # fmt: skip
        result = ast.unparse(definition.returns) if definition.returns is not None else "None"
        self.result = "f64" if result == "float" else "i64"

    def text(self) -> str:
        """The function in the LLVM dialect."""
        self._lines: list[str] = []
        self._allocated: list[str] = []
        self._variables: dict[str, Value] = {}
        self._loops: list[tuple[str, str]] = []
        self._unrolled: dict[str, int] = {}
        self._count = 0
        arguments = []
        for i, (name, kind) in enumerate(self.parameters):
            arguments.append(f"%a{i}: {machine_type(kind)}")
            self._assign(name, (f"%a{i}", kind))
        self._statements(self._body)
        zero = self._constant(0.0 if self.result == "f64" else 0)
        self._do(f"llvm.return {zero[0]} : {self.result}")
        head = f"llvm.func {self._linkage}@{self.name}({', '.join(arguments)}) -> {self.result} {{"
        one = ["%one = llvm.mlir.constant(1 : i64) : i64"]
        lines = [head, *one, *self._allocated, *self._lines, "}"]
        if not self._linkage:
            lines += self._address()
        return "\n".join(lines)

    def _address(self) -> list[str]:
        """A function that says where this one is."""
        return [
            f"llvm.func @{self.address_name}() -> i64 {{",
            f"%function = llvm.mlir.addressof @{self.name} : !llvm.ptr",
            "%address = llvm.ptrtoint %function : !llvm.ptr to i64",
            "llvm.return %address : i64",
            "}",
        ]

    def _do(self, line: str) -> None:
        self._lines.append(line)

    def _new(self, operation: str) -> str:
        self._count += 1
        self._do(f"%v{self._count} = {operation}")
        return f"%v{self._count}"

    def _label(self) -> str:
        self._count += 1
        return f"^b{self._count}"

    def _go(self, label: str) -> None:
        self._do(f"llvm.br {label}")

    def _begin(self, label: str) -> None:
        self._do(f"{label}:")

    def _error(self, node: ast.AST, message: str) -> SyntaxError:
        return SyntaxError(f"{self.name}: {message}: {ast.unparse(node)}")

    def _statements(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):  # a docstring
                self._value(node.value)
        elif isinstance(node, ast.Assign):
            (target,) = node.targets
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                values = [self._value(value) for value in node.value.elts]
                for part, value in zip(target.elts, values, strict=True):
                    self._store(part, value)
            else:
                self._store(target, self._value(node.value))
        elif isinstance(node, ast.AugAssign):
            sum_ = ast.BinOp(_loaded(node.target), node.op, node.value)
            self._store(node.target, self._value(sum_))
        elif isinstance(node, ast.If):
            yes, no, end = self._label(), self._label(), self._label()
            self._branch(node.test, yes, no)
            for label, body in ((yes, node.body), (no, node.orelse)):
                self._begin(label)
                self._statements(body)
                self._go(end)
            self._begin(end)
        elif isinstance(node, ast.While):
            self._loop(node.test, node.body, [])
        elif isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, ast.Return):
            value = self._value(node.value) if node.value is not None else self._constant(0)
            self._do(f"llvm.return {self._as(value, self.result)} : {self.result}")
            self._begin(self._label())
        elif isinstance(node, (ast.Break, ast.Continue)):
            self._go(self._loops[-1][isinstance(node, ast.Continue)])
            self._begin(self._label())
        else:
            raise self._error(node, "no such statement in native code")

    def _for(self, node: ast.For) -> None:
        """`for i in range(...)`: as a loop over a hidden variable."""
        assert isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name), (
            "loops of native code are `for i in range(..)`"
        )
        bounds = node.iter.args
        if ast.unparse(node.iter.func) == "unrolled":
            for i in range(int(self._known(bounds[0]))):
                self._unrolled[node.target.id] = i
                self._statements(node.body)
            del self._unrolled[node.target.id]
            return
        self._count += 1
        counter, last = f".at{self._count}", f".last{self._count}"
        first = bounds[0] if len(bounds) > 1 else ast.Constant(0)
        self._assign(counter, self._value(first))
        self._assign(last, self._value(bounds[-1] if len(bounds) < 3 else bounds[1]))
        step: ast.expr = bounds[2] if len(bounds) == 3 else ast.Constant(1)
        name = ast.Name(counter, ast.Load())
        test = ast.Compare(name, [ast.Lt()], [ast.Name(last, ast.Load())])
        begin = ast.Assign([node.target], name)
        onward = ast.AugAssign(ast.Name(counter, ast.Store()), ast.Add(), step)
        self._loop(test, [begin, *node.body], [onward])

    def _loop(self, test: ast.expr, body: list[ast.stmt], again: list[ast.stmt]) -> None:
        head, inside, onward, end = (self._label() for _ in range(4))
        self._go(head)
        self._begin(head)
        self._branch(test, inside, end)
        self._begin(inside)
        self._loops.append((end, onward))
        self._statements(body)
        self._loops.pop()
        self._go(onward)
        self._begin(onward)
        self._statements(again)
        self._go(head)
        self._begin(end)

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
            return
        assert isinstance(target, ast.Subscript), "native code assigns to names and elements"
        pointer, kind = self._element(target)
        self._do(f"llvm.store {self._as(value, kind)}, {pointer} : {machine_type(kind)}, !llvm.ptr")

    def _assign(self, name: str, value: Value) -> None:
        known = self._variables.get(name)
        if known is None:
            place = f"%p{len(self._variables)}"
            known = self._variables[name] = place, value[1]
            kind = machine_type(value[1])
            self._allocated.append(f"{place} = llvm.alloca %one x {kind} : (i64) -> !llvm.ptr")
        place, kind = known
        self._do(f"llvm.store {self._as(value, kind)}, {place} : {machine_type(kind)}, !llvm.ptr")

    def _element(self, node: ast.Subscript) -> Value:
        """Address of an element, and its type."""
        array, kind = self._value(node.value)
        index = self._as(self._value(node.slice), "i64")
        element = ROW if kind == ROWS else ELEMENTS[kind]
        return self._pointer(array, index, machine_type(element)), element

    def _pointer(self, array: str, index: str, element: str) -> str:
        return self._new(
            f"llvm.getelementptr {array}[{index}] : (!llvm.ptr, i64) -> !llvm.ptr, {element}"
        )

    def _as(self, value: Value, kind: str) -> str:
        name, found = value
        if found == kind:
            return name
        if (found, kind) in CONVERSIONS:
            return self._new(f"llvm.{CONVERSIONS[found, kind]} {name} : {found} to {kind}")
        raise SyntaxError(f"{self.name}: found a value of type {found}, expected {kind}")

    def _constant(self, value: float | int) -> Value:
        if isinstance(value, float):
            return self._new(f"llvm.mlir.constant({value!r} : f64) : f64"), "f64"
        return self._new(f"llvm.mlir.constant({int(value)} : i64) : i64"), "i64"

    def _value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Name) and node.id in self._unrolled:
            return self._constant(self._unrolled[node.id])
        if isinstance(node, ast.Name) and node.id in self._variables:
            place, kind = self._variables[node.id]
            return self._new(f"llvm.load {place} : !llvm.ptr -> {machine_type(kind)}"), kind
        if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
            return self._constant(self._known(node))
        if isinstance(node, ast.Subscript):
            pointer, kind = self._element(node)
            found = self._new(f"llvm.load {pointer} : !llvm.ptr -> {machine_type(kind)}")
            wide = READ.get(kind, kind)
            return self._as((found, kind), wide), wide
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._binary(ast.BinOp(ast.Constant(0), ast.Sub(), node.operand))
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.IfExp):
            return self._choice(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self._error(node, "no such expression in native code")

    def _known(self, node: ast.expr) -> float | int:
        if isinstance(node, ast.Constant):
            value = node.value
        else:
            value = eval(ast.unparse(node), self._globals, self._unrolled)
        if not isinstance(value, (int, float)):
            raise self._error(node, "no constant")
        return value if isinstance(value, float) else int(value)

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self._value(node.left), self._value(node.right)
        if left[1] == right[1] == ROW:
            return self._new(f"llvm.{FLOAT[type(node.op)]} {left[0]}, {right[0]} : {VECTOR}"), ROW
        kind, names = "f64", FLOAT
        if left[1] == right[1] == "f32":
            kind = "f32"
        elif left[1] == right[1] == "i64" and not isinstance(node.op, ast.Div):
            kind, names = "i64", INTEGER
        operation: str = names[type(node.op)]
        a, b = self._as(left, kind), self._as(right, kind)
        return self._new(f"llvm.{operation} {a}, {b} : {kind}"), kind

    def _choice(self, node: ast.IfExp) -> Value:
        yes, no, end = self._label(), self._label(), self._label()
        self._count += 1
        name = f".choice{self._count}"
        self._branch(node.test, yes, no)
        for label, value in ((yes, node.body), (no, node.orelse)):
            self._begin(label)
            self._assign(name, self._value(value))
            self._go(end)
        self._begin(end)
        return self._value(ast.Name(name, ast.Load()))

    def _call(self, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Name), "native code calls functions by name"
        name = node.func.id
        if name == "rows":
            return self._rows(int(self._known(node.args[0])))
        values = [self._value(argument) for argument in node.args]
        if name in OPERATIONS:
            return self._row_operation(name, node, values)
        if name in ("min", "max"):
            found = values[0]
            for value in values[1:]:
                found = self._extreme(name, found, value)
            return found
        if name == "float":
            return self._as(values[0], "f64"), "f64"
        if name == "ceil":
            rounded = self._new(f"llvm.intr.ceil({self._as(values[0], 'f64')}) : (f64) -> f64")
            return self._new(f"llvm.fptosi {rounded} : f64 to i64"), "i64"
        if name in ADDRESSED:
            pointer = self._new(f"llvm.inttoptr {self._as(values[0], 'i64')} : i64 to !llvm.ptr")
            return pointer, ADDRESSED[name]
        if name not in self._others:
            raise self._error(node, "no such function in native code")
        other = self._others[name]
        kinds = [kind for _, kind in other.parameters]
        given = [self._as(value, kind) for value, kind in zip(values, kinds, strict=True)]
        types = ", ".join(map(machine_type, kinds))
        call = f"llvm.call @{name}({', '.join(given)}) : ({types}) -> {other.result}"
        return self._new(call), other.result

    def _rows(self, count: int) -> Value:
        self._count += 1
        place, number = f"%rows{self._count}", f"%count{self._count}"
        self._allocated += [
            f"{number} = llvm.mlir.constant({count} : i64) : i64",
            f"{place} = llvm.alloca {number} x {VECTOR} : (i64) -> !llvm.ptr",
        ]
        return place, ROWS

    def _row_operation(self, name: str, node: ast.Call, values: list[Value]) -> Value:
        """An operation of `native.rows`."""
        if name in ("row", "put_row"):
            (array, kind), index = values[0], self._as(values[1], "i64")
            pointer = self._pointer(array, index, ELEMENTS[kind])
            if name == "row":
                load = f"llvm.load {pointer} {{alignment = 4 : i64}} : !llvm.ptr -> {VECTOR}"
                return self._new(load), ROW
            stored = self._as(values[2], ROW)
            self._do(
                f"llvm.store {stored}, {pointer} {{alignment = 4 : i64}} : {VECTOR}, !llvm.ptr"
            )
            return self._constant(0)
        if name == "spread":
            undefined = self._new(f"llvm.mlir.undef : {VECTOR}")
            zero, value = self._constant(0)[0], self._as(values[0], "f32")
            one = self._new(f"llvm.insertelement {value}, {undefined}[{zero} : i64] : {VECTOR}")
            return self._shuffled(one, one, [0] * LANES)
        if name == "multiply_add":
            operands = ", ".join(self._as(value, ROW) for value in values)
            types = ", ".join([VECTOR] * 3)
            return self._new(f"llvm.intr.fmuladd({operands}) : ({types}) -> {VECTOR}"), ROW
        half = LANES // 2
        first = half * int(self._known(node.args[2]))
        lanes = [lane for i in range(first, first + half) for lane in (i, LANES + i)]
        return self._shuffled(self._as(values[0], ROW), self._as(values[1], ROW), lanes)

    def _shuffled(self, x: str, y: str, lanes: list[int]) -> Value:
        return self._new(f"llvm.shufflevector {x}, {y} {lanes} : {VECTOR}"), ROW

    def _extreme(self, name: str, left: Value, right: Value) -> Value:
        """As Python has it: the first one, unless the second one is beyond it."""
        if left[1] == right[1] == "i64":
            called = f"llvm.intr.s{name}({left[0]}, {right[0]}) : (i64, i64) -> i64"
            return self._new(called), "i64"
        a, b = self._as(left, "f64"), self._as(right, "f64")
        beyond = self._new(f'llvm.fcmp "{"ogt" if name == "max" else "olt"}" {b}, {a} : f64')
        return self._new(f"llvm.select {beyond}, {b}, {a} : i1, f64"), "f64"

    def _branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Goes to `yes` if `node` holds, to `no` if it does not."""
        if isinstance(node, ast.BoolOp):
            both = isinstance(node.op, ast.And)
            for value in node.values[:-1]:
                onward = self._label()
                self._branch(value, onward if both else yes, no if both else onward)
                self._begin(onward)
            self._branch(node.values[-1], yes, no)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._branch(node.operand, no, yes)
        elif isinstance(node, ast.Compare):
            *chain, last = _pairs(node)
            for pair in chain:
                onward = self._label()
                self._branch(pair, onward, no)
                self._begin(onward)
            left, right = self._value(last.left), self._value(last.comparators[0])
            kinds = left[1], right[1]
            kind = "f64" if "f64" in kinds else "f32" if "f32" in kinds else "i64"
            a, b = self._as(left, kind), self._as(right, kind)
            name = COMPARISONS[type(last.ops[0])][kind != "i64"]
            operation = "icmp" if kind == "i64" else "fcmp"
            test = self._new(f'llvm.{operation} "{name}" {a}, {b} : {kind}')
            self._do(f"llvm.cond_br {test}, {yes}, {no}")
        else:
            self._branch(ast.Compare(node, [ast.NotEq()], [ast.Constant(0)]), yes, no)


def machine_type(kind: str) -> str:
    """The type in the LLVM dialect."""
    return VECTOR if kind == ROW else "!llvm.ptr" if kind in ELEMENTS or kind == ROWS else kind


def _pairs(node: ast.Compare) -> Iterator[ast.Compare]:
    """`a < b < c` as `a < b`, `b < c`; operands have no effects, so they may be computed twice."""
    left = node.left
    for operation, right in zip(node.ops, node.comparators, strict=True):
        yield ast.Compare(left, [operation], [right])
        left = right


def _loaded(target: ast.expr) -> ast.expr:
    """What a target holds before it is assigned to."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    assert isinstance(target, ast.Subscript), "native code assigns to names and elements"
    return ast.Subscript(target.value, target.slice, ast.Load())
