"""The pages as a person meets them."""

import csv
import itertools
import math
import os
import random
import re
from pathlib import Path

import pytest

from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store
from toy_site import LONG_UNIT

PAGES = ("/", "/method/toy", "/runs", "/run/1", "/compare?first=1&second=2", "/catalogue", "/paper/rnd", "/job")


def test_read_a_verdict_with_the_keyboard(open_page):
    page = open_page("/")
    page.locator(".all-claims > summary").click()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "toy/better"
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/method/toy#better")
    claim = page.locator("article#better")
    assert "supported" in claim.locator(".chip").inner_text()
    assert claim.locator("circle.seed").count() == 10
    label = claim.locator("svg").get_attribute("aria-label")
    assert re.match(r"toy/better: effect .*, 95 % interval .* to .*, 10 seeds; supported", label)
    assert page.locator("math munder").count() == 1
    with page.expect_download() as download:
        claim.get_by_role("link", name="CSV of toy/better").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert [row["row"] for row in rows] == ["seed"] * 10 + ["mean"]
    page.keyboard.press("?")
    assert page.get_by_role("heading", name="Keyboard").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("heading", name="Keyboard").is_visible()


def test_filter_and_sort_the_board(open_page):
    page = open_page("/")
    cards = page.locator("[data-card]:visible")
    assert cards.count() == 1
    assert cards.first.locator("svg circle.mean").count() == 1, "one picture a paper"
    page.locator("main [name='text']").fill("quantum chromodynamics")
    assert cards.count() == 0
    assert page.locator("form output").inner_text() == "0 of 1 papers, 0 of 4 claims"
    page.locator("main [name='text']").fill("third is near")
    assert cards.count() == 1, "a claim's words find its paper"
    page.locator("main [name='text']").fill("")
    page.locator(".all-claims > summary").click()
    shown = page.locator("tr[data-claim]:visible")
    assert shown.count() == 4
    page.locator("main [name='verdict']").select_option("refuted")
    assert shown.count() == 1
    page.locator("main [name='verdict']").select_option("")
    page.locator("main [name='sort']").select_option("verdict")
    assert shown.first.get_attribute("data-claim") == "toy/worse"
    page.locator("main [name='sort']").select_option("effect")
    headings = page.locator("tr.unit-of:visible")
    assert [heading.inner_text() for heading in headings.all()] == ["loss", LONG_UNIT]
    page.locator("main [name='text']").fill("small")
    assert shown.count() == 1
    page.locator("main [name='sort']").select_option("")
    page.locator("main [name='text']").fill("")
    assert [row.get_attribute("data-claim") for row in shown.all()] == [
        f"toy/{name}" for name in ("better", "worse", "close", "small")
    ]


ORDER = ["refuted", "inconclusive", "supported", "not run"]
ROWS = "[...document.querySelectorAll('tr[data-claim]')]"


def sorted_rows(rows, key):
    """Their names as the board must show them; what is not known stands last, in the order of the page."""
    if key == "verdict":
        return [row["claim"] for row in sorted(rows, key=lambda row: ORDER.index(row["verdict"]))]
    if key == "effect":  # unit by unit, the commonest first
        units = dict.fromkeys(row["unit"] for row in rows)
        count = {unit: sum(row["unit"] == unit for row in rows) for unit in units}
        groups = [[row for row in rows if row["unit"] == unit] for unit in sorted(units, key=lambda one: -count[one])]
    else:
        groups = [rows]
    largest = lambda row: -float(row[key]) if row[key] else math.inf  # noqa: E731
    return [row["claim"] for group in groups for row in sorted(group, key=largest)]


