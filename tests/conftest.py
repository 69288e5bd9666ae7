"""Checks of shapes in signatures while tests run, and what several test files use."""

import os
import shutil

from jaxtyping import install_import_hook

install_import_hook(["transduce", "paper"], "beartype.beartype")

import pytest  # noqa: E402
import torch  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from transduce import Transducer, models  # noqa: E402
from transduce.cli import app  # noqa: E402
from transduce.layer import Feedforward, Layer  # noqa: E402
from transduce.random_fields import generator_for  # noqa: E402
from transduce.spaces import SineModes  # noqa: E402

SMALL = {
    "softmax": {"depth": 3, "heads": 2, "width": 8, "hidden": 16},
    "representer": {"depth": 3, "heads": 2, "width": 8, "hidden": 16},
    "spectral": {"channels": 3, "layers": 1, "modes": 4},
    "images": {"convolutions": (4, 4), "width": 8},
}

SLOW = (  # files and tests that `make quick` leaves out: each takes seconds
    "test_baselines.py::test_deepxde_comes_without_a_word_or_a_trace",
    "test_baselines.py::test_results_are_of_the_kind_that_came",
    "test_baselines_2d.py",
    "test_benchmarks.py",
    "test_checkpoints.py::test_killed_with_9_and_started_again_ends_with_equal_bits",
    "test_classifier.py",
    "test_cli.py::test_train",
    "test_cli_evaluate.py::test_evaluate",
    "test_datasets.py",
    "test_examples.py",
    "test_exported_elsewhere.py",
    "test_exporting.py",
    "test_figures.py",
    "test_generation.py::test_killed_and_started_again_it_writes_the_same_bytes",
    "test_generation.py::test_two_workers_write_the_same_bytes",
    "test_inductive.py",
    "test_inversion.py",
    "test_kernels.py::test_many_regressions_are_a_loop",
    "test_kernels.py::test_onnx_answers_the_same",
    "test_kernels.py::test_masked_examples_do_not_count",
    "test_kernels.py::test_order_of_examples_does_not_matter",
    "test_kernels.py::test_positive_scaling_of_u_scales_the_answer",
    "test_kernels.py::test_residuals_with_fixed_choices_are_those_of_refitting",
    "test_kernels.py::test_update_is_a_new_fit",
    "test_kernels.py::test_weights_are_derivatives",
    "test_losses.py::test_a_loss_of_your_own_trains",
    "test_meta_learners.py",
    "test_metatraining.py::test_it_learns",
    "test_metatraining.py::test_two_processes_take_the_step_of_one_with_twice_the_tasks",
    "test_page.py",
    "test_paper_burgers.py",
    "test_paper_climate.py",
    "test_paper_contract.py::test_a_part",
    "test_paper_images.py",
    "test_paper_lab.py",
    "test_random_field_operators.py::test_equal_seeds",
    "test_random_field_operators.py::test_many_pairs_are_finite_and_vary",
    "test_random_operators.py::test_many_pairs_are_finite_and_vary",
    "test_random_operators.py::test_two_workers_write_the_same_bytes",
    "test_readme.py::test_code_blocks_run",
    "test_regression_operator.py::test_add_and_drop",
    "test_regression_operator.py::test_exported_operators",
    "test_regression_groups.py::test_groups",
    "test_regression_operator.py::test_saved_and_loaded",
    "test_regression_outliers.py",
    "test_representer.py::test_beyond_1024_examples_landmarks_are_used",
    "test_resampled_bands.py",
    "test_rollouts.py",
    "test_serving_hostile.py",
    "test_serving_process.py",
    "test_settings.py::test_a_value_that_changes",
    "test_settings.py::test_new_fields",
    "test_site.py",
    "test_stacking.py",
    "test_startup.py::test_only_what_the_name_needs_is_imported",
    "test_types.py::test_random_input_gives_a_result_or_a_transduce_error",
    "test_weights.py::test_a_wrong_context_is_worse",
    "test_wild_benchmark.py::test_a_quick_run",
    "test_wild_benchmark.py::test_killed_with_9",
    "test_wild_benchmark.py::test_one_command",
    "test_wild_benchmark.py::test_the_command_says",
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(SLOW):
            item.add_marker(pytest.mark.slow)


def small_transducer(model="softmax", **options):
    """A Transducer that is quick to run and far from its start, so that every part acts.

    model: name of its builder in transduce.models. options: of that builder.
    """
    torch.manual_seed(0)
    modes = 16 if model == "images" else 12  # an image of 4 x 4
    settings = SMALL[model] | options
    return _ready(models.BUILDERS[model](SineModes(modes), SineModes(modes), **settings))


def composed(kernel, depth=3, F=False, G=False):
    """A Transducer of `depth` layers with the kernels that `kernel()` makes."""
    torch.manual_seed(0)
    layers = [
        Layer(kernel(), *(Feedforward(12, 16) if wanted else None for wanted in (F, G)))
        for _ in range(depth)
    ]
    return _ready(Transducer(SineModes(12), SineModes(12), layers))


def _ready(T):
    T.spread.data.copy_(torch.linspace(1.5, 0.5, T.V.size))
    return T.double().eval()


@pytest.fixture
def pairs():
    """Nine smooth pairs on 33 points and four queries, in double precision."""
    generator = torch.Generator().manual_seed(1)
    coefficients = torch.randn(2, 13, 12, generator=generator, dtype=torch.float64) / torch.arange(
        1, 13
    )
    v, u = SineModes(12).decode(coefficients, 33)
    return v[:9], u[:9], v[9:]


def run(*arguments):
    """The result of a command."""
    return CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(
        app, [str(argument) for argument in arguments]
    )


def fails(*arguments):
    """The one line that a failing command says."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("transduce: error: ")
    return line


@pytest.fixture
def model(tmp_path):
    """The weights of an untrained Transducer."""
    torch.manual_seed(0)
    T = models.softmax(SineModes(8), SineModes(8), depth=1, heads=1, width=4, hidden=8)
    T.save_pretrained(tmp_path / "tiny.safetensors")
    return tmp_path / "tiny.safetensors"


@pytest.fixture(scope="module")
def browser():
    """Chromium, or tests that are skipped, unless CI asks for them."""
    if shutil.which("chromium") is None and "CI" not in os.environ:
        pytest.skip("there is no chromium (apt-get install chromium)")
    from benchmarks.browser import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def bundled(tmp_path_factory):
    """A bundled model's operator, some functions, and the file it was exported to, by name."""
    from test_weights import family_of

    made = {}

    def operator(name):
        if name not in made:
            task = family_of(name).sample_task(50, 7, generator_for("validation", 97))
            O = Transducer.from_pretrained(name).regress(task.examples)
            written = O.export(tmp_path_factory.mktemp(name) / "operator.onnx")
            made[name] = O, task.queries.v.float(), written
        return made[name]

    return operator


@pytest.fixture
def general(monkeypatch):
    """`transduce.regress` with a small general model of random weights in place of the bundled
    one; a function that puts another in its place."""
    from regression_samples import small_general

    from transduce import weights
    from transduce.regression import named

    bundled, known = named.pretrained, weights.names()

    def use(**options):
        T = small_general(**options)
        monkeypatch.setattr(
            named, "pretrained", lambda name: T if name == "general" else bundled(name)
        )

    monkeypatch.setattr(weights, "names", lambda: sorted({*known, "general"}))
    use()
    return use
