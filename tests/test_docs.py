"""The documentation site: builds strictly, and every link and picture is there. Needs the extra ``docs``."""

import html.parser
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).parents[1]


class Page(html.parser.HTMLParser):
    """The ids of a page, and what it links to and loads."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        if name := told.get("id"):
            self.ids.add(name)
        if tag == "a" and told.get("href"):
            self.links.append(told["href"])
        for name in ("src", "href") if tag in ("script", "img", "link") else ():
            if told.get(name) and told.get("rel") != "canonical":
                self.loads.append(told[name])


def test_docstrings_become_markdown():
    pytest.importorskip("griffe")
    from docstrings import as_markdown

    text = "It adds::\n\n    a + b\n\nfirst: a number\n\n>>> 1 + 1\n2"
    said = "It adds:\n\n    a + b\n\n- `first`: a number\n\n```pycon\n>>> 1 + 1\n2\n```"
    assert as_markdown(text) == said
    for prose in ("Gradients of long unrolls: eight of them.", "How: by sums.", "It adds\nfirst: a number."):
        assert as_markdown(prose) == prose


def test_every_page_is_in_the_contents():
    """A strict build stops at one that is not."""
    contents = (ROOT / "mkdocs.yml").read_text("utf-8").partition("nav:")[2]
    assert {path.name for path in (ROOT / "docs").glob("*.md") if f": {path.name}\n" not in contents} == set()


@pytest.mark.slow
def test_the_site_builds_strictly_and_every_link_leads_somewhere(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    examples = os.environ.get("LAUREATE_DOCS_EXAMPLES", "")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"LAUREATE_DOCS_EXAMPLES": examples}, timeout=1500)
    assert done.returncode == 0
    pages = {path: Page(path.read_text("utf-8")) for path in tmp_path.rglob("*.html")}
    assert len(pages) > 20
    for path, page in pages.items():
        for link in (*page.links, *page.loads):
            where, anchor = urldefrag(unquote(link))
            if where.startswith(("http:", "https:", "mailto:", "data:")):
                assert link not in page.loads, f"{path.name} loads {link}: the site must work without a network"
                continue
            if path.name == "404.html":
                continue  # its links are from the root
            target = (path.parent / where).resolve() if where else path
            assert target.exists(), f"{path.relative_to(tmp_path)} leads to {link}"
            if anchor and target in pages and anchor != "__top":
                assert anchor in pages[target].ids, f"{path.relative_to(tmp_path)} leads to {link}"
