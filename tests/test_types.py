"""Whatever comes in, `regress` answers or says what is wrong."""

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import small_transducer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from transduce import ExampleSet, TransduceError
from transduce.types import like, to_tensor

DTYPES = st.sampled_from(
    [
        np.float16,
        np.float32,
        np.float64,
        np.longdouble,
        np.int8,
        np.uint64,
        bool,
        complex,
        object,
        "U3",
        "M8[s]",
        ">f4",
    ]
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=40) | st.tuples(
    st.integers(0, 6), st.integers(0, 40)
)
ARRAYS = st.tuples(DTYPES, SHAPES).flatmap(
    lambda pair: hnp.arrays(*pair) if pair[0] is not object else st.just(np.full(pair[1], None))
)
T = small_transducer().float()


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(v=ARRAYS, u=ARRAYS, v_query=ARRAYS, same=st.booleans(), as_torch=st.booleans())
@pytest.mark.filterwarnings("ignore")
def test_random_input_gives_a_result_or_a_transduce_error(v, u, v_query, same, as_torch):
    if same:
        u = v_query = v
    if as_torch:
        try:
            v, u, v_query = (torch.as_tensor(f) for f in (v, u, v_query))
        except (TypeError, ValueError):
            return
    try:
        result = T.regress(ExampleSet(v, u))(v_query)
    except TransduceError:
        return
    assert result.shape[0] == len(v_query)


@pytest.mark.parametrize("dtype", [np.int16, bool, ">f4", np.float16])
def test_numbers_are_converted(dtype):
    f = np.ones((2, 33), dtype)
    assert T.regress(ExampleSet(f, f))(f).shape == (2, 33)


def test_lists_are_arrays():
    assert len(ExampleSet([[0.0, 1.0]], [[0.0, 1.0]])) == 1
    with pytest.raises(TransduceError, match="unequal length"):
        ExampleSet([[0.0, 1.0], [0.0]], [[0.0, 1.0]])


def test_one_number_each_is_no_single_example():
    with pytest.raises(
        TransduceError,
        match=(
            r"u has shape \(9,\); .* labels of classes one-hot, or use "
            r"transduce\.sklearn\.TransducerClassifier"
        ),
    ):
        ExampleSet(np.zeros((9, 33)), np.arange(9))
    with pytest.raises(
        TransduceError, match=r"u has shape \(33,\); .* For a single example, give u\[None\]"
    ):
        ExampleSet(np.zeros((1, 33)), np.zeros(33))


def test_like_follows_the_template():
    result = torch.ones(2, 3, dtype=torch.float64)
    assert like(result, np.zeros((2, 3), np.float32)).dtype == np.float32
    assert like(result, torch.zeros(2, 3)).dtype == torch.float32
    assert like(result, torch.zeros(2, 3, dtype=torch.int64)).dtype == torch.float64


def test_examples_can_be_picked():
    examples = ExampleSet(np.arange(8.0).reshape(4, 2), np.arange(8.0).reshape(4, 2))
    assert len(examples[1:3]) == 2
    np.testing.assert_array_equal(examples[[3, 0]].v, [[6, 7], [0, 1]])
    np.testing.assert_array_equal(
        examples[np.array([True, False, False, True])].u, [[0, 1], [6, 7]]
    )
    assert repr(examples) == "ExampleSet(n=4, v=(4, 2), u=(4, 2))"


def test_to_tensor_says_where():
    with pytest.raises(TransduceError, match=r"v\[1, 2\] is nan \(1 of 6 values are not finite\)"):
        to_tensor(np.array([[0, 1, 2], [3, 4, np.nan]]), "v")


def test_arrays_that_may_not_be_written_are_copied():
    """A tensor that shares their memory could write to them, of which torch warns."""
    array = np.arange(6.0).reshape(2, 3)
    assert to_tensor(array, "v").data_ptr() == array.ctypes.data
    array.flags.writeable = False
    assert to_tensor(array, "v").data_ptr() != array.ctypes.data


def test_an_uneven_coordinate_is_not_taken_for_a_uniform_grid():
    even = np.linspace(0, 1, 33)
    v, held = np.sin(np.pi * even)[None], {"dims": ("n", "s")}
    for x in (even, even[::-1], 7 * even, [f"p{i}" for i in range(33)]):
        f = xr.DataArray(v, coords={"s": x}, **held)
        assert T.regress(ExampleSet(f, f))(f).shape == (1, 33)
    uneven = xr.DataArray(v, coords={"s": even**2}, **held)
    for pairs, query in ((ExampleSet(uneven, uneven), uneven), (ExampleSet(v, v), uneven)):
        with pytest.raises(TransduceError, match="coordinates 's' of unequal steps"):
            T.regress(pairs)(query)
    assert T.regress(ExampleSet(uneven, uneven, x=even**2))(uneven).shape == (1, 33)
