"""What lives in the source repository alone: found from a checkout, and named by one line without
it."""

import json
import shutil
import sys
from types import ModuleType

import pytest
from conftest import fails, run

from paper import recipes as paper_recipes
from transduce import recipes, repository, weights
from transduce.types import TransduceError


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """As if the package were installed: there is no repository around it."""
    monkeypatch.setattr(repository, "ROOT", tmp_path)


def test_the_paper_is_that_of_this_checkout():
    assert repository.module("recipes", "a recipe") is paper_recipes
    assert repository.folder() == repository.ROOT / "paper"


def test_names_are_those_of_the_paper():
    assert set(repository.RECIPES) == set(paper_recipes.RECIPES)
    assert not set(repository.RECIPES) & set(recipes.RECIPES)
    assert set(repository.WEIGHTS) <= set(weights.names())
    for name in (*recipes.RECIPES, *repository.RECIPES):
        assert recipes.recipe(name).name == name == paper_recipes.recipe(name).name


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["reproduce", "adr"], "the experiment 'adr' is not part of the installed package"),
        (["train", "adr-softmax"], "the recipe 'adr-softmax' is not part of the installed package"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_without_the_repository_one_line_says_what_to_clone(command, said, installed):
    line = fails(*command)
    assert said in line and "folder paper/" in line and "Clone the repository" in line


def test_without_the_repository_known_recipes_are_those_of_the_library(installed):
    assert fails("train", "atlantis").endswith(
        "known: general, general-fields, adr, burgers, images."
    )


def test_another_package_called_paper_is_not_taken(tmp_path, monkeypatch):
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "__init__.py").write_text("raise RuntimeError('not this one')")
    here = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "paper"}
    for name in here:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    assert repository.module("", "a test").__file__ == str(repository.ROOT / "paper/__init__.py")
    other = ModuleType("paper")
    other.__file__ = "/elsewhere/paper.py"
    monkeypatch.setitem(sys.modules, "paper", other)
    with pytest.raises(TransduceError, match="another package of that name is imported already"):
        repository.module("recipes", "a test")
    for name in [name for name in sys.modules if name.split(".")[0] == "paper"]:
        monkeypatch.delitem(sys.modules, name)
    sys.modules.update(here)


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """Weights of the paper in a folder of its own: the package has adr, the paper adr-softmax."""
    bundled, paper = tmp_path / "transduce" / "pretrained", tmp_path / "paper" / "pretrained"
    checksums = weights.checksums()
    for folder, name in ((bundled, "adr"), (paper, "adr-softmax")):
        folder.mkdir(parents=True)
        file = f"{name}.safetensors"
        shutil.copy(weights._path(name), folder / file)
        (folder / "checksums.json").write_text(json.dumps({file: checksums[file]}))
    (tmp_path / "paper" / "__init__.py").touch()
    monkeypatch.setattr(weights, "PRETRAINED", bundled)
    monkeypatch.setattr(repository, "ROOT", tmp_path)
    return bundled, paper


def test_weights_of_the_paper_are_loaded_from_its_folder(moved):
    assert weights.names() == ["adr", "adr-softmax"]
    assert weights.load("adr-softmax")[1]["recipe"]["name"] == "adr-softmax"
    _, paper = moved
    with (paper / "adr-softmax.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(TransduceError, match=r"adr-softmax.safetensors do not match"):
        weights.load("adr-softmax")


def test_weights_are_found_in_whichever_folder_lists_them(moved):
    bundled, paper = moved
    listed = json.loads((paper / "checksums.json").read_text())
    (paper / "checksums.json").unlink()
    (bundled / "checksums.json").write_text(
        json.dumps(listed | json.loads((bundled / "checksums.json").read_text()))
    )
    assert weights.load("adr-softmax")[1]["recipe"]["name"] == "adr-softmax"


def test_without_the_repository_their_name_says_where_they_are(moved):
    _, paper = moved
    (paper.parent / "__init__.py").unlink()
    with pytest.raises(
        TransduceError, match=r"'adr-softmax' is not part.*paper/pretrained/\. Clon"
    ):
        weights.load("adr-softmax")
    assert "adr-softmax" not in weights.names()


def test_new_weights_replace_the_old_where_they_are(moved, tmp_path):
    bundled, _ = moved
    new = tmp_path / "adr-softmax.safetensors"
    tensors, card = weights.load("adr-softmax")
    weights.save(new, tensors, card | {"note": "new"})
    weights.bundle(new)
    assert weights.load("adr-softmax")[1]["note"] == "new"
    assert sorted(path.name for path in bundled.iterdir()) == ["adr.safetensors", "checksums.json"]


def test_evaluate_says_which_baselines_there_are():
    result = run("evaluate", "nothing")
    assert "baselines: mean, identity" in result.stderr
