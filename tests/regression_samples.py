"""Pairs of functions and a small general model, for tests of `transduce.regress`."""

import numpy as np
import torch

import transduce
from transduce import models
from transduce.spaces import Sampled

X = np.linspace(0, 1, 24)


def small_general(**options):
    """The general model with small networks and random weights."""
    torch.manual_seed(0)
    small = {"channels": 8, "layers": 1, "modes": 4, "summary": 8, "width": 8}
    return models.general(Sampled(80), Sampled(80), **small, **options).eval()


def smooth(n, x=X, seed=0):
    """Random sums of eight waves."""
    numbers = np.random.default_rng(seed).standard_normal((n, 8, 2)) / np.arange(1, 9)[:, None]
    phase = np.pi * np.arange(1, 9)[:, None] * x
    return numbers[..., 0] @ np.sin(phase) + numbers[..., 1] @ np.cos(phase)


def operator(v):
    """A nonlinear operator that is neither local nor linear."""
    return np.tanh(v[..., ::-1]) + 0.3 * v.mean(-1, keepdims=True) ** 2 + 0.5


def examples(n=14, m=4, x=X, seed=0):
    """v, u of n examples, and m queries."""
    v = smooth(n + m, x, seed)
    return v[:n], operator(v)[:n], v[n:]


def answers(v, u, query, **options):
    """What regress answers to queries, as an array."""
    return np.asarray(transduce.regress(v, u, **options)(query))


def gap(found, expected, u):
    """The largest difference in units of the spread of u."""
    spread = np.std(np.asarray(u) - np.mean(u, axis=0))
    return float(np.abs(np.asarray(found) - np.asarray(expected)).max() / spread)
