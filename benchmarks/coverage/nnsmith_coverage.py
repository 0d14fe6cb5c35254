"""How many random networks come out right: models that NNSmith makes, compared with onnxruntime.

    pip install nnsmith torch onnxscript "z3-solver<4.14"
    python benchmarks/coverage/nnsmith_coverage.py --count 1000 --seed 20261121 --save build/nnsmith

Each model has up to `--nodes` operators of PyTorch and is exported to ONNX, with weights and inputs
that NNSmith looks for so that no value is NaN or infinite. Seeds are the numbers from `--seed`; the
default is a fresh one, printed. What is not right is kept in `--save`, one model a file. --opset is
the version of ONNX's operators that models are exported with, --method how NNSmith finds shapes.

An optional tool, not part of CI. The generators are those of NNSmith 0.1 and torch 2.13; z3 5 gives
NNSmith shapes that it refuses.
"""

from __future__ import annotations

import argparse
import functools
import logging
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from outcomes import Case, Outcome, measure, summary, write_json

MOST_ELEMENTS = 4096
"""Of a tensor; more makes models slower, not other."""

OPSET = 14
"""That NNSmith exports with."""

TIMEOUT_MS = 10000
"""For NNSmith to solve the constraints of one model."""


METHODS = ("symbolic", "symbolic-cinit", "concolic")
"""Of NNSmith: all constraints solved at once, or along with concrete shapes."""


def generator(opset: int) -> tuple[Any, Any]:
    """NNSmith's kind of model, exported with that version of ONNX's operators, and what
    torch exports."""
    export = torch.onnx.export

    @functools.wraps(export)
    def traced(*arguments: Any, **options: Any) -> Any:
        # SymbolNet is a module that only the exporter by tracing takes.
        return export(*arguments, **{**options, "dynamo": False, "opset_version": opset})

    torch.onnx.export = traced
    torch.set_num_threads(1)
    from nnsmith.abstract.extension import activate_ext
    from nnsmith.materialize import Model
    from nnsmith.narrow_spec import auto_opset

    logging.disable(logging.WARNING)
    kind = Model.init("onnx", backend_target="cpu")
    kind.add_seed_setter()
    operators = auto_opset(kind, None, vulops=False)
    activate_ext(opset=operators, factory=None)
    return kind, operators


def cases(
    count: int, seed: int, nodes: int, opset: int = OPSET, method: str = METHODS[0]
) -> Iterator[Case | Outcome]:
    """One model a seed; an outcome "skipped" where NNSmith or torch makes none."""
    from nnsmith.graph_gen import model_gen

    kind, operators = generator(opset)
    for number in range(seed, seed + count):
        name = f"nnsmith_{number}"
        try:
            graph = model_gen(
                opset=operators,
                method=method,
                seed=number,
                max_nodes=nodes,
                max_elem_per_tensor=MOST_ELEMENTS,
                timeout_ms=TIMEOUT_MS,
            )
            model = kind.from_gir(graph.make_concrete())
            model.refine_weights()
            inputs = model.make_oracle().input
        except Exception as error:  # of any kind: its solver, its search, torch's exporter
            first = str(error).strip().partition("\n")[0]
            yield Outcome("skipped", f"not generated: {type(error).__name__}: {first}", name=name)
            continue
        known = {value.name for value in model.native_model.graph.input}
        kept = {key: array for key, array in inputs.items() if key in known}
        yield Case(name, model.native_model, kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="models (1000)")
    parser.add_argument("--seed", type=int, metavar="N", help="of the first model")
    parser.add_argument("--nodes", type=int, default=8, metavar="N", help="operators of each (8)")
    parser.add_argument("--opset", type=int, default=OPSET, metavar="N", help="of ONNX (14)")
    parser.add_argument("--method", choices=METHODS, default=METHODS[0], help="default: symbolic")
    parser.add_argument("--save", type=Path, metavar="DIR", help="keep what is not right")
    parser.add_argument("--json", metavar="F", help="write all outcomes")
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    print(f"seeds from {seed}", flush=True)
    warnings.simplefilter("ignore")
    outcomes = measure(
        cases(options.count, seed, options.nodes, options.opset, options.method), options.save
    )
    print(summary(outcomes))
    if options.json:
        write_json(options.json, outcomes)


if __name__ == "__main__":
    main()
