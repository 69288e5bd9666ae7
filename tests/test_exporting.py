"""Exported operators: ONNX Runtime answers as torch does, for every model and kind of space."""

import json
import re
from functools import partial, partialmethod
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
import xarray as xr
from conftest import composed, fails, run, small_transducer
from export_samples import agrees, session

from paper.models import patches
from transduce import (
    BranchTrunk,
    Euclidean,
    ExampleSet,
    FourierModes,
    SineModes,
    TransduceError,
    Transducer,
    exporting,
    models,
    weights,
)
from transduce.configs import PARTS
from transduce.kernels import AtPlaces, ExpDot, MaternGram, NoiseUnits, PatchGrid, Ridge
from transduce.layer import Layer
from transduce.spaces import Padded, Patches
from transduce.storage import write_arrays

RESULTS = Path(__file__).parents[1] / "results" / "benchmarks" / "export.json"
# Those of fields take longer; benchmarks/export.py has them.
LIVE = [
    "adr",
    "adr-softmax",
    "images",
    "images-softmax",
    "climate-europe",
]


@pytest.mark.parametrize("name", LIVE)
def test_bundled_models(bundled, name):
    O, v, written = bundled(name)
    assert written.difference < 1e-5 and written.size == written.path.stat().st_size
    assert (written.v, written.u) == (tuple(O.examples.v.shape[1:]), tuple(O.examples.u.shape[1:]))
    agrees(O, written.path, v)
    about = session(written.path).get_modelmeta().custom_metadata_map
    assert (about["model"], about["examples"]) == (name, "50")
    assert json.loads(about["u_at"]) == {"grid": [*O.examples.u.shape[-O.T.U.dims :]]}
    onnx.checker.check_model(written.path, full_check=True)
    # No path of this machine.
    assert str(Path(__file__).parents[1]).encode() not in written.path.read_bytes()


@pytest.mark.results
def test_every_bundled_model_was_measured():
    rows = json.loads(RESULTS.read_text())["rows"]
    not_exported = {"general-fields"}
    assert {row["model"] for row in rows} == set(weights.names()) - not_exported
    assert all(row["difference"] < 1e-5 and row["MB"] < 2000 for row in rows)


