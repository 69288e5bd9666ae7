"""Operators of a family, each with its pairs, drawn once and stored as an xarray dataset in Zarr.

    v, u (operator, example, *axes)      and the family's `parameters`, such as k (operator)

request.py says what is drawn, store.py writes it, workers.py spreads the work over processes."""

from .request import Request as Request
from .request import SolverFamily as SolverFamily
from .store import generate as generate
