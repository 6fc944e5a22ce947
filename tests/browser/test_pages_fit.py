"""The pages of the papers themselves, which are longer than any toy's."""

import threading

import pytest

from laureate.pages.server import make_server
from laureate.papers import paper_ids


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_every_papers_page_fits_unfolded(chromium, tmp_path, monkeypatch, width):
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    server = make_server(port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    page = chromium.new_page(viewport={"width": width, "height": 900}, base_url=server.url)
    try:
        for path in ("/", "/catalogue", *(f"/method/{paper_id}" for paper_id in paper_ids())):
            page.goto(path)
            page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true; })")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    finally:
        page.close()
        server.shutdown()
        thread.join()
        server.server_close()
