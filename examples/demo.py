"""An operator nobody has seen, from 50 examples of it: `make demo`, or `python examples/demo.py
[folder for the figures]`."""

import statistics
import sys
import time
from pathlib import Path

import torch

import transduce
from transduce.baselines import KernelRidge
from transduce.evaluation import summarise
from transduce.figures import error_against_n, prediction_over_truth
from transduce.metrics import relative_mse
from transduce.random_fields import generator_for

SIZES = (5, 10, 20, 50, 100, 200)
OPERATORS = 10


def milliseconds(regressor, task, repeats=20):
    """The median time from examples to predictions."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        regressor.regress(task.examples)(task.queries.v)
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def main(folder):
    torch.set_num_threads(1)
    T = transduce.Transducer.from_pretrained("adr")
    family = transduce.families.AdvectionDiffusionReaction()
    task = family.sample_task(50, 50, generator_for("test", 2023))
    regressors = {"adr": T, "kernel-ridge": KernelRidge()}

    print(
        "An advection-diffusion-reaction operator that the model has never seen: 50 examples, 50 "
        "new functions, one thread.\n"
    )
    print(f"{'':22}{'relative MSE':>14}{'ms a regression':>18}")
    predictions = {
        name: regressor.regress(task.examples)(task.queries.v)
        for name, regressor in regressors.items()
    }
    for name, regressor in regressors.items():
        print(
            f"{name:22}{relative_mse(predictions[name], task.queries.u):14.1e}"
            f"{milliseconds(regressor, task):18.1f}"
        )
    _, low, high = T.regress(task.examples).predict(task.queries.v, band=0.9)
    inside = ((task.queries.u >= low) & (task.queries.u <= high)).float().mean()
    print(
        f"\nThe Transducer's 90 % band holds {inside:.1%} of the values; its mean width is "
        f"{(high - low).mean():.1e}."
    )
    prediction_over_truth(task, predictions, folder / "prediction", bands={"adr": (low, high)})

    print(f"\nMean relative MSE over {OPERATORS} unseen operators:\n")
    print(f"{'examples':22}" + "".join(f"{n:>10}" for n in SIZES))
    summaries = []
    for name, regressor in regressors.items():
        rows = summarise(
            transduce.evaluate(regressor, family, SIZES, OPERATORS, generator_for("test", 2024))
        )
        summaries += [{"regressor": name, **row} for row in rows]
        print(f"{name:22}" + "".join(f"{row['mean']:10.1e}" for row in rows))
    error_against_n(
        summaries,
        folder / "error_against_n",
        trained_range=tuple(T.card["recipe"]["training"]["n"]),
    )
    print(f"\nDrawn: {folder / 'prediction.png'}, {folder / 'error_against_n.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
