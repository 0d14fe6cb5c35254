"""Runs kernels of vLLM, which come without data, on the simulated 910B, and compares the results.

    python benchmarks/coverage/vllm_kernels.py triton-ascend/third_party/ascend

Data are made here, and what they should become is computed by PyTorch on the CPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import npu_on_cpu
import torch
from triton_coverage import REFUSED

from davinci.errors import CompileError, DeviceFault

FOLDER = "unittest/kernels/vllm"
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 2e-3}
MOST = 600
"""Characters of a message that are printed."""

OUTCOMES = ("right", "right beside a fault", "wrong", "refused", "vendor", "fault")
"""What becomes of a kernel; a fault that changes nothing of its numbers is one of its own."""


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel, and what it leaves.

    Attributes:
        grid: numbers of programs.
        arguments: of the kernel, by name.
        expected: by the names of arguments, what they hold afterwards.
    """

    grid: tuple[int, ...]
    arguments: dict[str, Any]
    expected: dict[str, torch.Tensor]


def l2norm() -> Launch:
    x = torch.randn(37, 64)
    expected = x * torch.rsqrt((x * x).sum(1, keepdim=True) + 1e-6)
    y = torch.zeros_like(x)
    given = {"X": x, "Y": y, "eps": 1e-6, "M": 37, "N": 64, "MBLOCK": 8, "NUM_CHUNKS": 2}
    return Launch((3,), given, {"Y": expected})


def expand() -> Launch:
    """The kernel loads the element in front of `cu_num_tokens_ptr`, too, which it does not use: a
    fault of its own, beside which its numbers are right."""
    counts = torch.tensor([2, 1, 3, 2, 1], dtype=torch.int32)
    given = torch.tensor([5, 7, -1, 9, 4], dtype=torch.int32)
    replaced = torch.where(given == -1, 0, given)
    output = torch.zeros(int(counts.sum()) + 8, dtype=torch.int32)
    expected = output.clone()
    expected[: counts.sum()] = torch.repeat_interleave(replaced, counts)
    arguments = {
        "output_ptr": output, "input_ptr": given,
        "cu_num_tokens_ptr": cumulated(counts.tolist()),
        "replace_from": -1, "replace_to": 0, "vec_len": 5, "MAX_NUM_TOKENS": 8, "BLOCK_SIZE": 8,
    }  # fmt: skip
    return Launch((1,), arguments, {"output_ptr": expected})


def gating() -> Launch:
    heads, batches = 24, 10
    a, b = torch.randn(batches, heads), torch.randn(batches, heads)
    log, bias = torch.randn(heads), torch.randn(heads)
    x = a + bias
    soft = torch.where(x <= 20, torch.log(1 + torch.exp(x)), x)
    arguments = {
        "g": torch.zeros_like(a), "beta_output": torch.zeros_like(a), "A_log": log, "a": a, "b": b,
        "dt_bias": bias, "seq_len": 1, "NUM_HEADS": heads, "NUM_BATCHES": batches, "beta": 1.0,
        "threshold": 20.0, "BLK_HEADS": 8, "COL_ITER": 3, "BLK_BATCHES": 4, "ROW_ITER": 2,
    }  # fmt: skip
    return Launch((2, 1), arguments, {"g": -torch.exp(log) * soft, "beta_output": b.sigmoid()})


def greedy() -> Launch:
    count = 11
    draft = torch.randint(0, 3, (count,), dtype=torch.int32)
    target = torch.randint(0, 3, (count,), dtype=torch.int32)
    bonus = torch.arange(100, 100 + count, dtype=torch.int32)
    output = torch.full((count, 2), -1, dtype=torch.int32)
    second = torch.where(draft == target, bonus, torch.tensor(-1, dtype=torch.int32))
    arguments = {
        "output_token_ids_ptr": output, "draft_token_ids_ptr": draft, "target_argmax_ptr": target,
        "bonus_token_ids_ptr": bonus, "vec_len": count, "BLOCK_SIZE": 16,
    }  # fmt: skip
    return Launch((1,), arguments, {"output_token_ids_ptr": torch.stack([target, second], 1)})


