"""`torch.compile(model, backend="davinci")`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import davinci
from davinci import InputError
from davinci import machine as machines

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
nn = torch.nn

from davinci.torch_backend import CompiledGraph, backend  # noqa: E402

X = torch.linspace(-2, 2, 48).reshape(4, 12)


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def compiled(model: Any, **options: Any) -> tuple[Any, list[CompiledGraph]]:
    """The model under `torch.compile`, and the graphs that the backend is given."""
    graphs: list[CompiledGraph] = []

    def noted(graph: Any, example_inputs: Any) -> Any:
        graphs.append(backend(graph, example_inputs, options))
        return graphs[-1]

    return torch.compile(model, backend=noted), graphs


def close(found: Any, wanted: Any) -> None:
    torch.testing.assert_close(found, wanted, rtol=0, atol=4 * 2.0**-11 * float(wanted.abs().max()))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.norm = nn.Linear(12, 8), nn.BatchNorm1d(8)

    def forward(self, x: Any) -> dict[str, Any]:
        y = torch.relu(self.norm(self.linear(x)))
        return {"y": y, "parts": (y.argmax(-1), None, x.shape[0], x)}


def test_a_machine_file_that_is_edited_is_compiled_for_again(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    text = (machines.DIRECTORY / "ascend310.toml").read_text()
    model, graphs = compiled(Net().eval(), machine=str(own))
    clocks = []
    for clock in (680, 680, 700):
        own.write_text(text.replace("clock_mhz = 680", f"clock_mhz = {clock}"))
        with torch.no_grad():
            model(X)
        clocks.append([c.executable.machine.clock_mhz for c in graphs[0].compiled.values()])
    assert clocks == [[680], [680], [680, 700]]


def test_by_name_with_options() -> None:
    model = torch.compile(Net().eval(), backend="davinci", options={"machine": "ascend310"})
    with torch.no_grad():
        found, wanted = model(X), Net().eval()(X)
    assert isinstance(found["y"], torch.Tensor)
    close(found["y"], wanted["y"])
    assert torch.equal(found["parts"][0], wanted["parts"][0])
    assert found["parts"][1:3] == (None, 4)
    assert torch.equal(found["parts"][3], X)


def test_weights_are_constants_and_may_change() -> None:
    net = Net().eval()
    model, graphs = compiled(net)
    with torch.no_grad():
        close(model(X)["y"], net(X)["y"])
        (first,) = graphs[0].compiled.values()
        assert len(first.executable.inputs) == 1
        model(X + 1)
        assert list(graphs[0].compiled.values()) == [first]
        net.linear.weight.data.mul_(-1)  # without a change of its version
        close(model(X)["y"], net(X)["y"])
    assert list(graphs[0].compiled.values()) != [first]


def test_other_shapes() -> None:
    model, graphs = compiled(lambda x: x * x.shape[0])
    for rows in (4, 5, 6, 5):
        x = torch.randn(rows, 12)
        assert torch.equal(model(x), x * rows)
    assert [len(graph.compiled) for graph in graphs] == [1, 2]  # the second one for any shape


def test_gradients_are_an_error() -> None:
    model, _ = compiled(Net().eval())
    loss = model(X)["y"].sum()
    with pytest.raises(InputError, match="there are no gradients; models are compiled for infer"):
        loss.backward()


def test_functions_and_views() -> None:
    model, _ = compiled(lambda x, y: (x @ y.T, x[:, ::2]))
    product, part = model(X, X + 1)
    close(product, X @ (X + 1).T)
    assert torch.equal(part, X[:, ::2])


def prints(x: Any) -> Any:
    y = x * 2
    print("in between")
    return y + 1


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            prints,
            "PyTorch breaks the model into several graphs, and what is between them would run",
        ),
        (nn.Dropout(0.5), "dropout of a model in training; call model.eval()"),
        (nn.BatchNorm1d(12), "the model changes a tensor in place"),
        (lambda x: x.add_(1), "the model changes a tensor in place"),
    ],
)
def test_what_cannot_be_compiled(model: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        torch.compile(model, backend="davinci")(X.clone())
    assert message in str(error.value)


def test_unknown_option() -> None:
    with pytest.raises(InputError, match="unknown option; found 'machin'; did you mean 'machine'"):
        torch.compile(lambda x: x + 1, backend="davinci", options={"machin": "ascend310"})(X)


def test_profile() -> None:
    model = torch.compile(Net().eval(), backend="davinci")
    with torch.no_grad(), davinci.profile() as found:
        model(X)
        model(X)
    assert len(found.runs) == 2
    assert found.record["ops"]["total"] == 2 * len(found.runs[0].launches)
