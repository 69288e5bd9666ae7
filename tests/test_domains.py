"""Domains: one contract for all, which a new domain joins by a line in CASES; and code above them
that knows none of them."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import run

import transduce
from transduce import Euclidean, ExampleSet, SineModes, TransduceError, Transducer, models, weights
from transduce.domains import READS, Domain, Queries, Request, domain, of, reads
from transduce.kernels import Kappa
from transduce.legacy import domain_of
from transduce.spaces import Region, Sampled, Space
from transduce.storage import read_examples, read_variable, write_arrays

RNG = np.random.default_rng(0)
LAT, LON = (60.0, 50.0, 40.0), (-10.0, 0.0, 10.0, 20.0)


def small(V, U, **options):
    torch.manual_seed(0)
    return models.softmax(V, U, depth=1, heads=1, width=4, hidden=8, **options).eval()


def of_curves():
    torch.manual_seed(0)
    V = Sampled(9)
    return models.general(V, V, channels=4, layers=1, modes=2, summary=4, width=4).eval()


def of_functions():
    return small(SineModes(8), SineModes(8))


def of_images():
    T = small(Euclidean(16), Euclidean(3))
    T.card["domain"] = "images"
    return T


def of_climate():
    T = models.region(Region(LAT, LON), Region(LAT, LON)).eval()
    fields = days(50, seed=1)
    T.V.measure(torch.from_numpy(fields.t.values))
    T.U.measure(torch.from_numpy(fields.msl.values))
    return T


def days(count, seed):
    """Temperatures, and pressures that follow from them."""
    t = 280 + 8 * np.random.default_rng(seed).standard_normal((count, len(LAT), len(LON)))
    time = np.datetime64("2001-01-01T12", "ns") + np.arange(count) * np.timedelta64(1, "D")
    axes = ("time", "lat", "lon")
    fields = {
        "t": (axes, t.astype(np.float32), {"units": "K"}),
        "msl": (axes, (101_000 + 60 * (t - 280)).astype(np.float32), {"units": "Pa"}),
    }
    return xr.Dataset(fields, {"time": time, "lat": np.array(LAT), "lon": np.array(LON)})


@dataclass
class Case:
    """What the contract needs of a domain.

    Args:
        model: makes a small model.
        examples: arrays by name, as a file has them.
        queries: likewise.
        bad: examples that do not fit, and how the error says what was received.
        names: of v and u in the files.
        suffix: of the files.
        stranger: makes a model that the domain refuses; None if it takes all.
    """

    model: Any
    examples: dict[str, Any]
    queries: dict[str, Any]
    bad: tuple[dict[str, Any], str]
    names: tuple[str, str] = ("v", "u")
    suffix: str = ".npz"
    stranger: Any = None

    def files(self, folder, examples=None):
        """The paths of examples and queries, as they are given to `transduce regress`."""
        paths = folder / f"pairs{self.suffix}", folder / f"queries{self.suffix}"
        for path, arrays in zip(paths, (examples or self.examples, self.queries), strict=True):
            write_arrays(path, arrays, force=True)
        return paths


FUNCTIONS = {name: np.pad(RNG.standard_normal((5, 31)), ((0, 0), (1, 1))) for name in "vu"}
PIXELS = {"v": RNG.uniform(size=(6, 16)), "u": np.eye(3)[[0, 1, 2, 0, 1, 2]]}
FIELDS = {name: days(6, seed=2)[name] for name in ("t", "msl")}
CELSIUS = FIELDS | {"t": FIELDS["t"].assign_attrs(units="degC")}
CURVES = {name: np.cumsum(RNG.standard_normal((6, 12)), 1) for name in "vu"}
CASES = {
    "curves": Case(
        of_curves,
        CURVES,
        {"v": CURVES["v"][:2]},
        (CURVES | {"x": np.arange(11.0)}, "x holds 11 positions"),
    ),
    "functions": Case(
        of_functions,
        FUNCTIONS,
        {"v": FUNCTIONS["v"][:2]},
        (FUNCTIONS | {"u": FUNCTIONS["u"][:4]}, "examples.v holds 5 functions and examples.u 4"),
    ),
    "images": Case(
        of_images,
        PIXELS,
        {"v": PIXELS["v"][:2]},
        (PIXELS | {"v": 255 * PIXELS["v"]}, r"pairs.npz has values from .* to 25"),
        stranger=of_functions,
    ),
    "climate": Case(
        of_climate,
        FIELDS,
        {"t": FIELDS["t"][:2]},
        (CELSIUS, "the examples' v are about 55"),
        names=("t", "msl"),
        suffix=".nc",
        stranger=of_functions,
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_every_domain_has_a_case():
    assert list(CASES) == list(READS)
    assert all(isinstance(domain(name), Domain) and domain(name).name == name for name in READS)


def test_a_domain_reads_what_was_written(case, tmp_path):
    T = case.model()
    d = of(T)
    assert CASES[d.name] is case
    pairs, asked = case.files(tmp_path)
    examples = d.read_examples(T, pairs)
    queries = d.read_queries(T, asked, examples)
    for read, name in zip((examples.v, examples.u), case.names, strict=True):
        given = read.restore(read.array) if hasattr(read, "restore") else read
        np.testing.assert_array_equal(given, case.examples[name])
    np.testing.assert_array_equal(queries.v, case.queries[case.names[0]])
    d.check_model(T)
    d.check(T, examples)


def test_a_domain_writes_what_the_model_answers(case, tmp_path):
    T = case.model()
    d = of(T)
    pairs, asked = case.files(tmp_path)
    examples = d.read_examples(T, pairs)
    answers = d.answer(d.regress(T, examples), d.read_queries(T, asked, examples))
    path = tmp_path / f"answers{case.suffix}"
    d.write(path, answers, attrs={"model": "small"})
    v, u = (np.asarray(case.examples[name]) for name in case.names)
    expected = T.regress(ExampleSet(v, u))(np.asarray(case.queries[case.names[0]]))
    np.testing.assert_allclose(read_variable(path, case.names[1]), expected, rtol=1e-6)
    with pytest.raises(TransduceError, match="exists already"):
        d.write(path, answers)


def test_a_domain_refuses_what_does_not_fit(case, tmp_path):
    T, (examples, received) = case.model(), case.bad
    pairs, _ = case.files(tmp_path, examples)
    with pytest.raises(TransduceError, match=rf"{received}.*; expected .*\. .+\.$"):
        of(T).read_examples(T, pairs)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.stranger])
def test_a_domain_refuses_models_of_another(name):
    with pytest.raises(TransduceError, match=r"SineModes .*; expected one .*\. .+\.$"):
        domain(name).check_model(CASES[name].stranger())


def test_the_command_asks_the_domain(case, tmp_path):
    T = case.model()
    T.save_pretrained(tmp_path / "small.safetensors", domain=of(T).name)
    pairs, asked = case.files(tmp_path)
    out = tmp_path / f"answers{case.suffix}"
    files = ("--examples", pairs, "--queries", asked, "--out", out)
    result = run("regress", "--model", tmp_path / "small.safetensors", *files)
    assert result.exit_code == 0, result.output
    assert len(read_variable(out, case.names[1])) == 2


def test_arrays_in_memory_are_checked_too():
    d = domain("images")
    with pytest.raises(TransduceError, match=r"examples.u has shape \(6, 2\).* expects one-hot"):
        d.check(of_images(), ExampleSet(PIXELS["v"], PIXELS["u"][:, :2]))
    with pytest.raises(TransduceError, match=r"examples\.v has values from"):
        d.check(of_images(), ExampleSet(2 * PIXELS["v"], PIXELS["u"]))
    t, msl = (FIELDS[name].values for name in ("t", "msl"))
    with pytest.raises(TransduceError, match=r"the examples' u are about .* expected the same"):
        domain("climate").check(of_climate(), ExampleSet(t, msl / 100))
    with pytest.raises(TransduceError, match=r"examples.v .* expects"):
        domain("climate").check(of_climate(), ExampleSet(t[:, :2], msl))


def test_functions_at_sensors_are_answered_with_their_positions(tmp_path):
    T, x = of_functions(), np.sort(RNG.uniform(size=33))
    write_arrays(tmp_path / "pairs.npz", FUNCTIONS | {"where": x})
    examples = domain("functions").read_examples(T, tmp_path / "pairs.npz", Request(x="where"))
    queries = Queries(FUNCTIONS["v"][:2])
    O = T.regress(examples)
    answers = domain("functions").answer(O, queries, Request(u="p", x="where"))
    assert list(answers) == ["p", "where"]
    np.testing.assert_array_equal(answers["where"], x)
    assert domain("functions").answer(O, queries, Request(at=7))["u"].shape == (2, 7)


def test_a_missing_variable_may_mean_another_domain(tmp_path):
    write_arrays(tmp_path / "days.nc", FIELDS)
    with pytest.raises(TransduceError, match=r"it has .*msl.*Models of other domains read other"):
        domain("functions").read_examples(of_functions(), tmp_path / "days.nc")
    with pytest.raises(TransduceError, match=r"Name them, like --v t --u msl, or call"):
        read_examples(tmp_path / "days.nc")


def test_the_domain_of_every_bundled_model():
    named = {"climate-europe": "climate", "images": "images", "images-softmax": "images"}
    named |= {"general": "curves", "general-fields": "curves"}
    for name in weights.names():
        _, card = weights.load(name)
        assert card.get("domain", domain_of(card)) == named.get(name, "functions"), name


def test_the_card_names_the_domain(tmp_path):
    T = small(Euclidean(784), Euclidean(10))
    assert of(T).name == "functions"
    T.save_pretrained(tmp_path / "T.safetensors", domain="images")
    assert of(Transducer.from_pretrained(str(tmp_path / "T.safetensors"))).name == "images"
    T.card["domain"] = "sounds"
    with pytest.raises(TransduceError, match=r"names the domain 'sounds'; expected one of curv"):
        of(T)
    with pytest.raises(TransduceError, match=r"no domain is called 'sounds'; known: curves"):
        domain("sounds")


def test_help_says_what_each_domain_reads():
    said = " ".join(run("regress", "--help").stdout.replace("│", " ").split())
    assert reads() in said and all(f"{name}: " in reads() for name in READS)


# Code that must work for every domain, by what it imports, tests and says.

PACKAGE = Path(transduce.__file__).parent
GENERAL = [
    path
    for name in ("cli", "storage", "serving", "optimisers", "evaluation")
    for path in (
        sorted((PACKAGE / name).glob("**/*.py"))
        if (PACKAGE / name).is_dir()
        else [PACKAGE / f"{name}.py"]
    )
]
WORDS = re.compile(r"\b(images?|pixels?|climate|regions?|weather|europe)\b", re.IGNORECASE)


def concrete(base):
    """The names of all classes of the library below a base class."""
    for child in base.__subclasses__():
        if child.__module__.startswith("transduce."):
            yield child.__name__
        yield from concrete(child)


CONCRETE = {*concrete(Space), *concrete(Kappa)}


def references(tree):
    """What code refers to of a domain, a space or a kernel: each name and its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            parts = [part for alias in node.names for part in alias.name.split(".")]
            parts += (getattr(node, "module", None) or "").split(".")
            yield from ((p, node.lineno) for p in parts if p in CONCRETE or WORDS.search(split(p)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            tested = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(node.args[1])}
            yield from ((name, node.lineno) for name in tested & CONCRETE)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((word, node.lineno) for word in WORDS.findall(node.value))


def split(name):
    """`check_images` and `ClimateFields` as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name)


@pytest.mark.parametrize("path", GENERAL, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_general_code_refers_to_no_domain(path):
    found = list(references(ast.parse(path.read_text())))
    assert not found, f"{path.name} refers to {found}; move that into transduce/domains"


@pytest.mark.parametrize(
    "code",
    [
        "from ..spaces import Region",
        "from ..families import open_climate",
        "from ..families.image_files import resized",
        "import transduce.domains.climate",
        "isinstance(T.V, spaces.SineModes)",
        f"isinstance(part, (str, {next(concrete(Kappa))}))",
        "hint = 'needs --model climate-europe'",
    ],
)
def test_references_are_found(code):
    assert list(references(ast.parse(code)))
    assert not list(references(ast.parse("from ..spaces import Space\nisinstance(T, Transducer)")))
