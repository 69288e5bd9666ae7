"""Every figure comes out as .png and .svg, with its words, its lines and its order; names stand
apart and looks are kept."""

import re
import sys
from importlib.machinery import ModuleSpec
from itertools import combinations
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text

from paper import figures
from paper.adr import setting as adr
from paper.baselines import INDUCTIVE
from paper.burgers import outliers
from paper.burgers import setting as burgers
from transduce.figures import style
from transduce.figures.labels import label_ends, label_points, spread
from transduce.figures.style import LOOKS, looks
from transduce.types import ExampleSet, Task, TransduceError

SIZES = (5, 10, 50, 200, 1000)


def with_interval(mean, **keys):
    return {**keys, "mean": mean, "low": 0.8 * mean, "high": 1.2 * mean}


def functions(*shape):
    return np.random.default_rng(0).normal(size=(*shape, 21))


def by_size(names=("adr", "kernel-ridge", "my model")):
    return [
        with_interval(1e-3 * (place + 1) / n, regressor=name, n=n)
        for place, name in enumerate(names)
        for n in SIZES
    ]


def swept():
    values = {
        "length scale": (0.05, 0.2, 0.5),
        "largest k": (0.1, 0.3, 0.5),
        "initial states": ("as trained", "a bump"),
    }
    return [
        with_interval(1e-3 * (place + 1), sweep=sweep, value=value, regressor=name)
        for sweep, chosen in values.items()
        for place, value in enumerate(chosen)
        for name in ("adr", "fno")
    ]


def task():
    pairs = [ExampleSet(*torch.from_numpy(functions(2, n))) for n in (5, 3)]
    return Task(*pairs)


def searched():
    rows = []
    for varied, gap, share in (
        ("gap", 0.1, 0.05),
        ("gap", 0.2, 0.05),
        ("share", 0.2, 0.01),
        ("share", 0.2, 0.1),
    ):
        for method in ("burgers", "isolation forest"):
            rows.append(
                {
                    "varied": varied,
                    "t": 5.0,
                    "gap": gap,
                    "share": share,
                    "method": method,
                    "precision": 1.0,
                    "recall": 0.5,
                }
            )
    return rows


def by_day(names=("ridge", "climate-europe", "vit")):
    return [
        {"regressor": name, "date": f"{year}-06-30", "error": 10.0 * (place + 1) + year % 3}
        for place, name in enumerate(names)
        for year in range(2007, 2011)
    ]


def by_context():
    rows = by_size(("climate-europe", "patches"))
    return [
        {**row, "context": context} for row in rows for context in ("week before", "year before")
    ]


def globe(title="2009-01", inset=(-30.0, 50.0)):
    grid = {"lat": np.linspace(90, -90, 9).tolist(), "lon": np.linspace(-180, 160, 18).tolist()}
    units = {"temperature": "°C", "pressure": "hPa", "told in context": "hPa", "error": "hPa"}
    values = (
        np.random.default_rng(0).normal(size=(4, 9, 18))
        + np.array([10, 1000, 1003, 3])[:, None, None]
    )
    panels = [
        {"name": name, "unit": unit, **grid, "values": f.tolist()}
        for (name, unit), f in zip(units.items(), values, strict=True)
    ]
    return {"title": title, "panels": panels, "inset": {"lat": [30.0, 70.0], "lon": list(inset)}}


