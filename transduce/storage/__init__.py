"""Example sets and whole families in files.

    .npz .nc .h5 .hdf5 .zarr      named arrays, of any number of axes
    .mat                          MATLAB, versions 5 and 7.3
    .npy                          one array
    .csv .tsv .txt .parquet       tables: one row for each function, or for each point
    .rda .RData .rds              R: matrices and data frames; read only

    an ExampleSet    v (n, *grid), u (n, *grid), optionally x: positions of scattered sensors
    a family         v (operator, example, *grid), u (operator, example, *grid)

Only the order of the dimensions counts, not their names, so plain HDF5 files and Zarr groups are
read like files that xarray wrote. Arrays from .npz, .npy and .mat are numpy arrays, arrays from the
other formats are xarray DataArrays. Pickles are refused, and nothing is executed. A file is written
under a temporary name and then renamed, so that the target is always complete: the old file or the
new one."""

from .choosing import opened_pairs as opened_pairs
from .choosing import opened_queries as opened_queries
from .formats import FORMATS as FORMATS
from .formats import check_writable as check_writable
from .open_file import MissingVariableError as MissingVariableError
from .open_file import OpenFile as OpenFile
from .open_file import as_vector as as_vector
from .opening import opened as opened
from .reading import read_examples as read_examples
from .reading import read_functions as read_functions
from .reading import read_variable as read_variable
from .roles import Choice as Choice
from .stored_family import StoredFamily as StoredFamily
from .writing import write_arrays as write_arrays
