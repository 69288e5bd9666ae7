"""One contract for every kernel. Each case of tests/kernel_cases.py declares which properties hold
for it, and is tested for exactly these. Further down, what holds for the paper's kernels alone."""

import math
from importlib.util import find_spec

import pytest
import torch
from kernel_cases import CASES, PROPERTIES, Case, N
from torch.testing import assert_close

from transduce import ExampleSet, TransduceError
from transduce.kernels import ATTENTION, Kappa, Readout
from transduce.models import attention_kernel
from transduce.transducer import Transducer

TESTED = set()
SCATTERED = torch.tensor([[True, False, True, True, False, False, True], [True] * N])
NO_RESIDUALS = "has no leave-one-out residuals and therefore no bands; expected kernels that"


def holds(*properties):
    """Run a test for the cases that declare one of these properties."""
    TESTED.update(properties)
    cases = [case for case in CASES if case.properties & set(properties)]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def answers(p, examples=slice(None), mask=None, u=None):
    """The answers at the queries, of some of the examples, or with other u."""
    u = p.u if u is None else u
    return p.kappa(p.kappa.condition(p.v[:, examples], u[:, examples], mask), p.query)


def everything(kappa, fit, query):
    """The answers; and residuals and deviations, if the kernel has them."""
    found = [kappa(fit, query)]
    if kappa.leaves_out:
        found += [fit.residual, fit.deviation, kappa.deviations(fit, query)]
    return found


@pytest.mark.parametrize("properties", [set(), {"masking", "magic"}, {"masking"}, PROPERTIES])
def test_a_case_declares_known_properties(properties):
    with pytest.raises(ValueError, match=r"the kernel 'mine' declares .*; expected some of"):
        Case("mine", CASES[0].make, frozenset(properties))


def test_every_property_has_a_test_and_a_kernel():
    assert TESTED == PROPERTIES == set().union(*(case.properties for case in CASES))


def test_case_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES)


@holds("masking")
def test_masked_examples_do_not_count(case):
    p = case.problem()
    fit = p.kappa.condition(p.v, p.u, SCATTERED)
    for task, used in enumerate(SCATTERED):
        one = slice(task, task + 1)
        dropped = p.kappa.condition(p.v[one, used], p.u[one, used])
        found, expected = (
            everything(p.kappa, of, p.query) if of is fit else everything(p.kappa, of, p.query[one])
            for of in (fit, dropped)
        )
        assert_close(found[0][one], expected[0])
        for masked, alone in zip(found[1:3], expected[1:3], strict=True):
            assert_close(masked[one, used], alone)
        for masked, alone in zip(found[3:], expected[3:], strict=True):
            assert_close(masked[one], alone)


@holds("masking")
def test_masked_examples_have_no_weight(case):
    p = case.problem()
    weights = p.kappa.weights(p.v, p.u, p.query, SCATTERED)
    used = SCATTERED[0]
    alone = p.kappa.weights(p.v[:1, used], p.u[:1, used], p.query[:1])
    assert_close(weights[:1, :, used], alone)
    assert (weights[:1, :, ~used] == 0).all()


@holds("permutation")
def test_order_of_examples_does_not_matter(case):
    p = case.problem()
    shuffled = torch.randperm(N)
    fit, other = (p.kappa.condition(p.v[:, o], p.u[:, o]) for o in (torch.arange(N), shuffled))
    found, expected = (everything(p.kappa, of, p.query) for of in (other, fit))
    expected[1:3] = [f[:, shuffled] for f in expected[1:3]]
    assert_close(found, expected)
    carried, expected = (
        p.kappa.carry(of, p.v[:, o], p.u[:, o])
        for of, o in ((other, shuffled), (fit, torch.arange(N)))
    )
    assert_close(carried, expected[:, shuffled])
    weights = p.kappa.weights(p.v[:, shuffled], p.u[:, shuffled], p.query)
    assert_close(weights, p.kappa.weights(p.v, p.u, p.query)[..., shuffled])


