"""The Transducer: properties of the recurrence for any weights."""

import pytest
import torch
from conftest import composed, small_transducer

from transduce import BranchTrunk, ExampleSet, SineModes, TransduceError, Transducer, models
from transduce.kernels import L2, ExpDot, MaternGram, NoiseUnits, Rbf, Ridge
from transduce.metatraining import Episode

VARIANTS = {
    "exp_dot": small_transducer,
    "rbf": lambda: small_transducer(kappa="rbf"),
    "l2": lambda: small_transducer(kappa="l2"),
    "tied": lambda: small_transducer(tied=True),
    "tau": lambda: small_transducer(tau=3.0),
    "representer": lambda: small_transducer("representer"),
    "one representer": lambda: small_transducer("representer", depth=1),
    "features with F and G": lambda: features_with_F_and_G(),
    "images": lambda: small_transducer("images"),
    "spectral": lambda: small_transducer("spectral"),
    "Matern": lambda: composed(lambda: Ridge(NoiseUnits(MaternGram()))),
    "no F": lambda: composed(lambda: ExpDot(12, 12, 2, 8), G=True),
    "no G": lambda: composed(lambda: Rbf(12, 12, 2, 8), F=True),
    "no F, no G": lambda: composed(lambda: L2(12, 12, 2, 8), depth=1),
    "spectral, then representer": lambda: spectral_then_representer(),
}
every_variant = pytest.mark.parametrize("name", VARIANTS)
both_kinds = pytest.mark.parametrize("model", ["softmax", "representer"])  # averaging and solving


def features_with_F_and_G():
    options = {"depth": 1, "heads": 2, "width": 8, "hidden": 16, "universal": False}
    space = SineModes(12)
    return composed(
        lambda: models.representer(space, space, **options).steps[0].kappa, 3, True, True
    )


def spectral_then_representer():
    first, second = small_transducer("spectral"), small_transducer("representer", depth=1)
    T = Transducer(first.V, first.U, [*first.steps, *second.steps])
    T.spread.data.copy_(first.spread)
    return T.double().eval()


def joint(T, v, u, v_query, mask=None):
    """The joint masked pass of the paper: queries are tokens like the examples, except that no
    token looks at them. An example's stream continues as its kernel says, a query's as a sum."""
    n, tokens = v.shape[1], torch.cat([v, v_query], 1) / T.spread
    stream = torch.cat([u, torch.zeros(len(u), v_query.shape[1], u.shape[2], dtype=u.dtype)], 1)
    source = torch.arange(tokens.shape[1]).expand(len(v), -1) < n
    if mask is not None:
        source = source & torch.nn.functional.pad(mask, (0, v_query.shape[1]))
    for layer in T.steps:
        tokens, stream = layer.inputs(tokens), layer.outputs(stream)
        fit = layer.kappa.condition(tokens, stream, source)
        examples = layer.kappa.carry(fit, tokens, stream)
        queries = stream + layer.kappa(fit, tokens)
        stream = torch.cat([examples[:, :n], queries[:, n:]], 1)
    return stream[:, n:]


def encoded(T, pairs):
    v, u, v_query = pairs
    return T.V.encode(v)[None], T.U.encode(u)[None], T.V.encode(v_query)[None]


@every_variant
def test_cached_equals_one_pass_equals_joint_masked_pass(name, pairs):
    T = VARIANTS[name]()
    v, u, v_query = encoded(T, pairs)
    # Solving with small ridges magnifies rounding.
    near = {"rtol": 0, "atol": 1e-7 if "representer" in name or "features" in name else 1e-10}
    expected = joint(T, v, u, v_query)
    torch.testing.assert_close(T(v, u, v_query), expected, **near)
    torch.testing.assert_close(T.query(T.condition(v, u), v_query)[-1], expected, **near)
    O = T.regress(ExampleSet(pairs[0], pairs[1]))
    torch.testing.assert_close(O(pairs[2]), T.U.decode(expected[0], 33), **near)


def test_single_precision_cached_equals_joint(pairs):
    T = small_transducer().float()
    v, u, v_query = (f.float() for f in encoded(T, pairs))
    torch.testing.assert_close(
        T.query(T.condition(v, u), v_query)[-1], joint(T, v, u, v_query), rtol=0, atol=1e-6
    )


@both_kinds
def test_queries_do_not_see_each_other(model, pairs):
    T = small_transducer(model)
    O = T.regress(ExampleSet(*pairs[:2]))
    torch.testing.assert_close(O(pairs[2]), torch.cat([O(v[None]) for v in pairs[2]]))
    v, u, v_query = encoded(T, pairs)
    torch.testing.assert_close(T(v, u, v_query)[:, :1], T(v, u, v_query[:, :1]))


@every_variant
def test_padding_is_dropping(name, pairs):
    """A batch of tasks with unequal n, through all layers: hidden examples have no effect."""
    T = VARIANTS[name]()
    v, u, v_query = (f.expand(3, -1, -1) for f in encoded(T, pairs))
    counts = (9, 4, 1)
    mask = torch.arange(9) < torch.tensor(counts)[:, None]
    padded = T(v, u, v_query, mask)
    torch.testing.assert_close(padded, joint(T, v, u, v_query, mask))
    for i, n in enumerate(counts):
        torch.testing.assert_close(
            padded[i : i + 1], T(v[i : i + 1, :n], u[i : i + 1, :n], v_query[i : i + 1])
        )


@every_variant
def test_every_parameter_gets_a_gradient(name, pairs):
    T = VARIANTS[name]()
    with torch.no_grad():
        for parameter in T.parameters():
            if parameter.requires_grad and not parameter.any():
                parameter.normal_(std=0.1)  # such as the first W_0 of a read-out
    T(*encoded(T, pairs)).square().sum().backward()
    idle = [
        name
        for name, p in T.named_parameters()
        if p.requires_grad and (p.grad is None or not p.grad.abs().sum() > 0)
    ]
    assert idle == []