FIGURES = {
    "error_against_n": (
        lambda path: figures.error_against_n(by_size(), path, trained_range=(2, 200)),
        [
            "ours (representer)",
            "kernel ridge (tuned)",
            "my model",
            "examples n",
            "relative MSE",
            "n as trained",
            "1000",
        ],
    ),
    "training_curves": (
        lambda path: figures.training_curves(
            [
                {"depth": d, "tied": t, "step": s, "error": 1 / (d * s)}
                for d in (1, 8)
                for t in (False, True)
                for s in (10, 100)
            ],
            path,
        ),
        ["1 layer", "8 layers", "8 layers, tied", "steps of training", "relative MSE"],
    ),
    "sweep": (
        lambda path: figures.sweep(
            swept(),
            path,
            {"length scale": 0.2, "largest k": (0, 0.3), "initial states": "as trained"},
        ),
        [
            "length scale",
            "largest k",
            "initial states",
            "bump",
            "FNO (tuned)",
            "as trained",
            "0.05",
        ],
    ),
    "operators_needed": (
        lambda path: figures.operators_needed(
            [
                with_interval(n / o, regressor="adr", operators=o, n=n)
                for o in (50, 500)
                for n in (10, 50)
            ],
            path,
        ),
        ["ours (representer)", "n = 10", "n = 50", "training operators", "500"],
    ),
    "accuracy_against_n": (
        lambda path: figures.accuracy_against_n(
            [
                {"regressor": r, "set": s, "n": n, "mean": 90 - 100 / n, "low": 70, "high": 95}
                for r in ("images", "maml")
                for s in "AB"
                for n in SIZES
            ],
            path,
            (10, 200),
        ),
        ["ours (convolutional)", "MAML", "A", "B", "examples n", "accuracy, %", "1000"],
    ),
    "reliability": (
        lambda path: figures.reliability(
            [
                {
                    "regressor": "images",
                    "set": s,
                    "error": 1.0,
                    "bins": [[0.2, 0.3, 0.5], [0.9, 0.8, 0.5]],
                }
                for s in "AB"
            ],
            path,
        ),
        ["ours (convolutional)", "A", "B", "sure, %", "right, %"],
    ),
    "attended": (
        lambda path: figures.attended(
            [
                {
                    "set": s,
                    "image": "00ff00ff",
                    "class": 3,
                    "answer": a,
                    "examples": [{"image": "ff00ff00", "class": 3, "weight": 0.5}] * 2,
                }
                for s, a in (("A", 3), ("B", 4))
            ],
            path,
        ),
        ["A", "B", "answer 3", "answer 4, not 3", "3: 0.50"],
    ),
    "drift": (
        lambda path: figures.drift(by_day(), path, window=90, ours=("climate-europe",)),
        ["ours (remembering)", "ridge", "ViT", "2008", "mean squared error", "of 90 days, hPa²"],
    ),
    "error_against": (
        lambda path: figures.error_against(
            by_context(),
            "n",
            path,
            "days from the last of the context to the day that is asked about",
        ),
        [
            "week before",
            "year before",
            "ours (remembering)",
            "Transducer (patches)",
            "hPa²",
            "days from the last of the context to",
            "1000",
        ],
    ),
    "maps": (
        lambda path: figures.maps([globe(), globe("2009-07")], path),
        [
            "2009-01",
            "2009-07",
            "temperature",
            "pressure",
            "told in context",
            "error",
            "°C",
            "hPa",
            "60°N",
            "60°S",
            "90°W",
            "90°E",
            "0°",
        ],
    ),
    "accuracy_against_time": (
        lambda path: figures.accuracy_against_time(
            [{"regressor": n, "seconds": len(n), "mean": 1 / len(n)} for n in LOOKS], path
        ),
        [*(look.label for look in LOOKS.values()), "time of a regression, seconds", "relative MSE"],
    ),
    "error_over_training": (
        lambda path: figures.error_over_training(
            [{"model": "adr-softmax", "seconds": s, "error": 1 / s} for s in (10, 100, 1000)],
            path,
            target=figures.PAPER_ERROR,
        ),
        [
            "Transducer (softmax)",
            "the paper",
            "time of training, seconds",
            "relative MSE at n = 50",
        ],
    ),
    "state_evolution": (
        lambda path: figures.state_evolution(
            [
                {
                    "s": functions(4),
                    "t": np.linspace(0, 1, 4),
                    "layers": functions(3) ** 2,
                    "title": f"k = {k}",
                }
                for k in (0, 1)
            ],
            path,
        ),
        ["k = 0", "k = 1", "s(x, t)", "t", "x"],
    ),
    "evolution_to": (
        lambda path: figures.evolution_to(functions(2, 4), np.linspace(0, 3, 4), path),
        ["operator 1", "operator 2", "s(x, t)", "t", "x", "3.0"],
    ),
    "rows_of_predictions": (
        lambda path: figures.rows_of_predictions(
            functions(4), functions(3, 4), functions(3, 4), path
        ),
        ["operator 3", "query 4", "v", "u = O(v)", "predicted", "x"],
    ),
    "meta_test_rows": (
        lambda path: figures.meta_test_rows(functions(3, 4), functions(3, 4), path),
        ["operator 3", "function 4", "v", "u = O(v)", "x"],
    ),
    "coefficient_samples": (
        lambda path: figures.coefficient_samples(
            np.linspace(0, 1, 21), functions(5), functions(5), path
        ),
        ["diffusion δ, length² / time", "length / time", "x"],
    ),
    "length_scales": (
        lambda path: figures.length_scales(
            np.linspace(0, 1, 21), {0.05: functions(2), 0.2: functions(2)}, path
        ),
        ["length scale 0.05", "length scale 0.2", "x"],
    ),
    "jacobians": (
        lambda path: figures.jacobians(
            {
                name: np.random.default_rng(0).normal(size=(6, 6))
                for name in ("true solver", "adr", "fno", "mean", "identity")
            },
            {"adr": 0.00123, "fno": 0.2, "mean": 1.0, "identity": 3.0},
            path,
        ),
        [
            "true solver",
            "ours",
            "distance 1.2e-3",
            "distance 0.2",
            "mode in",
            "mode out",
            "distance 3",
        ],
    ),
    "prediction_over_truth": (
        lambda path: figures.prediction_over_truth(
            task(),
            {"adr": functions(3), "mean": functions(3)},
            path,
            count=2,
            bands={"adr": (functions(3) - 1, functions(3) + 1)},
        ),
        ["truth", "ours (representer)", "mean of examples", "5 examples", "query 2", "u = O(v)"],
    ),
    "answers_with_band": (
        lambda path: figures.answers_with_band(
            (functions(5), functions(5)),
            (functions(2), functions(2)),
            (functions(2), functions(2) - 1, functions(2) + 1),
            path,
            x=(np.arange(21), np.arange(21)),
            titles=["Monday", "Tuesday"],
            labels=("wind", "power"),
            x_label="hour",
            others={"kernel-ridge": functions(2)},
        ),
        ["Tuesday", "wind", "power", "error", "5 examples", "90 % band", "kernel ridge (tuned)"],
    ),
    "planes": (
        lambda path: figures.planes(
            [
                {
                    **{name: functions(2, 21) for name in ("v", "u", "u_hat")},
                    "title": "amplitude 7",
                    "relative_mse": 0.00123,
                }
            ],
            path,
        ),
        ["initial", "target", "estimate", "|error|", "amplitude 7", "relative MSE 1.2e-3"],
    ),
    "quadrants": (
        lambda path: figures.quadrants(functions(20), 5, path),
        ["energy, powers of ten"],
    ),
    "errors_of_examples": (
        lambda path: figures.errors_of_examples(
            np.sort(functions(5) ** 2 + 1e-3, 0), np.arange(21) > 18, 0.5, path
        ),
        ["same operator", "another viscosity", "threshold of the mean", "relative error"],
    ),
    "precision_and_recall": (
        lambda path: figures.precision_and_recall(searched(), path),
        ["precision, %", "recall, %", "isolation forest"],
    ),
    "bands_about": (
        lambda path: figures.bands_about(
            {"predict": {"mean": functions(), "low": functions() - 1, "high": functions() + 1}},
            functions() + 0.5,
            path,
        ),
        ["predict", "band of 90 %", "truth", "less the answer"],
    ),
    "estimate_against_exact": (
        lambda path: figures.estimate_against_exact({"adr": (functions(), 2 * functions())}, path),
        ["adr", "left out", "influence"],
    ),
}


