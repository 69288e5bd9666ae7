"""Notes and warnings about examples and queries that are answered all the same."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import transduce
from transduce.inputs import Grid, neighbours_correlated, read_pairs, read_query
from transduce.types import TransduceError

N, P = 12, 16
V = np.random.default_rng(0).standard_normal((N, P))
U = V[:, :10] ** 2
X = np.linspace(0.0, 1.0, P) ** 2


@pytest.fixture(autouse=True)
def no_warnings():
    """Good input gives no warning, unless a test expects one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def test_missing_pairs_are_dropped():
    v, u = pd.DataFrame(V, index=np.arange(N) + 100), np.ma.MaskedArray(U.copy())
    v.iloc[3, 2], u[5, 1] = np.inf, np.ma.masked
    parameters = [None, *range(1, N)]
    with pytest.warns(UserWarning, match="left out 3 pairs of 12 .*v in row 3; u in row 5; param"):
        pairs = read_pairs(v, u, parameters=parameters, groups=list("aabbccddeeff"), missing="drop")
    assert pairs.rows.tolist() == [1, 2, 4, 6, 7, 8, 9, 10, 11] and len(pairs) == 9
    assert pairs.groups.codes.tolist() == [0, 1, 2, 3, 3, 4, 4, 5, 5]
    assert pairs.parameters.shape == (9, 1) and "left out 3" in pairs.notes[0]
    assert pairs.v.restore(pairs.v.values, pairs.v).index.tolist() == (pairs.rows + 100).tolist()


@pytest.mark.parametrize(
    ("u", "note"),
    [(np.ones((N, 4)), "All u are equal"), (U, None)],
)
def test_constant_outputs_are_noted(u, note):
    assert (
        any(note in found for found in read_pairs(V, u).notes)
        if note
        else not read_pairs(V, u).notes
    )


def test_constant_inputs_and_single_examples_give_a_warning():
    with pytest.warns(UserWarning, match="All v are equal"):
        assert "All v are equal" in read_pairs(np.ones((N, P)), U).notes[0]
    assert read_pairs(np.ones((N, P)), U, parameters=np.arange(N)).notes == ()
    with pytest.warns(UserWarning, match="one example"):
        assert "one example" in read_pairs(V[:1], U[:1]).notes[0]


def test_positions_elsewhere_and_tiny_values_are_refused():
    pairs = read_pairs(V, U, x_v=np.linspace(400, 700, P))
    with pytest.raises(TransduceError, match=r"x of the queries runs from 0\.4 to 0\.7"):
        read_query(pairs, V, x=np.linspace(0.4, 0.7, P))
    with pytest.raises(TransduceError, match=r"squares do not vanish.*smaller units"):
        transduce.regress(1e-165 * V, U)


def test_equal_inputs_with_different_outputs_give_a_warning():
    v = V.copy()
    v[7] = v[2]
    with pytest.warns(UserWarning, match="row pair 2/7.*parameters="):
        read_pairs(v, U)
    assert not read_pairs(v, U, parameters=np.arange(N)).notes  # the remedy
    u = U.copy()
    u[7] = u[2]
    assert not read_pairs(v, u).notes


def test_many_repeated_pairs_give_a_warning():
    """A file that stands there twice."""
    with pytest.warns(UserWarning, match="repeat others exactly.*Leave the repeats out"):
        read_pairs(np.concatenate([V, V]), np.concatenate([U, U]))


def test_swapped_rows_and_columns_are_noted():
    t = np.linspace(0, 1, 200)
    v = np.stack([np.sin(2 * np.pi * (k % 3 + 1) * t + 7 * k) * (1 + k) for k in range(12)])
    assert "give v.T" in read_pairs(v.T, np.cos(v).T).notes[0]
    assert not read_pairs(v, np.cos(v)).notes
    walk = np.random.default_rng(1).standard_normal((200, 20)).cumsum(axis=1)
    assert not read_pairs(walk, walk**2).notes


