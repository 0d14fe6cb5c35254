"""Runs a PyTorch model on the simulated NPU by `torch.compile`, and compares with PyTorch."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10)).eval()
x = torch.randn(16, 64)

compiled = torch.compile(model, backend="davinci", options={"machine": "ascend310"})
with torch.no_grad():
    y = compiled(x)
    expected = model(x)
print(f"largest error {(y - expected).abs().max().item():.2g}")
