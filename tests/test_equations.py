"""O.terms: equations behind pairs a step of time apart."""

import numpy as np
import pytest
from regression_samples import smooth

import transduce
from transduce.inputs import read_pairs
from transduce.regression.equations import Terms, terms_of
from transduce.types import TransduceError

P = 64
X = np.arange(P) * 2 * np.pi / P  # periodic
WAVES = 1j * np.fft.rfftfreq(P, 1 / P)


def waves(n, seed=0):
    """Random periodic states of five waves."""
    g = np.random.default_rng(seed)
    a, b = g.standard_normal((2, n, 5)) / np.arange(1, 6)
    phase = np.outer(np.arange(1, 6), X)
    return a @ np.sin(phase) + b @ np.cos(phase)


def moved(v, t, c_x=0.0, c_xx=0.0, c_xxx=0.0):
    """Exact solutions of u_t = c_x u_x + c_xx u_xx + c_xxx u_xxx."""
    rate = c_x * WAVES + c_xx * WAVES**2 + c_xxx * WAVES**3
    return np.fft.irfft(np.fft.rfft(v) * np.exp(rate * t), P)


def burgers(v, t, steps=400):
    """u_t = -u u_x + 0.2 u_xx by Runge-Kutta steps of order 4."""

    def rate(u):
        return np.fft.irfft(-np.fft.rfft(u * u) * WAVES / 2 + 0.2 * WAVES**2 * np.fft.rfft(u), P)

    for _ in range(steps):
        h = t / steps
        a = rate(v)
        b = rate(v + h / 2 * a)
        c = rate(v + h / 2 * b)
        v = v + h / 6 * (a + 2 * b + 2 * c + rate(v + h * c))
    return v


def found(v, u, x=X, dt=1.0, **options) -> dict[str, float]:
    """Coefficients by term, of one channel."""
    (equation,) = of(v, u, x, dt, **options).equations
    assert equation.short, str(equation)
    return dict(zip(equation.terms, equation.coefficients, strict=True))


def of(v, u, x=X, dt=1.0, **options) -> Terms:
    return terms_of(read_pairs(v, u, x=x), dt, **options)


@pytest.mark.parametrize(
    "true",
    [{"u_x": -0.5}, {"u_xx": 0.2}, {"u_x": 0.7, "u_xxx": 0.1}],
    ids=lambda true: "+".join(true),
)
def test_coefficients_of_linear_equations(true):
    v = waves(30)
    answer = found(v, moved(v, 0.05, **{f"c_{k[2:]}": c for k, c in true.items()}), dt=0.05)
    assert answer == pytest.approx(true, rel=1e-3)


def test_coefficients_of_burgers_equation():
    v = waves(30)
    answer = found(v, burgers(v, 0.05), dt=0.05)
    assert answer == pytest.approx({"u_xx": 0.2, "u u_x": -1.0}, rel=5e-3)


def test_intervals_hold_the_coefficients():
    v = waves(30)
    (equation,) = of(v, burgers(v, 0.05), dt=0.05).equations
    true = [{"u_xx": 0.2, "u u_x": -1.0}[name] for name in equation.terms]
    assert (equation.low < true).all() and (true < equation.high).all()


def test_error_is_of_order_4_in_the_step():
    """Half the step: errors fall by 2^4, up to a factor."""
    v = waves(30)
    errors = [found(v, moved(v, dt, -0.5), dt=dt)["u_x"] + 0.5 for dt in (0.2, 0.1)]
    assert 3 < np.log2(abs(errors[0] / errors[1])) < 5


def test_local_equations_of_states_that_are_not_periodic():
    """Logistic growth, whose solution is known, on positions that are not even."""
    x = 3 * np.linspace(0, 1, 60) ** 1.5
    v = 0.5 + 0.3 * np.tanh(smooth(30, (x - x[0]) / np.ptp(x)))
    u = 1 / (1 + (1 / v - 1) * np.exp(-0.1))
    assert found(v, u, x, 0.1) == pytest.approx({"u": 1.0, "u^2": -1.0}, rel=1e-3)