@holds("batch")
def test_several_tasks_are_a_loop(case):
    p = case.problem()
    together = everything(p.kappa, p.kappa.condition(p.v, p.u), p.query)
    alone = [
        everything(p.kappa, p.kappa.condition(p.v[one], p.u[one]), p.query[one])
        for one in (slice(0, 1), slice(1, 2))
    ]
    assert_close(together, [torch.cat(each) for each in zip(*alone, strict=True)])


@holds("many")
@pytest.mark.parametrize("depth", [1, 2])
def test_many_regressions_are_a_loop(case, depth):
    p = case.problem()
    T = p.transducer(depth).double()
    v, u = p.v[:1], p.u[:1]
    masks = torch.stack([SCATTERED[0], ~SCATTERED[0], torch.arange(N) < 6])
    readings = T.read(v, u)
    found, errors = T.split(readings, u, masks), T.split_errors(readings, masks)
    for i, used in enumerate(masks):
        looped = T(v[:, used], u[:, used], v[:, ~used])[0]
        assert_close(found[i, ~used], looped)
        if errors is not None:
            squares = (u[0, ~used] - looped).flatten(1).square().sum(1)
            assert_close(errors[i, ~used], squares)


@holds("update")
@pytest.mark.parametrize("depth", [1, 2])
@torch.no_grad()
def test_update_is_a_new_fit(case, depth):
    """One example more, one less, and three replaced, for which kernels fit again."""
    p = case.problem()
    T = p.transducer(depth).double()
    for before, after in (
        (range(6), range(7)),
        (range(7), (0, 1, 3, 4, 5, 6)),
        (range(5), (4, 2, 5, 6)),
    ):
        before, after = list(before), list(after)
        rows = [before.index(i) for i in after if i in before]
        fits = T.condition(p.v[:1, before], p.u[:1, before])
        updated = T.update(fits, rows, p.v[:1, after], p.u[:1, after])
        new = T.condition(p.v[:1, after], p.u[:1, after])
        assert_close(T.query(updated, p.query[:1]), T.query(new, p.query[:1]))
        if p.kappa.leaves_out:
            last = p.kappa.deviations(updated[-1], p.query[:1])
            assert_close(last, p.kappa.deviations(new[-1], p.query[:1]))
            assert_close(updated[-1].residual, new[-1].residual)
            assert_close(updated[-1].deviation, new[-1].deviation)


def functions(p, T):
    """The first task in single precision: an operator, and queries."""
    decoded = (
        space.decode(c.float(), p.grid(space))
        for space, c in ((T.V, p.v[0]), (T.U, p.u[0]), (T.V, p.query[0]))
    )
    v, u, query = (f.detach() for f in decoded)
    return ExampleSet(v, u), query


def single(p):
    """The kernel in a model of single precision, with inputs of unequal size."""
    T = p.transducer().float()
    T.spread.data.copy_(torch.linspace(0.7, 1.4, p.V.size))
    return T


