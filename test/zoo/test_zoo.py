"""The networks of the zoo: they run, they are the same each time, and bad parameters are named."""

from __future__ import annotations

import math

import numpy as np
import onnxruntime
import pytest

import davinci
from davinci import zoo
from davinci.errors import InputError


def run(model: zoo.ZooModel) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.proto.SerializeToString())
    return session.run(None, model.inputs(seed=1))


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        ("mlp,batch=3,features=5,hidden=7,layers=2,classes=2", [(3, 2)]),
        ("bert-tiny", [(1, 32, 128), (1, 128)]),
        ("resnet18,resolution=32,width=8,classes=5,batch=2", [(2, 5)]),
        ("resnet50,resolution=32,width=8,classes=5", [(1, 5)]),
        ("resnext50,resolution=32,classes=5", [(1, 5)]),
        ("vgg16,resolution=32,width=8,hidden=16,classes=5", [(1, 5)]),
        ("mobilenet-v1,resolution=32,percent=25,classes=5", [(1, 5)]),
        ("mobilenet-v2,resolution=32,percent=25,classes=5", [(1, 5)]),
        ("shufflenet-v2,resolution=64,classes=5,batch=2", [(2, 5)]),
        ("squeezenet,resolution=64,classes=5", [(1, 5)]),
        ("googlenet,resolution=64,classes=5", [(1, 5)]),
        ("inception-v3,resolution=79,classes=5", [(1, 5)]),
        ("inception-v4,resolution=79,classes=5", [(1, 5)]),
        ("nasnet-mobile,resolution=63,filters=8,stem=8,cells=1,classes=5", [(1, 5)]),
        ("nasnet-large,resolution=66,filters=8,stem=8,cells=2,classes=5,batch=2", [(2, 5)]),
        ("pnasnet-mobile,resolution=64,filters=6,stem=8,cells=2,classes=5", [(1, 5)]),
        ("pnasnet-large,resolution=67,filters=8,stem=8,cells=1,classes=5", [(1, 5)]),
        ("randwire,resolution=32,channels=16,nodes=9,classes=5", [(1, 5)]),
        ("randwire,resolution=32,channels=8,nodes=18,regular=1,classes=5", [(1, 5)]),
        ("densenet,resolution=32,growth=8,classes=5", [(1, 5)]),
        ("efficientnet,resolution=32,classes=5", [(1, 5)]),
        ("mobilenet-v3,resolution=32,percent=25,classes=5,batch=2", [(2, 5)]),
        ("xception,resolution=32,middle=1,classes=5", [(1, 5)]),
        ("convnext,resolution=32,width=8,classes=5", [(1, 5)]),
        ("vit,resolution=32,depth=1,hidden=24,heads=3,classes=5,batch=2", [(2, 5)]),
        ("swin,resolution=64,window=2,width=32,classes=5,batch=2", [(2, 5)]),
        ("unet,resolution=32,width=4,batch=2", [(2, 2, 32, 32)]),
        ("deeplab-v3,resolution=65,depth=18,width=4,head=8,classes=3", [(1, 3, 65, 65)]),
        ("yolo,resolution=64,width=4,classes=3,batch=2", [(2, 252, 8)]),
        (
            "gpt2,layers=1,hidden=24,heads=3,seq=5,vocab=11",
            [(1, 5, 11), (1, 3, 5, 8), (1, 3, 5, 8)],
        ),
        (
            "gpt2-decode,layers=1,hidden=24,heads=3,past=4,vocab=11",
            [(1, 1, 11), (1, 3, 5, 8), (1, 3, 5, 8)],
        ),
        (
            "llama,hidden=24,heads=3,kv_heads=1,intermediate=13,seq=2,past=3",
            [(1, 2, 24), (1, 1, 5, 8), (1, 1, 5, 8)],
        ),
        (
            "llama,hidden=24,heads=3,kv_heads=1,intermediate=13,seq=2,past=3,kept=1",
            [(1, 2, 24), (1, 1, 5, 8), (1, 1, 5, 8)],
        ),
        (
            "mixtral,hidden=24,heads=3,kv_heads=3,intermediate=13,seq=2,experts=3",
            [(1, 2, 24), (1, 3, 2, 8), (1, 3, 2, 8)],
        ),
        ("mmoe,batch=3,features=5,experts=2,made=4,hidden=6", [(3, 2)]),
        ("lstm,steps=3,batch=2,features=5,hidden=6", [(3, 2, 6)]),
        ("lstm,steps=3,batch=2,features=5,hidden=6,layers=2,unrolled=1", [(3, 2, 6)]),
        ("lstm,steps=1,features=5,hidden=6,unrolled=1", [(1, 1, 6)]),
        ("gru,steps=3,batch=2,features=5,hidden=6,layers=2,directions=2", [(3, 2, 12)]),
        ("bert,layers=1,hidden=24,heads=3,seq=5,vocab=11,batch=2", [(2, 5, 24), (2, 24)]),
    ],
)
def test_runs_under_onnxruntime(spec: str, shapes: list[tuple[int, ...]]) -> None:
    outputs = run(zoo.build(spec))
    assert sorted(o.shape for o in outputs) == sorted(shapes)
    assert all(np.isfinite(o).all() and o.std() > 0.01 for o in outputs)


