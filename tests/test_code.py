"""Measures of the code itself: options, signatures, sizes, and who knows which type."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from transduce import kernels, spaces
from transduce.kernels import Kappa
from transduce.transducer import Transducer

PACKAGE = Path(__file__).parent.parent / "transduce"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_PARAMETERS, MOST_ANY, LONGEST_FUNCTION, LONGEST_FILE = 5, 0.08, 50, 300
CONTRACTS = {"Space", "Kappa", "Fit", "Reading", "Gram", "Candidates"}
MAY_KNOW_TYPES = ("spaces/", "kernels/", "legacy.py")


def short(path):
    return path.relative_to(PACKAGE).as_posix()


def functions(tree):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def annotations(function):
    """The annotations of all arguments and of the result, texts included."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    found = [argument.annotation for argument in every if argument is not None]
    return [annotation for annotation in (*found, function.returns) if annotation is not None]


def says_any(annotation):
    return any(
        (isinstance(node, ast.Name) and node.id == "Any")
        or (isinstance(node, ast.Attribute) and node.attr == "Any")
        for node in ast.walk(annotation)
    )


def concrete_types():
    """The classes that spaces and kernels export, without their contracts."""
    exported = {name: getattr(of, name) for of in (spaces, kernels) for name in dir(of)}
    own = ("transduce.spaces", "transduce.kernels")
    return {
        name
        for name, value in exported.items()
        if inspect.isclass(value) and value.__module__.startswith(own) and name not in CONTRACTS
    }


def checked_types(tree):
    """The names of the types in each call of isinstance or issubclass, with its line."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            for part in ast.walk(node.args[1]):
                if isinstance(part, ast.Name | ast.Attribute):
                    yield part.id if isinstance(part, ast.Name) else part.attr, node.lineno


def test_transducer_has_few_parameters():
    parameters = inspect.signature(Transducer.__init__).parameters
    assert len(parameters) - 1 <= MOST_PARAMETERS, list(parameters)


def test_a_kernel_needs_two_methods():
    """All others have defaults."""
    source = ast.parse(inspect.getsource(Kappa))
    required = [
        function.name
        for function in functions(source)
        if any(isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node)
               for node in ast.walk(function))
    ]  # fmt: skip
    assert required == ["condition", "forward"]


def test_few_signatures_contain_any():
    signatures = {
        f"{short(path)}:{function.lineno} {function.name}": any(
            map(says_any, annotations(function))
        )
        for path in FILES
        for function in functions(ast.parse(path.read_text()))
    }
    with_any = [name for name, found in signatures.items() if found]
    assert len(with_any) <= MOST_ANY * len(signatures), (
        f"{len(with_any)} of {len(signatures)} signatures contain Any",
        with_any,
    )


def test_functions_are_short():
    long = {
        f"{short(path)}:{function.lineno} {function.name}": length
        for path in FILES
        for function in functions(ast.parse(path.read_text()))
        if (length := function.end_lineno - function.lineno + 1) > LONGEST_FUNCTION
    }
    assert long == {}


def test_files_are_short():
    lengths = {short(path): len(path.read_text().splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_concrete_types_stay_where_they_are_defined():
    """Elsewhere, code asks a space or a kernel, and does not ask what it is."""
    known = concrete_types()
    found = [
        f"{short(path)}:{line} {name}"
        for path in FILES
        if not short(path).startswith(MAY_KNOW_TYPES)
        for name, line in checked_types(ast.parse(path.read_text()))
        if name in known
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("isinstance(V, Region)", ["Region"]),
        ("isinstance(k, spaces.Region | Ridge)", ["Region", "Ridge"]),
        ("issubclass(k, (Attention, Kappa))", ["Attention"]),
        ("isinstance(V, Space)", []),
        ("Region(lat, lon)", []),
    ],
)
def test_checks_of_types_are_found(code, found):
    known = concrete_types()
    assert [name for name, _ in checked_types(ast.parse(code)) if name in known] == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def f(a: Any): ...", True),
        ("def f(a) -> dict[str, typing.Any]: ...", True),
        ("def f(*a: int, b: list[Any] | None = None): ...", True),
        ("def f(a: Anything, b: int) -> object: ...", False),
    ],
)
def test_signatures_with_any_are_found(code, found):
    (function,) = functions(ast.parse(code))
    assert any(map(says_any, annotations(function))) is found


def test_examples_of_extending_are_short():
    page = (PACKAGE.parent / "docs" / "extending.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.S | re.M)
    assert sum("class " in block for block in blocks) >= 5
    assert max(len(list(filter(str.strip, block.splitlines()))) for block in blocks) <= 20
