"""scikit-fda: an FDataGrid in, an FDataGrid out."""

import numpy as np
import pytest
import skfda

import transduce

V = skfda.datasets.make_gaussian_process(
    n_samples=24, n_features=30, start=1.0, stop=3.0, random_state=0
)
U = V.derivative()


@pytest.fixture(scope="module")
def operator():
    return transduce.regress(V[:20], U[:20], model="linear-ridge")


def test_answers_are_those_of_arrays(operator):
    x = V.grid_points[0]
    plain = transduce.regress(
        V.data_matrix[:20, :, 0], U.data_matrix[:20, :, 0], x=x, model="linear-ridge"
    )
    answer = operator(V[20:])
    assert isinstance(answer, skfda.FDataGrid)
    np.testing.assert_array_equal(answer.grid_points[0], x)
    np.testing.assert_allclose(answer.data_matrix[..., 0], plain(V.data_matrix[20:, :, 0]))
    assert isinstance(operator(V.data_matrix[20:, :, 0]), skfda.FDataGrid)


def test_other_points_and_names(general):
    O = transduce.regress(V[:20], U[:20])
    named = V[20:].copy(sample_names=("a", "b", "c", "d"))
    answer = O(named, at=[1.5, 2.0, 2.25])
    assert answer.grid_points[0].tolist() == [1.5, 2.0, 2.25]
    assert answer.sample_names == ("a", "b", "c", "d")
    assert len(O.add(V[20:], U[20:]).drop(0)) == 23


def test_several_coordinates():
    both = skfda.FDataGrid(np.concatenate([V.data_matrix, U.data_matrix], -1), V.grid_points)
    O = transduce.regress(V[:20], both[:20], model="linear-ridge")
    assert O(V[20:]).data_matrix.shape == (4, 30, 2)
    assert transduce.regress(both[:20], U[:20], model="linear-ridge")(both[20:]).n_samples == 4


def test_bands(general):
    low, high = transduce.regress(V[:20], U[:20]).predict(V[20:], band=0.8)[1:]
    assert (low.data_matrix <= high.data_matrix).all()


def test_what_is_refused():
    basis = V.to_basis(skfda.representation.basis.BSplineBasis(n_basis=8))
    with pytest.raises(transduce.TransduceError, match=r"FDataBasis.*Give v.to_grid\(\)"):
        transduce.regress(basis, U)
    assert transduce.regress(basis.to_grid(V.grid_points), U, model="linear-ridge")
    gap = V.copy(data_matrix=np.where(V.data_matrix > 2.5, np.nan, V.data_matrix))
    with pytest.raises(transduce.TransduceError, match="missing='drop'"):
        transduce.regress(gap, U)
