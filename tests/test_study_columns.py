"""Which columns of a table are parameters, which label rows, and what is said about either."""

import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import fails, run

from transduce import domains
from transduce.domains import Request
from transduce.storage import opened
from transduce.types import TransduceError

RNG = np.random.default_rng(1)
N = 24
COUNTED = list(range(1, N + 1))
MASS = RNG.uniform(1, 2, N)
SHUFFLED = RNG.permutation(N) + 1
CURVES = pd.DataFrame(RNG.normal(size=(N, 12)), columns=[f"u_{i}" for i in range(12)])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def study(**columns):
    """A file of parameters and curves."""
    pd.concat([pd.DataFrame(columns), CURVES], axis=1).to_csv("a.csv", index=False)


def pairs_of(path="a.csv", **options):
    model, domain = domains.opened("rbf")
    return domain.read_examples(model, path, Request(**options))


@pytest.mark.parametrize("name", ["number", "time", "trial", "no", "case", "group", "day"])
@pytest.mark.parametrize("values", [[2, 3, 4, 5] * 6, SHUFFLED, MASS, np.sort(MASS)],
                         ids=["repeated", "shuffled", "fractions", "ascending"])  # fmt: skip
def test_a_leading_number_is_a_parameter(name, values):
    study(**{name: values}, gain=MASS)
    assert pairs_of().v.layout.names == (name, "gain")


@pytest.mark.parametrize("name", ["number", "trial", "run"])
def test_ascending_integers_label_rows_and_are_said_to_be_left_out(name):
    study(**{name: COUNTED}, gain=MASS)
    with pytest.warns(UserWarning, match=rf"{name} .* labels rows.*--parameters {name},gain"):
        assert pairs_of().v.layout.names == ("gain",)
    assert pairs_of(parameters=f"{name},gain").v.layout.names == (name, "gain")
    study(gain=MASS, **{name: COUNTED})
    with pytest.warns(UserWarning, match=rf"{name} .* labels rows"):
        assert pairs_of().v.layout.names == ("gain",)


