"""Attention among neighbouring patches of fields, and models with it."""

import numpy as np
import pytest
import torch
import xarray as xr
from climate_samples import real
from ridge_samples import feature_ridge

from paper.models import patches
from paper.models.neighbours import Neighbours
from transduce import ExampleSet, TransduceError, Transducer
from transduce.families import open_climate
from transduce.kernels import AtPlaces, PatchGrid
from transduce.layer import Layer
from transduce.metatraining import Episode
from transduce.spaces import Patches
from transduce.uncertainty import many_regressions


def spaces():
    return Patches(2, 6, 280.0, 10.0), Patches(2, 6, 1e5, 1e3)


def transducer(**options):
    torch.manual_seed(0)
    return patches(*spaces(), **options).double().eval()


def solving():
    """Ridge regression at every patch, between layers of attention."""
    averaging, (V, U) = transducer(depth=2), spaces()
    ridge = Layer(AtPlaces(feature_ridge(V.size, U.size), PatchGrid()))
    first, last = averaging.steps
    return Transducer(V, U, [first, ridge, last]).double()


@pytest.fixture
def fields():
    """Seven pairs on 6 x 9 points, three queries, in kelvin and pascal."""
    g = torch.Generator().manual_seed(1)
    v, u = (torch.randn(10, 6, 9, generator=g, dtype=torch.float64) for _ in range(2))
    return 280 + 10 * v[:7], 1e5 + 1e3 * u[:7], 280 + 10 * v[7:]


def test_neighbours_see_no_further_than_their_reach():
    torch.manual_seed(0)
    layer, x = (
        Neighbours(4, 2, 3, 8, reach=1).double(),
        torch.randn(1, 1, 7, 7, 4, dtype=torch.float64),
    )
    moved = x.clone()
    moved[0, 0, 3, 3] += torch.tensor([1.0, -2.0, 0.5, 0.0])
    changed = (layer(x) != layer(moved)).any(-1)[0, 0]
    assert changed[2:5, 2:5].all() and changed.sum() == 9


def test_neighbours_are_attention_over_those_inside():
    """At a corner: softmax over four patches, by hand."""
    torch.manual_seed(0)
    layer, x = Neighbours(4, 1, 3, 8).double(), torch.randn(1, 1, 5, 6, 4, dtype=torch.float64)
    q, k, v = layer.query_key_value(layer.norm(x[0, 0, :2, :2].reshape(4, 4))).chunk(3, -1)
    a = (q[:1] @ k.T / 3**0.5).softmax(-1)
    torch.testing.assert_close(
        layer(x)[:, :, 0, 0], layer.feedforward(x[:, :, 0, 0] + layer.out(a @ v))
    )


def test_order_masks_and_queries(fields):
    v, u, q = fields
    T = transducer()
    answers = T.regress(ExampleSet(v, u))(q)
    assert answers.shape == q.shape
    torch.testing.assert_close(T.regress(ExampleSet(v.flip(0), u.flip(0)))(q), answers)
    torch.testing.assert_close(T.regress(ExampleSet(v, u))(q[1:2]), answers[1:2])
    c, e, d = (space.encode(f)[None] for space, f in ((T.V, v), (T.U, u), (T.V, q)))
    mask = torch.arange(7)[None] < 4
    torch.testing.assert_close(T(c, e, d, mask), T(c[:, :4], e[:, :4], d))


def test_any_size_of_field_and_any_kind_of_array(fields):
    v, u, q = fields
    T = transducer()
    assert T.regress(ExampleSet(v.numpy(), u.numpy()))(q.numpy()).shape == q.shape
    tall = [f.repeat(1, 3, 2) for f in fields]
    assert isinstance(
        T.regress(ExampleSet(*[f.numpy() for f in tall[:2]]))(tall[2].numpy()), np.ndarray
    )


def globe(values, name, units):
    """Fields on 6 x 9 points of the globe, north first, an hour apart."""
    time = np.datetime64("2025-11-11T00", "s") + np.arange(len(values)) * np.timedelta64(1, "h")
    coordinates = {
        "time": time,
        "lat": ("lat", np.arange(75, -76, -30.0), {"units": "degrees_north"}),
        "lon": np.arange(-180, 180, 40.0),
    }
    return xr.DataArray(
        values.numpy(), {**coordinates, "number": 0}, ["time", "lat", "lon"], name, {"units": units}
    )


def test_answers_about_the_globe_have_the_places_of_the_query_and_the_units_of_the_examples(fields):
    v, u, q = fields
    kelvin, pascal, asked = globe(v, "t2m", "K"), globe(u, "sp", "Pa"), globe(q, "t2m", "K")
    O, plain = (
        transducer().regress(ExampleSet(kelvin, pascal)),
        transducer().regress(ExampleSet(v, u))(q),
    )
    answer = O(asked)
    assert answer.dims == asked.dims and answer.name == "sp" and answer.attrs == {"units": "Pa"}
    assert answer.coords.to_dataset().identical(asked.coords.to_dataset())
    np.testing.assert_array_equal(answer.values, plain.numpy())
    assert O.layer_estimates(asked).dims == ("layer", "time", "lat", "lon")
    unnamed = transducer().regress(ExampleSet(v, u))(asked)
    assert (
        unnamed.name is None
        and unnamed.attrs == {}
        and unnamed.lat.attrs == {"units": "degrees_north"}
    )
    with pytest.raises(TransduceError, match="v has coordinates 'lat' of unequal steps"):
        O(asked.assign_coords(lat=[75.0, 45.0, 15.0, -15.0, -45.0, -90.0]))


