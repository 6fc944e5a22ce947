"""A real browser on a real server with one toy paper. Without Chromium these tests are skipped, except in CI."""

import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "pages"))
import toy_site
from laureate.catalogue import Entry
from laureate.catalogue.library import add

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="session")
def chromium():
    if CHROMIUM is None:
        told = "no Chromium here: bash scripts/install-browser.sh installs it"
        if os.environ.get("LAUREATE_BROWSER_TESTS") == "required":
            pytest.fail(told)
        pytest.skip(told)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")  # not longer: what it replaces in laureate would meet other tests
def site(tmp_path_factory):
    """The address of a server with a measured toy, and an imported paper whose title is hostile."""
    from laureate.pages.jobs import Jobs
    from laureate.pages.server import make_server

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAUREATE_HOME", str(tmp_path_factory.mktemp("home")))
        toy_site.install(patch)
        toy_site.measure(patch, runs=2)
        title = f"Zebrafish {toy_site.PAYLOAD} paper"
        add([Entry("", title, ("<b>A</b> Uthor",), "Somewhere 2031", abstract=toy_site.PAYLOAD)])
        server = make_server(port=0, jobs=Jobs([sys.executable, str(Path(toy_site.__file__))]))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.url
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def open_page(chromium, site):
    """``open_page("/runs", width=360)``: a page of its own that must not complain."""
    contexts, complaints = [], []

    def opened(path="/", width=1280, height=900, scheme="light", motion="no-preference"):
        look = {"color_scheme": scheme, "reduced_motion": motion}
        size = {"width": width, "height": height}
        context = chromium.new_context(viewport=size, base_url=site, accept_downloads=True, **look)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.goto(path)
        return page

    yield opened
    hacked = [page.evaluate("window.hacked") for context in contexts for page in context.pages]
    for context in contexts:
        context.close()
    assert not any(hacked), "a hostile title was obeyed"
    assert not complaints, complaints