def test_the_board_is_sorted_by_any_number_and_what_has_none_stands_last(open_page):
    """Effects of either sign, seconds and runs, in any state of the four claims, with a verdict chosen or none."""
    page = open_page("/")
    page.locator(".all-claims > summary").click()
    draw = random.Random(0)
    for _ in range(6):
        rows = [
            {
                "claim": f"toy/{name}",
                "verdict": draw.choice(ORDER),
                "unit": draw.choice("ab"),
                **{
                    key: draw.choice(["", "-2.5", "-0.1", "1e-3", "7", "30"]) for key in ("effect", "seconds", "newest")
                },
            }
            for name in ("better", "worse", "close", "small")
        ]
        page.evaluate(
            f"""(facts) => facts.forEach((row) => {{
                Object.assign({ROWS}.find((one) => one.dataset.claim === row.claim).dataset, row); }})""",
            rows,
        )
        for key, verdict in itertools.product(("", "verdict", "effect", "seconds", "newest"), ("", "supported")):
            shown = page.evaluate(
                f"""([key, verdict]) => {{ const form = document.querySelector("form[data-board]");
                form.elements.sort.value = ""; form.elements.sort.dispatchEvent(new Event("input"));
                form.elements.verdict.value = verdict; form.elements.sort.value = key;
                form.elements.sort.dispatchEvent(new Event("input"));
                return {ROWS}.filter((row) => row.getClientRects().length).map((row) => row.dataset.claim); }}""",
                [key, verdict],
            )
            kept = {row["claim"] for row in rows if verdict in ("", row["verdict"])}
            expected = sorted_rows(rows, key) if key else [row["claim"] for row in rows]
            assert shown == [claim for claim in expected if claim in kept], (key, verdict, rows)


def test_search_while_typing(open_page):
    page = open_page("/catalogue")
    page.keyboard.press("/")
    page.keyboard.type("wrong lables in the training data", delay=5)
    page.wait_for_url("**/catalogue?q=wrong*")
    page.locator("[data-results]", has_text="labels for lables").wait_for()
    first = page.locator(".paper h3").first.inner_text()
    page.reload()
    assert page.locator(".paper h3").first.inner_text() == first, "the address is the search"
    page.locator("main [name='topic']").select_option("robustness-security")
    page.wait_for_url("**topic=robustness-security*")
    page.goto("/catalogue?q=qqxzy")
    assert "Nothing found" in page.locator("[data-results]").inner_text()
    page.goto("/catalogue")
    page.locator("svg.map.wide a[aria-label^='vision']").click()
    page.wait_for_url("**/catalogue?topic=vision")
    page.get_by_role("link", name="next →").click()
    page.wait_for_url("**page=2")
    assert "page 2 of" in page.locator(".pager").inner_text()
    page.locator(".paper h3 a").first.click()
    page.get_by_role("heading", name="Related papers").wait_for()
    assert page.locator(".paper").count() == 6


@pytest.fixture(scope="module")
def whole(site, tmp_path_factory):
    """The address of one file with everything."""
    from laureate.pages.report import write_everything

    file = tmp_path_factory.mktemp("whole") / "all.html"
    store = Store(store_path())
    write_everything(store, file)
    store.close()
    return file.as_uri()


SHOWN = """() => [...document.querySelectorAll(".facets select")].flatMap((select) =>
  [...select.options].map((option) => {
    select.value = option.value; select.dispatchEvent(new Event("input", { bubbles: true }));
    const said = document.querySelector("[data-results] > .facts").textContent;
    select.value = ""; return [select.name, option.textContent, said]; }))"""
LISTED = "[...document.querySelectorAll('[data-results] article h3 a')].map((one) => [one.hash, one.textContent])"


def test_every_filter_of_the_one_file_has_as_many_papers_as_it_says(open_page, whole):
    """Each once, twenty more at a time, and each leads to its own page."""
    page = open_page("/")
    page.goto(f"{whole}#/catalogue")
    told = page.evaluate(SHOWN)
    assert {name for name, *_ in told} == {"topic", "kind", "venue", "decision"}
    for name, words, said in told:
        count = re.search(r"\((\d+)\)$", words)
        assert said == f"{count[1] if count else 874} found", (name, words)
    page.goto(f"{whole}#/catalogue?topic=audio")
    (count,) = (int(re.findall(r"\d+", words)[-1]) for name, words, _ in told if words.startswith("audio ("))
    more, shown = page.get_by_role("button", name="show more"), page.evaluate(LISTED)
    for start in range(20, count, 20):
        assert len(shown) == start
        more.click()
        shown = page.evaluate(LISTED)
    assert (more.count(), len(shown), len({hash for hash, _ in shown})) == (0, count, count)
    for hash, title in (shown[0], shown[-1]):
        page.goto(f"{whole}{hash}")
        page.locator("h1:visible", has_text=title).wait_for()
        assert "audio" in page.locator("main section:visible .facts").nth(1).inner_text()