@both_kinds
def test_gradients_reach_query_and_examples(model, pairs):
    T = small_transducer(model)
    v, u, v_query = (f.clone().requires_grad_() for f in pairs)
    assert torch.autograd.gradcheck(
        lambda v, u, q: T.regress(ExampleSet(v, u))(q), (v[:3], u[:3], v_query[:2]), fast_mode=True
    )


@both_kinds
def test_no_graph_is_kept_unless_gradients_are_needed(model, pairs):
    assert not small_transducer(model).regress(ExampleSet(*pairs[:2]))(pairs[2]).requires_grad


def test_gradients_after_inference_mode(pairs):
    T = small_transducer()
    with torch.inference_mode():
        T.regress(ExampleSet(*pairs[:2]))(pairs[2])
    v_query = pairs[2].clone().requires_grad_()
    T.regress(ExampleSet(*pairs[:2]))(v_query).sum().backward()
    assert v_query.grad is not None


def test_tied_layers_are_one_layer_used_several_times(pairs):
    T = small_transducer(tied=True)
    assert len(T.steps) == 3 and len(dict.fromkeys(T.steps)) == 1
    names = [name for name, _ in T.named_parameters() if name.startswith("layers")]
    assert names and all(name.startswith("layers.0.") for name in names)


@pytest.mark.parametrize("name", ["exp_dot", "tied", "representer", "spectral, then representer"])
def test_save_and_load(name, tmp_path, pairs):
    T = VARIANTS[name]()
    T.save_pretrained(tmp_path / "T.safetensors", note="made by a test")
    loaded = Transducer.from_pretrained(tmp_path / "T.safetensors")
    assert loaded.card["note"] == "made by a test"
    assert loaded.config == T.config and loaded.measured
    answers = [of.regress(ExampleSet(*pairs[:2]))(pairs[2]) for of in (T, loaded.double())]
    torch.testing.assert_close(*answers, rtol=0, atol=1e-7)


def test_a_space_used_twice_is_measured_once_for_each_side():
    space = SineModes(8)
    T = models.softmax(space, space, depth=1, heads=1, width=2, hidden=4)
    assert T.U is space and T.V is not space and T.V.config() == space.config()


def test_branch_trunk_transducer(pairs, tmp_path):
    """Values in, a learned basis out: answers at any points (supplement S.2.3)."""
    torch.manual_seed(0)
    space = BranchTrunk(33, hidden=8)
    T = models.softmax(space, space, depth=2, heads=2, width=4, hidden=8).double().eval()
    O = T.regress(ExampleSet(*pairs[:2]))
    torch.testing.assert_close(O(pairs[2], at=65)[:, ::2], O(pairs[2]))
    T.save_pretrained(tmp_path / "T.safetensors")
    loaded = Transducer.from_pretrained(tmp_path / "T.safetensors")
    torch.testing.assert_close(
        loaded.regress(ExampleSet(*pairs[:2]))(pairs[2]), O(pairs[2]), rtol=0, atol=1e-4
    )


def test_every_parameter_of_branch_trunk_gets_a_gradient(pairs):
    spaces = (BranchTrunk(33, hidden=8) for _ in range(2))
    T = models.softmax(*spaces, depth=2, heads=2, width=4, hidden=8)
    batch = {
        "v": pairs[0][None],
        "u": pairs[1][None],
        "v_query": pairs[0][None, :2],
        "u_query": pairs[1][None, :2],
    }
    Episode(T)(**{key: value.float() for key, value in batch.items()}).sum().backward()
    assert [name for name, p in T.named_parameters() if p.requires_grad and p.grad is None] == []


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("softmax", {"tau": 0.0}),
        ("softmax", {"depth": 0}),
        ("softmax", {"kappa": "cosine"}),
        ("representer", {"depth": 0}),
        ("representer", {"ridges": 0}),
        ("representer", {"feature_layers": -1}),
        ("spectral", {"layers": 0}),
        ("images", {"convolutions": (8,)}),
    ],
    ids=str,
)
def test_bad_options(model, options):
    with pytest.raises(TransduceError, match="expected"):
        small_transducer(model, **options)


def test_models_by_name():
    spaces = {name: {"space": "SineModes", "modes": 12} for name in "VU"}
    T = models.build({"model": "softmax", **spaces, "depth": 2, "heads": 1, "width": 2})
    assert len(T.steps) == 2 and T.V.size == 12
    with pytest.raises(TransduceError, match="called 'softmin'; expected one of softmax"):
        models.build({"model": "softmin", **spaces})
    with pytest.raises(TransduceError, match=r"the model 'softmax' has other options: .*'prior'"):
        models.build({"model": "softmax", **spaces, "prior": {}})


def test_a_model_without_layers_is_refused():
    with pytest.raises(TransduceError, match="without layers; expected at least one"):
        Transducer(SineModes(4), SineModes(4), [])
    with pytest.raises(TransduceError, match="expected a config of spaces V and U and of layers"):
        Transducer.from_config({"V": {"space": "SineModes", "modes": 4}, "U": None, "layers": []})


def test_a_layer_that_is_replaced_is_used():
    T, other = small_transducer(), small_transducer(hidden=24)
    v, u, query = (torch.randn(1, n, 12, dtype=torch.float64) for n in (5, 5, 2))
    before = T(v, u, query)
    T.layers[0] = other.layers[0]
    assert T.steps[0] is other.layers[0]
    assert not torch.equal(T(v, u, query), before)
