"""Real temperatures by the general model, and an unseen PDE by the model of its family: `make
demo`, or `python examples/demo.py [folder for the figures]`."""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from temperatures import HOURS, one_a_season, split, temperatures, title

import transduce
from transduce.figures import answers_with_band, prediction_over_truth
from transduce.metrics import relative_mse
from transduce.random_fields import generator_for

BASELINES = ("mean", "linear-ridge", "kernel-ridge")
N, SIZES, SPLITS = 40, (5, 10, 20, 40), 5


def degrees(u_hat, u):
    """Root mean squared error."""
    return float(np.sqrt(np.square(u_hat - u).mean()))


def weather(folder):
    """San Francisco's day from Seattle's: no training, no scaling, no model of weather."""
    day, v, u = temperatures()
    rows, rest = split(day, N, seed=0)
    start = time.perf_counter()
    O = transduce.regress(v[rows], u[rows], x=HOURS)
    _, low, high = O.predict(v[rest], band=0.9)
    seconds = time.perf_counter() - start

    print(
        f"Real data: {N} days of Seattle and San Francisco; the day of San Francisco is asked for"
    )
    print(f"on {len(rest)} other days. General model, one thread, {seconds:.1f} s. Its report:\n")
    print(O.report())
    inside = ((u[rest] >= low) & (u[rest] <= high)).mean()
    print(
        f"\nThe 90 % band holds {inside:.0%} of the held-out values. Error in °C, {SPLITS} splits:"
    )
    print(f"\n{'examples':22}" + "".join(f"{n:>8}" for n in SIZES))
    for model in ("general", *BASELINES):
        print(f"{model:22}" + "".join(f"{error_of(model, day, v, u, n):8.2f}" for n in SIZES))
    draw_days(O, day, v, u, rows, rest, folder / "temperatures")


def draw_days(O, day, v, u, rows, rest, path):
    """One held-out day of each season."""
    shown = one_a_season(day, rest)
    ridge = transduce.regress(v[rows], u[rows], x=HOURS, model="kernel-ridge")
    answers_with_band(
        (v[rows], u[rows]),
        (v[shown], u[shown]),
        O.predict(v[shown], band=0.9),
        path,
        x=(HOURS, HOURS),
        titles=[title(day[k]) for k in shown],
        labels=("Seattle, °C", "San Francisco, °C"),
        x_label="hour",
        others={"kernel-ridge": ridge(v[shown])},
    )


def error_of(model, day, v, u, n):
    """The mean error over random splits."""
    found = []
    for seed in range(SPLITS):
        rows, rest = split(day, n, seed)
        O = transduce.regress(v[rows], u[rows], x=HOURS, model=model)
        with warnings.catch_warnings(action="ignore"):  # of days unlike five examples
            found.append(degrees(O(v[rest]), u[rest]))
    return np.mean(found)


def equation(folder):
    """An advection-diffusion-reaction operator that no model has seen."""
    task = transduce.families.AdvectionDiffusionReaction().sample_task(
        50, 50, generator_for("test", 2023)
    )
    print(
        "\nSimulated: an unseen advection-diffusion-reaction operator, 50 examples, 50 queries.\n"
    )
    print(f"{'':22}{'relative MSE':>14}{'seconds':>10}")
    predictions, bands = {}, {}
    for model in ("adr", "general", "kernel-ridge"):
        start = time.perf_counter()
        O = transduce.regress(task.examples.v, task.examples.u, model=model)
        predictions[model], *bands[model] = O.predict(task.queries.v, band=0.9)
        seconds = time.perf_counter() - start
        error = relative_mse(predictions[model], task.queries.u)
        print(f"{model:22}{error:14.1e}{seconds:10.2f}")
    del predictions["general"]  # two lines over each other are enough
    prediction_over_truth(task, predictions, folder / "prediction", bands={"adr": bands["adr"]})


def main(folder):
    torch.set_num_threads(1)
    weather(folder)
    equation(folder)
    print(f"\nDrawn: {folder / 'temperatures.png'}, {folder / 'prediction.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
