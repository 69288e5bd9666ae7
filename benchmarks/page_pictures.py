"""Pictures of the page for docs/playground.md:  python -m benchmarks.page --screenshots
docs/figures"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page

from benchmarks.page import opened, served

MOST = 300_000  # bytes of a picture
Points = list[tuple[float, float]]


def stroke(page: Page, canvas: str, points: Points) -> None:
    """Press, and move through points of the unit square of a canvas."""
    page.locator(canvas).scroll_into_view_if_needed()
    box = page.locator(canvas).bounding_box()
    assert box is not None
    for i, (x, y) in enumerate(points):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=3)
        if i == 0:
            page.mouse.down()
    page.mouse.up()
    page.wait_for_timeout(300)


def curves(page: Page) -> None:
    page.locator("#n").fill("12")
    stroke(page, "#before", [(0.25, 0.5), (0.25, 0.22)])
    stroke(page, "#before", [(0.62, 0.5), *((0.62, 0.5 - 0.004 * i) for i in range(50))])
    page.wait_for_timeout(600)
    page.locator(".cell").nth(4).click()
    page.wait_for_timeout(600)


def found(page: Page) -> None:
    page.locator("#n").fill("50")
    page.locator("#spoil").click()
    page.wait_for_timeout(600)
    page.locator("#outliers").click()
    page.wait_for_selector(".cell.outlier")
    stroke(page, "#before", [(0.4, 0.5), *((0.4, 0.5 - 0.006 * i) for i in range(50))])
    page.wait_for_timeout(600)


def phone(page: Page) -> None:
    page.locator("#n").fill("12")
    page.locator("#shape-hill").click()
    page.wait_for_timeout(600)
    page.evaluate("() => document.activeElement.blur()")
    page.mouse.wheel(0, 170)
    page.wait_for_timeout(300)


def flow(page: Page) -> None:
    page.locator("#tab-flow").click()
    page.wait_for_selector("#flow-stats[data-answers]")
    page.wait_for_timeout(1500)
    stroke(
        page,
        "#flow-before",
        [(0.5 + 0.28 * math.cos(a / 4), 0.5 + 0.28 * math.sin(a / 4)) for a in range(26)],
    )
    page.locator("#flow-t").fill("8")
    page.wait_for_timeout(3000)
    page.locator("#flow-reveal").click()


def spiral(size: float) -> Points:
    return [
        (0.5 + size * a / 60 * math.cos(a / 4), 0.5 + size * a / 60 * math.sin(a / 4))
        for a in range(60)
    ]


def zigzag(size: float) -> Points:
    return [(0.15 + 0.14 * i, 0.5 + size * (-1) ** i) for i in range(6)]


def ring(size: float) -> Points:
    return [(0.5 + size * math.cos(a / 4), 0.5 + 0.8 * size * math.sin(a / 4)) for a in range(26)]


def drawings(page: Page) -> None:
    page.locator("#tab-drawings").click()
    page.wait_for_selector(".class")
    page.locator("#afresh").click()
    for name, drawn in (("spiral", spiral), ("zigzag", zigzag), ("ring", ring)):
        for size in (0.25, 0.3, 0.35):
            stroke(page, "#pad", drawn(size))
            page.locator("#name").fill(name)
            page.locator("#keep").click()
    page.locator("#name").fill("zigzag")
    stroke(page, "#pad", [(x, 0.9 - y) for x, y in zigzag(0.22)])
    page.wait_for_timeout(600)


def data(page: Page) -> None:
    page.locator("#tab-data").click()
    body = page.request.get(page.url.partition("#")[0] + "sample.npz").body()
    page.set_input_files(
        "#file", {"name": "sample.npz", "mimeType": "application/zip", "buffer": body}
    )
    page.wait_for_selector("#save-npz[href]")
    page.locator("#query").fill("3")
    page.wait_for_timeout(500)


SMALL: dict[str, Any] = {
    "viewport": {"width": 375, "height": 812},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
SCENES: dict[str, tuple[Callable[[Page], None], dict[str, Any]]] = {
    "page_curves": (curves, {}),
    "page_dark": (found, {"color_scheme": "dark"}),
    "page_flow": (flow, {}),
    "page_drawings": (drawings, {}),
    "page_data": (data, {}),
    "page_phone": (phone, SMALL),
}


def take(folder: Path) -> None:
    """A picture of each scene."""
    folder.mkdir(parents=True, exist_ok=True)
    with served() as url:
        for name, (scene, options) in SCENES.items():
            with opened(url, **options) as page:
                scene(page)
                shot = page.screenshot(full_page="is_mobile" not in options)
            print(f"{name}: {save(folder / f'{name}.png', shot) / 1000:.0f} kB")


def save(path: Path, shot: bytes) -> int:
    """Written small, with fewer colours if need be; its size in bytes."""
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    picture.save(path, optimize=True)
    if path.stat().st_size > MOST:
        picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    return path.stat().st_size
