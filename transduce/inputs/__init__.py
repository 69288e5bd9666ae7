"""Reads pairs of functions from whatever a scientist passes: numpy arrays, lists, torch tensors,
pandas DataFrames and xarray DataArrays become float64 arrays with grids, and answers go back.

    pairs = read_pairs(v, u, x=x)               # examples
    query = read_query(pairs, v_new)            # inputs whose outputs are wanted
    u_new = pairs.u.restore(answer, query.v)    # the user's kind of array

Imports neither torch nor pandas nor xarray unless the user's objects come from them."""

from .checks import neighbours_correlated as neighbours_correlated
from .covariates import Groups as Groups
from .covariates import check_groups_present as check_groups_present
from .functions import Functions as Functions
from .grids import Grid as Grid
from .layouts import Layout as Layout
from .pairs import Pairs as Pairs
from .pairs import read_pairs as read_pairs
from .queries import Query as Query
from .queries import read_query as read_query
