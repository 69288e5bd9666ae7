"""How fast the page of `transduce play` is in a real browser:  python -m benchmarks.page

Chromium opens the page of a server that has just started, and then drags: in the tab of curves a
point of the initial state, in that of fields the fluid. Seconds are from the start of navigation to
when the first prediction stands there; answers are those that came to the page. Each is measured
`repeats` times and the medians are shown. Writes results/benchmarks/page.json, and with
--screenshots the pictures of docs/playground.md."""

from __future__ import annotations

import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from playwright.sync_api import Page

from benchmarks.browser import chromium
from transduce.files import provenance
from transduce.report import markdown_table, write_rows
from transduce.types import TransduceError

CURVES, FLOW = "#curves-stats", "#flow-stats"


@contextmanager
def served() -> Iterator[str]:
    """The address of a page that has just been started, by the command that anyone would use."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "transduce", "play", "--no-browser", "--port", str(port)],
        stdout=subprocess.DEVNULL,
    )
    try:
        yield _listening(f"http://127.0.0.1:{port}", server)
    finally:
        server.terminate()
        server.wait(30)


def _listening(url: str, server: subprocess.Popen[bytes]) -> str:
    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return url
        except OSError:
            time.sleep(0.1)
    raise TransduceError(
        f"the page did not come up at {url} within a minute. Try `transduce play --no-browser`."
    )


@contextmanager
def opened(url: str, **options: Any) -> Iterator[Page]:
    """The page in Chromium, with its first prediction."""
    with chromium() as browser:
        page = browser.new_page(**({"viewport": {"width": 1280, "height": 900}} | options))
        page.goto(url)
        page.wait_for_selector(f"{CURVES}[data-first]")
        yield page


def first(page: Page) -> float:
    """Seconds to the first prediction."""
    return float(page.locator(CURVES).get_attribute("data-first") or "nan") / 1000


def answers(page: Page, stats: str) -> int:
    return int(page.locator(stats).get_attribute("data-answers") or 0)


def drag(page: Page, canvas: str, stats: str, seconds: float) -> float:
    """Answers a second while the pointer goes up and down on a canvas without pause."""
    page.locator(canvas).scroll_into_view_if_needed()
    box = page.locator(canvas).bounding_box()
    assert box is not None
    x, y = box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"]
    page.mouse.move(x, y)
    page.mouse.down()
    before, start, step = answers(page, stats), time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        step += 1
        page.mouse.move(x + step % 7, y + 0.3 * box["height"] * (-1) ** step, steps=40)
    rate = (answers(page, stats) - before) / (time.perf_counter() - start)
    page.mouse.up()
    return rate


def measured(seconds: float) -> dict[str, float]:
    with served() as url, opened(url) as page:
        found = {
            "seconds to the first prediction": first(page),
            "answers a second, curves, n = 30": drag(page, "#before", CURVES, seconds),
        }
        page.locator("#n").fill("100")
        page.wait_for_timeout(500)
        found["answers a second, curves, n = 100"] = drag(page, "#before", CURVES, seconds)
        page.click("#tab-flow")
        page.wait_for_selector(f"{FLOW}[data-answers]")
        page.wait_for_timeout(500)
        return found | {
            "answers a second, fields, n = 10": drag(page, "#flow-before", FLOW, seconds)
        }


ASKED = {"seconds to the first prediction": "< 2", "answers a second, curves, n = 30": ">= 30"}


def main(
    repeats: Annotated[int, typer.Option(min=1)] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="Of each drag.")] = 5.0,
    out: Annotated[Path, typer.Option(help="The folder for page.json.")] = Path(
        "results/benchmarks"
    ),
    screenshots: Annotated[
        Path | None, typer.Option(help="Only take pictures of the page, into this folder.")
    ] = None,
) -> None:
    if screenshots is not None:
        from benchmarks.page_pictures import take

        take(screenshots)
        return
    found = [measured(seconds) for _ in range(repeats)]
    rows = [
        {
            "what": what,
            "median": statistics.median(one[what] for one in found),
            "asked": ASKED.get(what, ""),
        }
        for what in found[0]
    ]
    print(markdown_table(rows))
    about = {
        "command": " ".join(["python -m benchmarks.page", *sys.argv[1:]]),
        "seed": 1,
        "repeats": repeats,
    }
    write_rows(out / "page.json", rows, **about, **provenance())


if __name__ == "__main__":
    typer.run(main)