def test_an_address_is_the_whole_question_in_the_file_and_on_the_way_back(open_page, whole):
    """Of the question before nothing stays: no filter in the file, no list of results on the web."""
    page = open_page("/catalogue")
    counted = page.locator("[data-results] .facts", has_text="found").first
    said = {}
    for question in ("noisy labels", "speech"):
        # Not typed: what is typed takes the place of the address before, whenever the timer fires.
        page.locator("main [data-search]").evaluate("(field, text) => { field.value = text; }", question)
        page.locator("main [data-search]").press("Enter")
        page.wait_for_url(f"**/catalogue?q={question.replace(' ', '+')}")
        said[question] = page.locator(".paper h3").first.inner_text()
    page.go_back()
    page.wait_for_url("**/catalogue?q=noisy+labels")
    page.locator(".paper h3", has_text=said["noisy labels"]).first.wait_for()
    page.go_forward()
    page.locator(".paper h3", has_text=said["speech"]).first.wait_for()
    assert counted.count() == 1

    page.goto(f"{whole}#/catalogue?q=labels")
    found = page.locator("[data-results] > .facts")
    alone = found.inner_text()
    page.goto(f"{whole}#/catalogue?topic=vision")
    page.locator("main [name='runs']").evaluate("(box) => { box.checked = true; }")
    page.evaluate("location.hash = '#/catalogue?q=labels'")
    page.locator("[data-results] > .facts", has_text=re.compile(f"^{alone}$")).wait_for()
    assert page.locator("main [name='topic']").input_value() == ""
    assert not page.locator("main [name='runs']").is_checked()
    page.evaluate("location.hash = '#/catalogue?topic=vision&runs=1'")
    page.locator("[data-results]", has_text="Nothing found").wait_for()


def test_a_hostile_title_is_only_text(open_page):
    page = open_page("/catalogue?q=zebrafish")
    title = page.locator(".paper h3").first
    assert "<script>window.hacked = 1</script>" in title.inner_text()
    title.locator("a").click()
    page.wait_for_url("**/paper/*")
    assert "<img src=x" in page.locator("h1").inner_text()
    page.goto("/method/toy")
    assert "<script>" in page.locator("h1").inner_text()
    assert page.locator("main img").count() == 0


def test_start_watch_and_stop_a_run(open_page, monkeypatch):
    page = open_page("/method/toy")
    page.get_by_role("button", name=re.compile("Run smoke")).click()
    page.wait_for_url("**/job")
    assert page.locator(".pulse").is_visible()
    page.locator(".status", has_text="finished").wait_for(timeout=120_000)
    assert "laureate run toy --scale smoke" in page.locator(".command").first.inner_text()
    assert "supported" in page.locator("tr", has_text="toy/better").inner_text()
    page.get_by_role("link", name=re.compile("cells and verdicts")).click()
    page.wait_for_url("**/run/*")
    number = int(page.url.rpartition("/")[2])
    assert "finished" in page.locator(".status").inner_text()

    # Most of its cells never end, so that it is under way until it is stopped, and may take its time for that.
    monkeypatch.setenv("TOY_HELD", "3")
    monkeypatch.setattr("laureate.pages.jobs.PATIENCE", (600.0, 600.0))
    page.goto("/method/toy")
    page.get_by_role("button", name=re.compile("Run desk")).click()
    page.wait_for_url("**/job")
    page.locator("main", has_text=re.compile(r"\b[1-9]\d* of 30 cells · toy/toy · about .* left")).wait_for(
        timeout=120_000
    )
    other = open_page("/method/toy")
    other.get_by_role("button", name=re.compile("Run smoke")).click()
    other.wait_for_url("**/job?busy=1")
    assert "under way already" in other.get_by_role("alert").inner_text()
    assert "laureate run toy --scale desk" in other.locator(".command").first.inner_text()
    live = open_page(f"/run/{number + 1}")
    assert re.search(
        r"of 30 cells computed, last of toy/toy · about .* left", live.locator("main [role=status]").inner_text()
    )
    page.get_by_role("button", name="Stop").click()
    page.locator(".status", has_text="stopped").wait_for(timeout=120_000)
    store = Store(store_path())
    assert store.run(number)["status"] == "finished"
    assert store.run(number + 1)["status"] == "interrupted"
    store.close()


