"""Example sets and whole families in files: .npz, .nc (NetCDF), .h5 or .hdf5, .zarr.

    an ExampleSet    v (n, *grid), u (n, *grid), optionally x: positions of scattered sensors
    a family         v (operator, example, *grid), u (operator, example, *grid)

Only the order of the dimensions counts, not their names, so plain HDF5 files and Zarr groups are
read like files that xarray wrote. Arrays from an .npz are numpy arrays, arrays from the other
formats are xarray DataArrays. Pickles are refused. A file is written under a temporary name and
then renamed, so that the target is always complete: the old file or the new one."""

from .formats import check_writable as check_writable
from .reading import MissingVariableError as MissingVariableError
from .reading import OpenFile as OpenFile
from .reading import opened as opened
from .reading import read_examples as read_examples
from .reading import read_functions as read_functions
from .reading import read_variable as read_variable
from .stored_family import StoredFamily as StoredFamily
from .writing import write_arrays as write_arrays