def test_a_day_of_era5_is_read_and_answered_in_its_units():
    """Kelvin in and pascal out, for every kind of array; the same weights predict hectopascal from
    degrees Celsius."""
    fields = open_climate(*real("era5_surface_2025_11_11.nc"))
    torch.manual_seed(0)
    T = patches(Patches(20, 6, 280.0, 20.0), Patches(20, 6, 1e5, 1e4)).eval()
    kelvin, pascal = fields.to_xarray(fields.v, of="v"), fields.to_xarray(fields.u)
    answer = T.regress(ExampleSet(kelvin[:15], pascal[:15]))(kelvin[15:20])
    assert answer.coords.to_dataset().identical(pascal[15:20].coords.to_dataset())
    assert (
        answer.name == "sp"
        and answer.attrs == {"units": "Pa"}
        and answer.dtype == np.float32
        and answer.shape == (5, 181, 360)
    )
    for kind in (np.asarray, torch.from_numpy):
        v, u = kind(fields.v), kind(fields.u)
        np.testing.assert_array_equal(
            T.regress(ExampleSet(v[:15], u[:15]))(v[15:20]), answer.values
        )
    other = patches(Patches(20, 6, 6.85, 20.0), Patches(20, 6, 1e3, 1e2)).eval()
    other.load_state_dict(T.state_dict())
    celsius, hectopascal = kelvin - 273.15, pascal / 100
    np.testing.assert_allclose(
        100 * other.regress(ExampleSet(celsius[:15], hectopascal[:15]))(celsius[15:20]),
        answer,
        rtol=1e-4,
    )


def test_every_parameter_learns(fields):
    v, u, q = fields
    T = transducer().train()
    T.regress(ExampleSet(v, u))(q).square().sum().backward()
    still = {
        name
        for name, p in T.named_parameters()
        if p.requires_grad and (p.grad is None or not p.grad.any())
    }
    assert still == set()


@pytest.mark.parametrize("kappa", ["exp_dot", "rbf", "ridge"])
def test_gradients_are_the_same_with_checkpointing_and_less_is_held(fields, kappa):
    v, u, q = fields
    T = (solving() if kappa == "ridge" else transducer(kappa=kappa, depth=3)).train()
    gradients, held = {}, {False: 0, True: 0}

    def hold(t):
        held[T.checkpointing] += t.numel()
        return t

    for T.checkpointing in (False, True):
        T.zero_grad()
        with torch.autograd.graph.saved_tensors_hooks(hold, lambda t: t):
            errors = Episode(T)(v[None], u[None], q[None], u[None, :3])
        errors.sum().backward()
        gradients[T.checkpointing] = {
            name: p.grad for name, p in T.named_parameters() if p.requires_grad
        }
    assert held[True] < held[False] / 4
    assert all(gradient.any() for gradient in gradients[True].values())
    torch.testing.assert_close(gradients[True], gradients[False])


def test_save_and_load(tmp_path, fields):
    T = transducer().float()
    T.save_pretrained(tmp_path / "patches.safetensors")
    again = Transducer.from_pretrained(tmp_path / "patches.safetensors")
    v, u, q = (f.float() for f in fields)
    assert torch.equal(again.regress(ExampleSet(v, u))(q), T.regress(ExampleSet(v, u))(q))


def test_many_regressions_equal_a_loop(fields):
    v, u, _ = fields
    T, masks = (
        transducer(depth=1),
        torch.rand(3, 7, generator=torch.Generator().manual_seed(0)) < 0.6,
    )
    answers = torch.cat(list(many_regressions(T, ExampleSet(v, u), masks)))
    for mask, answer in zip(masks, answers, strict=True):
        alone = T.regress(ExampleSet(v[mask], u[mask]))(v[~mask])
        torch.testing.assert_close(answer[~mask], alone)


def test_bad_fields(fields):
    v, u, q = fields
    with pytest.raises(TransduceError, match="reach=0; expected a number of patches from 1"):
        transducer(reach=0)
    O = transducer().regress(ExampleSet(v, u))
    with pytest.raises(
        TransduceError, match=r"at=\(3, 3\) was asked of 3 x 5 patches of 2 x 2 points"
    ):
        O(q, at=(3, 3))
    with pytest.raises(
        TransduceError,
        match=r"v has 3 x 4 patches and examples.u has 3 x 5 patches; expected as many",
    ):
        O(q[:, :, :8])
    with pytest.raises(
        TransduceError, match=r"examples.v has 3 x 5 patches and examples.u has 1 x 1 patches"
    ):
        transducer().regress(ExampleSet(v, u[:, :2, :2]))