@pytest.mark.parametrize(
    ("spec", "million_macs", "million_parameters"),
    [
        # Table 2 and 3 of "Learning Transferable Architectures for Scalable Image Recognition".
        ("nasnet-mobile", 564, 5.3),
        ("nasnet-large", 23_800, 88.9),
        # Tables 5 and 6 of "Progressive Neural Architecture Search".
        ("pnasnet-mobile", 588, 5.1),
        ("pnasnet-large", 25_000, 86.1),
        # Tables 2 and 3 of "Exploring Randomly Wired Neural Networks"; graphs are random.
        ("randwire", 583, 5.6),
        ("randwire,channels=109,regular=1", 4_000, 31.9),
    ],
)
def test_work_and_parameters_are_those_published(
    spec: str, million_macs: float, million_parameters: float
) -> None:
    graph = zoo.find(spec).sketch.graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    made = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in graph.value_info}
    macs = parameters = 0
    for node in graph.node:
        if node.op_type in ("Conv", "Gemm"):
            weights = math.prod(shapes[node.input[1]])
            parameters += weights
            macs += weights * math.prod(made.get(node.output[0], [])[2:])
    slack = 0.04 if spec.startswith("randwire") else 0.01
    assert macs / 1e6 == pytest.approx(million_macs, rel=slack)
    assert parameters / 1e6 == pytest.approx(million_parameters, rel=max(slack, 0.02))


def test_same_weights_each_time() -> None:
    first, second = zoo.build("bert-tiny"), zoo.build("bert-tiny")
    assert first.proto.SerializeToString() == second.proto.SerializeToString()


def test_seed_changes_weights() -> None:
    assert not np.array_equal(run(zoo.build("mlp"))[0], run(zoo.build("mlp,seed=1"))[0])


def test_bert_counts_operators_of_the_usual_export() -> None:
    operators = [node.op_type for node in zoo.build("bert-tiny").proto.graph.node]
    # Per layer: four projections, two feed-forward matmuls and two products of attention.
    assert operators.count("MatMul") == 2 * 8
    assert operators.count("Erf") == operators.count("Softmax") == 2
    assert operators.count("Gather") == 3 + 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("brt", "did you mean 'bert'"),
        ("bert,hiden=3", "did you mean 'hidden'"),
        ("bert,hidden=x", "bad value of parameter 'hidden'"),
        ("bert,hidden", "bad value of parameter 'hidden'"),
        ("bert,hidden=13", "multiple of heads"),
        ("bert-tiny,layers=0", "at least 1"),
        ("mlp,batch=0", "at least 1"),
    ],
)
def test_bad_specification(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        zoo.build(spec)


@pytest.mark.parametrize(
    "spec", ["bert,layers=1,hidden=256,heads=4,seq=16,vocab=500", "squeezenet,resolution=32"]
)
def test_times_do_not_depend_on_the_values_of_weights(spec: str) -> None:
    """Networks whose large weights are left out have the cycles of those with all."""
    model = zoo.find(spec)
    sketched = davinci.compile(model, machine="ascend310", timing_only=True)
    whole = davinci.compile(model.proto, machine="ascend310", timing_only=True)
    weights = [t for t in model.sketch.graph.initializer if math.prod(t.dims) >= 1 << 16]
    assert weights and all(not tensor.raw_data for tensor in weights)
    for executable in (sketched, whole):
        executable.run(model.inputs())
    assert sketched.profile["total_cycles"] == whole.profile["total_cycles"]
    assert sketched.profile["kernels"] == whole.profile["kernels"]
