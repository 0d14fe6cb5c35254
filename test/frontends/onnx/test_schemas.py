"""Every attribute and optional input of every ONNX operator is honoured, or refused by name.

ONNX's schemas say what a node may have. For each such parameter there is a witness: a model that
sets it, from ONNX's own node tests or from `MORE`. Without the parameter another network must come
out, or the model is refused by name, or `UNCHANGED` says why nothing changes. That the numbers are
right with it is shown for the node tests by benchmarks/coverage/onnx_coverage.py, and by the tests
of each family here.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

from davinci import frontends
from davinci.errors import DavinciError
from davinci.frontends.onnx.operators import LOWERINGS
from onnx_support import node_model

Parameter = tuple[str, str]
"""Operator, and name of an attribute or input."""

OLDEST = 7
"""The first operator set whose attributes are walked."""

X = np.linspace(-2, 3, 24, dtype=np.float32)
CUBE = X.reshape(2, 3, 4)
IMAGE = np.linspace(-2, 3, 72, dtype=np.float32).reshape(1, 2, 6, 6)
BYTES = np.arange(72, dtype=np.uint8).reshape(1, 2, 6, 6)
KERNEL = np.ones((2, 2, 3, 3), np.float32)
QUANTIZED = (BYTES, np.float32(0.1), np.uint8(3), KERNEL.astype(np.uint8), np.float32(0.2))
QUANTIZED += (np.uint8(1), np.float32(0.5), np.uint8(7))
AXES = np.array([1])
HALVES, ONES = np.float16(CUBE[:, :2]), np.ones((2, 2), np.float16)
SPARSE = helper.make_sparse_tensor(
    numpy_helper.from_array(X[:1]), numpy_helper.from_array(np.array([2])), [4]
)


def recurrent(gates: int, states: int) -> list[Any]:
    """[length 3, batch 2, 4] with hidden size 5, all optional inputs given but peepholes."""
    shapes = [(3, 2, 4), (1, gates * 5, 4), (1, gates * 5, 5), (1, 2 * gates * 5)]
    values = [np.full(shape, 0.1, np.float32) for shape in shapes]
    state = np.full((1, 2, 5), 0.2, np.float32)
    return [*values, np.array([3, 2], np.int32), *[state] * states]


ACTIVATION = {"activation_alpha": [0.3], "activation_beta": [0.4], "clip": 0.7, "hidden_size": 5}

MORE: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("BatchNormalization", [CUBE, *[np.ones((3, 4), np.float32)] * 4], {"spatial": 0, "opset": 7}),
    (
        "BatchNormalization",
        [CUBE, *[np.ones(3, np.float32)] * 4],
        {"momentum": 0.5, "opset": 9, "outputs": 5},
    ),
    ("Clip", [X], {"min": -1.0, "max": 1.0, "opset": 6}),
    ("Conv", [IMAGE, KERNEL[:, :1], X[:2]], {"group": 2, "dilations": [2, 1]}),
    ("ConvTranspose", [IMAGE, KERNEL, X[:2]], {}),
    (
        "ConvInteger",
        [BYTES, KERNEL[:, :1].astype(np.uint8)],
        {"group": 2, "strides": [2, 1], "dilations": [1, 2]},
    ),
    ("ConvInteger", [BYTES, KERNEL.astype(np.uint8)], {"auto_pad": "SAME_UPPER"}),
    (
        "QLinearConv",
        [*QUANTIZED[:3], KERNEL[:, :1].astype(np.uint8), *QUANTIZED[4:], np.array([1, 2], "i4")],
        {"group": 2, "strides": [2, 1], "dilations": [1, 2], "pads": [1, 1, 1, 1]},
    ),
    ("QLinearConv", list(QUANTIZED), {"auto_pad": "SAME_UPPER"}),
    ("DFT", [CUBE.reshape(2, 12, 1), np.array(5)], {"known": [1]}),
    ("STFT", [CUBE.reshape(2, 12, 1), np.array(2), None, np.array(4)], {"onesided": 0}),
    ("GlobalLpPool", [IMAGE], {"p": 1}),
    (
        "LpPool",
        [IMAGE],
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "opset": 18},
    ),
    ("LabelEncoder", [AXES], {"keys_int64s": [1], "values_floats": [2.0], "default_float": 3.0}),
    ("LabelEncoder", [X[:2]], {"keys_floats": [1.0], "values_int64s": [2], "default_int64": 3}),
    ("MeanVarianceNormalization", [IMAGE], {"axes": [1, 2]}),
    ("QuantizeLinear", [X.astype(np.float16), np.float16(0.1)], {"precision": 1, "opset": 23}),
    ("DequantizeLinear", [BYTES, np.float32(0.1)], {"output_dtype": 10, "opset": 23}),
    ("Scaler", [CUBE[0]], {"offset": [1.0], "scale": [2.0]}),
    ("Swish", [X], {"alpha": 0.5, "opset": 24}),
    ("SwiGLU", [X, X], {"alpha": 0.5, "opset": 28}),
    ("Upsample", [IMAGE, np.ones(4, "f4") * 2], {"mode": "linear", "opset": 9, "known": [1]}),
    ("MaxRoiPool", [IMAGE, np.ones((1, 5), "f4")], {"pooled_shape": [2, 2], "spatial_scale": 0.5}),
    ("RNN", recurrent(1, 1), {"activations": ["HardSigmoid"], **ACTIVATION}),
    (
        "GRU",
        recurrent(3, 1),
        {"activations": ["HardSigmoid", "Tanh"], "linear_before_reset": 1, **ACTIVATION},
    ),
    (
        "LSTM",
        recurrent(4, 2),
        {"activations": ["HardSigmoid", "Tanh", "Tanh"], "input_forget": 1, **ACTIVATION},
    ),
    *(
        (f"Reduce{kind}", [CUBE], {"noop_with_empty_axes": 1, "opset": 18})
        for kind in ("Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
    ),
    *(
        (f"Reduce{kind}", [CUBE], {"axes": [1], "opset": 11})
        for kind in ("Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
    ),
    ("LayerNormalization", [HALVES, *ONES[:2]], {"stash_type": 10}),
    ("RMSNormalization", [HALVES, ONES[0]], {"stash_type": 10, "opset": 23}),
    ("GroupNormalization", [HALVES, *ONES[:2]], {"stash_type": 10, "num_groups": 2}),
    (
        "Adam",
        [np.float32(0.1), np.int64(0), *[X] * 4],
        {"norm_coefficient_post": 0.5, "outputs": 3},
    ),
    *(
        (f"{kind}Window", [np.array(8)], {"known": [0], "periodic": 0, "output_datatype": 10})
        for kind in ("Blackman", "Hamming", "Hann")
    ),
    (
        "MelWeightMatrix",
        [np.array(4), np.array(16), np.array(8000), np.float32(0), np.float32(4000)],
        {"known": [0, 1, 2, 3, 4], "output_datatype": 10},
    ),
    ("Range", [*np.float16([0, 9, 2])], {"known": [0, 1, 2], "stash_type": 10, "opset": 27}),
    ("Cast", [X], {"to": 24, "round_mode": "down", "opset": 24}),
    ("CastLike", [X, np.zeros(1, ml_dtypes.float8_e8m0fnu)], {"round_mode": "down", "opset": 24}),
    ("QuantizeLinear", [X, np.float32(0.1)], {"saturate": 0, "output_dtype": 17}),
    ("QuantizeLinear", [CUBE, X[-3:]], {"axis": 1}),
    ("QuantizeLinear", [CUBE, X[-4:]], {"axis": 2}),
    ("DequantizeLinear", [BYTES, X[-6:]], {"axis": 3}),
    ("ConstantOfShape", [AXES], {"known": [0], "value": numpy_helper.from_array(AXES)}),
    *(
        ("Constant", [], {f"value_{kind}": value})
        for kind, value in (("float", 1.5), ("int", 3), ("string", "a"))
    ),
    *(
        ("Constant", [], {f"value_{kind}s": value})
        for kind, value in (("float", [1.5]), ("int", [3]), ("string", ["a"]))
    ),
    ("Constant", [], {"sparse_value": SPARSE}),
    (
        "LabelEncoder",
        [AXES],
        {
            "keys_tensor": numpy_helper.from_array(AXES),
            "values_tensor": numpy_helper.from_array(AXES),
            "default_tensor": numpy_helper.from_array(AXES),
        },
    ),
    ("LabelEncoder", [AXES], {"keys_int64s": [1], "values_strings": ["a"], "default_string": "b"}),
    ("MaxUnpool", [IMAGE, np.zeros((1, 2, 6, 6), "i8")], {"kernel_shape": [3, 3], "pads": [1] * 4}),
    ("Split", [CUBE], {"num_outputs": 3, "axis": 1, "outputs": 2}),
    ("Pad", [CUBE[0]], {"pads": [1, 0, 0, 1], "value": 2.0, "opset": 7}),
    ("Slice", [CUBE[0]], {"starts": [1], "ends": [2], "axes": [1], "opset": 7}),
    ("TopK", [CUBE], {"k": 2, "axis": 1, "opset": 7, "outputs": 2}),
    ("TopK", [CUBE, np.array([2])], {"axis": 1, "outputs": 2}),
    ("Unsqueeze", [CUBE], {"axes": [1], "opset": 7}),
    ("Upsample", [IMAGE], {"scales": [1.0, 1.0, 2.0, 2.0], "opset": 7}),
    (
        "RoiAlign",
        [IMAGE, np.ones((1, 4), "f4"), np.array([0])],
        {"spatial_scale": 0.5, "output_height": 2},
    ),
    ("TensorScatter", [CUBE, CUBE[..., :1], np.array([0, 1])], {"axis": -1, "opset": 24}),
    (
        "DeformConv",
        [IMAGE, KERNEL[:, :1, :2, :2], np.zeros((1, 8, 2, 4), "f4")],
        {"strides": [2, 1], "dilations": [2, 2], "group": 2},
    ),
    ("Multinomial", [CUBE[0]], {"sample_size": 2, "seed": 1.0, "dtype": 7}),
    ("RandomNormal", [], {"shape": [2], "mean": 1.0, "scale": 2.0, "seed": 1.0, "dtype": 10}),
    ("RandomUniform", [], {"shape": [2], "low": 1.0, "high": 2.0, "seed": 1.0, "dtype": 10}),
    ("RandomNormalLike", [X], {"mean": 1.0, "scale": 2.0, "seed": 1.0, "dtype": 10}),
    ("RandomUniformLike", [X], {"low": 1.5, "high": 2.0, "seed": 1.0, "dtype": 10}),
]
"""Operator, operands, and attributes with the options of `node_model`."""

UNCHANGED: dict[Parameter, str] = {
    ("Dropout", "seed"): "nothing is drawn",
    ("Dropout", "ratio"): "nothing is dropped",
    ("Dropout", "training_mode"): "refused where it holds and something would be dropped",
    ("TopK", "sorted"): "sorted results are among those that may come in any order",
    **{
        (operator, "kernel_shape"): "it is the shape of the weights"
        for operator in ("Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv")
    },
    **{(kind, "hidden_size"): "it is a size of the weights" for kind in ("GRU", "LSTM", "RNN")},
}
"""Parameters that are accepted and change nothing, and why."""

ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("If", "Loop", "Scan", "SequenceMap"), "graphs: test_control.py"),
    **dict.fromkeys(
        (
            *("ConcatFromSequence", "Optional", "OptionalHasElement", "SequenceEmpty"),
            *("SequenceErase", "SequenceInsert", "SplitToSequence"),
        ),
        "sequences and optional values, which one node cannot make: test_control.py",
    ),
}
"""Operators whose models are more than one node, and where they are tested."""


def parameters() -> list[Parameter]:
    """What the operators with a lowering may have, in any version from `OLDEST` on."""
    found: set[Parameter] = set()
    for schema in onnx.defs.get_all_schemas_with_history():
        if (schema.domain, schema.name) not in LOWERINGS or schema.deprecated:
            continue
        found |= {(schema.name, name) for name in schema.attributes if still_there(schema)}
        found |= {(schema.name, i.name) for i in schema.inputs if str(i.option).endswith("nal")}
    return sorted(found)


def still_there(schema: Any) -> bool:
    """Whether a definition is as new as `OLDEST`; of other domains, whether it is the newest."""
    try:
        version = OLDEST if not schema.domain else onnx.defs.onnx_opset_version()
        oldest = onnx.defs.get_schema(schema.name, version, schema.domain)
    except onnx.defs.SchemaError:
        return True
    return bool(schema.since_version >= oldest.since_version)


class Witness:
    """A model of one node, and which parameters it has."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model, self.node = model, model.graph.node[0]
        versions = {entry.domain: entry.version for entry in model.opset_import}
        version = versions[self.node.domain]
        self.schema = onnx.defs.get_schema(self.node.op_type, version, self.node.domain)

    def given(self) -> list[str]:
        formal = zip(self.schema.inputs, self.node.input, strict=False)
        inputs = [i.name for i, name in formal if name and str(i.option).endswith("Optional")]
        return [a.name for a in self.node.attribute if not self.is_default(a)] + inputs

    def is_default(self, attribute: AttributeProto) -> bool:
        default = self.schema.attributes[attribute.name].default_value
        values = [helper.get_attribute_value(a) for a in (attribute, default) if a.name]
        return len(values) == 2 and values[0] == values[1]

    def without(self, name: str) -> onnx.ModelProto:
        copy = onnx.ModelProto()
        copy.CopyFrom(self.model)
        node = copy.graph.node[0]
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend(kept)
        for i, formal in enumerate(self.schema.inputs[: len(node.input)]):
            if formal.name == name:
                node.input[i] = ""
        return copy


