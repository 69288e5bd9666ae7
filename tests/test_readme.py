"""README and docs: every code block runs, every command is one that exists, numbers come from
results, links lead somewhere.

The blocks of a page run in order, in one namespace, in an empty folder. A `text` block right after
a `python` block is what that prints. After `<!-- slow: why -->` or `<!-- elsewhere: where it runs
-->`, and in README without a language, commands are not run, but each of their options must exist.

`python tests/test_readme.py` writes the tables of README and docs, and the figure of
docs/getting_started.md, anew."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stdout, suppress
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from conftest import run

from transduce.cli import app
from transduce.report import results_table

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TABLE = re.compile(r"(<!-- table: (\S+) -->\n)(.*?)(<!-- end -->)", re.S)
BLOCK = re.compile(
    r"^(?:<!-- (?:slow|elsewhere): (?P<slow>[^\n]+) "
    r"-->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.S | re.M,
)
COMMANDS = typer.main.get_command(app).commands


def table(name):
    """A table that stands beside its rows, as the experiments write it, or the usual one of a
    results file."""
    text = (ROOT / name).read_text()
    return text if name.endswith(".md") else results_table(json.loads(text))


def run_blocks(page):
    """Run a page in the folder that this is."""
    text, namespace, printed, last = page.read_text(), {"__name__": page.stem}, None, 0
    for block in BLOCK.finditer(text):
        code, follows = block["code"], not text[last : block.start()].strip()
        if block["language"] == "python" and not block["slow"]:
            line = text[: block.start("code")].count("\n")
            with redirect_stdout(StringIO()) as printed:
                exec(compile("\n" * line + code, str(page), "exec"), namespace)
        elif block["language"] == "bash" and not block["slow"]:
            run_commands(code)
        elif block["language"] == "text" and follows and printed is not None:
            assert printed.getvalue() == code
        last, printed = block.end(), printed if block["language"] == "python" else None


def run_commands(code):
    """Commands of ours in this process, which spares their start; others, and those with others, in
    a shell."""
    lines = [shlex.split(line, comments=True) for line in code.replace("\\\n", " ").splitlines()]
    if all(words[:1] in ([], ["transduce"]) for words in lines):
        for _, *words in filter(None, lines):
            result = run(*words)
            assert result.exit_code == 0, result.output
        return
    paths = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    shell = ["bash", "-euo", "pipefail", "-c", code]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(shell, env=os.environ | paths, start_new_session=True, **pipe) as started:
        try:
            said, _ = started.communicate(timeout=120)
        finally:
            with suppress(ProcessLookupError):  # nothing that it left behind stays
                os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 0, said


def check_command(line):
    """A command that is not run: what it names exists, and each of its options."""
    words = shlex.split(line, comments=True)
    for word, following in pairwise(words):
        if word == "make":
            assert re.search(rf"^{following}:", (ROOT / "Makefile").read_text(), re.M), line
        if word == "-m" and following.split(".")[0] in ("validation", "benchmarks"):
            assert (ROOT / f"{following.replace('.', '/')}.py").exists(), line
    for word in words:
        if word.startswith(("examples/", "tests/")):
            assert (ROOT / word).exists(), line
    if "transduce" in words[:-1]:
        name, *rest = words[words.index("transduce") + 1 :]
        known = (
            {option for parameter in COMMANDS[name].params for option in parameter.opts}
            if name in COMMANDS
            else set()
        )
        assert name in {"--help", *COMMANDS} and {
            word for word in rest if word.startswith("--")
        } <= {"--help", *known}, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_exist(page):
    text = page.read_text()
    blocks = [
        block
        for block in BLOCK.finditer(text)
        if block["language"] == "bash" or (page.stem == "README" and not block["language"])
    ]
    lines = [line for block in blocks for line in block["code"].replace("\\\n", " ").splitlines()]
    for line in [
        *lines,
        *re.findall(r"`((?:transduce|make|python) [^`\n|]+)`", BLOCK.sub("", text)),
    ]:
        check_command(line)


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.stem)
def test_blocks_say_what_they_are(page):
    assert {block["language"] for block in BLOCK.finditer(page.read_text())} <= {
        "python",
        "bash",
        "text",
        "js",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    missing = [
        link for link in links if not link.startswith("http") and not (page.parent / link).exists()
    ]
    assert missing == []


@pytest.mark.results
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_are_those_of_the_results(page):
    for _, name, shown, _ in TABLE.findall(page.read_text()):
        assert shown == table(name)


@pytest.mark.results
@pytest.mark.parametrize(
    "path", sorted((ROOT / "results").rglob("*.json")), ids=lambda path: path.stem
)
def test_results_say_where_they_come_from(path):
    result = json.loads(path.read_text())
    assert {"command", "seed", "versions", "machine", "rows"} <= result.keys()
    assert result["rows"]


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(
            TABLE.sub(lambda found: found[1] + table(found[2]) + found[4], page.read_text())
        )
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        run_blocks(ROOT / "docs" / "getting_started.md")
        shutil.copy("rod.png", ROOT / "docs" / "figures" / "getting_started.png")
