"""Attention as text of `ascend` on tensors, and as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from support import compile_text

Array = npt.NDArray[Any]

DTYPES = {"f16": np.float16, "f32": np.float32}
LOW = {"f16": "FC00", "f32": "FF800000"}
"""Minus infinity."""

NZ = ', #ascend.layout<"nz">'


@dataclass
class Attention:
    """softmax(scale Q K^T + mask) V of `batch` x `heads` matrices.

    Attributes:
        shared: heads that have K and V in common.
        rows, keys, depth, columns: sizes.
        scores: element type of scores, and of softmax.
        result: element type of O.
        nz: which of Q, K, V and O lie in fractals.
        turned: whether K is stored with keys as columns.
        scale: factor of the scores; `by` says how it is spelled.
        mask: "", "key" for a number for each key, "row" for the same of all batches, "whole" for
            one for each score, "head" for others of each head; "causal" hides keys behind the row,
            "window" those far before it as well, "blocks" those of other blocks, which each batch
            has of its own; several are joined by "+".
        known: whether masks are constants, else arguments.
        flags: whether the mask is booleans, by which scores are selected; true ones keep them.
        hidden: part of the keys that a mask hides.
        empty: whether it hides all keys of the last batch.
        low: what is added to hide a key.
        guarded: whether weights that are no number are zeros.
        spread: of Q; large ones make large scores.
        rounded: whether scores of f32 may be rounded to f16.
    """

    batch: int = 1
    heads: int = 2
    rows: int = 64
    keys: int = 64
    depth: int = 64
    columns: int = 0
    shared: int = 1
    scores: str = "f32"
    result: str = "f16"
    nz: str = ""
    turned: bool = False
    scale: float = 0.125
    by: str = "mul"
    mask: str = ""
    flags: bool = False
    known: bool = False
    hidden: float = 0.3
    low: float = -1e4
    empty: bool = False
    guarded: bool = False
    spread: float = 1.0
    rounded: bool = False
    seed: int = 0
    lines: list[str] = field(default_factory=list)
    arguments: list[tuple[str, Array]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.columns = self.columns or self.depth
        self.rng = np.random.default_rng(self.seed)
        self.lead = (self.batch, self.heads)
        self.shape = (*self.lead, self.rows, self.keys)
        self._write()

    # Text.

    @staticmethod
    def kind(shape: tuple[int, ...], element: str, nz: bool = False) -> str:
        return f"tensor<{''.join(f'{n}x' for n in shape)}{element}{NZ if nz else ''}>"

    def op(
        self, name: str, operands: list[tuple[str, str]], kind: str, attributes: str = ""
    ) -> tuple[str, str]:
        names, types = ", ".join(v for v, _ in operands), ", ".join(t for _, t in operands)
        result = f"%v{len(self.lines)}"
        given = f" {{{attributes}}}" if attributes else ""
        self.lines.append(f'{result} = "ascend.{name}"({names}){given} : ({types}) -> {kind}')
        return result, kind

    def argument(self, data: Array, element: str) -> tuple[str, str]:
        name = f"%arg{len(self.arguments)}"
        kind = self.kind(data.shape, element)
        self.arguments.append((f"{name}: {kind}", data.astype(DTYPES[element])))
        return name, kind

    def _factor(self, name: str, rows: int, columns: int) -> tuple[str, str]:
        """Q, K or V as matrices of one batch dimension; what heads share is repeated."""
        shared = 1 if name == "q" else self.shared
        lead = (self.batch, self.heads // shared)
        shape = (rows, columns)
        data = self.rng.standard_normal((*lead, *shape)) * (self.spread if name == "q" else 1)
        data = data.astype(np.float16)
        self.values[name] = np.repeat(data.astype(np.float64), shared, 1)
        if name == "k" and self.turned:
            data, shape = np.ascontiguousarray(data.swapaxes(-1, -2)), shape[::-1]
        value, nz = self.argument(data, "f16"), name in self.nz
        if nz:
            value = self.op("relayout", [value], self.kind((*lead, *shape), "f16", nz))
        if shared > 1:
            wide = self.kind((*lead, shared, *shape), "f16", nz)
            value = self.op("broadcast", [value], wide, "dims = array<i64: 0, 1, 3, 4>")
        flat = self.kind((self.batch * self.heads, *shape), "f16", nz)
        return self.op("reshape", [value], flat)

    def _write(self) -> None:
        self.values: dict[str, Array] = {}
        q = self._factor("q", self.rows, self.depth)
        k = self._factor("k", self.keys, self.depth)
        v = self._factor("v", self.keys, self.columns)
        count, kind = self.batch * self.heads, self.kind(self.shape, self.scores)
        flags = "" if self.turned else "transpose_b"
        flat = self.kind((count, self.rows, self.keys), self.scores)
        x = self.op("reshape", [self.op("batch_matmul", [q, k], flat, flags)], kind)
        number = 1 / self.scale if self.by == "div" else self.scale
        if number != 1:
            full = self.op("full", [], kind, f"value = {number:.9e} : {self.scores}")
            x = self.op(self.by, [x, full], kind)
        for mask in filter(None, self.mask.split("+")):
            x = self._masked(mask, x, kind)
        p = self._softmax(x, kind)
        if self.guarded:
            p = self._guarded(p, kind)
        if self.scores == "f32":
            p = self.op("cast", [p], self.kind(self.shape, "f16"))
        p = self.op("reshape", [p], self.kind((count, self.rows, self.keys), "f16"))
        made = (count, self.rows, self.columns)
        nz = "o" in self.nz
        o = self.op("batch_matmul", [p, v], self.kind(made, "f32", nz))
        if self.result == "f16":
            o = self.op("cast", [o], self.kind(made, "f16", nz))
        if nz:
            o = self.op("relayout", [o], self.kind(made, self.result))
        self.output = o

    def _masked(self, mask: str, x: tuple[str, str], kind: str) -> tuple[str, str]:
        shape = {
            "row": (1, 1, 1, self.keys),
            "key": (self.batch, 1, 1, self.keys),
            "whole": (self.batch, 1, self.rows, self.keys),
            "head": (1, self.heads, self.rows, self.keys),
            "causal": (1, 1, self.rows, self.keys),
            "window": (1, 1, self.rows, self.keys),
            "blocks": (self.batch, 1, self.rows, self.keys),
        }[mask]
        hidden = self.rng.random(shape) < self.hidden
        if mask == "causal":
            behind = np.arange(self.keys) > np.arange(self.rows)[:, None] + self.keys - self.rows
            hidden = np.broadcast_to(behind, shape).copy()
        if mask == "window":
            place = np.arange(self.keys) - np.arange(self.rows)[:, None] * self.keys // self.rows
            hidden = np.broadcast_to(abs(place) > self.keys // 5, shape).copy()
        if mask == "blocks":
            ends = np.sort(self.rng.random((self.batch, 1, 1, 3)))
            of_row, of_key = (
                (ends * n < np.arange(n)[:, None]).sum(-1) for n in (self.rows, self.keys)
            )
            hidden = of_row[..., :, None] != of_key[..., None, :]
        if mask not in ("window", "blocks"):
            hidden[..., 0] = False
        hidden[-1] |= self.empty
        wide = "dims = array<i64: 0, 1, 2, 3>"
        if self.flags:
            name, boolean = self._given(~hidden, "i1")
            self.values["mask"] = np.where(hidden, -np.inf, 0.0)
            kept = self.op("broadcast", [(name, boolean)], self.kind(self.shape, "i1"), wide)
            low = self.op("full", [], kind, f"value = 0x{LOW[self.scores]} : {self.scores}")
            return self.op("select", [kept, x, low], kind)
        data = np.where(hidden, self.low, 0.0 if self.known else self.rng.standard_normal(shape))
        rounded = data.astype(DTYPES[self.scores]).astype(np.float64)
        self.values["mask"] = self.values.get("mask", 0.0) + rounded
        given = self._given(data, self.scores)
        return self.op("add", [x, self.op("broadcast", [given], kind, wide)], kind)

    def _given(self, mask: Array, element: str) -> tuple[str, str]:
        """A mask, as a constant or an argument."""
        kind = self.kind(mask.shape, element)
        if self.known:
            if element == "i1":
                text = str(mask.tolist()).lower()
            else:
                text = f'"0x{mask.astype(DTYPES[element]).tobytes().hex().upper()}"'
            return self.op("constant", [], kind, f"value = dense<{text}> : {kind}")
        name = f"%arg{len(self.arguments)}"
        dtype = np.bool_ if element == "i1" else DTYPES[element]
        self.arguments.append((f"{name}: {kind}", mask.astype(dtype)))
        return name, kind

    def _softmax(self, x: tuple[str, str], kind: str) -> tuple[str, str]:
        row = self.kind(self.shape[:-1], self.scores)

        def spread(statistic: tuple[str, str]) -> tuple[str, str]:
            return self.op("broadcast", [statistic], kind, "dims = array<i64: 0, 1, 2>")

        def reduced(value: tuple[str, str], how: str) -> tuple[str, str]:
            attributes = f'dims = array<i64: {len(self.shape) - 1}>, kind = "{how}"'
            return self.op("reduce", [value], row, attributes)

        less = self.op("sub", [x, spread(reduced(x, "max"))], kind)
        e = self.op("exp", [less], kind)
        return self.op("div", [e, spread(reduced(e, "add"))], kind)

    def _guarded(self, p: tuple[str, str], kind: str) -> tuple[str, str]:
        flags = self.op("compare", [p, p], self.kind(self.shape, "i1"), 'predicate = "NE"')
        zero = self.op("full", [], kind, f"value = 0.0 : {self.scores}")
        return self.op("select", [flags, zero, p], kind)

    def text(self) -> str:
        given = ", ".join(text for text, _ in self.arguments)
        body, (name, kind) = "\n".join(self.lines), self.output
        return f"func.func @main({given}) -> {kind} {{\n{body}\nreturn {name} : {kind}\n}}"

    # Numbers.

    def wanted(self) -> Array:
        q, k, v = (self.values[name] for name in "qkv")
        scores = q @ k.swapaxes(-1, -2) * self.scale + self.values.get("mask", 0.0)
        highest = scores.max(-1, keepdims=True)
        if self.guarded:
            highest = np.maximum(highest, np.finfo(np.float64).min)
        p = np.exp(scores - highest)
        sums = p.sum(-1, keepdims=True)
        found = p @ v / (np.maximum(sums, 0.5) if self.guarded else sums)
        return found.reshape(-1, self.rows, self.columns)

    @property
    def tolerance(self) -> float:
        """Weights and O are rounded to f16, and so is what scores miss that are f16 or `rounded`:
        as many of their last places as they are large."""
        largest = float(np.abs(self.values["v"]).max())
        scores = np.abs(self.values["q"] @ self.values["k"].swapaxes(-1, -2)).max() * self.scale
        rounded = self.rounded or self.scores == "f16"
        missed = 2.0**-11 * (2 + (2 * scores if rounded else 0))
        return largest * (missed + 2.0**-11)

    def check(self, launches: int | None = 1, **options: Any) -> Any:
        """Runs it and compares; the executable.

        Args:
            launches: how many there must be; None of any number.
        """
        executable = compile_text(self.text(), **options)
        (found,) = executable.run(*(data for _, data in self.arguments)).values()
        np.testing.assert_allclose(found, self.wanted(), rtol=0, atol=self.tolerance)
        if launches is not None:
            assert len(executable.launches) == launches, [x.name for x in executable.launches]
        return executable
