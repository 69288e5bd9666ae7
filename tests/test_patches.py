"""Fields in patches: what the space keeps, what neighbours may know of each other, and the Transducer over both."""

import numpy as np
import pytest
import torch

from transduce import Euclidean, ExampleSet, TransduceError, Transducer
from transduce.spaces import Patches, space_from_config
from transduce.transforms import Neighbours
from transduce.uncertainty import many_regressions

SMALL = {"depth": 2, "heads": 2, "width": 4, "hidden": 16, "neighbours": 1, "gain": 1.0}


def transducer(**options):
    torch.manual_seed(0)
    return Transducer(Patches(2, 6, 280.0, 10.0), Patches(2, 6, 1e5, 1e3), **(SMALL | options)).double().eval()


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
    layer, x = Neighbours(4, 2, 3, 8, reach=1).double(), torch.randn(1, 1, 7, 7, 4, dtype=torch.float64)
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
    torch.testing.assert_close(layer(x)[:, :, 0, 0], layer.feedforward(x[:, :, 0, 0] + layer.out(a @ v)))


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
    assert isinstance(T.regress(ExampleSet(*[f.numpy() for f in tall[:2]]))(tall[2].numpy()), np.ndarray)


def test_every_parameter_learns(fields):
    v, u, q = fields
    T = transducer().train()
    T.regress(ExampleSet(v, u))(q).square().sum().backward()
    still = {name for name, p in T.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())}
    assert still == set()


def test_weights_of_patches_come_back(tmp_path, fields):
    T = transducer().float()
    T.save_pretrained(tmp_path / "patches.safetensors")
    again = Transducer.from_pretrained(str(tmp_path / "patches.safetensors"))
    v, u, q = (f.float() for f in fields)
    assert torch.equal(again.regress(ExampleSet(v, u))(q), T.regress(ExampleSet(v, u))(q))


def test_what_does_not_fit_is_said(fields):
    v, u, q = fields
    for options in ({"neighbours": -1}, {"G": False}, {"prior": {}}, {"init": "mirrored"}, {"init": "descent"}):
        with pytest.raises(TransduceError, match="neighbours only among patches and with G"):
            transducer(**options)
    with pytest.raises(TransduceError, match="patches on both sides or on neither"):
        Transducer(Patches(2, 6), Euclidean(6))
    with pytest.raises(TransduceError, match="positive numbers"):
        Patches(0, 4)
    O = transducer().regress(ExampleSet(v, u))
    with pytest.raises(TransduceError, match=r"at=\(3, 3\) was asked of 3 x 5 patches of 2 x 2 points"):
        O(q, at=(3, 3))
    with pytest.raises(TransduceError, match="expected fields on a grid"):
        Patches(2, 4).encode(torch.zeros(1, 4, 4), torch.zeros(16, 2))
    with pytest.raises(TransduceError, match="Regress them one by one"):
        many_regressions(transducer(), ExampleSet(v, u), torch.ones(2, 7, dtype=torch.bool))