def cumulated(draws: list[int]) -> torch.Tensor:
    """Running sums, as kernels take the numbers of tokens of requests."""
    return torch.cumsum(torch.tensor(draws), 0).to(torch.int32)


def random_sample() -> Launch:
    drafts, longest, vocabulary = [2, 3, 1], 3, 32
    ends, total = cumulated(drafts).tolist(), sum(drafts)
    ids = torch.randint(0, vocabulary, (total,), dtype=torch.int32)
    draft, target = torch.rand(total, vocabulary), torch.rand(total, vocabulary)
    uniform = torch.rand(total)
    recovered = torch.randint(0, vocabulary, (total,), dtype=torch.int32)
    bonus = torch.tensor([70, 71, 72], dtype=torch.int32)
    output = torch.full((len(drafts), longest + 1), -1, dtype=torch.int32)
    expected = output.clone()
    for row, (end, count) in enumerate(zip(ends, drafts, strict=True)):
        for place in range(count):
            at = end - count + place
            token = int(ids[at])
            if target[at, token] / draft[at, token] < uniform[at]:
                expected[row, place] = recovered[at]
                break
            expected[row, place] = token
        else:
            expected[row, count] = bonus[row]
    arguments = {
        "output_token_ids_ptr": output, "cu_num_draft_tokens_ptr": cumulated(drafts),
        "draft_token_ids_ptr": ids, "draft_probs_ptr": draft, "target_probs_ptr": target,
        "bonus_token_ids_ptr": bonus, "recovered_token_ids_ptr": recovered,
        "uniform_probs_ptr": uniform, "is_greedy_ptr": torch.zeros(3, dtype=torch.int32),
        "max_spec_len": longest, "vocab_size": vocabulary, "NO_DRAFT_PROBS": False,
    }  # fmt: skip
    return Launch((3,), arguments, {"output_token_ids_ptr": expected})


def recovered_tokens() -> Launch:
    drafts, vocabulary = [2, 1], 100
    total = sum(drafts)
    draft, target = torch.rand(total, vocabulary), torch.rand(total, vocabulary)
    q = torch.rand(len(drafts), vocabulary) + 0.1
    rows = torch.repeat_interleave(torch.arange(len(drafts)), torch.tensor(drafts))
    expected = ((target - draft).clamp(min=0) / q[rows]).argmax(1).to(torch.int32)
    arguments = {
        "output_token_ids_ptr": torch.zeros(total, dtype=torch.int32),
        "cu_num_draft_tokens_ptr": cumulated(drafts),
        "draft_token_ids_ptr": torch.zeros(total, dtype=torch.int32), "draft_probs_ptr": draft,
        "target_probs_ptr": target, "q_ptr": q, "vocab_size": vocabulary,
        "PADDED_VOCAB_SIZE": 128, "NO_DRAFT_PROBS": False, "SUB_BLOCK": 64,
    }  # fmt: skip
    return Launch((2, 2), arguments, {"output_token_ids_ptr": expected})


