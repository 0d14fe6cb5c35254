"""Functions that are compiled together."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from davinci.native import half
from davinci.native.arrays import ELEMENTS, address
from davinci.native.function import Function

OPT_LEVEL = 2
"""Level of the native compiler's optimisations."""

C_WORD = ctypes.c_int64
C_TYPES: dict[str, Any] = {"i64": C_WORD, "f64": ctypes.c_double}
"""C types of arguments and results; arrays are addresses."""

TO_LLVM = "builtin.module(convert-arith-to-llvm,reconcile-unrealized-casts)"
"""What the definitions of `native.half` need."""


class Library:
    """Functions that are compiled together, and may call each other."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}
        self._exported: list[str] = []
        self._engine: Any = None
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Adds a function that others of the library call; a decorator."""
        self._functions[function.__name__] = Function(function, self._functions, "internal ")
        return function

    def entry(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Adds a function that `call` calls; a decorator."""
        self._functions[function.__name__] = Function(function, self._functions, "")
        self._exported.append(function.__name__)
        return function

    def call(self, name: str, *arguments: Any) -> Any:
        """Calls a function; arrays must be contiguous and of the type that it takes."""
        return (self._entries.get(name) or self._found(name))(*arguments)

    def prepare(self) -> None:
        """Compiles the functions, so that processes forked from this one need not do it each."""
        for name in self._exported:
            self._found(name)

    def _found(self, name: str) -> Entry:
        with self._lock:
            if name not in self._entries:
                self._entries[name] = self._entry(name)
            return self._entries[name]

    def _entry(self, name: str) -> Entry:
        if self._engine is None:
            functions = self._functions.values()
            self._engine = compiled([function.text() for function in functions])
        function = self._functions[name]
        word = ctypes.c_int64()
        words = (ctypes.c_void_p * 1)(ctypes.addressof(word))
        packed = self._engine.raw_lookup(function.address_name)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(packed)(ctypes.addressof(words))
        return Entry(function, word.value)


def compiled(functions: list[str]) -> Any:
    """An engine of functions in the LLVM dialect."""
    # Records of instructions have such functions, and are read without MLIR.
    from davinci.mlir import execution_engine, ir, passmanager

    text = "\n".join(functions)
    halves = "f16" in text
    dialects = ["llvm", "arith"] if halves else ["llvm"]
    with ir.Context(load_on_create_dialects=dialects) as context, ir.Location.unknown():
        context.enable_multithreading(False)
        module = ir.Module.parse(text + half.DEFINITIONS if halves else text)
        if halves:
            passmanager.PassManager.parse(TO_LLVM).run(module.operation)
        return execution_engine.ExecutionEngine(module, opt_level=OPT_LEVEL)


class Entry:
    """A function as the host calls it."""

    def __init__(self, function: Function, address: int) -> None:
        kinds = [kind for _, kind in function.parameters]
        native = ctypes.CFUNCTYPE(
            C_TYPES[function.result], *(C_TYPES.get(k, C_WORD) for k in kinds)
        )
        self._native = native(address)
        self._arrays = [i for i, kind in enumerate(kinds) if kind in ELEMENTS]

    def __call__(self, *arguments: Any) -> Any:
        given = list(arguments)
        for i in self._arrays:
            given[i] = address(given[i])
        return self._native(*given)
