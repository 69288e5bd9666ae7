"""`python -m transduce serve` as a process of its own: the examples of docs/serving.md run against
it, and it stops when it is told to."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from transduce.transducer import Transducer
from transduce.types import ExampleSet

PAGE = (Path(__file__).parents[1] / "docs" / "serving.md").read_text()
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture
def process():
    command = [sys.executable, "-m", "transduce", "serve", "--model", "adr", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            yield server
        finally:
            server.kill()


@pytest.mark.skipif(shutil.which("curl") is None, reason="one of the examples is curl's")
def test_the_examples_run_and_the_server_stops(process, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = re.search(r"http://\S+:\d+", process.stdout.readline())[0]
    assert f"--data-binary @pairs.npz {url}/operators?model=adr" in process.stdout.readline()
    blocks = {
        kind: re.findall(rf"```{kind}\n(.*?)```", PAGE.replace(ADDRESS, url), re.S)
        for kind in ("python", "bash")
    }
    made, queried, (asked,) = (
        *blocks["python"],
        [block for block in blocks["bash"] if block.startswith("curl -s ")],
    )
    exec(compile(made, "docs/serving.md", "exec"), {})
    subprocess.run(["bash", "-euc", asked], check=True, timeout=60)
    found = {}
    exec(compile(queried, "docs/serving.md", "exec"), found)

    pairs, v_query = np.load("pairs.npz"), np.load("queries.npz")["v"]
    O = Transducer.from_pretrained("adr").regress(ExampleSet(pairs["v"], pairs["u"]))
    by_curl = json.loads(Path("u.json").read_text())
    for name, here, finer in zip(
        ("u", "low", "high"),
        O.predict(v_query, band=0.9),
        O.predict(v_query, band=0.9, at=201),
        strict=True,
    ):
        scale = np.abs(here).max()
        # As many threads as the server has may round otherwise.
        np.testing.assert_allclose(by_curl[name], here, atol=1e-5 * scale)
        np.testing.assert_allclose(found["answer"][name], finer, atol=1e-5 * scale)
    assert json.loads(Path("operator.json").read_text())["n"] == 50

    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0 and errors == ""
