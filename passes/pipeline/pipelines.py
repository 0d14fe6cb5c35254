"""Named pipelines, in the order of lowering; each is pipeline text made from a few options.

`npu-opt --pass-pipeline='builtin.module(npu-pipeline{cores=8})'` and `davinci.compile` use the same
ones. Each leaves what is already below its level alone, so `npu-pipeline` enters at any level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from davinci.passes.pipeline import memory_limits, plans, registry, rewrites
from davinci.passes.pipeline.base import option
from davinci.passes.pipeline.pipeline_text import ROOT, PassNode, format_options
from davinci.tables import Table

SCALED = "scaled-fp16"
"""The policy of f16 values times powers of two, see `ascend-scale-values`."""

PRECISIONS = ("mixed", "fp16", "fp32", SCALED)
STRATEGIES = ("os", "is", "ws")
FRACTALIZE = ("improved", "naive")
FUSION = ("all", "none")
CORE_CHOICES = ("cost", "all")
LAUNCHES = AUTO, JOINED, MANY = ("auto", "joined", "many")
"""Whether kernels that follow each other are phases of one launch, where that takes less time; with
`auto`, their cores are chosen for it only if the whole program then takes less time too."""

WEIGHTS = RESIDENT, STREAMED = ("resident", "streamed")
"""Whether all weights are in global memory all the time, or those that one launch reads are brought
there over the link to the host shortly before."""

WEIGHTS_HELP = "in global memory, or brought by the host before the launch that reads them"

WINOGRAD = ("cost", "none", "2x2", "4x4")

LIMIT_HELP = "most bytes of the arena, as 4MB or 60%; none: no limit"

REWRITES_HELP = "what is rewritten: all, none, names of rewrites, or -names"


@dataclass(frozen=True)
class Options:
    """Options of every named pipeline; one that does not concern a pipeline has no effect there."""

    machine: str = option("ascend910", "machine file: its name or the path of a .toml file")
    cores: int = option(0, "most cores a kernel may use; 0: all cores of the machine")
    precision: str = option("mixed", "the policy of ascend-legalize-precision", PRECISIONS)
    matmul_strategy: str = option("os", "output, input or weight stationary matmul", STRATEGIES)
    m: int = option(0, "rows of A and C a matmul tile holds; 0: chosen")
    n: int = option(0, "columns of B and C a matmul tile holds; 0: chosen")
    k: int = option(0, "columns of A, rows of B a matmul tile holds; 0: chosen")
    fractalize: str = option("improved", "the algorithm of fractalisation", FRACTALIZE)
    fusion: str = option("all", "which operators share a kernel", FUSION)
    schedules: str = option("", "a file of schedules for kernels; the others are chosen")
    winograd: str = option("cost", "3x3 convolutions by transformed tiles", WINOGRAD)
    rewrites: str = option("all", REWRITES_HELP, expected=rewrites.expected)
    core_choice: str = option("cost", "cores of a kernel: by its cost, or all", CORE_CHOICES)
    plan: str = option("time", "which kernels share a launch", expected=plans.expected)
    memory_limit: str = option("", LIMIT_HELP, expected=memory_limits.expected)
    weights: str = option(RESIDENT, WEIGHTS_HELP, WEIGHTS)
    launches: str = option(AUTO, "one launch in phases where that pays, or many", LAUNCHES)
    check_meetings: int = option(0, "1: prove that launches come through their meetings, no races")


STAGES = (
    "stablehlo-to-ascend",
    "ascend-to-memref",
    "ascend-to-cce",
    "cce-to-hivm",
    "hivm-to-llvm",
)
"""The pipelines that `npu-pipeline` consists of."""

Builder = Callable[[Options], list[str]]
PIPELINES: Table[str, Builder] = Table("a pipeline")
pipeline = PIPELINES.register


def text(name: str, options: Options) -> str:
    """The pipeline `name` as text."""
    return f"{ROOT}({','.join(PIPELINES[name](options))})"


def build(node: PassNode) -> str:
    """The pipeline that `node` names, with its options, as text.

    Raises:
        InputError: an unknown option, or a value of the wrong type.
    """
    return text(node.name, Options(**registry.option_values(Options, "pipeline", node)))


def _pass(name: str, options: Options, *keys: str) -> str:
    """Text of a pass with those of the options that differ from their default."""
    return _changed(name, _taken(options, *keys), _taken(Options(), *keys))


def _taken(options: Options, *keys: str) -> dict[str, object]:
    """Some of the options."""
    return {key: getattr(options, key) for key in keys}


def _changed(name: str, given: Mapping[str, object], defaults: Mapping[str, object]) -> str:
    """Text of a pass with those values that differ from its defaults."""
    return name + format_options({key: v for key, v in given.items() if v != defaults[key]})


def _bufferize(options: Options) -> str:
    """Text of `ascend-bufferize`; kernels that all take all cores share no launch."""
    plan = plans.SEQUENTIAL if options.core_choice == "all" else options.plan
    keys = ("machine", "cores", "memory_limit", "weights")
    given = {**_taken(options, *keys), "plan": plan}
    return _changed(
        "ascend-bufferize", given, {**_taken(Options(), *keys), "plan": plans.SEQUENTIAL}
    )


def _hir(options: Options) -> str:
    """Text of `convert-hir-to-hivm`, whose default machine is the only one of such kernels."""
    return "convert-hir-to-hivm" + format_options({"machine": options.machine})


def _launches(options: Options) -> str:
    """Whether kernels will be phases of one launch. Weights come between launches, not between
    phases; one launch after the other was asked for."""
    apart = options.weights == STREAMED or options.plan == plans.SEQUENTIAL
    return MANY if options.launches == AUTO and apart else options.launches


def _splitting(options: Options) -> list[str]:
    """Text of `ascend-split-reductions`, unless it is switched off; more parts pay where they are
    phases of one launch."""
    if not _rewriting("ascend-split-reductions", options):
        return []
    return [_with_launches("ascend-split-reductions", options, "machine", "cores")]


def _with_launches(name: str, options: Options, *keys: str) -> str:
    """Text of a pass that also takes whether kernels will be phases of one launch."""
    given = {**_taken(options, *keys), "launches": _launches(options)}
    return _changed(name, given, {**_taken(Options(), *keys), "launches": MANY})


def scales(options: Options) -> bool:
    """Whether values are scaled."""
    return options.precision == SCALED


def _cut(options: Options) -> list[str]:
    """Text of `ascend-cut-chains`, which does nothing without a limit of memory."""
    if not options.memory_limit:
        return []
    plan = plans.SEQUENTIAL if options.core_choice == "all" else options.plan
    keys = ("machine", "cores", "precision", "fusion", "rewrites", "memory_limit", "weights")
    given = {key: getattr(options, key) for key in keys}
    changed = {key: value for key, value in given.items() if value != getattr(Options(), key)}
    return ["ascend-cut-chains" + format_options({**changed, "plan": plan})]


def _rewriting(name: str, options: Options, *keys: str) -> list[str]:
    """The text of a pass that does nothing but one rewrite, unless that is switched off."""
    (rewrite,) = [key for key, found in rewrites.REWRITES.items() if found.place == name]
    return [_pass(name, options, *keys)] if rewrite in rewrites.chosen(options.rewrites) else []


@pipeline("stablehlo-to-ascend")
def stablehlo_to_ascend(options: Options) -> list[str]:
    """StableHLO to ascend operators on tensors; calls inlined, equal computations merged."""
    return [
        "stablehlo-custom-calls-to-chlo",
        "chlo-keep-operators",
        "func.func(stablehlo-legalize-quant-to-math)",
        "func.func(chlo-legalize-to-stablehlo,stablehlo-legalize-composite-to-call)",
        "inline",
        "stablehlo-expand-operators",
        "func.func(canonicalize,stablehlo-canonicalize-dynamism)",
        *_rewriting("stablehlo-outline-loops", options, "machine", "precision", "fusion"),
        "func.func(stablehlo-unroll-loops)",
        "func.func(stablehlo-select-branches)",
        "symbol-dce",
        _pass("stablehlo-legalize-element-types", options, "precision"),
        "stablehlo-doubles-as-integers",
        "stablehlo-narrow-integers",
        "stablehlo-sign-integers",
        "stablehlo-expand-reduce",
        "func.func(canonicalize,stablehlo-aggressive-simplification,canonicalize)",
        "stablehlo-fuse-locations",
        "cse",
        *_rewriting("stablehlo-fold-pads", options),
        *_rewriting("stablehlo-pixels-to-channels", options, "machine", "cores"),
        "stablehlo-join-updates",
        _pass("stablehlo-widen-half", options, "precision"),
        _pass("convert-stablehlo-to-ascend", options, "machine"),
        "canonicalize",
        "cse",
        "symbol-dce",
    ]


@pipeline("ascend-to-memref")
def ascend_to_memref(options: Options) -> list[str]:
    """Precision and layouts chosen, constants folded, kernels outlined, the arena planned."""
    return [
        _pass("ascend-combine-operators", options, "rewrites"),
        _pass("ascend-simplify-arithmetic", options, "precision", "rewrites"),
        _pass("ascend-simplify-moves", options, "rewrites"),
        _pass("ascend-hoist-slices", options, "machine", "cores", "rewrites"),
        _pass("ascend-outline-loops", options, "machine", "cores"),
        *_rewriting("ascend-sink-rearrangements", options),
        _pass("ascend-scale-weights", options, "precision", "rewrites"),
        _pass("ascend-winograd", options, "machine", "cores", "precision", "winograd"),
        *([_pass("ascend-scale-values", options, "precision")] if scales(options) else []),
        _pass("ascend-legalize-precision", options, "precision", "machine"),
        *_rewriting("ascend-absorb-transposes", options),
        *_rewriting("ascend-merge-products", options, "machine"),
        *_cut(options),
        *to_kernels(options),
        _bufferize(options),
    ]


def to_kernels(options: Options) -> list[str]:
    """The passes of `ascend-to-memref` that choose layouts and make kernels of operators."""
    return [
        _pass("ascend-propagate-layouts", options, "machine"),
        *_rewriting("ascend-fold-constants", options, "machine"),
        *_rewriting("ascend-drop-guards", options),
        "ascend-outline-scalar",
        *(["cse"] if "common-subexpressions" in rewrites.chosen(options.rewrites) else []),
        _pass("ascend-dequantize-sums", options, "machine", "precision"),
        *_splitting(options),
        *_rewriting("ascend-split-moves", options, "machine", "cores"),
        _pass("ascend-fuse", options, "machine", "cores", "fusion", "rewrites"),
        "ascend-legalize-layouts",
    ]


@pipeline("ascend-to-cce")
def ascend_to_cce(options: Options) -> list[str]:
    """Kernels tiled into cce operations, buffers placed, synchronisation inserted."""
    tiles = ("core_choice", "matmul_strategy", "m", "n", "k", "fractalize", "schedules")
    return [
        _with_launches("convert-ascend-to-cce", options, "machine", "cores", *tiles),
        _pass("convert-linalg-to-cce", options, "machine"),
        _pass("split-cores", options, "machine"),
        *([_pass("join-launches", options, "machine")] if _launches(options) != MANY else []),
        "canonicalize",
        "cse",
        _pass("multi-buffer", options, "machine"),
        _pass("load-at-meetings", options, "machine"),
        _pass("load-before-meetings", options, "machine"),
        _pass("plan-memory", options, "machine"),
        _pass("insert-sync", options, "machine"),
        _pass("order-issue", options, "machine"),
        *([_pass("check-meetings", options, "machine")] if options.check_meetings else []),
    ]


@pipeline("cce-to-hivm")
def cce_to_hivm(options: Options) -> list[str]:
    """Operations on arrays, ours and another compiler's, become exact instructions on pointers."""
    return [_hir(options), _pass("convert-cce-to-hivm", options, "machine")]


@pipeline("hivm-to-llvm")
def hivm_to_llvm(options: Options) -> list[str]:
    """Configuration words packed; instructions become calls of intrinsics."""
    return [_pass("convert-hivm-to-llvm", options, "machine")]


@pipeline("npu-pipeline")
def npu_pipeline(options: Options) -> list[str]:
    """All pipelines above, one after the other: from StableHLO to LLVM."""
    return [step for stage in STAGES for step in PIPELINES[stage](options)]
