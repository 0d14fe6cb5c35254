"""Compiles a PyTorch module and a program from `torch.export`; prints where the cycles went."""

import torch
from torch import nn

import davinci


class Block(nn.Module):
    """Attention of one head over a residual stream, and two results by name."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 32**0.5, dim=-1)
        return {"y": x + self.out(weights @ v), "weights": weights}


torch.manual_seed(0)
model, x = Block(), torch.randn(1, 16, 32)
executable = davinci.compile(model, example_inputs=(x,), machine="ascend310")
outputs = executable.run(x)  # NumPy arrays by the names in what forward returns

program = torch.export.export(model.eval(), (x,))
again = davinci.compile(program, machine="ascend310").run(x)

expected = {name: tensor.detach().numpy() for name, tensor in model(x).items()}
errors = [
    abs(found[name] - expected[name]).max() for found in (outputs, again) for name in expected
]
print(f"largest error {max(errors):.2g}")

for kernel in executable.profile["kernels"]:
    print(f"{kernel['name']:35} {kernel['unit']:7} {kernel['cycles']:6} cycles")