@holds("saving")
def test_saved_and_loaded_models_answer_the_same(case, tmp_path):
    p = case.problem()
    T = single(p)
    T.save_pretrained(tmp_path / "mine.safetensors")
    loaded = Transducer.from_pretrained(tmp_path / "mine.safetensors")
    examples, query = functions(p, T)
    assert loaded.config == T.config
    assert_close(loaded.regress(examples)(query), T.regress(examples)(query))


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnx is not installed")
@holds("export")
def test_onnx_answers_the_same(case, tmp_path):
    import onnxruntime

    p = case.problem()
    examples, query = functions(p, T := single(p))
    O = T.regress(examples)
    O.export(tmp_path / "operator.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "operator.onnx")
    (u,) = session.run(["u"], {"v": query.numpy()})
    expected = O(query)
    assert_close(torch.from_numpy(u), expected, rtol=0, atol=1e-4 * float(expected.abs().max()))


@holds("weights")
def test_weights_are_derivatives(case):
    """The trace of d u_hat / d u_i by differences, which are exact: answers are affine in u once
    choices are fixed. The default by automatic differentiation agrees."""
    p = case.problem()
    v, u, query = p.v[:1, :6], p.u[:1, :6], p.query[:1]
    fit = p.kappa.condition(v, u)
    before = p.kappa(p.kappa.refit(fit, v, u), query).flatten(2)
    size = before.shape[2]
    expected = torch.zeros(1, query.shape[1], 6, dtype=u.dtype)
    for i in range(6):
        for k in range(size):
            moved = u.clone()
            moved[:, i].flatten(1)[:, k] += 1
            after = p.kappa(p.kappa.refit(fit, v, moved), query).flatten(2)
            expected[..., i] += (after - before)[..., k] / size
    assert_close(p.kappa.weights(v, u, query), expected)
    assert_close(Kappa.weights(p.kappa, v, u, query), expected)


@holds("memory")
def test_fits_say_how_many_bytes_they_hold(case):
    p = case.problem()
    few, many = (p.kappa.condition(p.v[:, :n].clone(), p.u[:, :n].clone()).nbytes for n in (6, N))
    assert 0 < few < many


@holds("gradients")
def test_gradients_reach_every_trainable_parameter(case):
    p = case.problem()
    layer = p.layer.train()
    v, u, fit = layer.condition(p.v, p.u, None)
    _, found = layer.query(fit, p.query, torch.zeros_like(p.u[:, : p.query.shape[1]]))
    loss = found.square().sum() + p.kappa.carry(fit, v, u).square().sum()
    (loss if fit.error is None else loss + fit.error.sum()).backward()
    trained = {name: q for name, q in layer.named_parameters() if q.requires_grad}
    assert trained
    without = [name for name, q in trained.items() if q.grad is None or not q.grad.abs().max() > 0]
    assert without == []


@holds("linear")
def test_linear_in_u(case):
    """Proposition 1: kappa(v, v') is a linear map of U."""
    p = case.problem()
    w = torch.randn_like(p.u)
    a, b, ab = (answers(p, u=u) for u in (p.u, w, 2 * p.u - 3 * w))
    assert_close(ab, 2 * a - 3 * b)


@holds("affine")
def test_affine_in_u(case):
    p = case.problem()
    w = torch.randn_like(p.u)
    a, b, ab = (answers(p, u=u) for u in (p.u, w, 3 * p.u - 2 * w))
    assert_close(ab, 3 * a - 2 * b)


@holds("homogeneous")
@pytest.mark.parametrize("c", [1e-3, -7.0, 1e4])
def test_scaling_u_scales_the_answer(case, c):
    p = case.problem()
    assert_close(answers(p, u=c * p.u) / c, answers(p))


@holds("positively homogeneous")
@pytest.mark.parametrize("c", [1e-3, 1e4])
def test_positive_scaling_of_u_scales_the_answer(case, c):
    p = case.problem()
    assert_close(answers(p, u=c * p.u) / c, answers(p))


def refitted(p, fit=None):
    """The residual of each example from a fit to the others; `fit`: whose choices are kept."""
    found = []
    for i in range(N):
        others = [j for j in range(N) if j != i]
        v, u = p.v[:, others], p.u[:, others]
        alone = p.kappa.condition(v, u) if fit is None else p.kappa.refit(fit, v, u)
        found.append(p.u[:, i : i + 1] - p.kappa(alone, p.v[:, i : i + 1]))
    return torch.cat(found, 1)


def gap(found, expected):
    return float(((found - expected).abs().max() / expected.abs().max()).detach())


@holds("true residuals")
def test_residuals_are_those_of_refitting(case):
    p = case.problem()
    assert gap(p.kappa.condition(p.v, p.u).residual, refitted(p)) < 1e-8


@holds("fixed residuals")
def test_residuals_are_those_of_refitting_with_fixed_choices(case, record_property):
    p = case.problem()
    fit = p.kappa.condition(p.v, p.u)
    assert gap(fit.residual, refitted(p, fit)) < 1e-8
    record_property("gap to a true refit", gap(fit.residual, refitted(p)))


@holds("honest residuals")
def test_residuals_with_fixed_choices_are_those_of_refitting(case, record_property):
    """Those of a fit also leave the example out of the choices."""
    p = case.problem()
    fit = p.kappa.condition(p.v, p.u)
    assert gap(p.kappa.refit(fit, p.v, p.u).residual, refitted(p, fit)) < 1e-8
    record_property("gap to a true refit", gap(fit.residual, refitted(p)))


@pytest.mark.parametrize("name", ["linear", "gaussian", "matern", "powers"])
def test_examples_left_out_of_the_choice_have_no_smaller_residuals(name):
    """With S(t) the sum of the errors e_i of choice t, least at t*, and t_i least without e_i:
    e_i(t_i) >= e_i(t*) + S(t_i) - S(t*)."""
    p = next(case for case in CASES if case.name == f"TunedRidge, {name}").problem()
    fit = p.kappa.condition(p.v, p.u)
    fixed, honest = (f.residual.norm(dim=2) for f in (p.kappa.refit(fit, p.v, p.u), fit))
    assert (honest >= fixed * (1 - 1e-9)).all()
    assert name == "linear" or (honest > fixed).any()


@holds("nested residuals")
def test_residuals_of_corrected_answers_are_near_those_of_refitting(case):
    """A correction regresses the residuals of its base, whose own fits knew the example."""
    p = case.problem()
    fit = p.kappa.condition(p.v, p.u)
    assert gap(fit.residual, refitted(p, fit)) < 0.2


@holds("larger residuals")
def test_residuals_that_are_not_bounded_are_no_smaller_than_those_of_refitting(case):
    p = case.problem()
    fit = p.kappa.condition(p.v, p.u)
    found, exact = (r.square().sum((1, 2)) for r in (fit.residual, refitted(p, fit)))
    assert (found > 0.9 * exact).all()


@holds(
    "true residuals", "fixed residuals", "honest residuals", "larger residuals", "nested residuals"
)
def test_kernels_with_residuals_have_bands(case):
    p = case.problem()
    examples, query = functions(p, T := single(p))
    O = T.regress(examples)
    mean, low, high = O.predict(query, band=0.9)
    assert T.leaves_out
    assert (low < mean).all() and (mean < high).all() and torch.isfinite(high - low).all()
    assert_close(O.left_out, O._u - O.fits[-1].residual[0])


@holds("no residuals")
def test_kernels_without_residuals_say_so(case):
    p = case.problem()
    T = single(p)
    examples, query = functions(p, T)
    O = T.regress(examples)
    assert not T.leaves_out
    for asked in (lambda: O.predict(query, band=0.9), lambda: O.left_out):
        with pytest.raises(TransduceError, match=NO_RESIDUALS):
            asked()
    if p.G is None:
        assert not p.kappa.leaves_out and O.fits[0].residual is None
        with pytest.raises(TransduceError, match=NO_RESIDUALS):
            T.deviations(O.fits, torch.zeros_like(p.query[:1]).float())


def test_a_layer_without_residuals_takes_them_from_the_model():
    """The residuals of a layer after attention are not those of u."""
    averaging, solving = (
        next(case for case in CASES if case.name == name).problem()
        for name in ("ExpDot", "Ridge, Matern")
    )
    T = Transducer(solving.V, solving.U, [averaging.layer, solving.layer]).float()
    O = T.regress(functions(solving, T)[0])
    assert O.fits[-1].residual is not None
    with pytest.raises(TransduceError, match=f"this model of ExpDot and Ridge {NO_RESIDUALS}"):
        _ = O.left_out


@pytest.mark.parametrize("name", ["Mixture, Readout", "patches, Readout"])
def test_kernels_made_of_kernels_answer_as_few_queries_at_once(name):
    (case,) = [case for case in CASES if case.name == name]
    assert case.problem().kappa.chunk == Readout.chunk < Kappa.chunk


def test_every_kernel_of_the_library_is_a_case():
    def kinds(kappa=Kappa):
        return {kappa}.union(*map(kinds, kappa.__subclasses__()))

    def parts(cases):
        return {type(module) for case in cases for module in case.problem().kappa.modules()}

    library = {kind for kind in kinds() if kind.__module__.startswith("transduce.")}
    complete = {kind for kind in library if kind.condition is not Kappa.condition}
    bases = ("Attention", "Tempered", "PerTask", "Moved")
    others = {kind for kind in complete if kind.__name__ in bases or not kind.exports}
    assert complete - others <= parts(case for case in CASES if "export" in case.properties)
    assert {kind for kind in complete if not kind.exports} <= parts(CASES)


def test_unknown_kernel():
    with pytest.raises(TransduceError, match="expected one of exp_dot, rbf, l2"):
        attention_kernel("cosine")


averaging_kernel = pytest.mark.parametrize("name", ATTENTION)


def make(name, n=7, m=4, b=2):
    torch.manual_seed(0)
    kappa = attention_kernel(name)(16, 6, heads=3, width=4).double()
    return (
        kappa,
        torch.randn(b, n, 16).double(),
        torch.randn(b, n, 6).double(),
        torch.randn(b, m, 16).double(),
    )


@averaging_kernel
def test_averages_are_normalised_and_give_the_sum(name):
    kappa, v, u, v_query = make(name)
    fit = kappa.condition(v, u)
    A = kappa.averages(fit, v_query)
    assert A.min() >= 0
    assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    summed = kappa.out(torch.einsum("bhmn,bhnc->bmhc", A, fit.value).flatten(2))
    assert_close(summed, kappa(fit, v_query))


@averaging_kernel
def test_masked_examples_are_not_averaged(name):
    kappa, v, u, v_query = make(name, b=1)
    mask = torch.arange(7).expand(1, 7) < 4
    A = kappa.averages(kappa.condition(v, u, mask), v_query)
    assert_close(A[..., :4], kappa.averages(kappa.condition(v[:, :4], u[:, :4]), v_query))
    assert (A[..., 4:] == 0).all()


@averaging_kernel
def test_averages_are_the_formula(name):
    kappa, v, u, v_query = make(name)
    if name != "l2":
        kappa.log_tau.data.fill_(math.log(1.7))
    fit = kappa.condition(v, u)
    query = kappa.query(v_query).unflatten(-1, (3, 4)).transpose(1, 2)
    dot = torch.einsum("bhmc,bhnc->bhmn", query, fit.key)
    squared = (query[:, :, :, None] - fit.key[:, :, None]).square().sum(-1)
    A = {"exp_dot": torch.exp(dot / 1.7), "rbf": torch.exp(-squared / 1.7), "l2": squared}[name]
    assert_close(kappa.averages(fit, v_query), A / A.sum(-1, keepdim=True))


@averaging_kernel
def test_equal_examples_weigh_the_same(name):
    """Where all examples are equal, and even where a query is one of them, the result is finite and
    their mean."""
    kappa, v, u, _ = make(name)
    v = v[:, :1].expand(-1, 7, -1)
    kappa.key.weight.data.copy_(kappa.query.weight.data)
    A = kappa.averages(kappa.condition(v, u), v[:, :1])
    assert_close(A, torch.full_like(A, 1 / 7))


@averaging_kernel
def test_examples_average_one_another_as_queries_do(name):
    """Equation 6: one recurrence for examples and queries."""
    kappa, v, u, _ = make(name)
    fit = kappa.condition(v, u)
    assert_close(kappa.carry(fit, v, u), u + kappa(fit, v))