def test_dark_by_the_system_and_by_the_switch(open_page):
    def paper(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = open_page("/", scheme="light"), open_page("/", scheme="dark")
    day, night = paper(light), paper(dark)
    assert day != night
    light.get_by_role("button", name="Switch between dark and light").click()
    assert paper(light) == night
    light.goto("/runs")
    assert paper(light) == night, "it is remembered"


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_needs_no_sideways_scrolling(open_page, path):
    page = open_page(path, width=360, height=740)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    # Nor with everything unfolded, and units and counts as long as the longest of a paper.
    page.evaluate("""() => {
        document.querySelectorAll("details").forEach((element) => { element.open = true; });
        document.querySelectorAll(".of, .chip.runs, .said").forEach((element) => {
            element.textContent = "mean share of right answers over two dialects with 50 rows"; }); }""")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("width", [900, 1280])
@pytest.mark.parametrize("path", ["/", "/compare?first=1&second=2"])
def test_tables_stay_within_their_cards(open_page, path, width):
    page = open_page(path, width=width, height=900)
    page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true; })")
    page.evaluate(
        "document.querySelectorAll('.side .of').forEach((unit) => { unit.textContent = 'long words '.repeat(6); })"
    )
    # What is told of earlier looks stands in a column of figures, which are never broken; it is a sentence.
    page.evaluate("""document.querySelectorAll('.board td.figures:not(.number)').forEach((cell) => {
        cell.innerHTML += '<span class="said">' + 'judged before with other seeds '.repeat(9) + '</span>'; })""")
    wide = "[...document.querySelectorAll('.card table')].filter(t => t.offsetWidth > t.closest('.card').clientWidth)"
    assert page.locator(".card table").count() > 0
    assert page.evaluate(f"{wide}.length") == 0


def test_axe_finds_nothing(open_page):
    page = open_page(PAGES[0])
    found = []
    for path in PAGES:
        page.goto(path)
        found += [(path, *told) for told in axe(page)]
    # The dark theme has other colours and nothing else.
    page.emulate_media(color_scheme="dark")
    for path in ("/method/toy", "/catalogue"):
        page.goto(path)
        found += [(f"{path}, dark", *told) for told in axe(page, '{runOnly: ["color-contrast"]}')]
    assert not found


def axe(page, options="{}"):
    """What axe-core has against a page: (rule, places)."""
    import axe_playwright_python

    # As an evaluated program and not as a script element, which our policy would refuse.
    page.evaluate((Path(axe_playwright_python.__path__[0]) / "axe.min.js").read_text("utf-8"))
    told = page.evaluate(f"axe.run({options})")
    return [(rule["id"], [node["target"] for node in rule["nodes"]][:3]) for rule in told["violations"]]


def test_a_chart_can_be_explored_under_the_strict_policy(open_page):
    pytest.importorskip("vl_convert")
    page = open_page("/method/toy")
    page.locator("summary", has_text="A toy").click()
    claim = page.locator("article#better")
    claim.get_by_role("button", name="Explore").click()
    claim.locator("canvas").wait_for()
    assert claim.locator("circle.seed").count() == 0


