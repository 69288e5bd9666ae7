"""A family of one's own, worked from nothing: the flow of the Kuramoto-Sivashinsky equation
(docs/own_family.md).

    d_t s = -s d_x s - d_x^2 s - nu d_x^4 s   on [0, L], periodic,
    O: s(., 0) -> s(., t),
    L, nu and t of each operator its own

    python examples/kuramoto_sivashinsky.py
    data, training, weights and errors: minutes
    python examples/kuramoto_sivashinsky.py runs/small --operators 8 --steps 4 --unseen 2
    the same in small

It goes on where it was stopped. Data, checkpoint and weights go to runs/ks, or the folder named;
errors and figures to --results, by default there too."""

import argparse
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

import transduce
from transduce.baselines import baseline
from transduce.evaluation import summarise
from transduce.figures import error_against_n, prediction_over_truth
from transduce.files import provenance
from transduce.generation import generate
from transduce.random_fields import generator_for, uniform
from transduce.report import results_table, write_rows

POINTS, STEP = 64, 0.05
SIZES = [5, 10, 20, 50, 100]  # numbers of examples to measure with


def solve(s, L, nu, t, step=STEP):
    """s(., t) from s(., 0), both of shape (n, POINTS), by ETDRK4: exact in the linear part, of
    fourth order in the rest."""
    steps = max(1, round(t / step))
    h, k = t / steps, 2 * torch.pi / L * torch.arange(POINTS // 2 + 1)
    linear = h * (k**2 - nu * k**4).double()
    circle = torch.exp(2j * torch.pi * (torch.arange(32).double() + 0.5) / 32)
    # The weights are means over a circle, where nothing cancels (Kassam and Trefethen 2005).
    z = linear[:, None] + circle
    ez, whole, half = z.exp(), linear.exp(), (linear / 2).exp()
    weights = (
        ((z / 2).exp() - 1) / z,
        (-4 - z + ez * (4 - 3 * z + z**2)) / z**3,
        (2 + z + ez * (z - 2)) / z**3,
    )
    q, f_1, f_2, f_3 = (
        h * w.mean(1).real for w in (*weights, (-4 - 3 * z - z**2 + ez * (4 - z)) / z**3)
    )
    # Without the modes onto which squares would fold.
    slope = -0.5j * k * (torch.arange(len(k)) < POINTS / 3)

    def N(c):  # -d_x (s^2 / 2)
        return slope * torch.fft.rfft(torch.fft.irfft(c, n=POINTS) ** 2)

    c = torch.fft.rfft(s.double())
    for _ in range(steps):
        n_0 = N(c)
        a = half * c + q * n_0
        n_a = N(a)
        n_b = N(half * c + q * n_a)
        n_c = N(half * a + q * (2 * n_b - n_0))
        c = whole * c + f_1 * n_0 + 2 * f_2 * (n_a + n_b) + f_3 * n_c
    return torch.fft.irfft(c, n=POINTS)


@dataclass
class KuramotoSivashinsky:
    """O: s(., 0) -> s(., t). L, nu, t: the ranges that those of each operator are drawn from."""

    L: tuple[float, float] = (16.0, 32.0)
    nu: tuple[float, float] = (0.8, 1.2)
    t: tuple[float, float] = (2.0, 4.0)

    def sample_operator(self, generator):
        return {name: uniform(*getattr(self, name), generator) for name in ("L", "nu", "t")}

    def sample_pairs(self, operator, n, generator):
        """n initial states of variance one, sums of the first six waves, and what becomes of
        them."""
        waves = torch.zeros(n, POINTS // 2 + 1, dtype=torch.complex128)
        waves[:, 1:7] = torch.randn(n, 6, dtype=torch.complex128, generator=generator) / 12**0.5
        v = torch.fft.irfft(waves, n=POINTS, norm="forward")
        return transduce.ExampleSet(v.float(), solve(v, **operator).float())

    def sample_task(self, n, m, generator):
        pairs = self.sample_pairs(self.sample_operator(generator), n + m, generator)
        return transduce.Task(pairs[:n], pairs[n:])

    # What a store of many operators says beside their pairs.
    axes: ClassVar = {"x": torch.arange(POINTS, dtype=torch.float64) / POINTS}
    parameters: ClassVar = {name: ("float64", ()) for name in ("L", "nu", "t")}

    def parameters_of(self, operator):
        return operator


def model():
    """A small spectral network, learned once, whose read-out the examples determine."""
    torch.manual_seed(0)
    V, U = transduce.FourierModes(24), transduce.FourierModes(24)
    return transduce.models.spectral(V, U, channels=48, layers=4, modes=20, grid=POINTS)


def training(steps):
    return transduce.Training(
        steps=steps,
        lr=5e-3,
        muon_lr=0.02,
        tasks=4,
        n=(2, 48),
        loss="log_l2",
        left_out=True,
        validate_every=250,
        validation_tasks=16,
    )


def main(out, operators, steps, unseen, results):
    torch.set_num_threads(1)
    family, weights, begun = KuramotoSivashinsky(), out / "ks.safetensors", time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "tasks.zarr").exists():
        generate(family, out / "tasks.zarr", operators, examples=96, workers=1)
    T = model()
    error = transduce.metatrain(
        T, transduce.StoredFamily(out / "tasks.zarr"), training(steps), validation=family, out=out
    )
    T.save_pretrained(weights, family=repr(family), validation_error=error, **provenance())
    print(
        f"validation error {error:.1e}, {time.perf_counter() - begun:.0f} s, weights in {weights}"
    )

    regressors = {"ks": transduce.Transducer.from_pretrained(str(weights))}
    regressors |= {
        name: baseline(name) for name in ("kernel-ridge", "identity", "local-kernel-ridge")
    }
    rows = []
    for name, regressor in regressors.items():
        # Which takes half a minute for each.
        count = max(1, unseen // 5) if name == "local-kernel-ridge" else unseen
        measured = transduce.evaluate(regressor, family, SIZES, count, generator_for("test", 2024))
        rows += [{"regressor": name, **row} for row in summarise(measured)]
    command = shlex.join(["python", "examples/kuramoto_sivashinsky.py", *sys.argv[1:]])
    results.mkdir(parents=True, exist_ok=True)
    write_rows(
        results / "kuramoto_sivashinsky.json",
        rows,
        command=command,
        family=repr(family),
        seed=2024,
        **provenance(),
    )
    error_against_n(rows, results / "kuramoto_sivashinsky", trained_range=training(steps).n)
    print(results_table({"rows": rows}))

    task = family.sample_task(20, 4, generator_for("test", 2025))
    answers = {
        name: regressors[name].regress(task.examples)(task.queries.v)
        for name in ("ks", "kernel-ridge")
    }
    whole = transduce.Task(
        *(
            transduce.ExampleSet(closed(pairs.v), closed(pairs.u))
            for pairs in (task.examples, task.queries)
        )
    )
    prediction_over_truth(
        whole,
        {name: closed(u) for name, u in answers.items()},
        results / "kuramoto_sivashinsky_predictions",
    )


def closed(f):
    """Periodic functions with their first value once more at the end, as figures have it."""
    return torch.cat([f, f[:, :1]], 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, nargs="?", default=Path("runs/ks"), help="the folder")
    parser.add_argument("--operators", type=int, default=1000, help="to train on")
    parser.add_argument("--steps", type=int, default=2000, help="of training")
    parser.add_argument("--unseen", type=int, default=50, help="operators to measure on")
    parser.add_argument("--results", type=Path, help="the folder of errors and figures")
    given = parser.parse_args()
    main(given.out, given.operators, given.steps, given.unseen, given.results or given.out)
