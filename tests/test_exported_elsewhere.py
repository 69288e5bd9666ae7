"""Exported operators without torch: in a process that cannot import it, and in a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from export_samples import apart

WEB = Path(__file__).parent / "web"
PAGE = Path(__file__).parents[1] / "docs" / "export.md"

NO_TORCH = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transduce"):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Refuse())
"""


@pytest.mark.parametrize("name", ["adr", "adr-softmax"])
def test_a_process_without_torch(bundled, name, tmp_path):
    """By the code that the page shows."""
    O, v, written = bundled(name)
    (shown,) = re.findall(
        r"```python\n(import numpy as np\nimport onnxruntime.*?)```", PAGE.read_text(), re.S
    )
    shutil.copy(written.path, tmp_path / "operator.onnx")
    np.save(tmp_path / "v.npy", v.numpy())
    check = "import torch\n"
    refused = subprocess.run(
        [sys.executable, "-c", NO_TORCH + check],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1 and "ImportError: torch is not here" in refused.stderr
    subprocess.run(
        [sys.executable, "-c", f"{NO_TORCH}{shown}\nnp.save('u.npy', u)"], cwd=tmp_path, check=True
    )
    assert apart(np.load(tmp_path / "u.npy"), O, v) < 1e-5


@pytest.fixture(scope="module")
def runtime():
    """ONNX Runtime Web, or a test that is skipped, unless CI asks for it."""
    if shutil.which("npm") is None and "CI" not in os.environ:
        pytest.skip("there is no npm")
    installed, wanted = (
        WEB / "node_modules" / "onnxruntime-web" / "package.json",
        json.loads((WEB / "package.json").read_text()),
    )
    if (
        not installed.exists()
        or json.loads(installed.read_text())["version"] != wanted["dependencies"]["onnxruntime-web"]
    ):
        subprocess.run(["npm", "ci"], cwd=WEB, check=True, capture_output=True, timeout=120)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(runtime, tmp_path):
    """A folder that is served on this machine alone, and its address."""
    for file in ("index.html", "operator.mjs"):
        shutil.copy(WEB / file, tmp_path)
    (tmp_path / "node_modules").symlink_to(WEB / "node_modules")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


ANSWER = """async ([file, values, shape]) => {
  const operator = await window.load(file);
  const u = await operator(Float32Array.from(values), shape);
  return [Array.from(u.data), Array.from(u.dims)];
}"""


def test_a_browser(browser, served, bundled):
    """ONNX Runtime Web in Chromium, by the code that the page shows."""
    folder, address = served
    page, complaints, asked = browser.new_page(), [], set()
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.add(request.url))
    page.goto(address)
    page.wait_for_function("() => window.load !== undefined", timeout=20_000)
    for name in ("adr", "adr-softmax"):
        O, v, written = bundled(name)
        shutil.copy(written.path, folder / f"{name}.onnx")
        for m in (1, len(v)):
            data, dims = page.evaluate(
                ANSWER, [f"{name}.onnx", v[:m].flatten().tolist(), list(v[:m].shape)]
            )
            assert apart(np.array(data, dtype=np.float32).reshape(dims), O, v[:m]) < 1e-5
    page.close()
    assert complaints == []
    assert any(url.endswith(".wasm") for url in asked)
    assert [url for url in asked if not url.startswith((address, "data:", f"blob:{address}"))] == []


def test_the_page_shows_what_is_tested():
    assert (WEB / "operator.mjs").read_text() in PAGE.read_text()
