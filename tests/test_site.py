"""The site: it builds without a warning, and can be read without a network."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parent.parent
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*?\ssrc=[\"']?([^\"'\s>]+)|<link\b(?![^>]*rel=[\"']?canonical)[^>]*?\shref=[\"']?([^\"'\s>]+)"
)
LINKED = re.compile(r"<a\b[^>]*?\shref=[\"']?([^\"'\s>]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    built = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_every_page_is_there(site):
    pages = {
        page.relative_to(ROOT / "docs").with_suffix(".html")
        for page in (ROOT / "docs").rglob("*.md")
    }
    assert pages <= {page.relative_to(site) for page in site.rglob("*.html")}


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        loaded = [src or href for src, href in LOADED.findall(page.read_text())]
        assert loaded
        for link in loaded:
            assert not urlsplit(link).netloc and (
                link.startswith("data:") or here(site, page, link).exists()
            ), (page, link)
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", style.read_text()), style


def test_links_within_the_site_lead_somewhere(site):
    for page in site.rglob("*.html"):
        for link in LINKED.findall(page.read_text()):
            if not urlsplit(link).scheme and urlsplit(link).path:
                assert here(site, page, link).is_file(), (page, link)


def test_search_works_from_the_disk(site):
    """The index is a script, which a page that was opened as a file may load."""
    index = (site / "search" / "search_index.js").read_text()
    assert "Kuramoto-Sivashinsky" in index and "dataset_posterior" in index


def here(site, page, link):
    """What a link of a page leads to; those of the page for what is not there begin at the root."""
    path = unquote(urlsplit(link).path)
    return site / path[1:] if path.startswith("/") else page.parent / path