def test_the_one_file_works_from_disk(open_page, site, tmp_path):
    from laureate.pages.report import write_everything

    store = Store(store_path())
    file = tmp_path / "all.html"
    write_everything(store, file)
    store.close()
    page = open_page("/")
    page.goto("about:blank")  # the live board has asked for the last time
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    assert page.get_by_role("heading", name="The board").is_visible()
    page.locator(".all-claims > summary").click()
    page.locator("tr[data-claim='toy/worse'] a").first.click()
    assert page.locator("h1:visible").count() == 1
    assert "refuted" in page.locator("article[id='/method/toy/worse'] .chip").inner_text()
    page.goto(f"{file.as_uri()}#/catalogue?q=noisy%20labels")
    assert page.locator(".paper").count() == 20
    page.keyboard.press("/")
    page.keyboard.type("zebrafish")
    assert "<script>" in page.locator(".paper h3").first.inner_text()
    page.locator(".paper h3 a").first.click()
    page.locator("h1", has_text="Zebrafish").wait_for()
    assert axe(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert [url for url in asked if not url.startswith("file:")] == []
    assert os.path.getsize(file) < 3e6


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_a_method_answers_within_three_screens(open_page, width, height):
    page = open_page("/method/toy", width=width, height=height)
    top = page.locator("h2.rest").evaluate("(element) => element.getBoundingClientRect().top + scrollY")
    assert top <= 3 * height
    answers = page.locator(".answers li")
    assert "supported" in answers.first.inner_text()
    assert "loss" in answers.first.inner_text(), "with the unit, or the metric in words"
    page.get_by_role("navigation", name="On this page").get_by_role("link", name="Verdicts").click()
    assert page.url.endswith("#verdicts")
    assert not page.locator("article#better").is_visible(), "the rest is folded"
    page.goto("/method/toy#better")
    assert page.locator("article#better").is_visible(), "what an address points at is unfolded"


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_the_answer_to_typing_is_in_sight(open_page, width, height):
    page = open_page("/catalogue", width=width, height=height)
    page.locator("main [data-search]").click()
    page.keyboard.type("noisy labels", delay=5)
    page.locator("[data-results]", has_text="found").wait_for()
    first = page.locator(".paper h3").first.bounding_box()
    assert first["y"] + first["height"] <= height, "without scrolling"


def test_the_headers_search_suggests(open_page):
    page = open_page("/runs")
    page.locator("#quick").click()
    page.keyboard.type("noisy labels", delay=5)
    links = page.locator("#suggestions a")
    links.first.wait_for()
    assert 2 <= links.count() <= 7
    page.keyboard.press("ArrowDown")
    title = page.evaluate("document.activeElement.firstChild.textContent.trim()")
    page.keyboard.press("Enter")
    page.wait_for_url("**/paper/*")
    assert page.locator("h1").inner_text() in title or title in page.locator("h1").inner_text()
    page.locator("#quick").click()
    page.keyboard.type("zebrafish", delay=5)
    page.locator("#suggestions a").first.wait_for()
    assert axe(page) == []
    page.keyboard.press("Escape")
    assert page.locator("#suggestions").is_hidden()


def test_a_run_shows_its_curves_and_unlike_runs_are_flagged(open_page):
    page = open_page("/run/1")
    assert page.locator("figure.chart polyline").count() == 3
    assert "by the clock" in page.locator(".facts").first.inner_text()
    labels = page.locator("figure.chart svg text.note").all_text_contents()
    assert labels == ["steps", "curve"], "axes read as words"


def walked(page):
    """Where the dots of both panels are, as the browser draws them now."""
    return page.evaluate("[...document.querySelectorAll('svg.film .moving')].map((dot) => dot.cx.animVal.value)")


def test_a_film_moves_until_it_is_stopped(open_page):
    page = open_page("/method/toy")
    first = walked(page)
    page.wait_for_function(
        "first => document.querySelector('svg.film .moving').cx.animVal.value !== first", arg=first[0]
    )
    stop = page.locator("button.pause")
    stop.click()
    held = walked(page)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert walked(page) == held
    assert (stop.get_attribute("aria-pressed"), stop.inner_text()) == ("true", "play")
    stop.click()
    page.wait_for_function("held => document.querySelector('svg.film .moving').cx.animVal.value !== held", arg=held[0])


def test_who_wants_no_motion_sees_the_end(open_page):
    page = open_page("/method/toy", motion="reduce")
    assert walked(page) == [950, 950]
    assert page.locator("button.pause").inner_text() == "play"
    assert page.locator("svg.film .stroke-trace").first.is_visible()
