"""Pairs of trajectories, and operators that are applied repeatedly."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import transduce
from transduce.kernels import evolution
from transduce.regression.chains import chains_of
from transduce.types import TransduceError

ANGLE = 0.3
TURN = np.array([[np.cos(ANGLE), np.sin(ANGLE)], [-np.sin(ANGLE), np.cos(ANGLE)]])
X = np.linspace(0, 1, 24, endpoint=False)


def waves(n, seed=0):
    """Periodic curves of three waves."""
    a = np.random.default_rng(seed).standard_normal((n, 3, 2)) / np.arange(1, 4)[:, None]
    phase = 2 * np.pi * np.arange(1, 4)[:, None] * X
    return a[..., 0] @ np.sin(phase) + a[..., 1] @ np.cos(phase)


def moved(s, by=1):
    """Transport: the points move on by one place."""
    return np.roll(s, by, -1)


def numbers(n=40, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 2))


@pytest.fixture(scope="module")
def turning():
    """Rotation of two numbers, from independent pairs."""
    v = numbers()
    return transduce.regress(v, v @ TURN)


@pytest.fixture(scope="module")
def transport():
    v = waves(40)
    return transduce.regress(v, moved(v), x=X)


def relative(found, expected):
    return float(np.square(found - expected).sum() / np.square(expected).sum())


def test_a_rollout_of_a_linear_operator_is_its_matrix_power(turning):
    v = numbers(5, 1)
    R = turning.rollout(v, steps=6)
    expected = [v @ np.linalg.matrix_power(TURN, k) for k in range(1, 7)]
    assert R.states.shape == (5, 6, 2)
    assert relative(R.states, np.stack(expected, 1)) < 1e-6
    assert R.stopped == (None,) * 5 and R.low is None and R.answer == "answer"


def test_the_first_step_is_the_operator(transport):
    v = waves(3, 1)
    assert np.array_equal(transport.rollout(v, 1).states[:, 0], transport(v))


def test_every_keeps_some_states(turning):
    v = numbers(3, 1)
    whole, some = turning.rollout(v, 7), turning.rollout(v, 7, every=3)
    assert some.steps.tolist() == [3, 6]
    assert np.array_equal(some.states, whole.states[:, [2, 5]])


def test_until_stops_each_trajectory_by_itself(turning):
    v = np.array([[1.0, 0.0], [0.0, -1.0]])
    with warnings.catch_warnings(action="error"):
        R = turning.rollout(v, 6, until=lambda state: state[1] > 0.5)
    assert R.reason == ("until", None) and R.stopped == (2, None)
    assert np.isfinite(R.states[0, :2]).all() and np.isnan(R.states[0, 2:]).all()
    assert np.isfinite(R.states[1]).all()


def test_a_rollout_stops_where_it_leaves_the_examples():
    v = numbers()
    O = transduce.regress(v, 1.5 * v)
    with pytest.warns(UserWarning, match=r"1 of 2 rollouts stopped outside .*trajectory 1 at step"):
        R = O.rollout(np.array([[1e-4, 0.0], [1.0, 1.0]]), 10)
    last = R.stopped[1]
    assert R.stopped[0] is None and 2 < last < 10
    assert np.isfinite(R.states[1, :last]).all() and np.isnan(R.states[1, last:]).all()


def test_bands_hold_their_share_of_a_noisy_linear_system():
    """One trajectory of a damped rotation that noise drives, continued from later states."""
    generator = np.random.default_rng(0)
    states = [np.array([1.0, 0.0])]
    for _ in range(400):
        states.append(0.95 * states[-1] @ TURN + 0.1 * generator.standard_normal(2))
    p = transduce.pairs(np.array(states[:200]))
    O = transduce.regress(p.v, p.u)
    starts = np.arange(200, 390)
    R = O.rollout(np.array(states)[starts], 10, band=0.9)
    truth = np.stack([np.array(states)[starts + k] for k in range(1, 11)], 1)
    width = (R.high - R.low).mean((0, 2))
    assert 0.85 < ((R.low <= truth) & (truth <= R.high)).mean() < 0.95
    assert width[9] > 1.5 * width[0]


def test_a_law_of_evolution_is_found_and_extrapolates():
    """Burgers' equation from its smooth beginning; the steps after it are sharper."""
    true = evolution.Evolution(evolution.Terms(1, 64), _burgers(), 1.0, False, 16)
    x = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    states = [torch.from_numpy(np.sin(x) + 0.5 * np.cos(2 * x))[None, None]]
    for _ in range(40):
        states.append(true(states[-1]))
    s = torch.cat(states)[:, 0].numpy()
    p = transduce.pairs(s[:24])
    R = transduce.regress(p.v, p.u, x=x).rollout(s[23], 17)
    assert R.answer == "law" and R.states.shape == (1, 17, 64)
    assert relative(R.states[0], s[24:]) < 1e-8


def _burgers():
    terms = evolution.Terms(1, 64)
    w = torch.zeros(evolution.ORDERS + 3 * len(terms.products) + 2, 1, dtype=torch.float64)
    w[2] = 0.01 * (64 / 3) ** 2  # s_xx
    w[evolution.ORDERS + len(terms.products) + 1] = -0.05 * 64 / 3  # (s^2)_x
    return w