def witnesses() -> dict[Parameter, list[Witness]]:
    """From `MORE`, and from ONNX's node tests with one data set, smallest first."""
    found: dict[Parameter, list[Witness]] = defaultdict(list)
    models = [node_model_of(*row) for row in MORE]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [case for case in load_model_tests(kind="node") if "_expanded" not in case.name]
    models += [with_constants(case) for case in cases if len(case.model.graph.node) == 1]
    for model in models:
        node = model.graph.node[0]
        if (node.domain, node.op_type) in LOWERINGS:
            witness = Witness(model)
            for name in witness.given():
                found[node.op_type, name].append(witness)
    return found


def node_model_of(op_type: str, operands: list[Any], given: dict[str, Any]) -> onnx.ModelProto:
    domain = min(domain for domain, name in LOWERINGS if name == op_type)
    known = [i for i, x in enumerate(operands) if i and np.asarray(x).dtype == np.int64]
    return node_model(op_type, *operands, domain=domain, **{"known": known} | given)[0]


def with_constants(case: Any) -> onnx.ModelProto:
    """The model of a node test; its inputs of integers that may be parameters are constants."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for number, (value, x) in enumerate(zip(model.graph.input, case.data_sets[0][0], strict=False)):
        if number == 0 or value.type.WhichOneof("value") != "tensor_type":
            continue
        array = numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else np.asarray(x)
        model.graph.initializer.append(numpy_helper.from_array(array, value.name))
    return model


@pytest.fixture(scope="module")
def found() -> dict[Parameter, list[Witness]]:
    return witnesses()


REFUSED = "refused: "


def text_of(model: onnx.ModelProto) -> str:
    """The imported network, or what was refused."""
    try:
        return str(frontends.load(model))
    except DavinciError as error:
        return f"{REFUSED}{error}"


WALKED = [p for p in parameters() if p not in UNCHANGED and p[0] not in ELSEWHERE]

TRIED = 8
"""Witnesses of a parameter that are looked at, until one shows that it is honoured."""


@pytest.mark.parametrize("parameter", WALKED, ids=".".join)
def test_it_is_honoured_or_refused(
    parameter: Parameter, found: dict[Parameter, list[Witness]]
) -> None:
    operator, name = parameter
    assert found[parameter], "no model has it: add one to MORE"
    refused = False
    for witness in found[parameter][:TRIED]:
        with_it = text_of(witness.model)
        refused = refused or f"operator {operator} of node" in with_it
        if not with_it.startswith(REFUSED) and with_it != text_of(witness.without(name)):
            return
    assert refused, "it is accepted and changes nothing"


@pytest.mark.parametrize("parameter", UNCHANGED, ids=".".join)
def test_what_changes_nothing_is_a_parameter(parameter: Parameter) -> None:
    assert parameter in parameters()


@pytest.mark.parametrize(
    ("operator", "operands", "attributes"),
    [
        ("Conv", [IMAGE, KERNEL], {"kernel_shape": [2, 2]}),
        ("ConvInteger", [BYTES, KERNEL.astype(np.uint8)], {"kernel_shape": [2, 2]}),
        ("QLinearConv", [*QUANTIZED], {"kernel_shape": [2, 2]}),
        ("ConvTranspose", [IMAGE, KERNEL], {"kernel_shape": [2, 2]}),
        ("RNN", recurrent(1, 1), {"hidden_size": 4}),
        ("GRU", recurrent(3, 1), {"hidden_size": 4}),
        ("LSTM", recurrent(4, 2), {"hidden_size": 4}),
    ],
)
def test_what_says_a_shape_again_must_agree(
    operator: str, operands: list[Any], attributes: dict[str, Any]
) -> None:
    assert text_of(node_model_of(operator, operands, attributes)).startswith(REFUSED)
