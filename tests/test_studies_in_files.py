"""Design studies in files: single columns of tables, and arrays called parameters, as inputs."""

import shlex

import numpy as np
import pandas as pd
import pytest
import rdata
from conftest import fails, run

import transduce
from transduce import domains
from transduce.domains import Request
from transduce.storage import opened, opened_pairs, read_variable, write_arrays
from transduce.storage.roles import Choice

RNG = np.random.default_rng(0)
T = np.linspace(0, 1, 12)


def designs(n):
    """Numbers, integers, booleans and a category."""
    return pd.DataFrame({
        "mass": RNG.uniform(1, 2, n), "stiffness": RNG.integers(1, 9, n),
        "damping": ["heavy", "none", "light"] * (n // 3), "clamped": [True, False] * (n // 2),
    })  # fmt: skip


def motion(p):
    rate = p["damping"].map({"none": 0.0, "light": 0.4, "heavy": 1.0}).to_numpy()
    size = p["mass"].to_numpy() * np.where(p["clamped"], 1, 2)
    return size[:, None] * np.sin(np.outer(p["stiffness"], T)) * np.exp(-np.outer(rate, T))


P, Q = designs(24), designs(6)
U = motion(P)
CURVES = pd.DataFrame(U, columns=[f"disp_{i}" for i in range(12)])
RUNS = pd.concat([P, CURVES], axis=1)
EXPECTED = transduce.regress(None, U, parameters=P, model="rbf")(Q)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shuffled = Q[["damping", "clamped", "stiffness", "mass"]].assign(u_0=0.0, comment="a")
    shuffled.insert(0, "id", [f"q{i}" for i in range(6)])
    shuffled.to_csv("new.csv", index=False)


def regress(*words, queries="new.csv", out="answers.csv", model="rbf"):
    files = ("--queries", queries, "--out", out, "--force", "--model", model)
    result = run("regress", "--examples", *words, *files)
    assert result.exit_code == 0, result.output
    return result


def pairs_of(path, **options):
    model, domain = domains.opened("rbf")
    return domain.read_examples(model, path, Request(**options))


def answers():
    table = pd.read_csv("answers.csv")
    assert table["id"].tolist() == [f"q{i}" for i in range(6)]
    return table.drop(columns="id").to_numpy()


def to_rda(frames):
    rdata.write_rda("a.rda", {name: frame.astype({"damping": "category"}) if "damping" in frame
                              else frame for name, frame in frames.items()})  # fmt: skip


def with_units(frame):
    return frame.rename(columns={"mass": "mass (kg)"})


LAYOUTS = {  # how to write the study, and the words that read it
    "commas": (lambda: RUNS.to_csv("a.csv", index=False), "a.csv"),
    "decimal comma": (lambda: RUNS.to_csv("a.csv", index=False, sep=";", decimal=","), "a.csv"),
    "units": (lambda: with_units(RUNS).to_csv("a.csv", index=False), "a.csv"),
    "labels": (lambda: RUNS.to_csv("a.csv", index_label="run"), "a.csv"),
    "category first": (
        lambda: RUNS[["damping", *RUNS.columns.drop("damping")]].to_csv("a.csv", index=False),
        "a.csv",
    ),
    "function first": (
        lambda: RUNS[[*CURVES, *P]].to_csv("a.csv", index=False), "a.csv --u disp",
    ),
    "parquet": (lambda: RUNS.to_parquet("a.parquet"), "a.parquet"),
    "a data frame": (lambda: to_rda({"runs": RUNS}), "a.rda"),
    "two data frames": (lambda: to_rda({"designs": P, "curves": CURVES}), "a.rda --u curves"),
    "a data frame of parameters": (lambda: to_rda({"parameters": P, "u": CURVES}), "a.rda"),
    "two files": (
        lambda: (P.to_csv("p.csv", index=False), CURVES.to_csv("u.csv", index=False)),
        "p.csv --outputs u.csv",
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_single_columns_are_parameters(layout):
    write, words = LAYOUTS[layout]
    write()
    result = regress(*words.split())
    assert "24 examples, 6 queries" in result.stdout
    np.testing.assert_allclose(answers(), EXPECTED, atol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inspect_prints_a_command_that_reads_them(layout):
    write, words = LAYOUTS[layout]
    write()
    files = words.replace("--outputs", "").replace("--u disp", "").replace("--u curves", "").split()
    said = run("inspect", *files, *([] if len(files) > 1 else ["new.csv"])).stdout
    assert "3 categories: heavy, light, none" in said
    assert "Parameters: " in said and "damping" in said.split("Parameters: ")[1]
    command = shlex.split(said.splitlines()[-1])[1:]
    command = [word for word in command if word != "--report"]
    more = [] if "--out" in command else ["--queries", "new.csv", "--out", "answers.csv"]
    assert run(*command, *more, "--model", "rbf").exit_code == 0, said
    np.testing.assert_allclose(answers(), EXPECTED, atol=1e-9)


def test_bands_and_the_general_model():
    RUNS.to_csv("a.csv", index=False)
    regress("a.csv", "--band", "0.9", model="general")
    mean, low, high = transduce.regress(None, U, parameters=P).predict(Q, band=0.9)
    np.testing.assert_allclose(answers(), np.hstack([mean, low, high]), atol=1e-6)


def test_numbers_as_outputs_keep_their_names():
    table = P.assign(top=U.max(1), y1=U[:, 3], y2=U[:, 5])
    table.to_csv("a.csv", index=False)
    regress("a.csv", "--u", "y1,y2,top", "--band", "0.9")
    columns = [f"{name}{end}" for end in ("", "_low", "_high") for name in ("y1", "y2", "top")]
    assert list(pd.read_csv("answers.csv").columns) == ["id", *columns]
    outputs = table[["y1", "y2", "top"]]
    expected = transduce.regress(None, outputs, parameters=P, model="rbf")(Q)
    np.testing.assert_allclose(answers()[:, :3], expected, atol=1e-9)
    regress("a.csv", "--u", "top", "--parameters", "mass,stiffness,damping,clamped")
    assert list(pd.read_csv("answers.csv").columns) == ["id", "top"]
    said = run("inspect", "a.csv", "new.csv").stdout
    assert "--u top,y1,y2" in said.splitlines()[-1], said
    assert "--u y" in run("inspect", "a.csv").stdout.splitlines()[-1]


def test_functions_to_a_few_numbers():
    table = CURVES.assign(y1=U[:, 3], y2=U[:, 5])
    table.to_csv("a.csv", index=False)
    CURVES[:3].to_csv("v.csv", index=False)
    for words in (["a.csv", "--v", "disp"], ["a.csv", "--u", "y1,y2"]):
        regress(*words, queries="v.csv")
        assert list(pd.read_csv("answers.csv").columns) == ["y1", "y2"]
        np.testing.assert_allclose(pd.read_csv("answers.csv"), table[["y1", "y2"]][:3], rtol=0.1)


def test_single_columns_next_to_v_and_u():
    v = CURVES.rename(columns=lambda name: name.replace("disp", "v"))
    u = (
        CURVES.rename(columns=lambda name: name.replace("disp", "u"))
        * P["mass"].to_numpy()[:, None]
    )
    pd.concat([v, P, u], axis=1).to_csv("a.csv", index=False)
    left = regress("a.csv", queries="a.csv").stderr
    assert "left out (mass, stiffness, damping, clamped); --parameters all" in left
    for names in ("mass,damping", "all"):
        result = regress("a.csv", "--parameters", names, queries="a.csv", model="general")
        assert not result.stderr
    chosen = P[["mass", "damping"]]
    regress("a.csv", "--parameters", "mass,damping", queries="a.csv", model="general")
    expected = transduce.regress(v.to_numpy(), u.to_numpy(), parameters=chosen)(
        v.to_numpy(), parameters=chosen
    )
    np.testing.assert_allclose(pd.read_csv("answers.csv"), expected, atol=1e-5)


@pytest.mark.parametrize("suffix", [".npz", ".nc", ".h5", ".mat"])
def test_arrays_called_parameters(suffix):
    numbers = P[["mass", "stiffness"]].to_numpy(float)
    write_arrays(f"a{suffix}", {"parameters": numbers, "u": U, "x": 5 * T})
    write_arrays(f"q{suffix}", {"parameters": numbers[:3]})
    regress(f"a{suffix}", queries=f"q{suffix}", out=f"u{suffix}")
    expected = transduce.regress(None, U, parameters=numbers, x_u=5 * T, model="rbf")(numbers[:3])
    np.testing.assert_allclose(read_variable(f"u{suffix}", "u"), expected, atol=1e-9)
    said = run("inspect", f"a{suffix}", f"q{suffix}").stdout
    assert run(*shlex.split(said.splitlines()[-1])[1:], "--model", "rbf").exit_code == 0


def test_many_numbers_are_a_curve_unless_named():
    wide = pd.DataFrame(RNG.normal(size=(24, 9)), columns=list("abcdefghi"))
    wide.to_csv("p.csv", index=False)
    CURVES.to_csv("u.csv", index=False)
    words = ("--queries", "p.csv", "--model", "rbf", "--report", "--force")
    said = run("regress", "--examples", "p.csv", "--outputs", "u.csv", "--out", "a.csv", *words)
    assert "curves of 9 points to curves" in said.stdout
    inspected = run("inspect", "p.csv", "u.csv").stdout.splitlines()[-1]
    assert "--parameters all" in inspected
    said = run(*shlex.split(inspected)[1:], "--model", "rbf").stdout
    assert "9 numbers to curves" in said
    regress("p.csv", "--outputs", "u.csv", "--parameters", "a,c", queries="p.csv")


def test_short_runs_of_numbered_columns_are_parameters():
    pair = pd.DataFrame({"k1": P["mass"], "k2": P["stiffness"], "load": 1 + P["mass"] ** 2})
    pd.concat([pair, CURVES], axis=1).to_csv("a.csv", index=False)
    assert pairs_of("a.csv").v.layout.names == ("k1", "k2", "load")
    pair.rename(columns={"load": "y"}).to_csv("b.csv", index=False)
    assert pairs_of("b.csv").v.layout.names == ("k1", "k2")


def test_one_number_and_one_function_are_read_in_their_order():
    CURVES.assign(fat=P["mass"]).to_csv("a.csv", index=False)
    assert pairs_of("a.csv").u.layout.shape == ()
    CURVES.assign(fat=P["mass"])[["fat", *CURVES]].to_csv("b.csv", index=False)
    with pytest.warns(UserWarning, match=r"fat\) are read as inputs.*--v disp --u fat"):
        assert pairs_of("b.csv").v.layout.names == ("fat",)


def test_gaps_in_parameters():
    gaps = RUNS.copy()
    gaps.loc[3, "damping"], gaps.loc[5, "mass"] = None, np.nan
    gaps.to_csv("a.csv", index=False)
    assert "'damping'" in fails("regress", "--examples", "a.csv", "--report")
    said = run("inspect", "a.csv").stdout
    assert "none, 1 missing" in said and "1 missing in 1 of 24 rows" in said
    assert "--missing drop" in said.splitlines()[-1]
    assert len(pairs_of("a.csv", missing="drop")) == 22


def test_words_for_truth_and_gaps_are_the_same_in_all_formats():
    P.assign(clamped=P["clamped"].map({True: "TRUE", False: "false"})).to_csv("a.csv", index=False)
    with opened("a.csv") as file:
        frame = file.frame(("clamped", "damping"))
    assert frame["clamped"].dtype == bool and set(frame["damping"]) == {"heavy", "light", "none"}


def test_designs_with_names_of_positions_are_rows():
    """height, angle and time are parameters here, and not positions of a long table."""
    table = pd.DataFrame({"id": range(24), "height": P["mass"], "angle": P["stiffness"]})
    table.to_csv("p.csv", index=False)
    CURVES.to_csv("u.csv", index=False)
    pairs = pairs_of("p.csv", outputs="u.csv")
    assert pairs.v.layout.names == ("height", "angle")
    pd.concat([P[["mass"]].set_axis(["time"], axis=1), CURVES], axis=1).to_csv("a.csv", index=False)
    with pytest.warns(UserWarning, match="single columns"):
        assert pairs_of("a.csv").v.layout.names == ("time",)
    CURVES.assign(time=np.arange(24) * 8)[["time", *CURVES]].to_csv("b.csv", index=False)
    with opened("b.csv") as file:
        assert file.singles == () and "'time' labels the rows" in file.notes[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("a.csv --parameters mas", "has no column 'mas'; its columns are mass, stiffness"),
        ("a.csv --u disp,damping", "no column 'disp'"),
        ("a.csv --u mass,damping", "'damping' of a.csv holds text"),
        ("a.csv --u mass --parameters mass", "--parameters names mass, which are v or u"),
        ("a.csv --model adr", "has parameters as the only inputs"),
        ("a.csv --model adr --parameters all", "a model of a family"),
        ("a.npz --parameters mass", "a.npz is none with a header"),
        ("p.csv", "no variables called v and u"),
        ("f.csv", "one function, disp, and 2 single columns"),
    ],
)
def test_what_is_said_about_columns(words, message):
    RUNS.to_csv("a.csv", index=False)
    P.to_csv("p.csv", index=False)
    CURVES.assign(a=1.0, b=2.0).to_csv("f.csv", index=False)
    np.savez("a.npz", v=U, u=U)
    result = run("regress", "--examples", *words.split(), "--report")
    assert result.exit_code == 2 and message in result.stderr, result.output


def test_queries_without_a_column():
    RUNS.to_csv("a.csv", index=False)
    files = ("regress", "--examples", "a.csv", "--out", "u.csv", "--queries", "q.csv")
    Q.drop(columns="damping").assign(other=1.0).to_csv("q.csv", index=False)
    assert "q.csv has no column 'damping'" in fails(*files, "--model", "rbf")
    assert "no column 'damping'" in run("inspect", "a.csv", "q.csv").stdout
    Q.assign(damping="strong").to_csv("q.csv", index=False)
    assert "'strong'; expected one of 'heavy', 'light', 'none'" in fails(*files, "--model", "rbf")


def test_variables_of_data_frames():
    several = pd.concat([CURVES, CURVES.add_prefix("b")], axis=1)
    rdata.write_rda("a.rda", {"d": several, "e": CURVES, "n": np.arange(3.0)})
    with opened("a.rda") as file:
        assert {"d.disp", "d.bdisp", "e", "n"} <= set(file.names)
        np.testing.assert_array_equal(file.fetch("d.bdisp"), U)
        np.testing.assert_array_equal(file.fetch("e"), U)
    with opened_pairs("a.rda", Choice("d.disp", "d.bdisp")) as file:
        np.testing.assert_array_equal(file.fetch("u"), U)