def test_chains_are_found_at_any_stride_and_in_any_order():
    s = np.cumsum(waves(20), 0)
    order = np.random.default_rng(0).permutation(17)
    p = transduce.pairs(s, stride=3)
    chains = chains_of(transduce.regress(p.v[order], p.u[order], x=X, model="mean").pairs)
    assert chains.longest == 6
    assert np.array_equal(chains.age, order // 3)


def test_pairs_of_one_trajectory():
    s = waves(10)
    p = transduce.pairs(s, stride=2)
    assert np.array_equal(p.v, s[:-2]) and np.array_equal(p.u, s[2:]) and p.groups is None


def test_pairs_of_several_trajectories_never_join_two():
    a, b = waves(5), waves(7, 1)
    p = transduce.pairs([a, b])
    assert np.array_equal(p.v, np.r_[a[:-1], b[:-1]]) and np.array_equal(p.u, np.r_[a[1:], b[1:]])
    assert p.groups.tolist() == [0] * 4 + [1] * 6


def test_pairs_and_rollouts_keep_the_kind():
    s = waves(30)
    frame = pd.DataFrame(s, columns=X, index=pd.date_range("2020", periods=30))
    p = transduce.pairs(frame)
    assert p.u.index.equals(p.v.index) and np.array_equal(p.u, s[1:])
    R = transduce.regress(p.v, p.u, model="linear").rollout(frame.iloc[:2], 2)
    assert R.states.shape == (4, 24) and R.states.index.names == ["trajectory", "step"]
    assert list(R.states.columns) == list(X)

    array = xr.DataArray(s, {"time": frame.index, "x": X}, ("time", "x"))
    q = transduce.pairs(array)
    assert q.u.indexes["time"].equals(q.v.indexes["time"])
    Q = transduce.regress(q.v, q.u, model="linear").rollout(array[:2], 4, every=2, band=0.8)
    assert Q.states.dims == ("time", "step", "x") and Q.states.step.values.tolist() == [2, 4]
    assert (Q.low <= Q.high).all()

    tensor = torch.from_numpy(s).float()
    t = transduce.pairs(tensor)
    T = transduce.regress(t.v, t.u, x=X, model="linear").rollout(tensor[0], 2)
    assert T.states.shape == (1, 2, 24) and T.states.dtype == torch.float32


def test_descending_positions_give_the_same_states(transport):
    v = waves(40)
    flipped = transduce.regress(v[:, ::-1], moved(v)[:, ::-1], x=X[::-1])
    some = waves(2, 1)
    back = flipped.rollout(some[:, ::-1], 3).states[..., ::-1]
    assert np.allclose(back, transport.rollout(some, 3).states, atol=1e-9)


def test_channels_fields_and_parameters():
    v = np.stack([waves(30), waves(30, 1)], 1)
    O = transduce.regress(v, v[:, ::-1], x=X)
    assert O.rollout(v[:2], 3).states.shape == (2, 3, 2, 24)
    fields = waves(30)[:, :, None] * np.ones(9)
    F = transduce.regress(fields, 0.9 * fields)
    assert F.rollout(fields[0], 2, band=0.9).low.shape == (1, 2, 24, 9)
    rate = np.random.default_rng(0).uniform(0.5, 1, 30)
    P = transduce.regress(waves(30), rate[:, None] * waves(30), x=X, parameters=rate)
    R = P.rollout(waves(2, 1), 2, parameters=[0.6, 0.9])
    shrunk = np.array([[0.6], [0.9]]) ** 2 * waves(2, 1)
    assert relative(R.states[:, 1], shrunk) < 0.05


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"steps": 0}, "steps=0; expected a whole number from 1"),
        ({"steps": 2, "every": 3}, "every=3 of 2 steps keeps no state"),
        ({"steps": 2, "band": 1.5}, "band=1.5; expected a share"),
        ({"steps": True}, "steps=True; expected a whole number"),
    ],
)
def test_options_that_make_no_sense_are_refused(turning, options, said):
    with pytest.raises(TransduceError, match=said):
        turning.rollout(numbers(2), **options)


def test_outputs_that_are_no_inputs_are_refused():
    v = waves(20)
    short = transduce.regress(v, v[:, :12], x_v=X, x_u=X[:12], model="mean")
    with pytest.raises(TransduceError, match=r"expected u like v.*transduce\.pairs"):
        short.rollout(v[:1], 2)
    later = transduce.regress(v, v, x_v=X, x_u=X + 1, model="mean")
    with pytest.raises(TransduceError, match="expected one grid"):
        later.rollout(v[:1], 2)


@pytest.mark.parametrize(
    ("trajectory", "stride", "said"),
    [
        (waves(1), 1, "1 state, and stride is 1; expected at least 2"),
        (waves(5), 5, "5 states, and stride is 5; expected at least 6"),
        (waves(5), 0, "stride is 0; expected a whole number"),
        ([waves(5), waves(5)[:, :12]], 1, "trajectories of one system"),
        (np.where(np.eye(6, 24) > 0, np.nan, 1.0), 1, "missing or infinite values in rows 0, 1"),
    ],
)
def test_trajectories_that_have_no_pairs_are_refused(trajectory, stride, said):
    with pytest.raises(TransduceError, match=said):
        transduce.pairs(trajectory, stride)
