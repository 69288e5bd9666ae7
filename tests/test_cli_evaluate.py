"""`transduce evaluate`: it measures what it is asked, writes the command that repeats it, and
answers bad input with one line."""

import json
import shlex

import numpy as np
import pytest
from conftest import fails, run

from transduce.baselines import Identity, MeanOfExamples
from transduce.evaluation import evaluate, summarise
from transduce.families import AdvectionDiffusionReaction, Burgers2d
from transduce.metatraining import described
from transduce.random_fields import generator_for
from transduce.storage import write_arrays


def without_seconds(out):
    """The rows of a results file, but for what no two runs share."""
    return [
        {key: value for key, value in row.items() if key != "seconds"}
        for row in json.loads(out.read_text())["rows"]
    ]


def test_evaluate(model, tmp_path):
    out = tmp_path / "results.json"
    arguments = (
        "evaluate",
        model,
        "adr-softmax",
        "mean",
        "--n",
        "4,2",
        "--operators",
        2,
        "--seed",
        3,
        "--k-max",
        0.1,
        "--out",
        out,
    )
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    results = json.loads(out.read_text())
    assert results["seed"] == 3
    assert "k_max=0.1" in results["family"]
    assert {"versions", "machine"} <= results.keys()
    names = [str(model), "adr-softmax", "mean", "kernel-ridge"]
    assert all(
        name in result.stdout for name in (*names, "median", "pooled", "relative_l2", "seconds")
    )
    assert [(row["regressor"], row["n"]) for row in results["rows"]] == [
        (name, n) for name in names for n in (2, 4)
    ]
    assert all(
        row[what] > 0
        for row in results["rows"]
        for what in ("mean", "median", "pooled", "relative_l2", "seconds")
    )
    assert "exists already" in fails(*arguments)
    first, *command = shlex.split(results["command"])
    assert first == "transduce"
    assert run(*command, "--out", tmp_path / "again.json").exit_code == 0
    assert without_seconds(tmp_path / "again.json") == without_seconds(out)


def test_evaluate_names_kernel_ridge_once(tmp_path):
    out = tmp_path / "results.json"
    assert (
        run("evaluate", "kernel-ridge", "mean", "--n", 2, "--operators", 1, "--out", out).exit_code
        == 0
    )
    assert [row["regressor"] for row in without_seconds(out)] == ["kernel-ridge", "mean"]


def test_evaluate_out_of_distribution(tmp_path):
    out = tmp_path / "results.json"
    changed = {"k_max": 0.0, "length_scale": 0.4, "t": 0.5, "v_length_scale": 0.1}
    flags = [
        part for name, value in changed.items() for part in (f"--{name.replace('_', '-')}", value)
    ]
    result = run(
        "evaluate", "mean", "--n", 3, "--operators", 2, "--queries", 4, *flags, "--out", out
    )
    assert result.exit_code == 0, result.output
    family = AdvectionDiffusionReaction(**changed)
    (expected,) = summarise(evaluate(MeanOfExamples(), family, 3, 2, generator_for("test", 0), 4))
    measured = without_seconds(out)[0]
    assert measured["mean"] == expected["mean"] and measured["functions"] == 8


def test_evaluate_on_burgers(tmp_path):
    out = tmp_path / "results.json"
    flags = (
        "--amplitude",
        0.2,
        "--nu",
        "0.2,0.3",
        "--start",
        1,
        "--increment",
        "0.5,1",
        "--resolution",
        96,
    )
    result = run(
        "evaluate",
        "identity",
        "--family",
        "burgers",
        *flags,
        "--n",
        3,
        "--operators",
        2,
        "--queries",
        2,
        "--out",
        out,
    )
    assert result.exit_code == 0, result.output
    assert (
        "family = burgers, amplitude = 0.2, nu = 0.2,0.3, start = 1.0, increment = 0.5,1.0, "
        "resolution = 96" in " ".join(result.stdout.split())
    )
    family = Burgers2d(amplitude=0.2, nu=(0.2, 0.3), start=1.0, increment=(0.5, 1.0), resolution=96)
    (expected,) = summarise(evaluate(Identity(), family, 3, 2, generator_for("test", 0), 2))
    results = json.loads(out.read_text())
    assert results["rows"][0]["mean"] == expected["mean"] and results["family"] == described(family)
    assert (
        run(*shlex.split(results["command"])[1:], "--out", tmp_path / "again.json").exit_code == 0
    )
    assert without_seconds(tmp_path / "again.json") == without_seconds(out)


OF_ADR = ("--k-max", "--length-scale", "--t", "--v-length-scale")
OF_BURGERS = ("--amplitude", "--nu", "--start", "--increment")


def test_evaluate_with_the_options_of_the_other_family():
    for flag in OF_ADR:
        line = fails("evaluate", "mean", "--family", "burgers", flag, 0.2)
        assert (
            f"{flag} of the family adr was given for burgers; expected options of its own, "
            "--amplitude, --nu, --start, --inc" in line
        )
    for flag in OF_BURGERS:
        for named in ((), ("--family", "adr")):
            line = fails("evaluate", "mean", *named, flag, 0.2)
            assert (
                f"{flag} of the family burgers was given for adr; expected options of its own, "
                "--k-max, --length-scale, --t, --v" in line
            )


