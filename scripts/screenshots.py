"""The pictures of README.md and docs/, made from the results of LAUREATE_HOME with a real browser.

python scripts/screenshots.py [FOLDER]     by default docs/images (needs Chromium: bash scripts/install-browser.sh)
"""

import shutil
import sys
import threading
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
# name, page, width, height, theme
SHOTS: tuple[tuple[str, str, int, int, Literal["light", "dark"]], ...] = (
    ("board-light", "/", 1280, 1100, "light"),
    ("method-dark", "/method/pes", 1280, 1150, "dark"),
    ("search-light", "/catalogue?q=gradients+explode+in+a+long+unroll", 1280, 900, "light"),
    ("phone-dark", "/method/pes", 390, 844, "dark"),
)


def main() -> None:
    """Serve the pages on a free port, take the pictures, stop."""
    from playwright.sync_api import ViewportSize, sync_playwright

    from laureate.pages.server import make_server

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("screenshots need Chromium: bash scripts/install-browser.sh")
    server = make_server(port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, path, width, height, theme in SHOTS:
            size: ViewportSize = {"width": width, "height": height}
            page = browser.new_page(viewport=size, color_scheme=theme, base_url=server.url)
            page.goto(path)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=folder / f"{name}.png")
            page.close()
            print(folder / f"{name}.png")
        browser.close()
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