def words(path):
    """All text of an .svg, one piece a line."""
    return "\n".join(re.findall(r">([^<>\n]+)<", path.read_text()))


@pytest.mark.parametrize("name", FIGURES)
def test_figures_come_out_with_their_words(name, tmp_path):
    draw, expected = FIGURES[name]
    draw(tmp_path / "new" / name)
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == [f"{name}.png", f"{name}.svg"]
    assert (tmp_path / "new" / f"{name}.png").stat().st_size > 10_000
    text = words(tmp_path / "new" / f"{name}.svg")
    assert [word for word in expected if word not in text] == []


def test_every_figure_is_tested():
    assert {name for name, value in vars(figures).items() if callable(value)} - {"drawing"} == set(
        FIGURES
    )


def test_figures_are_the_same_each_time(tmp_path):
    for name in ("one", "other"):
        figures.error_against_n(by_size(), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_what_is_not_finite_is_left_out(tmp_path):
    rows = [
        *by_size(("adr",)),
        with_interval(float("inf"), regressor="fno", n=5),
        with_interval(float("nan"), regressor="mean", n=5),
    ]
    figures.error_against_n(rows, tmp_path / "error")
    assert "ours" in words(tmp_path / "error.svg") and "FNO" not in words(tmp_path / "error.svg")
    points = [
        {"model": model, "seconds": 1.0, "error": error}
        for model, error in (("adr", None), ("adr", 0.1), ("fno", None))
    ]
    figures.error_over_training(points, tmp_path / "training")
    assert "ours" in words(tmp_path / "training.svg") and "FNO" not in words(
        tmp_path / "training.svg"
    )


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are drawn."""
    kept = []

    def keep(**options):
        kept.append(Figure(**options))
        return kept[-1]

    monkeypatch.setattr(style, "Figure", keep)
    return kept


def test_drift_draws_ours_stronger_and_breaks_lines_where_nothing_is_known(drawn, tmp_path):
    rows = by_day()
    rows[1]["error"] = None
    figures.drift(rows[::-1], tmp_path / "drift", window=30, ours=("climate-europe",))
    lines = {line.get_color(): line for line in drawn[0].axes[0].lines}
    ridge, ours, vit = (lines[LOOKS[name].colour] for name in ("ridge", "climate-europe", "vit"))
    assert (
        ours.get_linewidth() > 2 * max(ridge.get_linewidth(), vit.get_linewidth())
        and ours.get_zorder() > ridge.get_zorder()
    )
    assert np.isnan(ridge.get_ydata()).tolist() == [False, True, False, False]
    assert (np.diff(ours.get_xdata()) > 364).all()


def test_maps_of_one_unit_share_their_colours_and_errors_have_zero_in_the_middle(drawn, tmp_path):
    rows = [globe(), globe("2009-07")]
    rows[1]["panels"][1]["values"][0][0] = 1050.0  # hPa
    rows[1]["panels"][3]["values"][0][0] = -9.0
    figures.maps(rows, tmp_path / "maps")
    # Maps over insets, and columns.
    limits = np.array([axes.collections[0].get_clim() for axes in drawn[0].axes[:16]]).reshape(
        4, 4, 2
    )
    assert (limits == limits[0]).all()
    assert (limits[0, 1] == limits[0, 2]).all() and limits[0, 1, 1] == 1050 and limits[0, 0, 1] < 20
    assert limits[0, 3].tolist() == [-9, 9]


def test_an_inset_across_the_seam_is_whole_and_outlined_on_both_sides(drawn, tmp_path):
    figures.maps([globe(inset=(150.0, 230.0))], tmp_path / "maps")
    above, inset = drawn[0].axes[0], drawn[0].axes[4]
    assert inset.get_xlim() == (150, 230)
    cells = inset.collections[0].get_coordinates()[0, :, 0]
    assert cells[0] <= 150 and cells[-1] >= 230
    sides = [patch.get_bbox() for patch in above.patches]
    west, east = above.get_xlim()
    assert sum(side.x0 < east and side.x1 > west for side in sides) == 2


def test_coastlines_are_those_that_are_at_hand(drawn, tmp_path, monkeypatch):
    cartopy, reader = ModuleType("cartopy"), ModuleType("cartopy.io.shapereader")
    cartopy.__spec__, cartopy.config = (
        ModuleSpec("cartopy", None),
        {"pre_existing_data_dir": "", "data_dir": str(tmp_path)},
    )
    coast = SimpleNamespace(coords=[(-20.0, 35.0), (0.0, 60.0), (40.0, 40.0)])
    reader.Reader = lambda file: SimpleNamespace(
        geometries=lambda: [coast, SimpleNamespace(geoms=[coast])]
    )
    monkeypatch.setitem(sys.modules, "cartopy", cartopy)
    monkeypatch.setitem(sys.modules, "cartopy.io.shapereader", reader)
    figures.maps([globe()], tmp_path / "without")
    file = tmp_path / "shapefiles" / "natural_earth" / "physical" / "ne_110m_coastline.shp"
    file.parent.mkdir(parents=True)
    file.touch()
    figures.maps([globe()], tmp_path / "with")
    without, with_coasts = (figure.axes[0].lines for figure in drawn)
    assert len(without) == 0 and with_coasts[0].get_xydata().tolist() == [
        [-20, 35],
        [0, 60],
        [40, 40],
    ]


def test_nothing_is_written_when_drawing_fails(tmp_path):
    with pytest.raises(TransduceError, match="at most 3"):
        figures.operators_needed(
            [with_interval(1.0, regressor="adr", operators=50, n=n) for n in range(1, 5)],
            tmp_path / "operators",
        )
    assert list(tmp_path.iterdir()) == []


def test_a_regressor_looks_the_same_everywhere():
    assert looks(["fno", "adr"])["adr"] == looks(["adr", "mine"])["adr"] == LOOKS["adr"]
    assert list(looks(["fno", "adr", "fno"])) == ["fno", "adr"]


def test_no_two_regressors_look_alike():
    seen = looks(["adr", "mine", "another", "kernel-ridge"])
    assert (seen["mine"].label, seen["another"].label) == ("mine", "another")
    assert len({look.shape for look in seen.values()}) == 4
    climate = ("climate-europe", "patches", *INDUCTIVE)
    for together in (
        adr.REGRESSORS,
        (*burgers.MODELS, *burgers.INSTANT, *burgers.FITTED, burgers.FAMILY_WIDE),
        outliers.NAMES,
        climate,
    ):
        # In one figure, some day.
        assert len({look.shape for look in looks(together).values()}) == len(together)
    assert LOOKS["adr"].width == max(look.width for look in LOOKS.values())
    with pytest.raises(TransduceError, match="Draw fewer"):
        looks([str(number) for number in range(len(LOOKS) + 1)])


@pytest.mark.parametrize(
    "wanted", [[0.5], [0.2, 0.5, 0.9], [0.5, 0.5, 0.5], [0.0, 0.0, 0.01], [0.99, 1.0, 1.0]]
)
def test_labels_are_spread_within_the_axes(wanted):
    places = spread(np.array(wanted), 0.1)
    assert places.min() >= 0 and places.max() <= 1 + 1e-12
    assert (np.diff(places) >= 0.1 - 1e-12).all()
    if wanted == [0.2, 0.5, 0.9]:
        assert np.allclose(places, wanted)
    if wanted == [0.5, 0.5, 0.5]:
        assert np.allclose(places, [0.4, 0.5, 0.6])


def test_more_labels_than_fit_share_the_axes_evenly():
    assert np.allclose(spread(np.full(5, 0.5), 0.4), [0, 0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize("label", [label_ends, label_points])
def test_labels_do_not_cover_each_other(label):
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    points = [
        (x, y, f"line {place}", "0.2")
        for place, (x, y) in enumerate(
            [(0.5, 0.5), (0.5, 0.51), (0.52, 0.5), (0.9, 0.1), (0.9, 0.1)]
        )
    ]
    axes.plot(*zip(*(point[:2] for point in points), strict=True), "o")
    label(axes, points)
    figure.draw_without_rendering()
    # Without the lines that lead to the points.
    boxes = [Text.get_window_extent(text).padded(-2) for text in axes.texts]
    assert len(boxes) == 5
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