def test_correlated_neighbours_give_a_warning_that_groups_end():
    walk = np.random.default_rng(0).standard_normal((400, 60)).cumsum(axis=0)
    assert neighbours_correlated(walk) and not neighbours_correlated(walk[:9])
    assert not neighbours_correlated(np.random.default_rng(0).permutation(walk))
    assert not neighbours_correlated(np.ones((50, 3)))
    with pytest.warns(UserWarning, match="groups="):
        read_pairs(walk, walk**2)
    assert not read_pairs(walk, walk**2, groups=np.arange(400) // 50).notes
    sweep = np.linspace(0, 1, 50)
    assert not read_pairs(sweep, sweep**2).notes


def test_named_columns_are_noted():
    frame = pd.DataFrame(V, columns=[f"c{i}" for i in range(P)])
    assert "x_v" in read_pairs(frame, U).notes[0] and not read_pairs(frame, U, x_v=X).notes


def test_warnings_point_at_the_users_line():
    """In an interpreter of its own: here, run-time checks stand between the lines."""
    code = (
        "import numpy as np; from transduce.inputs import read_pairs\n"
        "v = np.random.default_rng(0).standard_normal((9, 9)); v[1] = v[0]\n"
        "read_pairs(v, np.arange(9))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "<string>:3: UserWarning: equal v" in run.stderr


@pytest.mark.parametrize("factor", [1e7, 1e-7])
def test_queries_of_another_scale_give_a_warning(factor):
    pairs = read_pairs(V, U)
    with pytest.warns(UserWarning, match=f"{factor:.0e}".replace("+", ".")):
        read_query(pairs, V * factor)
    read_query(pairs, V * 1e5)
    read_query(pairs, V * 0)
    numbers = read_pairs(V[:, :3], U)
    with pytest.warns(UserWarning, match="same units"):
        read_query(numbers, V[:, :3] * [1, factor, 1])


def test_queries_with_other_points_and_no_x_give_a_warning():
    pairs = read_pairs(V, U, x_v=np.arange(P)[::-1] * 2.0)
    with pytest.warns(UserWarning, match="31 points and came without x; .* 16.*Give x="):
        query = read_query(pairs, np.ones((2, 31)))
    np.testing.assert_array_equal(query.v.grid.x, np.arange(31.0)[::-1])
    assert not query.same_grid and query.v.grid.flipped
    given = read_query(pairs, np.ones((2, 31)), x=np.arange(31.0)[::-1])  # the remedy
    np.testing.assert_array_equal(given.v.grid.unit, query.v.grid.unit)


def test_positions_far_outside_give_a_warning():
    grid = Grid.of(np.linspace(0, 10, 5))
    assert grid.to_unit([-0.5, 10.5]).tolist() == [-0.05, 1.05]
    with pytest.warns(UserWarning, match="from 5.0 to 20.0, far outside .* 0.0 to 10.0"):
        grid.to_unit([5.0, 20.0])
    with pytest.warns(UserWarning, match="came without x"):
        read_query(read_pairs(V, U), V, x=np.arange(P))


def test_labels_of_queries_count_only_if_examples_had_positions():
    frame = pd.DataFrame(V, columns=np.arange(P) * 50.0)
    assert read_query(read_pairs(V, U), frame).same_grid
    assert read_query(read_pairs(frame, U), frame).same_grid
    with pytest.warns(UserWarning, match="known from 0.0 to 350.0, and v of the examples from 0.0"):
        half = read_query(read_pairs(frame, U), frame.iloc[:, :8])
    np.testing.assert_allclose(half.v.grid.unit, np.arange(8) / 15)


def test_parameters_of_a_single_query_may_be_one_axis():
    pairs = read_pairs(V, U, parameters=V[:, :3])
    assert read_query(pairs, V[:1], parameters=[1, 2, 3]).parameters.tolist() == [[1, 2, 3]]


def test_labels_that_are_shifted_between_v_and_u_are_warned_of():
    days = pd.date_range("2026-01-01", periods=N + 1)
    v = pd.DataFrame(V, index=days[:-1])
    with pytest.warns(UserWarning, match="paired by place, and their labels differ: row 0"):
        read_pairs(v, pd.DataFrame(U, index=days[1:]))
    assert not read_pairs(v, pd.DataFrame(U, index=days[:-1])).notes
    assert not read_pairs(v, pd.DataFrame(U, index=[f"run {i}" for i in range(N)])).notes
