"""Modules and exported programs of PyTorch, against PyTorch itself."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import CompileError, InputError
from davinci.frontends import pytorch

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
nn = torch.nn

X = torch.linspace(-2, 2, 48).reshape(4, 12)


class Net(nn.Module):
    """Parameters, buffers, dropout, a number, and results of all kinds."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.norm, self.drop = nn.Linear(12, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)
        self.register_buffer("shift", torch.full((8,), 0.5))

    def forward(self, x: Any, scale: float = 2.0, mask: Any = None) -> dict[str, Any]:
        y = self.drop(torch.relu(self.norm(self.linear(x)))) * scale + self.shift
        y = y if mask is None else y * mask["keep"]
        return {"y": y, "more": (y.sum(-1), None, 3, y.argmax(-1), y), "same": x}


class Steps(nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def close(found: np.ndarray, wanted: Any) -> None:
    """Products are of fp16 values: a few times 2^-11 of the largest."""
    wanted = wanted.detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4 * 2.0**-11 * np.abs(wanted).max())


def test_module() -> None:
    net = Net()
    exe = davinci.compile(net, example_inputs=(X, 3.0))
    assert all(part.training for part in net.modules())
    assert exe.profile["model"] == "Net"
    assert exe.input_names == ["x"]
    assert exe.output_names == ["y", "more.0", "more.3", "more.4", "same"]
    wanted = net.eval()(X, 3.0)
    found = exe.run(X)
    close(found["y"], wanted["y"])
    close(found["more.0"], wanted["more"][0])
    np.testing.assert_array_equal(found["more.3"], wanted["more"][3].numpy())
    assert found["more.4"].tobytes() == found["y"].tobytes()
    np.testing.assert_array_equal(found["same"], X.numpy())


def test_keyword_arguments_and_trees() -> None:
    net, mask = Net(), {"keep": torch.arange(8.0)}
    exe = davinci.compile(net, example_inputs={"x": X, "mask": mask})
    assert len(exe.inputs) == 2
    close(exe.run(X, mask["keep"])["y"], net.eval()(X, mask=mask)["y"])


@pytest.mark.parametrize("given", [(X,), [X], X, {"x": X}], ids=["tuple", "list", "one", "names"])
def test_ways_to_give_examples(given: Any) -> None:
    exe = davinci.compile(Steps(lambda x: x + 1), example_inputs=given)
    np.testing.assert_array_equal(exe.run(X)["out0"], X.numpy() + 1)


def test_exported_program_in_half_precision() -> None:
    model = nn.Linear(12, 5).half()
    exe = davinci.compile(torch.export.export(model, (X.half(),)))
    assert [str(spec) for spec in exe.inputs + exe.outputs] == ["float16[4, 12]", "float16[4, 5]"]
    close(exe.run(X.half())["out0"], model(X.half()))


def test_integers() -> None:
    model = nn.Embedding(7, 3)
    ids = torch.tensor([[1, 6, 0]])
    exe = davinci.compile(model, example_inputs=ids)
    np.testing.assert_array_equal(exe.run(ids)["out0"], model(ids).detach().numpy())


def test_an_input_and_an_output_of_one_name() -> None:
    exe = davinci.compile(Steps(lambda x: {"x": x * 2, "mul": x + 1}), example_inputs=X)
    assert (exe.input_names, exe.output_names) == (["x"], ["x_", "mul"])
    np.testing.assert_array_equal(exe.run(X)["mul"], X.numpy() + 1)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(12))

    def forward(self, x: Any) -> Any:
        self.count.add_(1)
        return x + self.count


def dynamic() -> Any:
    sizes = ({0: torch.export.Dim("n")},)
    return torch.export.export(nn.Linear(12, 3), (X,), dynamic_shapes=sizes)


def in_training() -> Any:
    return torch.export.export(nn.Sequential(nn.Dropout(0.5)), (X,))


@pytest.mark.parametrize(
    ("model", "example", "kind", "message"),
    [
        (
            lambda: Net(),
            None,
            InputError,
            "Net: a PyTorch module needs example inputs; expected dav",
        ),
        (dynamic, None, InputError, "input 'input': dynamic shapes; found [s"),
        (in_training, None, InputError, "dropout of a model in training; call model.eval()"),
        (
            lambda: Steps(lambda x: x if x.sum() > 0 else -x),
            X,
            CompileError,
            "PyTorch cannot export the model; found GuardOnDataDependentSymNode: ",
        ),
        (
            lambda: Steps(lambda x: torch.linalg.svd(x)[0]),
            X,
            CompileError,
            "PyTorch cannot export the model; found DispatchError: No ONNX function found for ",
        ),
    ],
)
def test_what_cannot_be_compiled(model: Any, example: Any, kind: type, message: str) -> None:
    with pytest.raises(kind) as error:
        davinci.compile(model(), example_inputs=example)
    assert message in str(error.value)


class Cache:
    """Keys and values in a class that PyTorch knows nothing of."""

    def __init__(self, keys: Any) -> None:
        self.keys = keys


def test_a_cache_in_a_class_of_its_own() -> None:
    """The message says what to write."""
    with pytest.raises(CompileError) as error:
        davinci.compile(Steps(lambda x: (x, Cache(x))), example_inputs=X)
    text = str(error.value)
    assert "Cache'> in output, which is not a known type; return tensors" in text
    assert "use_cache=False" in text
    assert "functorch" not in text


def test_weights_beyond_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    from davinci.frontends import pytorch

    monkeypatch.setattr(pytorch, "LARGEST_MODEL_BYTES", 8 * 12 * 4)
    with pytest.raises(InputError, match="do not fit into an ONNX model; found 416 bytes"):
        davinci.compile(nn.Linear(12, 8), example_inputs=X)


def test_a_tensor_that_needs_gradients_can_be_an_input() -> None:
    exe = davinci.compile(Steps(lambda x: x * 2), example_inputs=X)
    found = exe.run(X.clone().requires_grad_())["out0"]
    np.testing.assert_array_equal(found, 2 * X.numpy())


def test_bfloat16_tensors_are_taken_and_made() -> None:
    from davinci.torch_backend import to_tensor

    text = """func.func @main(%x: tensor<4x12xbf16>) -> tensor<4x12xbf16> {
      %0 = stablehlo.negate %x : tensor<4x12xbf16>
      return %0 : tensor<4x12xbf16>
    }"""
    x = X.to(torch.bfloat16)
    found = davinci.compile(text).run(x)["out0"]
    assert torch.equal(to_tensor(found), -x)


def test_what_the_exporter_cannot_fold_is_not_printed(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger(pytorch.FOLDING)
    with pytorch.quiet():
        log.warning("Evaluation failed: cannot reshape array")
    assert not caplog.records
    log.warning("heard")
    assert [record.message for record in caplog.records] == ["heard"]
    from onnxscript.optimizer import _constant_folding

    assert _constant_folding.logger.name == pytorch.FOLDING
