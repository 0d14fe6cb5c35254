"""Runs a model with other arguments than those that were asked for: its time, its errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from davinci import arrays, job
from davinci.advice.candidates import RunFacts, Settings
from davinci.advice.search import Errors
from davinci.arrays import Arrays
from davinci.errors import InputError
from davinci.passes.pipeline.rewrites import REWRITES
from davinci.quantization.layers import layers_of
from davinci.reference import check

CHANGING_MODEL = ("quantize", "batch")
"""Arguments that make another model."""


class Bench:
    """Compiles and simulates one model in several ways.

    Args:
        source: the model as it was asked for, not compiled yet.
        inputs: arrays by name; None to make them from `seed`.
        launching: how kernels are launched.
        options: of `davinci.compile` that no candidate changes, as where a cache is.
        wanted: outputs of a reference for the inputs; None to compute those of onnxruntime where
            it runs the model.
        data: whether outputs are computed and compared.
    """

    def __init__(
        self,
        source: job.Source,
        *,
        inputs: Arrays | None,
        seed: int,
        launching: str,
        options: Settings,
        data: bool,
        progress: Callable[[str], None],
    ) -> None:
        if source.saved:
            raise InputError(
                "a saved executable is compiled already",
                where=source.name,
                found="--advise",
                hint="advise on the model",
            )
        self.source, self.given, self.seed, self.launching = source, inputs, seed, launching
        self.options, self.data, self.progress = options, data, progress
        self._sources: dict[tuple[Any, ...], job.Source] = {(None, None, ""): source}

    def facts(self, record: dict[str, Any], settings: Settings) -> RunFacts:
        """What decides the candidates of a run.

        Args:
            record: of the run as it was asked for.
            settings: its arguments.
        """
        proto = self.source.proto()
        quantized = self.source.floats is not None
        return RunFacts(
            cores=record["cores"],
            settings=settings,
            operators=frozenset(row["op"] for row in record["kernels"]),
            rewrites=tuple(record["rewrites"]),
            more_rewrites=tuple(name for name, found in REWRITES.items() if not found.default),
            quantizable=proto is not None and not quantized and bool(layers_of(proto.graph)),
            batchable=proto is not None and not quantized and self.given is None,
        )

    def time(self, settings: Settings) -> float:
        """The time of a run with some arguments, in us."""
        return float(self._run(settings, timing_only=True).record["time_us"])

    def errors(self, settings: Settings) -> Errors | None:
        """Errors of the outputs of a run of one sample with some arguments against a reference of
        floats; None without data or a reference.

        Raises:
            CheckFailed: outputs that are no numbers.
        """
        if not self.data or self._wanted is None:
            return None
        alone = {name: value for name, value in settings.items() if name != "batch"}
        outputs = self._run(alone, timing_only=False).outputs
        found = check.compare(outputs, self._wanted)
        return {name: found[name] for name in ("max_rel_err", "cosine")}

    def errors_of(self, outputs: Arrays) -> Errors | None:
        """Errors of the outputs of the run as it was asked for."""
        if not self.data or self._wanted is None:
            return None
        found = check.compare(outputs, self._wanted)
        return {name: found[name] for name in ("max_rel_err", "cosine")}

    @cached_property
    def _inputs(self) -> Arrays:
        """Of one sample."""
        if self.given is not None:
            return self.given
        if self.source.example is not None:
            return self.source.example(self.seed)
        proto = self.source.proto()
        assert proto is not None, "only of ONNX models are outputs known to compare with"
        return arrays.random_inputs(job.input_specs(proto), self.seed)

    @cached_property
    def _wanted(self) -> Arrays | None:
        """Outputs of the model of floats, by onnxruntime; None where it does not run the model."""
        proto = self.source.floats or self.source.proto()
        try:
            return None if proto is None else check.reference_onnx(proto, self._inputs)
        except InputError:
            return None

    def _run(self, settings: Settings, timing_only: bool) -> job.JobResult:
        left = {k: v for k, v in settings.items() if k not in (*CHANGING_MODEL, "tune")}
        options: dict[str, Any] = {**self.options, **left}
        source = self._source(settings.get("batch"), settings.get("quantize"), options)
        options |= {"timing_only": True} if timing_only else {}
        return job.run(
            source,
            inputs=self.given,
            seed=self.seed,
            reference=None,
            timeline="none",
            progress=self.progress,
            tuning={} if settings.get("tune") else None,
            launching=self.launching,
            **options,
        )

    def _source(
        self, batch: int | None, quantize: str | None, options: Mapping[str, Any]
    ) -> job.Source:
        """The model with a batch, or quantized; without the model of floats, which would be run
        each time. Which layers become integers depends on the options of its compilation."""
        key = batch, quantize, repr(sorted(options.items())) if quantize is not None else ""
        if key not in self._sources:
            made = self.source if batch is None else job.batched(self.source, batch)
            if quantize is not None:
                made = job.quantized(made, quantize, self.progress, options=options)
                made = replace(made, floats=None)
            self._sources[key] = made
        return self._sources[key]