@pytest.mark.parametrize("name", ["id", "", "index"])
def test_an_index_labels_rows_in_any_order(name):
    study(**{name: SHUFFLED}, gain=MASS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pairs_of().v.layout.names == ("gain",)
    with opened("a.csv") as file:
        assert file.singles == ("gain",)


def test_a_label_may_be_the_only_parameter():
    study(time=COUNTED)
    result = run("regress", "--examples", "a.csv", "--report", "--model", "rbf")
    assert "--u u --parameters time" in result.stderr, result.output
    assert pairs_of(u="u", parameters="time").v.layout.points == 1
    assert pairs_of(parameters="time").v.layout.points == 1


def test_gaps_are_named_by_the_rows_of_the_file():
    damping = [None if i == 1 else "ab"[i % 2] for i in range(N)]
    study(gain=np.where(np.arange(N) == 5, np.nan, MASS), damping=damping)
    with pytest.warns(UserWarning, match=r"rows 1.* and 5|row 1.*row 5") as said:
        assert pairs_of(missing="drop").rows.tolist() == [0, *range(2, 5), *range(6, N)]
    assert len(said) == 1


@pytest.mark.parametrize("name", ["a", "a=b", "c"])
def test_names_with_an_equals_sign(name):
    study(**{"a=c": MASS, name: ["x", "y", "z"] * 8})
    files = ("--examples", "a.csv", "--queries", "a.csv", "--out", "u.csv", "--model", "rbf")
    result = run("regress", *files)
    assert result.exit_code == 0, result.output


def test_a_column_is_not_overwritten_by_the_code_of_a_category():
    study(a=["x", "y"] * 12, **{"a=y": MASS})
    with pytest.raises(TransduceError, match=r"a column 'a=y'.*Rename one of them"):
        pairs_of()


@pytest.mark.parametrize("name", ["x", "t", "time", "angle"])
@pytest.mark.parametrize("words", ["--u y", "--u y --parameters {name}"])
def test_a_study_whose_parameter_has_the_name_of_positions(name, words):
    """Ascending values are read as one function, unless the user names columns."""
    table = pd.DataFrame({name: np.linspace(0, 1, 9), "y": np.linspace(2, 3, 9)})
    table.to_csv("a.csv", index=False)
    table[:4].to_csv("q.csv", index=False)
    files = ("--examples", "a.csv", "--queries", "q.csv", "--out", "u.csv", "--model", "rbf")
    result = run("regress", *files, *words.format(name=name).split())
    assert result.exit_code == 0 and "n = 9 examples, 4 queries" in result.stdout, result.output
    np.testing.assert_allclose(pd.read_csv("u.csv")["y"], table["y"][:4], atol=0.05)


def test_a_column_x_is_a_parameter():
    study(x=MASS, gain=MASS)
    assert pairs_of().v.layout.names == ("x", "gain")


@pytest.mark.parametrize("more", [{}, {"damping": ["light", "heavy"] * 12}])
def test_other_units_in_queries(more):
    study(**{"mass (kg)": MASS}, **more)
    files = ("--examples", "a.csv", "--queries", "q.csv", "--out", "u.csv", "--model", "rbf")
    pd.DataFrame({"mass (g)": MASS, **more}).to_csv("q.csv", index=False)
    said = fails("regress", *files)
    assert "mass of the queries is in 'g', and in 'kg' in the examples" in said
    for name in ("mass (kg)", "mass"):
        pd.DataFrame({name: MASS, **more}).to_csv("q.csv", index=False)
        assert run("regress", *files, "--force").exit_code == 0


def test_other_units_of_functions():
    for name, unit in (("a", "degC"), ("q", "K")):
        v = CURVES.rename(columns=lambda column, unit=unit: f"{column} ({unit})".replace("u", "v"))
        pd.concat([v, CURVES], axis=1).to_csv(f"{name}.csv", index=False)
    files = ("--examples", "a.csv", "--queries", "q.csv", "--out", "u.csv", "--model", "rbf")
    assert "v of the queries is in 'K', and in 'degC'" in fails("regress", *files)


def test_the_index_of_a_frame_in_parquet_labels_rows():
    frame = pd.concat([pd.DataFrame({"gain": MASS}), CURVES], axis=1)
    for index in (pd.Index(COUNTED, name="run"), pd.Index([f"s{i}" for i in COUNTED], name="site")):
        frame.set_axis(index).to_parquet("a.parquet")
        frame.set_axis(index).to_csv("a.csv")
        for path in ("a.parquet", "a.csv"):
            with opened(path) as file:
                assert file.singles == ("gain",)
                assert file.fetch("u").coords[index.name].values.tolist() == index.tolist()


def test_remedies_in_the_shell_are_no_python():
    study(gain=MASS)
    np.savez("par.npz", v=CURVES, u=CURVES, parameters=MASS)
    np.savez("parq.npz", v=CURVES)
    np.savez("three.npz", v=np.ones((N, 3, 4)), u=CURVES)
    pd.DataFrame({"gain": [1.0, np.nan, 2.0]}).to_csv("gaps.csv", index=False)
    np.savez("one.npz", v=CURVES.to_numpy()[0], u=CURVES)
    study_of_text = pd.DataFrame({"site": [f"s{i // 2 % 30}x" for i in range(60)]})
    study_of_text.assign(u_0=1.0, u_1=2.0).to_csv("text.csv", index=False)
    for files, remedy in (
        ("a.csv gaps.csv", "Remove these rows from the file, or fill the gaps."),
        ("par.npz parq.npz", "Add them to the file of queries, as the examples have them."),
        ("par.npz three.npz", "Write queries as the examples are written."),
        ("text.csv text.csv", "name the others, as in --parameters mass,damping."),
        ("one.npz one.npz", "Write a function in each row, or give --columns"),
    ):
        pairs, queries = files.split()
        words = ("--examples", pairs, "--queries", queries, "--out", "o.csv", "--model", "general")
        said = fails("regress", *words)
        assert remedy in said, said
        assert not any(code in said for code in ("np.", "pd.", ".drop", ".T", "=[", "parameters="))
