"""What a regression costs: processor time, taken in turns, and floating point operations, counted
as they are dispatched.

Processor time of one thread is what a clock shows on an idle machine, and holds still on a busy
one. Operations are those of matrix products, convolutions, attention, Cholesky factors, triangular
solves and Fourier transforms that torch dispatches, forward and backward, a complex product being
four real ones; element-wise work is not counted, nor is what numpy and scikit-learn do."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

aten = torch.ops.aten


def medians(*works: Callable[[], Any], repeats: int) -> list[float]:
    """The median seconds of each, taken in turns."""
    times: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(repeats):
        for work, taken in zip(works, times, strict=True):
            taken.append(timed(work)[1])
    return [statistics.median(taken) for taken in times]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` returns, and its processor time."""
    start = time.process_time()
    value = work()
    return value, time.process_time() - start


def operations(work: Callable[[], Any]) -> int | None:
    """The floating point operations of `work`, or None if torch does none of it."""
    with FlopCounterMode(display=False, custom_mapping=FORMULAS) as counter:
        work()
    return counter.get_total_flops() or None


def _raw(formula: Callable[..., int]) -> Callable[..., int]:
    """Mark a formula that takes the tensors themselves, not their shapes."""
    formula._get_raw = True  # type: ignore[attr-defined]
    return formula


@_raw
def _product(a: Any, b: Any, *_: Any, **__: Any) -> int:
    return (8 if a.is_complex() else 2) * a.numel() * b.shape[-1]


@_raw
def _added_product(_: Any, a: Any, b: Any, *__: Any, **___: Any) -> int:
    return (8 if a.is_complex() else 2) * a.numel() * b.shape[-1]


@_raw
def _attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return (
        2 * query.numel() * key.shape[-2]
        + 2 * query.shape[:-1].numel() * key.shape[-2] * value.shape[-1]
    )


@_raw
def _cholesky(A: Any, *_: Any, **__: Any) -> int:
    return A.numel() * A.shape[-1] // 3


@_raw
def _triangular(A: Any, B: Any, *_: Any, **__: Any) -> int:
    return A.shape[-1] * B.numel()


@_raw
def _fourier(f: Any, axes: Any, *_: Any, out_val: Any = None, **__: Any) -> int:
    points = math.prod(max(f.shape[axis], out_val.shape[axis]) for axis in axes)
    return int(
        2.5
        * max(f.numel(), out_val.numel())
        * math.log2(points)
        * (2 if f.is_complex() and out_val.is_complex() else 1)
    )


FORMULAS: dict[Any, Callable[..., int]] = {
    aten.mm: _product,
    aten.bmm: _product,
    aten.addmm: _added_product,
    aten.baddbmm: _added_product,
    aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    aten.linalg_cholesky_ex: _cholesky,
    aten.linalg_solve_triangular: _triangular,
    aten._fft_r2c: _fourier,
    aten._fft_c2c: _fourier,
    aten._fft_c2r: _fourier,
}