def test_diffusion_on_an_interval():
    """Heat with fixed ends: sums of sines, each of which decays at its rate."""
    x, k = np.linspace(0, 1, 64), np.arange(1, 6)
    a = np.random.default_rng(0).standard_normal((40, 5)) / k
    sines = np.sin(np.pi * np.outer(k, x))
    v, u = a @ sines, (a * np.exp(-0.1 * (np.pi * k) ** 2 * 0.02)) @ sines
    assert found(v, u, x, 0.02) == pytest.approx({"u_xx": 0.1}, rel=1e-2)


def test_two_channels():
    """A harmonic oscillator at each point: u0_t = u1, u1_t = -u0."""
    v = np.stack([waves(30), waves(30, seed=1)], 1)
    c, s = np.cos(0.1), np.sin(0.1)
    u = np.stack([c * v[:, 0] + s * v[:, 1], c * v[:, 1] - s * v[:, 0]], 1)
    first, second = of(v, u, dt=0.1, most=2).equations
    assert (first.terms, second.terms) == (("u1",), ("u0",))
    assert first.coefficients == pytest.approx([1.0], rel=1e-3)
    assert second.coefficients == pytest.approx([-1.0], rel=1e-3)


def test_noise_does_not_shrink_coefficients():
    v = waves(100)
    u = moved(v, 0.05, c_xx=0.2)
    e, f = 0.02 * np.random.default_rng(0).standard_normal((2, *v.shape))
    assert found(v + e, u + f, dt=0.05) == pytest.approx({"u_xx": 0.2}, rel=0.02)


@pytest.mark.parametrize(("of_u", "of_x", "of_dt"), [(7.0, 1, 1), (1, 30.0, 1), (1, 1, 0.25)])
def test_units(of_u, of_x, of_dt):
    """Coefficients have the units of their terms."""
    v = waves(12)
    u = burgers(v, 0.05)
    one, other = found(v, u, dt=0.05), found(of_u * v, of_u * u, of_x * X, of_dt * 0.05)
    units = {"u_xx": of_x**2 / of_dt, "u u_x": of_x / of_dt / of_u}
    assert other == pytest.approx({name: c * units[name] for name, c in one.items()}, rel=1e-6)


def test_positions_that_descend_and_start_elsewhere():
    v = waves(12)
    u = burgers(v, 0.05)
    same = found(v[:, ::-1], u[:, ::-1], X[::-1] + 5, 0.05)
    assert same == pytest.approx(found(v, u, X, 0.05), rel=1e-9)


def dealiased_kdv(count, dt=0.2, steps=60):
    """States of u_t = -u u_x - 0.25 u_xxx, a time dt apart, and their positions. The solver, with
    an integrating factor and Runge-Kutta steps of order 4, sets the highest third to zero."""
    x = 4 * X
    k = 2 * np.pi * np.fft.rfftfreq(P, x[1])
    kept, h = k < 2 / 3 * k.max(), dt / steps
    E = np.exp(0.25j * k**3 * h / 2)

    def change(f):
        return -0.5j * h * k * kept * np.fft.rfft(np.fft.irfft(f, P) ** 2)

    states = [np.sin(x / 4) + 0.5 * np.cos(x / 2 + 1) + 0.3 * np.sin(3 * x / 4)]
    for _ in range(count):
        f = np.fft.rfft(states[-1])
        for _ in range(steps):
            a = change(f)
            b = change(E * (f + a / 2))
            c = change(E * f + b / 2)
            d = change(E * E * f + E * c)
            f = E * E * f + (E * E * a + 2 * E * (b + c) + d) / 6
        states.append(np.fft.irfft(f, P))
    return np.array(states), x


def test_a_solver_that_sets_high_wavenumbers_to_zero():
    """Its products lack them too, so that no equation holds at these wavenumbers."""
    states, x = dealiased_kdv(30)
    answer = found(states[:-1], states[1:], x, 0.2)
    assert answer == pytest.approx({"u_xxx": -0.25, "u u_x": -1.0}, rel=1e-2)


