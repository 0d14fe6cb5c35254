"""What npu-run takes from its command line."""

from __future__ import annotations

import argparse

from davinci.tools.command import Parser

EPILOG = """\
MODEL is an .onnx file, an .mlir file at any level, a .davinci file that --save wrote, a kernel of
Triton as FILE.py:NAME, or zoo:NAME[,key=value...] with NAME one of mlp, bert, bert-tiny,
bert-base, resnet18, resnet50, resnext50, resnext101, vgg16, mobilenet-v1, mobilenet-v2,
mobilenet-v3, shufflenet-v2, squeezenet, googlenet, inception-v3, inception-v4, nasnet-mobile,
nasnet-large, pnasnet-mobile, pnasnet-large, randwire, densenet, efficientnet, xception, convnext,
vit, swin, unet, deeplab-v3, yolo, gpt2, gpt2-decode, llama, mixtral, mmoe, lstm, gru; e.g.
npu-run zoo:bert,layers=2,hidden=768,heads=12 --check

exit codes: 0 good, 1 check failed, 2 bad usage or input, 3 cannot compile, 4 device fault
"""


def make_parser() -> Parser:
    parser = Parser(
        prog="npu-run",
        usage="npu-run MODEL [options] | npu-run --compare A.json B.json",
        description="Compiles a model and runs it on the simulated NPU.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", help="what to run, see below")
    add(
        "--machine",
        metavar="NAME|FILE.toml",
        help="ascend910 (default), ascend310, ascend310p, ascend910b, ascend950 (kernels written "
        "by hand only), or a file",
    )
    add("--cores", type=int, metavar="N", help="default: all of the machine")
    add("--precision", metavar="P", help="mixed (default), fp16, scaled-fp16 or fp32")
    add(
        "--range",
        metavar="NAME=LOW:HIGH|F.npz",
        action="append",
        help="of an input, for scaled-fp16, or samples to measure; default: of this run's inputs",
    )
    add("--batch", type=int, metavar="N", help="samples at once, of a model of one sample")
    add(
        "--quantize",
        metavar="F.npz|random",
        help="to int8, calibrated with stacked inputs by name, or random ones",
    )
    add("--quantize-method", metavar="M", help="of ranges: max_min (default), outliers or kl")
    add("--quantize-layers", metavar="L", help="paying (default): those that save time; or all")
    add("--accuracy", type=float, metavar="C", help="least cosine --quantize may leave of outputs")
    add("--save-quantized", metavar="F.onnx", help="write the model that --quantize made")
    add("--fusion", metavar="F", help="all (default), or none: a kernel an operator")
    add("--core-choice", metavar="C", help="of each kernel: cost (default), or all cores")
    add(
        "--plan",
        metavar="P",
        help="which kernels share a launch: time (default), memory, balanced, sequential, groups=N",
    )
    add(
        "--launches",
        metavar="L",
        help="joined: launches that follow each other are phases of one, between which its cores "
        "meet, where that takes less time; many: none is; auto (default): the faster of the two",
    )
    add(
        "--memory-limit",
        metavar="BYTES",
        help="most bytes of the values that kernels hand to each other, as 4000000, 4MB, 4MiB or "
        "60%% of what they take: launches are reordered, split and repeated until they fit",
    )
    add(
        "--weights",
        metavar="W",
        help="resident (default) in global memory, or streamed: the host brings those that one "
        "launch reads while kernels run, and --memory-limit holds for them too",
    )
    add(
        "--kernel",
        metavar="F.mlir",
        action="append",
        help="a kernel that computes the operators of the model that are called like it",
    )
    add(
        "--compiler",
        choices=("vendor", "ours"),
        default="vendor",
        help="of a kernel of Triton: the vendor's compilers, or our passes from its adapter's text",
    )
    add("--grid", metavar="N[,N[,N]]", help="of a kernel of Triton: numbers of programs")
    add(
        "--args",
        metavar="NAME=VALUE",
        nargs="+",
        help="of a kernel of Triton: x=f32[4096], n=4096, BLOCK=1024; arrays that --inputs has not "
        "are random",
    )
    add(
        "--state",
        metavar="IN=OUT",
        action="append",
        help="an input and the output that is its next value, kept from step to step; caches are "
        "found by their names",
    )
    add(
        "--steps",
        type=int,
        metavar="N",
        help="run N steps with state; of inputs with one more dimension in front, of N, a step "
        "takes one value",
    )
    add("--winograd", metavar="W", help="3x3 convolutions by tiles: cost (default), none, 2x2, 4x4")
    add(
        "--rewrites",
        metavar="R",
        help="all (default), none, or names of rewrites, as the table of a run has them",
    )
    add("--no-rewrite", metavar="NAME", action="append", help="leave this rewrite out")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--inputs", metavar="F.npz", help="inputs by name")
    source.add_argument("--seed", type=int, default=0, metavar="N", help="random inputs (default)")
    add("--outputs", metavar="F.npz", help="write the outputs")
    add("--save", metavar="F.davinci", help="write what was compiled, to run it again as MODEL")
    schedules = parser.add_mutually_exclusive_group()
    schedules.add_argument(
        "--schedules", metavar="F.json", help="compute kernels as this file says"
    )
    schedules.add_argument(
        "--tune", action="store_true", help="simulate kernels in several ways, take the best"
    )
    add("--trials", type=int, metavar="N", help="ways of a kernel that --tune tries; default: 24")
    add(
        "--tune-worth",
        type=float,
        metavar="PERCENT",
        help="of the cycles, below which --tune leaves off; default 0.5, 0: try everything",
    )
    add("--workers", type=int, metavar="N", help="processes of --tune; default: one")
    add("--scheduler", metavar="ADDRESS", help="of a Dask scheduler whose workers --tune uses")
    add("--save-schedules", metavar="F.json", help="write how kernels are computed, for the former")
    add(
        "--devices",
        metavar="DEVICES",
        help="run layers on several devices, by names or a .toml file",
    )
    add(
        "--place",
        metavar="A",
        default="hope:lp",
        help="how --devices share layers: hope:lp (default), hope:gs, heft, dmdar, serial, single "
        "or best",
    )
    cache = parser.add_mutually_exclusive_group()
    cache.add_argument(
        "--cache",
        metavar="DIR",
        help="keep what was compiled and tuned there, and take it from there; default for what was "
        "compiled: $DAVINCI_CACHE, or where the platform keeps caches",
    )
    cache.add_argument("--no-cache", action="store_true", help="compile anew, and keep nothing")
    add("--processes", type=int, metavar="N", help="that compute data; default: one a processor")
    add("--timing-only", action="store_true", help="leave out data, checks and outputs")
    add(
        "--launch",
        metavar="HOW",
        choices=["queued", "host"],
        default="queued",
        help="for times: all kernels queued on the device (default), or each by the host",
    )
    add(
        "--what-if",
        metavar="CHANGES",
        help="what a faster machine would gain: mte2.port=2x,flag_cycles=0,v=2x,kernel=NAME:v=2x; "
        "all: a ranking",
    )
    add("--nodes", action="store_true", help="print what each node takes inside a fused kernel")
    add(
        "--advise",
        action="store_true",
        help="measure what other arguments would gain, one by one and together",
    )
    add("--advise-seconds", type=float, metavar="S", help="begin nothing more after; default: 120")
    add(
        "--instruction-limit",
        metavar="N",
        type=int,
        help="most instructions of a block; default: 20 million",
    )
    compared = parser.add_mutually_exclusive_group()
    compared.add_argument(
        "--check", action="store_true", help="compare with onnxruntime or StableHLO's interpreter"
    )
    compared.add_argument("--expect", metavar="F.npz", help="compare with these outputs, by name")
    add(
        "--check-launches",
        action="store_true",
        help="prove, before anything runs, that the cores of each launch come through its meetings "
        "and do not race",
    )
    add("--json", metavar="F", help="write the record of the run")
    add("--trace", metavar="F", help="write a timeline for Perfetto or chrome://tracing")
    add("--report", metavar="F.html", help="write tables, plots and timelines as a page")
    add("--baseline", metavar="A.json", help="an earlier record that --report compares with")
    add(
        "--timeline",
        default="first",
        metavar="WHICH",
        choices=["first", "all"],
        help="draw block 0 of each kernel's first launch (default), or all launches and blocks",
    )
    add("--csv", metavar="DIR", help="write CSV files named as the vendor's profiler names them")
    add("--compare", nargs=2, metavar=("A.json", "B.json"), help="compare two runs, without MODEL")
    parser.add_help_and_version()
    return parser
