"""Fields in patches: what the space keeps, what neighbours may know of each other, and the
Transducer over both."""

import numpy as np
import pytest
import torch
import xarray as xr
from climate_samples import real

from transduce import Euclidean, ExampleSet, TransduceError, Transducer
from transduce.families import open_climate
from transduce.metatraining import Episode
from transduce.spaces import Patches, space_from_config
from transduce.transforms import Neighbours
from transduce.uncertainty import many_regressions

SMALL = {"depth": 2, "heads": 2, "width": 4, "hidden": 16, "neighbours": 1, "gain": 1.0}


def transducer(**options):
    torch.manual_seed(0)
    return (
        Transducer(Patches(2, 6, 280.0, 10.0), Patches(2, 6, 1e5, 1e3), **(SMALL | options))
        .double()
        .eval()
    )


@pytest.fixture
def fields():
    """Seven pairs on 6 x 9 points, three queries, in kelvin and pascal."""
    g = torch.Generator().manual_seed(1)
    v, u = (torch.randn(10, 6, 9, generator=g, dtype=torch.float64) for _ in range(2))
    return 280 + 10 * v[:7], 1e5 + 1e3 * u[:7], 280 + 10 * v[7:]


@pytest.mark.parametrize("grid", [(6, 8), (5, 7), (1, 2)])
def test_decoding_undoes_encoding_where_the_maps_are_inverse(grid):
    space = Patches(2, 4, mean=3.0, unit=2.0).double()
    space.back.weight.data = torch.linalg.inv(space.embed.weight.data)
    space.back.bias.data = -space.back.weight.data @ space.embed.bias.data
    f = torch.randn(3, *grid, dtype=torch.float64)
    c = space.encode(f)
    assert c.shape == (3, -(-grid[0] // 2), -(-grid[1] // 2), 4)
    torch.testing.assert_close(space.decode(c, grid), f)


def test_patches_are_read_alike_wherever_they_are():
    space = Patches(3, 5)
    patch = torch.randn(3, 3)
    c = space.encode(patch.repeat(2, 4)[None])
    torch.testing.assert_close(c, c[:, :1, :1].expand_as(c))
    assert space_from_config(space.config()).config() == space.config()


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


def test_order_padding_and_queries(fields):
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
    """Kelvin in and pascal out, whatever kind of array; the same weights tell hectopascal from
    degrees Celsius."""
    fields = open_climate(*real("era5_surface_2025_11_11.nc"))
    torch.manual_seed(0)
    T = Transducer(Patches(20, 6, 280.0, 20.0), Patches(20, 6, 1e5, 1e4), **SMALL).eval()
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
    other = Transducer(Patches(20, 6, 6.85, 20.0), Patches(20, 6, 1e3, 1e2), **SMALL).eval()
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


@pytest.mark.parametrize("kappa", ["exp_dot", "rbf", "representer"])
def test_gradients_are_the_same_with_checkpointing_and_less_is_held(fields, kappa):
    v, u, q = fields
    T = transducer(kappa=kappa, G=True, depth=3).train()
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


def test_weights_of_patches_come_back(tmp_path, fields):
    T = transducer().float()
    T.save_pretrained(tmp_path / "patches.safetensors")
    again = Transducer.from_pretrained(str(tmp_path / "patches.safetensors"))
    v, u, q = (f.float() for f in fields)
    assert torch.equal(again.regress(ExampleSet(v, u))(q), T.regress(ExampleSet(v, u))(q))


def test_what_does_not_fit_is_said(fields):
    v, u, q = fields
    for options in (
        {"neighbours": -1},
        {"G": False},
        {"prior": {}},
        {"init": "mirrored"},
        {"init": "descent"},
    ):
        with pytest.raises(TransduceError, match="neighbours only among patches and with G"):
            transducer(**options)
    with pytest.raises(TransduceError, match="patches on both sides or on neither"):
        Transducer(Patches(2, 6), Euclidean(6))
    with pytest.raises(TransduceError, match="positive numbers"):
        Patches(0, 4)
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
    with pytest.raises(TransduceError, match="expected fields on a grid"):
        Patches(2, 4).encode(torch.zeros(1, 4, 4), torch.zeros(16, 2))
    with pytest.raises(TransduceError, match="Regress them one by one"):
        many_regressions(transducer(), ExampleSet(v, u), torch.ones(2, 7, dtype=torch.bool))