OTHERS = {
    "exp_dot": lambda: small_transducer(depth=1),
    "l2": lambda: small_transducer(kappa="l2", depth=1),
    "spectral": lambda: small_transducer("spectral"),
    "Matern": lambda: composed(lambda: Ridge(NoiseUnits(MaternGram())), depth=1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_models_at_scattered_sensors_in_double_precision(name, tmp_path):
    """The sensors are fixed in the file, and may be elsewhere than the answers."""
    x = np.random.default_rng(0).uniform(size=40)
    c = torch.randn(
        2, 13, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    ) / torch.arange(1, 13)
    v, u = SineModes(12).decode(c, torch.from_numpy(x)).numpy()
    O = OTHERS[name]().float().regress(ExampleSet(v[:9], u[:9], x=x))
    v_query = torch.from_numpy(v[9:]).float()
    before = O(v_query)
    written = O.export(tmp_path / "operator.onnx", at=20)
    assert (written.v, written.u) == ((40,), (20,))
    agrees(O, written.path, v_query, at=20)
    about = session(written.path).get_modelmeta().custom_metadata_map
    np.testing.assert_allclose(np.ravel(json.loads(about["v_at"])["positions"]), x)
    with pytest.raises(
        TransduceError,
        match="v_at=40 is also how many sensors the examples have; expected positions",
    ):
        O.export(tmp_path / "other.onnx", v_at=40)
    assert torch.equal(O(v_query), before)  # nothing of the tracing stays behind


def test_a_summary_of_fields_and_examples_with_gradients(tmp_path):
    network = {"channels": 4, "layers": 1, "modes": 3, "grid": 12, "summary": 2}
    torch.manual_seed(0)
    V, U = (FourierModes((3, 3), channels=2) for _ in range(2))
    first, second = models.spectral(V, U, **network), models.representer(V, U, heads=2, width=8)
    T = Transducer(V, U, [*first.steps, *second.steps])
    f = torch.randn(2, 12, 2, 12, 12, requires_grad=True)
    O = T.eval().regress(ExampleSet(f[0, :5], f[1, :5]))
    O.export(tmp_path / "operator.onnx")
    agrees(O, tmp_path / "operator.onnx", f[0, 5:].detach())


def patchwise():
    kappa = AtPlaces(ExpDot(8, 8, heads=2, width=4), PatchGrid())
    return Transducer(Patches(4, 8), Patches(4, 8), [Layer(kappa)])


def with_neighbours():
    return patches(Patches(4, 8), Patches(4, 8), depth=1)


@pytest.mark.parametrize("make", [patchwise, with_neighbours])
def test_fields_in_patches(make, tmp_path):
    torch.manual_seed(0)
    T = make().eval()
    f = torch.randn(2, 12, 11, 10)
    fields = (xr.DataArray(part[:5].numpy(), dims=("day", "y", "x")) for part in f)
    O = T.regress(ExampleSet(*fields))
    O.export(tmp_path / "operator.onnx")
    agrees(O, tmp_path / "operator.onnx", f[0, 5:])


def test_padded_spaces(pairs, tmp_path):
    v, u, v_query = (f.float() for f in pairs)
    torch.manual_seed(0)
    T = models.softmax(
        Padded(SineModes(12), 3), Padded(SineModes(12), 3), depth=1, heads=2, width=4
    )
    O = T.eval().regress(ExampleSet(v, u))
    O.export(tmp_path / "operator.onnx")
    agrees(O, tmp_path / "operator.onnx", v_query)


def test_exporting_leaves_the_known_parts_as_they_were(pairs, tmp_path):
    """torch.export derives classes from the model's own."""
    before = dict(PARTS)
    T = small_transducer(depth=2, tied=True).float()
    T.regress(ExampleSet(*pairs[:2])).export(tmp_path / "operator.onnx")
    assert before == PARTS
    assert Transducer.from_config(T.config).config == T.config


def test_functions_on_another_grid_than_the_examples(pairs, tmp_path):
    v, u, _ = (f.float() for f in pairs)
    torch.manual_seed(0)
    spaces = BranchTrunk(33), BranchTrunk(33)
    T = models.softmax(*spaces, depth=1, heads=2, width=4, hidden=16).eval()
    O = T.regress(ExampleSet(v, u))
    written = O.export(tmp_path / "operator.onnx", at=[0.1, 0.25], v_at=17)
    assert (written.v, written.u) == ((17,), (2,))
    agrees(O, written.path, v[:, ::2].contiguous(), at=[0.1, 0.25])


def with_cholesky(transport, self, sources, query):
    """An operation that ONNX does not have."""
    return (
        transport(self, sources, query)
        * torch.linalg.cholesky(query.mT @ query + torch.eye(query.shape[-1]))[..., -1:, -1:]
    )


def otherwise_in_graphs(transport, self, sources, query):
    """A graph that is not what torch runs."""
    return transport(self, sources, query) * (1.01 if torch.compiler.is_exporting() else 1)


@pytest.mark.parametrize(
    ("kernel", "largest", "said"),
    [
        (
            with_cholesky,
            exporting.LARGEST,
            "could not be written as an ONNX graph for any number of functions: .*linalg_cholesky",
        ),
        (
            otherwise_in_graphs,
            exporting.LARGEST,
            "e-0. from torch's, relative to the largest value; expected at most 0.0001",
        ),
        (None, 1000, r"the graph holds [\d,]+ bytes; expected at most 1,000 in one file"),
    ],
)
def test_what_fails_says_why_and_leaves_nothing(
    kernel, largest, said, pairs, tmp_path, monkeypatch, capfd
):
    if kernel is not None:
        monkeypatch.setattr(ExpDot, "transport", partialmethod(partial(kernel, ExpDot.transport)))
    monkeypatch.setattr(exporting, "LARGEST", largest)
    O = small_transducer(depth=1).float().regress(ExampleSet(*pairs[:2]))
    with pytest.raises(TransduceError, match=said):
        O.export(tmp_path / "operator.onnx")
    assert list(tmp_path.iterdir()) == [] and capfd.readouterr() == ("", "")


def test_bad_input_costs_no_time(pairs, tmp_path, monkeypatch):
    O = small_transducer(depth=1).regress(ExampleSet(*pairs[:2]))
    with pytest.raises(
        TransduceError,
        match=r"a model in torch.float64 .* expected single precision. Regress with T.float\(\)",
    ):
        O.export(tmp_path / "operator.onnx")
    with pytest.raises(TransduceError, match=r"ends in '.pt'; expected one of .onnx"):
        O.export(tmp_path / "operator.pt")
    vectors = models.softmax(Euclidean(3), Euclidean(2), depth=1, heads=1, width=2, hidden=4)
    with pytest.raises(TransduceError, match="which have no other points"):
        vectors.regress(ExampleSet(np.ones((2, 3)), np.ones((2, 2)))).export(
            tmp_path / "operator.onnx", at=5
        )
    monkeypatch.setattr(exporting, "find_spec", lambda name: None if name == "onnxscript" else name)
    with pytest.raises(
        TransduceError,
        match=r"and onnxscript cannot be imported. Install it: pip install 'transduce\[export\]'",
    ):
        small_transducer(depth=1).float().regress(ExampleSet(*pairs[:2])).export(
            tmp_path / "operator.onnx"
        )
    assert list(tmp_path.iterdir()) == []


def test_the_command(model, tmp_path):
    # Zero at both ends.
    v, u = np.pad(np.random.default_rng(0).standard_normal((2, 5, 31)), ((0, 0), (0, 0), (1, 1)))
    write_arrays(tmp_path / "pairs.npz", {"v": v, "u": u})
    out = tmp_path / "operator.onnx"
    arguments = ("export", "--model", model, "--examples", tmp_path / "pairs.npz", "--out")
    out.write_text("precious")
    assert "exists already" in fails(*arguments, out)
    assert out.read_text() == "precious"
    assert "ends in '.npz'; expected one of .onnx" in fails(*arguments, tmp_path / "u.npz")
    result = run(*arguments, out, "--at", 65, "--force")
    assert result.exit_code == 0, result.output
    pattern = (
        r"n = 5 examples, v \(m, 33\) -> u \(m, 65\), 0\.\d MB, \d\.\de-\d+ from torch, written to "
    )
    assert (
        re.search(pattern, result.stdout)
        and len(result.stdout.splitlines()) == 1
        and result.stderr == ""
    )
    agrees(
        Transducer.from_pretrained(str(model)).regress(ExampleSet(v, u)),
        out,
        torch.from_numpy(v).float(),
        at=65,
    )
    assert "Example: transduce export " in run("export", "--help").stdout
