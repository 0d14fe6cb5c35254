"""How many of PyTorch's own operator samples come out right, exported to ONNX.

    pip install torch onnxscript expecttest
    python benchmarks/coverage/op_db_coverage.py --models build/op_db --save build/op_db_bad
    python benchmarks/coverage/op_db_coverage.py --only 'scatter|conv'

Takes the first float32 samples of each entry of torch's `op_db`, the tensors in them being inputs
and all else constant, exports each by `torch.onnx.export`, and compares with onnxruntime. An export
takes seconds, so models are kept in `--models` and used again. What is not right is kept in
`--save`.

An optional tool, not part of CI. `op_db` is that of torch 2.13.
"""

from __future__ import annotations

import argparse
import io
import itertools
import logging
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from outcomes import Case, Outcome, measure, summary, write_json
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as trees

MOST_ELEMENTS = 1 << 14
"""Of all inputs of a sample; larger ones say nothing else and take long."""

FLOATS = (torch.float16, torch.float32, torch.float64)
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)

RANDOM = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform")
) | {"RandomUniformLike"}
"""ONNX operators whose results no reference knows."""


class Applied(torch.nn.Module):
    """An operator on the tensors of a sample, its other arguments being constant."""

    def __init__(self, operator: Any, sample: Any) -> None:
        super().__init__()
        arguments = (sample.input, *sample.args), sample.kwargs
        self.operator = operator
        self.leaves, self.shape = trees.tree_flatten(arguments)
        self.places = [i for i, v in enumerate(self.leaves) if isinstance(v, torch.Tensor)]
        self.tensors = tuple(self.leaves[i].detach().clone() for i in self.places)

    def forward(self, *tensors: torch.Tensor) -> Any:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        arguments, named = trees.tree_unflatten(leaves, self.shape)
        found = trees.tree_leaves(self.operator(*arguments, **named))
        return tuple(value for value in found if isinstance(value, torch.Tensor))


def export(applied: Applied, names: list[str], tracing: bool) -> onnx.ModelProto:
    """The model of a sample, by the exporter from programs or by the older one from traces."""
    settings: dict[str, Any] = {"input_names": names, "verbose": False}
    if tracing:
        file = io.BytesIO()
        torch.onnx.export(applied, applied.tensors, file, dynamo=False, **settings)
        return onnx.load_model_from_string(file.getvalue())
    return torch.onnx.export(applied, applied.tensors, dynamo=True, **settings).model_proto


def make(name: str, operator: Any, sample: Any, folder: Path | None, tracing: bool) -> Any:
    """The case of a sample, from `folder` if it is there; an outcome "skipped" if there is none."""
    applied = Applied(operator, sample)
    if sum(tensor.numel() for tensor in applied.tensors) > MOST_ELEMENTS:
        return Outcome("skipped", "a large sample", name=name)
    if any(t.layout != torch.strided or t.dtype not in FLOATS + INTEGERS for t in applied.tensors):
        return Outcome("skipped", "sparse, or of a type that NumPy has not", name=name)
    names = [f"x{i}" for i in range(len(applied.tensors))]
    arrays = {
        n: np.array(t.resolve_conj().numpy()) for n, t in zip(names, applied.tensors, strict=True)
    }
    stem = re.sub(r"[^\w.-]", "_", name)
    kept, reason = (folder / f"{stem}.{kind}" if folder else None for kind in ("onnx", "txt"))
    if kept and kept.is_file():
        model = onnx.load(kept)
    elif reason and reason.is_file():
        return Outcome("skipped", reason.read_text(), name=name)
    else:
        try:
            model = export(applied, names, tracing)
        except Exception as error:  # torch's exporters raise anything
            text = f"not exported: {type(error).__name__}"
            if reason:
                reason.write_text(text)
            return Outcome("skipped", text, name=name)
        if kept:
            onnx.save(model, kept)
    if RANDOM.intersection(node.op_type for node in model.graph.node):
        return Outcome("skipped", "random", name=name)
    known = {value.name for value in model.graph.input}
    return Case(name, model, {key: array for key, array in arrays.items() if key in known})


def cases(
    chosen: re.Pattern[str], samples: int, folder: Path | None, tracing: bool
) -> Iterator[Case | Outcome]:
    torch.set_num_threads(1)
    logging.disable(logging.ERROR)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    for entry in op_db:
        title = ".".join(filter(None, (entry.name, entry.variant_test_name)))
        if torch.float32 not in entry.dtypes or not chosen.search(title):
            continue
        torch.manual_seed(0)
        inputs = entry.sample_inputs("cpu", torch.float32, requires_grad=False)
        for number, sample in enumerate(itertools.islice(inputs, samples)):
            yield make(f"{title}_{number}", entry.op, sample, folder, tracing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="operators to try")
    parser.add_argument("--samples", type=int, default=2, metavar="N", help="of each (2)")
    parser.add_argument("--tracing", action="store_true", help="export by traces, as dynamo=False")
    parser.add_argument("--models", type=Path, metavar="DIR", help="keep exported models")
    parser.add_argument("--save", type=Path, metavar="DIR", help="keep what is not right")
    parser.add_argument("--json", metavar="F", help="write all outcomes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = re.compile(options.only)
    found = cases(chosen, options.samples, options.models, options.tracing)
    outcomes = measure(found, options.save)
    print(summary(outcomes))
    if options.json:
        write_json(options.json, outcomes)


if __name__ == "__main__":
    main()
