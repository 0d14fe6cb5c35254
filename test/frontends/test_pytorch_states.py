"""PyTorch modules that change something from one call to the next: it is a state, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci.errors import InputError
from pairs import in_turn

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

KEPT = torch.zeros(3)
X = np.array([1, 2, 3], dtype=np.float32)


class Holder(torch.nn.Module):
    """Tensors in all places that a module may have them, and numbers."""

    def __init__(self, forward: Any) -> None:
        super().__init__()
        self.register_buffer("Sum", torch.zeros(3))
        self.weight = torch.nn.Parameter(torch.zeros(3), requires_grad=False)
        self.plain = torch.zeros(3)
        self.inside = [torch.zeros(1), torch.zeros(3)]
        self.calls, self.last = 0, None
        self.seen: list[Any] = []
        self.body = forward

    def forward(self, sum: Any) -> Any:
        return self.body(self, sum)


def added(tensor: Any, x: Any) -> Any:
    return tensor.add_(x) * 2


def batched(self: Any, x: Any) -> Any:
    """Normalisation in training, whose schema does not say that it writes running statistics."""
    rows = torch.stack([x, x + 1, x + 5])
    batch_norm = torch.nn.functional.batch_norm
    normal = batch_norm(rows, self.plain, self.weight, training=True, momentum=0.5)
    return normal[0] + self.plain * self.weight


CHANGES = {
    "buffer": lambda self, x: added(self.Sum, x),
    "parameter": lambda self, x: added(self.weight, x),
    "attribute": lambda self, x: added(self.plain, x),
    "entry": lambda self, x: added(self.inside[1], x),
    "global": lambda self, x: added(KEPT, x),
    "view": lambda self, x: (self.plain[1:].add_(x[1:]), self.plain * 2)[1],
    "copied": lambda self, x: self.plain.copy_(self.plain + x) * 2,
    "out": lambda self, x: torch.add(self.plain, x, out=self.plain) * 2,
    "statistics": batched,
}


@pytest.mark.parametrize(("name", "strict"), in_turn(CHANGES, [None, False, True]))
def test_what_is_changed_in_place_is_a_state(name: str, strict: bool | None) -> None:
    """None: as a module, which is exported by the compiler."""
    KEPT.zero_()
    own = Holder(CHANGES[name])
    with torch.no_grad():
        wanted = [own(torch.from_numpy(X)).numpy().copy() for _ in range(3)]
    KEPT.zero_()
    model, example = Holder(CHANGES[name]), (torch.from_numpy(X),)
    if strict is None:
        executable = davinci.compile(model, example_inputs=example, precision="fp32")
    else:
        program = torch.export.export(model, example, strict=strict)
        executable = davinci.compile(program, precision="fp32")
    assert executable.states
    for array in wanted:
        (found,) = executable.step({executable.input_names[0]: X}).values()
        np.testing.assert_allclose(found, array, rtol=1e-4)


@pytest.mark.parametrize(
    ("layer", "track"),
    [("BatchNorm1d", False), ("BatchNorm1d", True), ("InstanceNorm1d", False)],
)
def test_normalisation_in_training(layer: str, track: bool) -> None:
    """Without running statistics a normalisation is by those of the batch in evaluation, too."""
    x = torch.arange(24.0).reshape(2, 3, 4) ** 2
    model = getattr(torch.nn, layer)(3, track_running_stats=track)
    program = torch.export.export(model.train(track), (x,))
    executable = davinci.compile(program, precision="fp32")
    assert len(executable.states) == (3 if track else 0)
    with torch.no_grad():
        for _ in range(2):
            wanted = model(x).numpy()
            given = {executable.input_names[0]: x.numpy()}
            (found,) = (executable.step(given) if track else executable.run(given)).values()
            np.testing.assert_allclose(found, wanted, atol=1e-4)
    for name, array in executable.state.items() if track else ():
        np.testing.assert_allclose(array, model.get_buffer(name).numpy(), rtol=1e-4)


def test_an_instance_normalisation_in_training_is_refused() -> None:
    model = torch.nn.InstanceNorm1d(3, track_running_stats=True).train()
    program = torch.export.export(model, (torch.zeros(2, 3, 4),))
    with pytest.raises(InputError, match=r"instance normalisation in training.*model.eval"):
        davinci.compile(program)


def count(self: Any, x: Any) -> Any:
    self.calls += 1
    return x * self.calls


def replace(self: Any, x: Any) -> Any:
    self.plain = self.plain + x
    return self.plain * 2


def replace_entry(self: Any, x: Any) -> Any:
    self.inside[1] = self.inside[1] + x
    return self.inside[1] * 2


def first_only(self: Any, x: Any) -> Any:
    if self.last is None:
        self.last = x * 2
    return self.last + x


def append(self: Any, x: Any) -> Any:
    self.seen.append(x)
    return sum(self.seen)


@pytest.mark.parametrize(
    ("forward", "path"),
    [
        (count, "self.calls"),
        (replace, "self.plain"),
        (replace_entry, "self.inside[1]"),
        (first_only, "self.last"),
        (append, "self.seen[0]"),
    ],
)
def test_what_is_assigned_and_read_again_is_refused(forward: Any, path: str) -> None:
    model = Holder(forward)
    with pytest.raises(InputError) as error:
        davinci.compile(model, example_inputs=(torch.from_numpy(X),))
    assert f"Holder: {path}: the model keeps a value in an attribute" in str(error.value)
    assert "register_buffer" in str(error.value)
    assert (model.calls, model.last, model.seen, len(model.inside)) == (0, None, [], 2)


def test_what_is_assigned_and_not_read_again_is_no_state() -> None:
    def forward(self: Any, x: Any) -> Any:
        self.calls, self.last = len(x), x * 2
        return self.last + self.calls

    executable = davinci.compile(Holder(forward), example_inputs=(torch.from_numpy(X),))
    assert not executable.states
    np.testing.assert_array_equal(executable.run({"sum": X})["out0"], 2 * X + 3)


def test_two_views_of_changed_memory_are_refused() -> None:
    model = Holder(lambda self, x: added(self.inside[0], x[:1]) + self.inside[1])
    whole = torch.zeros(4)
    model.inside = [whole[:1], whole[1:]]
    program = torch.export.export(model, (torch.from_numpy(X),))
    with pytest.raises(InputError, match="shares its memory with another one"):
        davinci.compile(program)
