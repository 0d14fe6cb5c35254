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
import itertools
import logging
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from outcomes import Case, Outcome, isolated, measure, summary, write_json
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


def export(applied: Applied, names: list[str], tracing: bool, path: Path) -> Outcome:
    """Writes the model of a sample, by the exporter from programs or the older one from traces."""
    settings: dict[str, Any] = {"input_names": names, "verbose": False}
    try:
        if tracing:
            torch.onnx.export(applied, applied.tensors, str(path), dynamo=False, **settings)
        else:
            program = torch.onnx.export(applied, applied.tensors, dynamo=True, **settings)
            onnx.save(program.model_proto, path)
    except Exception as error:  # torch's exporters raise anything
        return Outcome("skipped", f"not exported: {type(error).__name__}")
    return Outcome("correct")


def make(name: str, operator: Any, sample: Any, folder: Path, tracing: bool) -> Case | Outcome:
    """The case of a sample, from `folder` if it is there; an outcome "skipped" if there is none."""
    applied = Applied(operator, sample)
    if sum(tensor.numel() for tensor in applied.tensors) > MOST_ELEMENTS:
        return Outcome("skipped", "a large sample", name=name)
    if any(t.layout != torch.strided or t.dtype not in FLOATS + INTEGERS for t in applied.tensors):
        return Outcome("skipped", "sparse, or of a type that NumPy has not", name=name)
    names = [f"x{i}" for i in range(len(applied.tensors))]
    stem = re.sub(r"[^\w.-]", "_", name)
    path, reason = folder / f"{stem}.onnx", folder / f"{stem}.txt"
    if not path.is_file() and not reason.is_file():
        # Some samples end the process that exports them.
        made = isolated(lambda: export(applied, names, tracing, path))
        if made.kind != "correct":
            reason.write_text(made.detail if made.kind == "skipped" else f"export: {made.kind}")
            path.unlink(missing_ok=True)
    if reason.is_file():
        return Outcome("skipped", reason.read_text(), name=name)
    model = onnx.load(path)
    if RANDOM.intersection(node.op_type for node in model.graph.node):
        return Outcome("skipped", "random", name=name)
    known = {value.name for value in model.graph.input}
    pairs = zip(names, applied.tensors, strict=True)
    return Case(
        name, model, {n: np.array(t.resolve_conj().numpy()) for n, t in pairs if n in known}
    )


def cases(
    chosen: re.Pattern[str], samples: int, folder: Path, tracing: bool
) -> Iterator[Case | Outcome]:
    torch.set_num_threads(1)
    logging.disable(logging.ERROR)
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
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="operators to try")
    parser.add_argument("--samples", type=int, default=2, metavar="N", help="of each (2)")
    parser.add_argument("--tracing", action="store_true", help="export by traces, as dynamo=False")
    parser.add_argument("--models", type=Path, metavar="DIR", help="keep exported models")
    parser.add_argument("--save", type=Path, metavar="DIR", help="keep what is not right")
    parser.add_argument("--json", metavar="F", help="write all outcomes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = re.compile(options.only)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.models or Path(temporary)
        found = cases(chosen, options.samples, folder, options.tracing)
        outcomes = measure(found, options.save)
    print(summary(outcomes))
    if options.json:
        write_json(options.json, outcomes)


if __name__ == "__main__":
    main()