def test_evaluate_on_a_bad_family(model):
    assert "no family is called 'kdv'; known: adr, burgers" in fails(
        "evaluate", "mean", "--family", "kdv"
    )
    assert "nu=(0.5, 0.1); expected a number from 0" in fails(
        "evaluate", "mean", "--family", "burgers", "--nu", "0.5,0.1"
    )
    few = ("--n", 1, "--queries", 1, "--operators", 1, "--increment", 1)
    assert "tiny.safetensors: examples.v has shape (1, 2, 64, 64); this model" in fails(
        "evaluate", model, "--family", "burgers", *few
    )


# Zero at both ends.
OPERATORS = np.pad(np.random.default_rng(1).standard_normal((3, 12, 31)), ((0, 0), (0, 0), (1, 1)))
OWN = {"v": OPERATORS, "u": OPERATORS * np.arange(1, 4)[:, None, None]}


@pytest.mark.parametrize("suffix", [".npz", ".nc", ".h5", ".zarr"])
def test_evaluate_on_data_of_ones_own(model, tmp_path, suffix):
    data, out = tmp_path / f"mine{suffix}", tmp_path / "results.json"
    write_arrays(data, OWN)
    result = run("evaluate", model, "linear-ridge", "--data", data, "--queries", 2, "--out", out)
    assert result.exit_code == 0, result.output
    assert data.name in result.stdout
    rows = without_seconds(out)
    # Of the usual sizes, what fits beside the queries.
    assert [row["n"] for row in rows if row["regressor"] == "linear-ridge"] == [
        5,
        10,
    ]
    assert {(row["operators"], row["functions"]) for row in rows} == {(3, 6)}
    command = shlex.split(json.loads(out.read_text())["command"])[1:]
    assert f"--data {data}" in " ".join(command) and "--k-max" not in command
    assert run(*command, "--out", tmp_path / "again.json").exit_code == 0
    assert without_seconds(tmp_path / "again.json") == rows


def test_evaluate_on_more_than_is_stored(model, tmp_path):
    data = tmp_path / "mine.npz"
    write_arrays(data, OWN)
    asked = ("evaluate", model, "--data", data)
    assert "n = 1 examples and 50 queries need 51 pairs" in fails(*asked)
    assert "Ask for n up to 10" in fails(*asked, "--queries", 2, "--n", "5,11")
    assert "4 operators were asked for" in fails(*asked, "--queries", 2, "--operators", 4)
    result = run(*asked, "--queries", 11)
    assert result.exit_code == 0, result.output


def test_evaluate_on_data_with_the_options_of_a_family(tmp_path):
    write_arrays(tmp_path / "mine.npz", OWN)
    values = {flag: 0.2 for flag in (*OF_ADR, *OF_BURGERS)} | {
        "--resolution": 64,
        "--family": "adr",
    }
    for flag, value in values.items():
        assert f"{flag} of a family and --data" in fails(
            "evaluate", "mean", "--data", tmp_path / "mine.npz", flag, value
        )


BAD_DATA = {
    "channels": (
        {"v": OPERATORS[:, :, None], "u": OPERATORS},
        "tiny.safetensors: examples.v has shape (5, 1, 33); this model expects",
    ),
    "dimensions": (
        {"v": OPERATORS, "u": OPERATORS.reshape(3, 12, 3, 11)},
        "tiny.safetensors: examples.u has shape (5, 3, 11)",
    ),
    "one operator": ({"v": OPERATORS[0], "u": OPERATORS[0]}, "expected (operator, example, *grid)"),
    "no u": ({"v": OPERATORS}, "has no variable 'u'; it has v"),
}


@pytest.mark.parametrize(("arrays", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_evaluate_on_bad_data(model, tmp_path, arrays, message):
    write_arrays(tmp_path / "mine.npz", arrays)
    assert message in fails(
        "evaluate", "mean", model, "--data", tmp_path / "mine.npz", "--queries", 2
    )


@pytest.mark.parametrize("n", ["5,x", "0", "", "5;10"])
def test_evaluate_at_no_numbers(model, n):
    result = run("evaluate", model, "--n", n)
    assert result.exit_code == 2
    assert "expected numbers from 1" in result.stderr


def test_evaluate_with_bad_input(model, tmp_path):
    line = fails("evaluate", "atlantis")
    assert (
        "no regressor is called 'atlantis'; models: adr, adr-softmax, " in line
        and "; baselines: mean, " in line
        and "kernel-ridge" in line
    )
    assert "there is no file" in fails("evaluate", tmp_path / "missing.safetensors")
    assert "there is no file" in fails("evaluate", model, "--data", tmp_path / "missing.zarr")
    assert "expected one of .json" in fails("evaluate", model, "--out", tmp_path / "a.csv")
    assert run("evaluate").exit_code == 2
    assert run("evaluate", model, "--queries", 0).exit_code == 2