def local_sums() -> Launch:
    length, heads, chunk = 128, 8, 64
    s = torch.randn(1, length, heads)
    expected = s.reshape(1, length // chunk, chunk, heads).cumsum(2).reshape(s.shape)
    arguments = {
        "s": s, "o": torch.zeros_like(s), "scale": None, "cu_seqlens": None, "chunk_indices": None,
        "T": length, "B": 1, "H": heads, "BLOCK_T": 128, "REVERSE": False, "HEAD_FIRST": False,
        "CHUNK_SIZE": chunk,
    }  # fmt: skip
    return Launch((1, 1), arguments, {"o": expected})


def layer_norm() -> Launch:
    rows, columns = 9, 100
    x, w, b = torch.randn(rows, columns), torch.randn(columns), torch.randn(columns)
    mean, var = x.mean(1), x.var(1, unbiased=False)
    expected = torch.nn.functional.layer_norm(x, (columns,), w, b, 1e-5)
    arguments = {
        "X": x, "Y": torch.zeros_like(x), "W": w, "B": b, "Z": None, "Mean": torch.zeros(rows),
        "Rstd": torch.zeros(rows), "stride_x_row": columns, "stride_y_row": columns,
        "stride_z_row": 0, "M": rows, "N": columns, "eps": 1e-5, "BLOCK_N": 128,
        "NORM_BEFORE_GATE": False, "IS_RMS_NORM": False, "N_CORES": 4,
    }  # fmt: skip
    left = {"Y": expected, "Mean": mean, "Rstd": torch.rsqrt(var + 1e-5)}
    return Launch((4, 1), arguments, left)


def rope() -> Launch:
    tokens, q_heads, k_heads, width = 5, 4, 2, 32
    q, k = torch.randn(tokens, q_heads, width), torch.randn(tokens, k_heads, width)
    cos, sin = torch.rand(tokens, width // 2), torch.rand(tokens, width // 2)

    def turned(x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        c, s = cos[:, None], sin[:, None]
        return torch.cat([first * c - second * s, second * c + first * s], -1)

    arguments = {
        "q_ptr": q, "q_row_stride": q.stride(0), "k_ptr": k, "k_row_stride": k.stride(0),
        "cos": cos, "cos_row_stride": width // 2, "sin": sin, "sin_row_stride": width // 2,
        "num_tokens": tokens, "n_qh": q_heads, "n_kh": k_heads, "hd": width, "rope_dim": width,
        "pad_n_qh": q_heads, "pad_n_kh": k_heads, "pad_rope_dim": width, "BLOCK_SIZE": 4,
        "IS_NEOX_STYLE": True,
    }  # fmt: skip
    return Launch((3,), arguments, {"q_ptr": turned(q), "k_ptr": turned(k)})


def split_heads() -> Launch:
    tokens, heads_qk, heads_v, width = 3, 2, 4, 32
    ratio = heads_v // heads_qk
    qkvz = torch.randn(tokens, heads_qk, 2 * width + 2 * ratio * width)
    ba = torch.randn(tokens, heads_qk, 2 * ratio)
    q, k, v, z = qkvz.split([width, width, ratio * width, ratio * width], -1)
    b, a = ba.split([ratio, ratio], -1)
    flat = [part.reshape(tokens, -1) for part in (q, k, v)]
    arguments = {
        "mixed_qkv": torch.zeros(tokens, 2 * heads_qk * width + heads_v * width),
        "z": torch.zeros(tokens, heads_v, width), "b": torch.zeros(tokens, heads_v),
        "a": torch.zeros(tokens, heads_v), "mixed_qkvz": qkvz, "mixed_ba": ba,
        "NUM_HEADS_QK": heads_qk, "NUM_HEADS_V": heads_v, "HEAD_QK": width, "HEAD_V": width,
    }  # fmt: skip
    left = {
        "mixed_qkv": torch.cat(flat, 1),
        "z": z.reshape(tokens, heads_v, width),
        "b": b.reshape(tokens, heads_v),
        "a": a.reshape(tokens, heads_v),
    }
    return Launch((tokens, heads_qk), arguments, left)


def scaled_products() -> Launch:
    length, heads, width, chunk = 64, 2, 64, 64
    k = torch.randn(1, length, heads, width).to(torch.float16)
    beta = torch.rand(heads, 1, length)
    g = -torch.rand(heads, 1, length).cumsum(-1)
    by_head = k[0].float().permute(1, 0, 2)
    products = by_head @ by_head.transpose(1, 2)
    gap = g[:, 0, :, None] - g[:, 0, None, :]
    products = products * torch.exp(gap) * beta[:, 0, :, None]
    lower = torch.tril(torch.ones(length, length), -1)
    expected = torch.where(lower > 0, products, 0.0).permute(1, 0, 2)[None]
    arguments = {
        "k": k, "beta": beta, "g_cumsum": g, "A": torch.zeros(1, length, heads, chunk),
        "cu_seqlens": None, "chunk_indices": None, "T": length, "B": 1, "H": heads, "Hg": heads,
        "K": width, "BT": chunk, "BK": 64,
    }  # fmt: skip
    return Launch((1, 1), arguments, {"A": expected})


def inverse_of_blocks(a: torch.Tensor, size: int) -> torch.Tensor:
    """(1 + L)^-1 of each `size` x `size` block on the diagonal, L strictly below it."""
    blocks = [a[i : i + size, i % a.shape[1] :][:, :size] for i in range(0, len(a), size)]
    found = [torch.linalg.inv(torch.eye(size) + torch.tril(block, -1)) for block in blocks]
    return torch.cat(found)


def triangle() -> Launch:
    length, chunk = 64, 64
    a = 0.3 * torch.randn(1, length, 1, chunk)
    a = torch.tril(a[0, :, 0], -1)[None, :, None].contiguous()
    expected = inverse_of_blocks(a[0, :, 0], 16)[None, :, None]
    arguments = {
        "A": a, "Ad": torch.zeros(1, length, 1, 16), "cu_seqlens": None, "chunk_indices": None,
        "T": length, "H": 1, "BT": chunk, "LARGE_BLOCK_T": 64,
    }  # fmt: skip
    return Launch((1, 1), arguments, {"Ad": expected})


def merged(size: int) -> Launch:
    """Inverses of 16 x 16 blocks become those of blocks of `size`."""
    a = 0.3 * torch.randn(1, size, 1, size).tril(0)
    lower = torch.tril(a[0, :, 0], -1)
    given = inverse_of_blocks(lower, 16)[None, :, None]
    whole = torch.linalg.inv(torch.eye(size) + lower)[None, :, None]
    strict = lower[None, :, None].contiguous()
    arguments = {
        "A": strict, "Ad": given, "Ai": torch.zeros(1, size, 1, size), "cu_seqlens": None,
        "chunk_indices": None, "T": size, "H": 1, "BT": size,
    }  # fmt: skip
    return Launch((1, 1), arguments, {"Ai": whole})


def recomputed() -> Launch:
    length, width = 64, 64
    k, v = torch.randn(1, length, 1, width), torch.randn(1, length, 1, width)
    beta, g = torch.rand(1, 1, length), -torch.rand(1, 1, length)
    a = torch.randn(1, length, 1, length)
    scale = beta[0, 0, :, None]
    u = (a[0, :, 0] @ (v[0, :, 0] * scale))[None, :, None]
    w = (a[0, :, 0] @ (k[0, :, 0] * scale * torch.exp(g[0, 0, :, None])))[None, :, None]
    arguments = {
        "k": k, "v": v, "beta": beta, "w": torch.zeros_like(k), "u": torch.zeros_like(v), "A": a,
        "g": g, "cu_seqlens": torch.tensor([0, length], dtype=torch.int32),
        "chunk_indices": torch.tensor([[0, 0]], dtype=torch.int32), "T": length, "H": 1, "Hg": 1,
        "K": width, "V": width, "BT": 64, "BK": 64, "BV": 64,
    }  # fmt: skip
    return Launch((1,), arguments, {"u": u, "w": w})


def delta_rule() -> Launch:
    length, width, step = 128, 128, 64
    k, w, v = (0.1 * torch.randn(1, length, 1, width) for _ in range(3))
    k, w, v = (each.to(torch.float16) for each in (k, w, v))
    g = -0.01 * torch.rand(1, length).cumsum(1)
    state, states, new = torch.zeros(width, width), [], []
    for begin in range(0, length, step):
        rows = slice(begin, begin + step)
        states.append(state)
        found = v[0, rows, 0].float() - w[0, rows, 0].float() @ state.half().float()
        new.append(found)
        last = g[0, begin + step - 1]
        scaled = (found * torch.exp(last - g[0, rows])[:, None]).half().float()
        state = state * torch.exp(last) + k[0, rows, 0].float().T @ scaled
    arguments = {
        "k": k, "v": v, "w": w, "v_new": torch.zeros_like(v), "g": g,
        "h": torch.zeros(2, 1, width, width, dtype=torch.float16), "h0": None,
        "ht": torch.zeros(1, width, width), "cu_seqlens": None, "chunk_offsets": None,
        "T": length, "H": 1, "Hg": 1, "K": width, "V": width, "BT": step,
    }  # fmt: skip
    left = {"ht": state[None], "v_new": torch.cat(new).reshape(v.shape)}
    return Launch((1, 1), arguments, left)


KERNELS: dict[str, Callable[[], Launch]] = {
    "_triton_rope": rope,
    "chunk_gated_delta_rule_fwd_kernel_h_blockdim64": delta_rule,
    "chunk_local_cumsum_scalar_kernel": local_sums,
    "chunk_scaled_dot_kkt_fwd_kernel": scaled_products,
    "expand_kernel": expand,
    "fused_gdn_gating_kernel": gating,
    "fused_qkvzba_split_reshape_cat_kernel": split_heads,
    "l2norm_fwd_kernel2_loop": l2norm,
    "layer_norm_fwd_kernel": layer_norm,
    "merge_16x16_to_32x32_inverse_kernel": lambda: merged(32),
    "merge_16x16_to_64x64_inverse_kernel": lambda: merged(64),
    "recompute_w_u_fwd_kernel": recomputed,
    "rejection_greedy_sample_spec_len_1_triton": greedy,
    "rejection_random_sample_kernel": random_sample,
    "sample_recovered_tokens_kernel": recovered_tokens,
    "solve_tril_16x16_kernel": triangle,
}


def kernel_of(path: Path) -> Any:
    """The kernel that a file is named for."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, "a file of Python"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, path.stem)


def outcome_of(kernel: Any, make: Callable[[], Launch]) -> tuple[str, str]:
    """Runs a kernel and compares what it leaves: one of `OUTCOMES`, and the error's message. After
    a fault it runs again, without checks."""
    kind, message = compared(kernel, make())
    if kind == "fault":
        with npu_on_cpu.unchecked():
            if compared(kernel, make())[0] == "right":
                return "right beside a fault", message
    return kind, message


def compared(kernel: Any, launch: Launch) -> tuple[str, str]:
    """Runs a kernel once; see `outcome_of`."""
    try:
        kernel[launch.grid](**launch.arguments)
    except DeviceFault as fault:
        return "fault", str(fault)
    except CompileError as error:
        return "refused" if REFUSED.search(str(error)) else "vendor", str(error)
    for name, expected in launch.expected.items():
        found = launch.arguments[name]
        tolerance = TOLERANCE.get(found.dtype, 0)
        try:
            torch.testing.assert_close(
                found.double(), expected.double(), rtol=tolerance, atol=tolerance
            )
        except AssertionError as error:
            return "wrong", f"{name}: {error}"
    return "right", ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("place", type=Path, help="third_party/ascend of a checkout")
    parser.add_argument("--only", default="", help="part of the name of a kernel")
    options = parser.parse_args()
    npu_on_cpu.prepare()
    counts = dict.fromkeys(OUTCOMES, 0)
    with npu_on_cpu.OnCpu():
        for name, make in KERNELS.items():
            path = options.place / FOLDER / f"{name}.py"
            if options.only not in name:
                continue
            if not path.is_file():
                sys.exit(f"{path}: no such file")
            torch.manual_seed(0)
            begin = time.process_time()
            kind, detail = outcome_of(kernel_of(path), make)
            counts[kind] += 1
            detail = " ".join(detail.split())[:MOST]
            print(f"{kind:20} {time.process_time() - begin:5.1f} s  {name}  {detail}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items() if count))


if __name__ == "__main__":
    main()