def test_a_constant_rate():
    v = waves(12)
    assert found(v, v + 0.5, dt=0.5) == pytest.approx({"1": 1.0})


def test_periodic_states_need_even_steps():
    x = X + 0.3 * np.sin(X)
    with pytest.raises(TransduceError, match=r"uneven steps of x.*Interpolate"):
        of(waves(12), moved(waves(12), 0.05, -0.5), x, periodic=True)


def test_no_short_equation():
    """An operator that is not local, and states that have nothing to do with each other."""
    v = waves(30)
    (equation,) = of(v, v + 0.1 * np.roll(v, P // 3, -1)).equations
    assert not equation.short
    assert "no short equation explains the increments of u" in str(equation)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_states_that_have_nothing_to_do_with_each_other(size):
    """Of any size: u far smaller than v is no decay, and far larger no growth."""
    answer = of(waves(30), size * waves(30, seed=1))
    assert not answer.equations[0].short
    assert "no equation: u changes too much over a step" in str(answer)
    assert "expected at most 0.5" in str(answer)


def test_printed():
    v = waves(30)
    said = str(of(v, burgers(v, 0.05), dt=0.05))
    assert "u_t = 0.200 u_xx - 1.00 u u_x" in said.splitlines()
    assert "intervals of 90%" in said


def test_without_positions_x_runs_from_0_to_1():
    v = waves(12)
    said = of(v, moved(v, 0.05, c_x=-0.5), x=None, dt=0.05)
    assert "x was not given, and runs from 0 to 1" in str(said)
    closed = np.linspace(0, 1, P)
    assert found(v, moved(v, 0.05, c_x=-0.5), closed) == pytest.approx(
        found(v, moved(v, 0.05, c_x=-0.5), None)
    )


def test_of_a_regressed_operator():
    v = waves(8)
    O = transduce.regress(v, moved(v, 0.05, c_x=-0.5), x=X, model="mean")
    assert "u_t = -0.500 u_x" in str(O.terms(dt=0.05))


V = waves(8)
U = moved(V, 0.05, c_x=-0.5)


@pytest.mark.parametrize(
    ("pairs", "options", "said"),
    [
        ({"v": V, "u": U}, {"dt": 0}, "dt=0; expected the time from v to u"),
        ({"v": V, "u": U}, {"dt": float("nan")}, "dt=nan"),
        ({"v": V, "u": U}, {"dt": "1 s"}, "dt='1 s'"),
        ({"v": V, "u": U}, {"most": 0}, "most=0"),
        ({"v": V, "u": U}, {"level": 90}, "level=90"),
        ({"v": V[:, :5], "u": U[:, :5]}, {}, "v are 5 numbers; expected curves"),
        ({"v": V.reshape(8, 8, 8), "u": U.reshape(8, 8, 8)}, {}, "fields of shape"),
        ({"v": V, "u": U[:, :32]}, {}, "64 points, and u 1 of 32"),
        ({"v": V, "u": U, "x_v": X, "x_u": 2 * X}, {}, "expected the same points"),
        ({"v": V[:, :20], "u": U[:, :20]}, {}, "20 points; expected at least"),
        ({"v": V[:4], "u": U[:4]}, {}, "4 pairs; expected at least"),
        ({"v": V, "u": V}, {}, "u equals v"),
        ({"v": V, "u": U, "parameters": np.arange(8)}, {}, "the pairs have parameters"),
        ({"v": np.stack([V] * 4, 1), "u": np.stack([U] * 4, 1)}, {}, "4 channels"),
        ({"v": 0 * V, "u": U}, {}, "v is zero"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_bad_input_is_explained(pairs, options, said):
    with pytest.raises(TransduceError, match=said):
        terms_of(read_pairs(**pairs), **options)


@pytest.mark.filterwarnings("ignore")
def test_constant_states_have_no_short_equation_in_x():
    """States that do not vary in x: growth at a rate is found all the same."""
    v = np.repeat(np.linspace(1, 2, 10)[:, None], P, 1)
    assert found(v, v * np.exp(0.1), dt=0.1) == pytest.approx({"u": 1.0}, rel=1e-3)
