"""Settings under stable names: what changes a description, and what leaves committed results
valid."""

import ast
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from paper import names as names  # registers what results name
from transduce import settings
from transduce.settings import describe, register
from transduce.types import TransduceError

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1


@dataclass(frozen=True)
class Thing:
    size: int
    width: int = 4
    inner: Inner = Inner()
    seen: list = field(default_factory=list, compare=False)


@pytest.fixture(autouse=True)
def kinds(monkeypatch):
    monkeypatch.setattr(settings, "_KINDS", dict(settings._KINDS))
    register("inner", Inner, rate=0.1)
    register("thing", Thing, width=4)


def test_only_what_differs_from_the_defaults_is_described():
    assert describe(Thing(3, seen=[1])) == {"kind": "thing", "size": 3}
    changed = Thing(3, width=8, inner=Inner(0.2))
    inner = {"kind": "inner", "rate": 0.2}
    assert describe(changed) == {"kind": "thing", "size": 3, "width": 8, "inner": inner}


def test_a_new_field_changes_no_description_until_it_is_set():
    wider = make_dataclass("Renamed", [("new", int, 7)], bases=(Thing,), frozen=True)
    register("thing", wider, width=4)
    assert describe(wider(3, width=8)) == describe(Thing(3, width=8))
    assert describe(wider(3, width=8, new=6)) == {**describe(Thing(3, width=8)), "new": 6}


def test_a_default_that_changes_is_described():
    """A result that left it out was measured with the old one."""
    other = make_dataclass("Thing", [("size", int), ("width", int, 5)], frozen=True)
    register("thing", other, width=4)
    assert describe(other(3)) == {"kind": "thing", "size": 3, "width": 5}
    assert describe(other(3, width=4)) == {"kind": "thing", "size": 3}


def test_values_become_json():
    value = {"a": np.arange(2.0), "b": (1, None), "c": Path("x/y"), "d": np.float64(0.5), 5: True}
    described = describe(value)
    assert described == {"a": [0.0, 1.0], "b": [1, None], "c": "x/y", "d": 0.5, "5": True}
    assert json.loads(json.dumps(described)) == described


def test_estimators_are_described_by_what_is_set():
    """Also where a default is NaN, as GridSearchCV's error_score is."""
    search = GridSearchCV(KernelRidge(alpha=0.1), {"gamma": (1.0, 2.0)}, cv=3)
    assert describe(search) == {
        "kind": "GridSearchCV",
        "cv": 3,
        "estimator": {"kind": "KernelRidge", "alpha": 0.1},
        "param_grid": {"gamma": [1.0, 2.0]},
    }


def test_what_has_no_stable_name_is_refused():
    class Nameless:
        pass

    with pytest.raises(TransduceError, match=r"Nameless has no stable name.*settings\.register"):
        describe([Nameless()])
    with pytest.raises(TransduceError, match="Nameless is no dataclass; expected `values`"):
        register("nameless", Nameless)


def test_subclasses_need_a_name_of_their_own():
    class Other(Thing):
        pass

    with pytest.raises(TransduceError, match="Other has no stable name"):
        describe(Other(3))


CHECK = """
import json
from pathlib import Path
from paper.experiments import EXPERIMENTS
found = {}
for name, experiment in EXPERIMENTS.items():
    for part in experiment.PARTS:
        known = json.loads((Path(RESULTS) / name / f"{part.name}.json").read_text())["settings"]
        found[f"{name}/{part.name}"] = part.differences(
            known, experiment.FULL, experiment.identities()
        )
print(json.dumps(found))
"""


def differences_after(folder, edit):
    """Which settings of each committed result differ from those of a copy of the source in which
    `edit` has changed each class."""
    ignored = shutil.ignore_patterns("*.safetensors", "__pycache__", "static")
    for package in ("transduce", "paper"):
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    edited = 0
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text())
        changed = [edit(node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        if any(changed):
            path.write_text(ast.unparse(tree))
            edited += sum(changed)
    ran = subprocess.run(
        [sys.executable, "-c", f"RESULTS = {str(ROOT / 'results')!r}\n{CHECK}"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return edited, json.loads(ran.stdout)


def test_new_fields_leave_every_committed_result_valid(tmp_path):
    """A field with a default more in every class that results name (`Training`, baselines,
    families), and an option more in every kernel."""
    named = {kind.__name__ for kind in settings._KINDS}

    def widened(node):
        decorated = any("dataclass" in ast.unparse(d) for d in node.decorator_list)
        if decorated and (node.name in named or node.name == "Scale"):
            node.body.append(ast.parse("brand_new: int = 3").body[0])
            return True
        kernel = any("Kappa" in ast.unparse(base) for base in node.bases)
        made = [part for part in node.body if getattr(part, "name", "") == "__init__"]
        if not kernel or not made:
            return False
        made[0].args.kwonlyargs.append(ast.arg("brand_new"))
        made[0].args.kw_defaults.append(ast.Constant(3))
        return True

    edited, found = differences_after(tmp_path, widened)
    assert edited >= 20 and len(found) >= 35
    assert not any(found.values()), found


def test_a_value_that_changes_invalidates_what_it_was_measured_with(tmp_path):
    """Here a default of every FNO that is fitted."""

    def narrowed(node):
        fields = (part for part in node.body if isinstance(part, ast.AnnAssign))
        width = [f for f in fields if node.name == "Fno" and f.target.id == "width"]
        if width:
            width[0].value = ast.Constant(65)
        return bool(width)

    edited, found = differences_after(tmp_path, narrowed)
    assert edited == 1
    assert found["adr/costs"] == found["adr/sizes"] == ["regressors"]
    assert found["images/accuracy"] == found["burgers/accuracy"] == []
