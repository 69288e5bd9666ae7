"""What importing the library and asking the command line for help may import."""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from conftest import SLOW

import transduce
from transduce.cli import app
from transduce.types import Array, DataArray

HEAVY = {
    *("dask", "h5netcdf", "h5py", "lightning_fabric", "matplotlib", "pandas", "rich", "scipy"),
    *("sklearn", "typer", "xarray", "zarr"),
}
COMMANDS = [command.callback.__name__ for command in app.registered_commands]


def imported_by(code):
    """The top-level packages that a new interpreter imports to run `code`."""
    code += "\nimport json, sys; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


def declared(package):
    """The names that type checkers see: those imported under `if TYPE_CHECKING`."""
    (block,) = (
        node
        for node in ast.parse(Path(package.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    assert all(alias.name == alias.asname for line in block.body for alias in line.names)
    return [(line.module, alias.name) for line in block.body for alias in line.names]


def test_import_does_not_import_torch():
    assert not imported_by("import transduce") & {"torch", "numpy", *HEAVY}


@pytest.mark.parametrize(
    "code",
    [
        "from transduce import Transducer",
        "from transduce import ExampleSet, evaluate, read_examples, StoredFamily",
    ],
)
def test_only_what_the_name_needs_is_imported(code):
    imported = imported_by(code)
    assert "torch" in imported and not imported & HEAVY


def test_type_checkers_see_the_names_that_the_package_has():
    listed = [(module, name) for module, names in transduce.CONTENTS.items() for name in names]
    modules = set(transduce.__all__) - {name for _, name in listed}
    assert set(declared(transduce)) == {*listed, *((None, name) for name in modules)}
    assert set(transduce.__all__) <= set(dir(transduce))
    for module, name in listed:
        home = importlib.import_module(f"transduce.{module}")
        assert getattr(transduce, name) is getattr(home, name)
    for name in modules:
        assert getattr(transduce, name) is importlib.import_module(f"transduce.{name}")


def test_modules_are_attributes_and_other_names_are_errors():
    assert not imported_by("import transduce; transduce.lazy") & {"torch"}
    assert "torch" in imported_by("import transduce; transduce.uncertainty.bootstrap")
    with pytest.raises(AttributeError, match="module 'transduce' has no attribute 'transducers'"):
        transduce.transducers  # noqa: B018
    with pytest.raises(AttributeError, match="__wrapped__"):
        transduce.__wrapped__  # noqa: B018


def test_data_arrays_are_recognised_without_importing_xarray():
    assert isinstance(xr.DataArray([1.0]), DataArray) and isinstance(xr.DataArray([1.0]), Array)
    assert not isinstance(np.ones(1), DataArray) and not isinstance([1.0], Array)
    check = "from transduce.types import DataArray; assert not isinstance(1, DataArray)"
    assert "xarray" not in imported_by(check)


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], *([c, "--help"] for c in COMMANDS)]
)
def test_help_imports_nothing_that_takes_long(arguments):
    code = f"""
import sys
sys.argv = ["transduce", *{arguments}]
from transduce.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code"""
    imported = imported_by(code)
    assert "typer" in imported and not imported & {"torch", "numpy", *(HEAVY - {"typer", "rich"})}


@pytest.mark.parametrize("entry", SLOW)
def test_what_make_quick_leaves_out_exists(entry):
    file, _, name = entry.partition("::")
    assert f"def {name or 'test_'}" in (Path(__file__).parent / file).read_text()


def test_engines_that_open_files_are_dependencies():
    """xarray imports them by name, and installs none of them itself."""
    root = Path(transduce.__file__).parent
    project = tomllib.loads((root.parent / "pyproject.toml").read_text())["project"]
    installed = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}
    text = "".join(path.read_text() for path in root.rglob("*.py"))
    engines = set(re.findall(r'engine="(\w+)"', text))
    assert {"h5netcdf", "scipy", "zarr"} <= engines <= installed
