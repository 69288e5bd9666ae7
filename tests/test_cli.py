"""The command line: every verb does its work, says it in a line, and answers bad input with one
line and exit code 2."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import fails, run

from transduce import Euclidean, Training, __version__, models, recipes, weights
from transduce.families import AdvectionDiffusionReaction, Burgers2d
from transduce.storage import StoredFamily, read_variable, write_arrays
from transduce.transducer import Transducer
from transduce.types import ExampleSet, TransduceError

RNG = np.random.default_rng(0)
# Zero at both ends.
V, U, QUERIES = (
    np.pad(RNG.standard_normal((n, 31)), ((0, 0), (1, 1))).astype(np.float32) for n in (5, 5, 3)
)


@pytest.fixture
def asked(model, tmp_path):
    """The arguments of `regress`, as a function of the suffix."""

    def arguments(suffix=".npz", *more):
        write_arrays(tmp_path / f"pairs{suffix}", {"v": V, "u": U}, force=True)
        write_arrays(tmp_path / f"v{suffix}", {"v": QUERIES}, force=True)
        files = (
            "--examples",
            tmp_path / f"pairs{suffix}",
            "--queries",
            tmp_path / f"v{suffix}",
            "--out",
            tmp_path / f"u{suffix}",
        )
        return ("regress", "--model", model, *files, *more)

    return arguments


def test_version():
    assert run("--version").stdout == f"transduce {__version__}\n"


def test_as_a_module():
    result = subprocess.run(
        [sys.executable, "-m", "transduce", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"transduce {__version__}\n"


@pytest.mark.parametrize("verb", ["regress", "train", "generate", "evaluate"])
def test_help_shows_an_example(verb):
    result = run(verb, "--help")
    assert result.exit_code == 0
    assert f"Example: transduce {verb} " in result.stdout


def test_only_the_first_process_of_torchrun_speaks(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    result = run("--version")
    assert result.exit_code == 0
    assert result.output == ""


@pytest.mark.parametrize("suffix", [".npz", ".nc", ".h5", ".zarr"])
def test_regress_writes_what_the_model_answers(asked, model, tmp_path, suffix):
    result = run(*asked(suffix))
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    assert "n = 5 examples, 3 queries" in line
    assert line.endswith(f" ms, written to {tmp_path / f'u{suffix}'}")
    expected = Transducer.from_pretrained(str(model)).regress(ExampleSet(V, U))(QUERIES)
    np.testing.assert_allclose(read_variable(tmp_path / f"u{suffix}", "u"), expected, atol=1e-6)


def test_regress_from_one_format_to_another_at_other_points(asked, tmp_path):
    result = run(*asked(".npz", "--at", 65, "--out", tmp_path / "u.zarr"))
    assert result.exit_code == 0, result.output
    assert read_variable(tmp_path / "u.zarr", "u").shape == (3, 65)


def test_regress_keeps_coordinates(asked, tmp_path):
    arguments = asked(".nc")
    v = xr.DataArray(
        QUERIES, dims=("run", "x"), coords={"run": [7, 8, 9], "x": np.linspace(0, 1, 33)}
    )
    write_arrays(tmp_path / "v.nc", {"v": v}, force=True)
    assert run(*arguments).exit_code == 0
    assert read_variable(tmp_path / "u.nc", "u").run.values.tolist() == [7, 8, 9]


def test_regress_with_other_names(asked, tmp_path):
    arguments = asked(".npz", "--v", "before", "--u", "after")
    write_arrays(tmp_path / "pairs.npz", {"before": V, "after": U}, force=True)
    write_arrays(tmp_path / "v.npz", {"before": QUERIES}, force=True)
    assert run(*arguments).exit_code == 0
    assert read_variable(tmp_path / "u.npz", "after").shape == (3, 33)


@pytest.mark.parametrize("suffix", [".npz", ".nc"])
def test_regress_from_scattered_sensors(asked, model, tmp_path, suffix):
    arguments = asked(suffix)
    sensors, others = RNG.uniform(size=33), np.linspace(0, 1, 33)
    write_arrays(tmp_path / f"pairs{suffix}", {"v": V, "u": U, "x": sensors}, force=True)
    O = Transducer.from_pretrained(str(model)).regress(ExampleSet(V, U, x=sensors))
    for stored, x in (
        ({"v": QUERIES}, None),
        ({"v": QUERIES, "x": others}, others),
    ):  # the examples' own, or a grid's
        write_arrays(tmp_path / f"v{suffix}", stored, force=True)
        assert run(*arguments, "--force").exit_code == 0
        np.testing.assert_allclose(
            read_variable(tmp_path / f"u{suffix}", "u"), O(QUERIES, x=x), atol=1e-5
        )
        np.testing.assert_array_equal(read_variable(tmp_path / f"u{suffix}", "x"), sensors)


def test_regress_warns_in_one_line(asked, tmp_path):
    arguments = asked()
    write_arrays(tmp_path / "v.npz", {"v": np.pad(QUERIES[:, 1:5], ((0, 0), (1, 1)))}, force=True)
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("transduce: warning: ")
    assert "6 points, enough for 4 modes" in line


def test_regress_overwrites_only_with_force(asked, tmp_path):
    (tmp_path / "u.npz").write_text("precious")
    said = fails(*asked())
    assert "exists already. Give another path, or --force to replace it" in said
    assert "force=True" not in said
    assert (tmp_path / "u.npz").read_text() == "precious"
    assert run(*asked(".npz", "--force")).exit_code == 0
    assert read_variable(tmp_path / "u.npz", "u").shape == (3, 33)


def test_regress_that_fails_leaves_no_file(asked, tmp_path):
    arguments = asked()
    write_arrays(tmp_path / "v.npz", {"v": np.full((3, 33), np.nan)}, force=True)
    before = sorted(tmp_path.iterdir())
    assert "v[0, 0] is nan" in fails(*arguments)
    assert sorted(tmp_path.iterdir()) == before


IMAGES = {
    "recipe": (
        lambda V: models.softmax(V, Euclidean(10), depth=1, heads=1, width=4, hidden=8),
        {"recipe": {"name": "images-softmax"}},
    ),
    "kernel": (
        lambda V: models.images(V, Euclidean(10), convolutions=(2, 2), width=4),
        {},
    ),
}


@pytest.fixture
def of_images(request, tmp_path):
    """The arguments of `regress` of an untrained model of images, as a function of pairs and
    queries."""
    torch.manual_seed(0)
    make, card = IMAGES[getattr(request, "param", "recipe")]
    make(Euclidean(784, power=0.5)).save_pretrained(tmp_path / "images.safetensors", **card)

    def arguments(v, u, queries):
        write_arrays(tmp_path / "pairs.npz", {"v": v, "u": u}, force=True)
        write_arrays(tmp_path / "v.npz", {"v": queries}, force=True)
        files = (
            "--examples",
            tmp_path / "pairs.npz",
            "--queries",
            tmp_path / "v.npz",
            "--out",
            tmp_path / "u.npz",
        )
        return ("regress", "--model", tmp_path / "images.safetensors", *files, "--force")

    return arguments


@pytest.mark.parametrize("of_images", IMAGES, indirect=True)
def test_regress_of_images_wants_classes_and_pixels_from_0_to_1(of_images, tmp_path):
    v, u, queries = RNG.uniform(size=(5, 784)), np.eye(10)[:5], RNG.uniform(size=(3, 784))
    assert run(*of_images(v, u, queries)).exit_code == 0
    for other in (np.arange(5), np.arange(5)[:, None], u[:, :5], 3 * u):
        said = fails(*of_images(v, other, queries))
        assert (
            f"has shape {other.shape}; this model classifies images and expects one-hot classes "
            "of 10 columns" in said
        )
        assert said.endswith("For labels, use transduce.sklearn.TransducerClassifier.")
    for spoilt, where in (
        ((np.round(255 * v), u, queries), "pairs.npz"),
        ((v, u, (255 * queries).astype(np.uint8)), "v.npz"),
    ):
        said = fails(*of_images(*spoilt))
        assert f"v in {tmp_path / where} has values from 0 to 25" in said
        assert said.endswith("expected pixels from 0 to 1. Divide them by the greatest, like 255.")
    assert "v.npz[0, 0] is nan" in fails(*of_images(v, u, np.full((3, 784), np.nan)))


@pytest.mark.parametrize(
    ("size", "card"), [(64, IMAGES["recipe"][1]), (784, {}), (784, {"recipe": "mine"})], ids=str
)
def test_regress_of_other_vectors_takes_any_values(tmp_path, of_images, size, card):
    IMAGES["recipe"][0](Euclidean(size)).save_pretrained(tmp_path / "images.safetensors", **card)
    assert (
        run(
            *of_images(255 * V[:, :1] + np.zeros(size), U[:, :10], QUERIES[:, :1] - np.zeros(size))
        ).exit_code
        == 0
    )


BAD_EXAMPLES = {
    "no examples": ({"v": V[:0], "u": U[:0]}, "no examples"),
    "unequal n": ({"v": V, "u": U[:4]}, "examples.v holds 5 functions and examples.u 4"),
    "wrong rank": ({"v": V[0], "u": U}, "examples.v has shape (33,)"),
    "channels": ({"v": V[:, None], "u": U}, "examples.v has shape (5, 1, 33)"),
    "too coarse": ({"v": V[:, :3], "u": U}, "3 points, enough for 1 modes"),
    "infinity": ({"v": V, "u": np.where(np.arange(33) == 4, np.inf, U)}, "examples.u[0, 4] is inf"),
    "complex": (
        {"v": V + 1j, "u": U},
        "complex128 values" if (V + 1j).dtype == np.complex128 else "complex64 values",
    ),
    "strings": ({"v": V.astype(str), "u": U}, "expected real numbers"),
    "no u": ({"v": V}, "has no variable 'u'; it has v"),
    "few sensors": (
        {"v": V[:, :5], "u": U[:, :5], "x": np.linspace(0, 1, 5)},
        "5 sensors are too few",
    ),
}


@pytest.mark.parametrize(("arrays", "message"), BAD_EXAMPLES.values(), ids=BAD_EXAMPLES)
def test_regress_from_bad_examples(asked, tmp_path, arrays, message):
    arguments = asked()
    write_arrays(tmp_path / "pairs.npz", arrays, force=True)
    assert message in fails(*arguments)


def test_regress_from_integers(asked, tmp_path):
    arguments = asked()
    write_arrays(tmp_path / "pairs.npz", {"v": V.astype(int), "u": U}, force=True)
    assert run(*arguments).exit_code == 0


def test_regress_from_bad_files(asked, tmp_path):
    arguments = asked()
    pairs = tmp_path / "pairs.npz"
    whole = pairs.read_bytes()
    pairs.write_bytes(whole[: len(whole) // 2])
    assert "truncated or damaged" in fails(*arguments)
    pairs.write_bytes(b"v,u\n1,2\n")
    assert "should be npz by its suffix" in fails(*arguments)
    pairs.unlink()
    assert "there is no file" in fails(*arguments)
    assert "'.xlsx'; expected one of .npz, .nc, .h5, .hdf5, .zarr" in fails(
        *arguments, "--examples", tmp_path / "pairs.xlsx"
    )
    assert "is not a folder" in fails(*arguments, "--out", tmp_path / "missing" / "u.npz")
    assert "'.doc'; expected one of" in fails(*arguments, "--out", tmp_path / "u.doc")


def test_regress_with_a_bad_model(asked, model):
    assert "no model is called 'atlantis'" in fails(*asked(), "--model", "atlantis")
    model.write_bytes(model.read_bytes()[:100])
    assert "not a safetensors file, or is truncated" in fails(*asked())


def test_generate(tmp_path):
    arguments = (
        "generate",
        "adr",
        "--operators",
        2,
        "--examples",
        3,
        "--workers",
        1,
        "--out",
        tmp_path / "a.zarr",
    )
    result = run(
        *arguments, "--seed", 5, "--split", "test", "--k-max", 0, "--length-scale", 0.3, "--t", 0.5
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("adr: 2 operators of 3 examples")
    assert StoredFamily(tmp_path / "a.zarr").v.shape == (2, 3, 101)
    attributes = xr.open_zarr(tmp_path / "a.zarr", consolidated=False).attrs
    assert {
        "seed": 5,
        "split": "test",
        "k_max": 0.0,
        "length_scale": 0.3,
        "t": 0.5,
    }.items() <= attributes.items()
    assert "exists already" in fails(*arguments)
    assert run(*arguments, "--force").exit_code == 0


@pytest.fixture
def generated(monkeypatch):
    """The families that `generate` was asked for, nothing being drawn."""
    families = []
    monkeypatch.setattr(
        "transduce.generation.generate", lambda family, *_, **__: families.append(family)
    )
    return families


def test_generate_burgers(tmp_path):
    flags = (
        "--amplitude",
        "0.1,0.3",
        "--nu",
        0.2,
        "--start",
        1,
        "--increment",
        "1,2",
        "--workers",
        1,
    )
    result = run(
        "generate",
        "burgers",
        "--operators",
        2,
        "--examples",
        3,
        *flags,
        "--out",
        tmp_path / "b.zarr",
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("burgers: 2 operators of 3 examples")
    assert StoredFamily(tmp_path / "b.zarr").v.shape == (2, 3, 2, 64, 64)
    stored = xr.open_zarr(tmp_path / "b.zarr", consolidated=False)
    assert {
        "amplitude": [0.1, 0.3],
        "nu": 0.2,
        "start": 1.0,
        "increment": [1.0, 2.0],
    }.items() <= stored.attrs.items()
    assert 1 < float(stored.increment.min()) < float(stored.increment.max()) < 2


def test_generate_burgers_as_it_is_by_default(generated, tmp_path):
    assert run("generate", "burgers", "--out", tmp_path / "b.zarr").exit_code == 0
    assert generated == [Burgers2d()]


def test_generate_with_the_options_of_the_other_family(generated, tmp_path):
    out = ("--out", tmp_path / "a.zarr")
    for flag in ("--k-max", "--length-scale", "--t"):
        line = fails("generate", "burgers", flag, 0.2, *out)
        assert (
            f"{flag} of the family adr was given for burgers; expected options of its own, "
            "--amplitude, --nu, --start, --inc" in line
        )
    for flag in ("--amplitude", "--nu", "--start", "--increment"):
        line = fails("generate", "adr", flag, 0.2, *out)
        assert (
            f"{flag} of the family burgers was given for adr; expected options of its own, "
            "--k-max, --length-scale, --t" in line
        )
    assert generated == []


@pytest.mark.parametrize("nu", ["", "x", "0.1,", "0.1,0.2,0.3", "0.1;0.2"])
def test_generate_from_what_is_no_range(generated, tmp_path, nu):
    result = run("generate", "burgers", "--nu", nu, "--out", tmp_path / "a.zarr")
    assert result.exit_code == 2
    assert "expected a number, or two with a comma between" in result.stderr


def test_generate_from_a_range_upside_down(generated, tmp_path):
    assert "nu=(0.5, 0.1); expected a number from 0, or (low, high)" in fails(
        "generate", "burgers", "--nu", "0.5,0.1", "--out", tmp_path / "a.zarr"
    )


def test_generate_from_bad_requests(tmp_path):
    assert "no family is called 'kdv'; known: adr, burgers" in fails(
        "generate", "kdv", "--out", tmp_path / "a.zarr"
    )
    assert "split='exam'" in fails(
        "generate", "adr", "--split", "exam", "--out", tmp_path / "a.zarr"
    )
    assert "expected one of .zarr" in fails("generate", "adr", "--out", tmp_path / "a.nc")
    assert run("generate", "adr", "--operators", 0, "--out", tmp_path / "a.zarr").exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def tiny_recipe(monkeypatch):
    """A recipe that trains in a second, under the name "tiny"."""
    space = {"space": "SineModes", "modes": 8}
    sizes = {"depth": 1, "heads": 1, "width": 4, "hidden": 8}
    model = {"model": "softmax", "V": space, "U": space, **sizes}
    training = Training(steps=2, tasks=2, n=(3, 6), queries=2, validation_tasks=1)
    family = AdvectionDiffusionReaction(points=41, steps=2)
    monkeypatch.setitem(
        recipes.RECIPES,
        "tiny",
        recipes.Recipe("tiny", model, training, operators=2, examples=10, family=family),
    )


def test_train_from_the_family_and_go_on(tiny_recipe, tmp_path):
    out = tmp_path / "runs" / "tiny"
    for steps in (2, 3):
        result = run("train", "tiny", "--out", out, "--steps", steps)
        assert result.exit_code == 0, result.output
        assert re.fullmatch(
            r"tiny: validation error \S+, \d+ s with data and start-up, weights in "
            r"\S+tiny.safetensors\n",
            result.stdout,
        )
        _, card = weights.load(out / "tiny.safetensors")
        assert card["recipe"]["training"]["steps"] == steps
    assert [json.loads(line)["step"] for line in (out / "log.jsonl").read_text().splitlines()] == [
        2,
        3,
    ]


def test_train_from_weights(tiny_recipe, tmp_path):
    assert run("train", "tiny", "--out", tmp_path / "first", "--on-the-fly").exit_code == 0
    first = tmp_path / "first" / "tiny.safetensors"
    assert (
        run(
            "train",
            "tiny",
            "--out",
            tmp_path / "second",
            "--on-the-fly",
            "--start",
            first,
            "--rate",
            1e-6,
        ).exit_code
        == 0
    )
    (before, _), (after, card) = (
        weights.load(first),
        weights.load(tmp_path / "second" / "tiny.safetensors"),
    )
    assert card["start"]["recipe"]["training"]["lr"] == pytest.approx(
        1e6 * card["recipe"]["training"]["lr"]
    )
    for key, value in before.items():
        torch.testing.assert_close(after[key], value, rtol=0, atol=1e-6)


def test_train_until_an_error(tiny_recipe, tmp_path):
    assert run("train", "tiny", "--out", tmp_path / "near", "--until", 1e9).exit_code == 0
    result = run("train", "tiny", "--out", tmp_path / "far", "--until", 1e-9)
    assert result.exit_code == 2
    assert "above the 1e-09 asked for" in result.stderr.splitlines()[-1]
    assert (tmp_path / "far" / "tiny.safetensors").exists()


def test_train_on_the_fly(tiny_recipe, tmp_path):
    assert run("train", "tiny", "--out", tmp_path, "--on-the-fly").exit_code == 0
    assert not list(tmp_path.glob("*.zarr"))


def test_train_on_data_of_ones_own(tiny_recipe, tmp_path):
    f = np.random.default_rng(0).normal(size=(3, 55, 11))
    np.savez(tmp_path / "mine.npz", v=f, u=2 * f)
    assert (
        run("train", "tiny", "--out", tmp_path / "mine", "--data", tmp_path / "mine.npz").exit_code
        == 0
    )
    _, card = weights.load(tmp_path / "mine" / "tiny.safetensors")
    assert card["recipe"]["training"]["n"] == [3, 5]  # what 55 pairs leave beside 50 queries
    np.savez(tmp_path / "few.npz", v=f[:, :50], u=f[:, :50])
    assert "holds 50 pairs of each operator; expected more than 50" in fails(
        "train", "tiny", "--out", tmp_path / "few", "--data", tmp_path / "few.npz"
    )
    np.savez(tmp_path / "flat.npz", v=f[:, :, None], u=f)
    assert "this model expects (n, points)" in fails(
        "train", "tiny", "--out", tmp_path / "flat", "--data", tmp_path / "flat.npz"
    )


def test_train_with_bad_input(tiny_recipe, tmp_path):
    assert "no recipe is called 'atlantis'" in fails("train", "atlantis")
    (tmp_path / "file").write_text("")
    assert "is not a folder and cannot be made one" in fails(
        "train", "tiny", "--out", tmp_path / "file" / "tiny"
    )
    assert run("train", "tiny", "--out", tmp_path / "tiny", "--steps", 3).exit_code == 0
    assert "has taken 3 steps already; 1 were asked for" in fails(
        "train", "tiny", "--out", tmp_path / "tiny", "--steps", 1
    )


def test_errors_that_are_not_the_users_keep_their_traceback(monkeypatch, tmp_path):
    def broken(name):
        raise ValueError("a bug")

    monkeypatch.setattr(recipes, "recipe", broken)
    result = run("train", "adr", "--out", tmp_path)
    assert isinstance(result.exception, ValueError)
    assert not isinstance(result.exception, TransduceError)
