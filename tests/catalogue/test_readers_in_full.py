"""Readers of lists: which one reads a file, and every fact of a paper from every way of writing it."""

import functools
import itertools
import json

import pytest

from laureate.catalogue import Entry, importers, library
from laureate.catalogue.importers import bibtex, listing, openreview, read_file, virtual_site
from laureate.catalogue.question import quoted, sequence
from laureate.catalogue.search import _contains
from laureate.catalogue.spelling import distance
from laureate.lab.errors import UserError

CARD = (
    '<div class="displaycards"><a class="small-title" href="{link}">{title}</a>'
    '<div class="author-str higher">Nobody</div><div class="author-str">{authors}</div>'
    '<div class="abstract-display">{abstract}</div></div>'
)


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        ('{"notes": []}', openreview), (' \n[{"id": "a"}]', openreview), ("[A link](x) first\n\n## T\n", listing),
        ("prose\n @misc{a, title={T}}", bibtex), ("@ article ( a, title={T})", bibtex), ("# ICML\n\n## T\n", listing),
        ("<p>@misc{a}</p>", virtual_site), ("<html>\n# T\n", virtual_site), ("## A\n@misc{a, title={T}}", bibtex),
    ],
)  # fmt: skip
def test_a_files_form_is_seen_from_its_content(text, reader):
    assert importers._reader(text) is reader.read


def test_a_file_may_have_a_mark_in_front_and_be_just_so_large(tmp_path, monkeypatch):
    path = tmp_path / "a.bib"
    text = b"\xef\xbb\xbf@misc{a, title = {T}}"
    path.write_bytes(text)
    for most in (len(text), 1 << 20):
        monkeypatch.setattr(importers, "MOST_BYTES", most)
        found = read_file(path)
        assert ([paper.title for paper in found], found.left_out) == (["T"], {})
    monkeypatch.setattr(importers, "MOST_BYTES", len(text) - 1)
    with pytest.raises(UserError, match="more than"):
        read_file(path)


@pytest.mark.parametrize(
    ("page", "venue", "site"),
    [
        ("https://icml.cc/virtual/2021/x", "ICML 2021", "https://icml.cc"),
        ("https://ICLR.cc/virtual/2020/", "ICLR 2020", "https://iclr.cc"),
        ("https://nips.cc/virtual/2019/", "NeurIPS 2019", "https://neurips.cc"),
        ("https://neurips.org/virtual/2022/", "NeurIPS 2022", "https://neurips.cc"),
        ('<a href="/virtual/2023/x">ICLR</a>', "ICLR 2023", "https://iclr.cc"),
        ('<a href="/virtual/2023/x">AISTATS</a>', "2023", ""), ("ICML", "ICML 2021", "https://icml.cc"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("kind", "decision"), [("oral", "Oral"), ("spotlight", "Spotlight"), ("poster", "Poster"), ("talks", "")]
)
def test_a_card_has_venue_decision_and_address_from_its_links(page, venue, site, kind, decision):
    title = 'A <b>bold</b> &amp; <script type="math/tex">x^2</script><span class="MathJax">twice</span> T<br>wo'
    link = f"/virtual/2021/{kind}/7"
    card = CARD.format(link=link, title=title, authors="Ada One · Bea Two ⋅ Ada One", abstract="Says … ")
    (paper,) = virtual_site.read(page + card)
    assert paper == Entry(
        "", "A bold & x^2 T wo", ("Ada One", "Bea Two"), venue, decision, abstract="Says", url=site and site + link
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("booktitle={Proc. of the International Conference on Machine Learning}, year={2021}", {"venue": "ICML 2021"}),
        ("journal={Journal of Machine Learning Research}, year=2019", {"venue": "JMLR 2019"}),
        ("journal={Transactions on Machine Learning Research}", {"venue": "TMLR"}),
        ("booktitle={Advances in neural information processing systems 34}, year={2021}", {"venue": "NeurIPS 2021"}),
        ("series={Widgets 2020}, year={2020a}", {"venue": "Widgets 2020"}), ("year={2020}", {"venue": "2020"}),
        ("booktitle={9th International Conference on Learning Representations, ICLR 2021}", {"venue": "ICLR 2021"}),
        ("booktitle={ICML 2019 Widgets}, year={2020}", {"venue": "ICML 2019 Widgets 2020"}),
        ("booktitle={Widgets}, year={in press}", {"venue": "Widgets"}),
        ("booktitle={B}, journal={J}, series={S}", {"venue": "B"}),
        ("author={One, Ada and Bea Two and others}", {"authors": ("Ada One", "Bea Two")}),
        ('author="M{\\"u}ller, Jo and {\\O}rsted, H."', {"authors": ("Jo Müller", "H. Ørsted")}),
        ("note={Oral presentation}", {"decision": "Oral"}), ("keywords={a, Spotlight}", {"decision": "Spotlight"}),
        ("howpublished={Poster}", {"decision": "Poster"}), ("note={Accepted}", {"decision": ""}),
        # What a paper is about says nothing of how it was presented.
        ("note={Submitted, on temporal models}, keywords={moral posters}", {"decision": ""}),
        ("keywords={oral cancer; graphs}", {"decision": ""}), ("note={OralPoster}", {"decision": "Oral"}),
        ("note={Accepted}, keywords={a; oral}", {"decision": "Oral"}),
        ("award={Best {W}idget}", {"award": "Best Widget"}), ("abstract={A {B} c}", {"abstract": "A B c"}),
        ("url={https://x.org/a_b}, doi={10.1/x}", {"url": "https://x.org/a_b"}), ("doi={10.1/x}", {"url": "https://doi.org/10.1/x"}),
        ("url={ftp://x.org}", {"url": ""}), ("url={https://x.org/a b}", {"url": ""}),
    ],
)  # fmt: skip
def test_every_field_of_bibtex_goes_where_it_belongs(fields, expected):
    """And nowhere else: what is not named stays empty."""
    (paper,) = bibtex.read(f"@misc{{k, title={{T}}, {fields}}}")
    expected = {"authors": (), "venue": "", "decision": "", "award": "", "abstract": "", "url": ""} | expected
    assert {name: getattr(paper, name) for name in expected} == expected
    assert (paper.id, paper.title, paper.name) == ("", "T", "")


KINDS = (
    "Official_Review",
    "Official_Comment",
    "Public_Comment",
    "Meta_Review",
    "MetaReview",
    "Decision",
    "Comment",
    "Rebuttal",
)


@pytest.mark.parametrize("kind", [*KINDS, "Submission", "Blind_Submission", "Commentary"])
def test_what_answers_a_paper_is_none(kind):
    """By its invitation, under either name, or by what it answers; a paper is known without any."""
    note = {"id": "n", "forum": "n", "content": {"title": {"value": "T"}}}
    ours = kind not in KINDS
    for more in (
        {"invitation": f"ICLR.cc/2021/Conference/Paper1/-/{kind}"},
        {"invitations": ["x", f"ICLR.cc/2021/Conference/-/{kind}"]},
        {"invitation": f"ICLR.cc/2021/Paper7/{kind}", "replyto": "n"},
    ):
        read = openreview.read(json.dumps([note | more]))
        assert len(read) == ours, more
        assert sum(read.left_out.values()) == (not ours)
        if ours:
            assert read[0].venue == ("ICLR 2021" if "ICLR" in json.dumps(more) else "")
    for replyto, paper in ((None, True), ("", True), ("n", True), ("other", False)):
        assert len(openreview.read(json.dumps([note | {"replyto": replyto}]))) == paper
    assert openreview.read(json.dumps({"notes": []})) == openreview.read("[]") == []
    assert [paper.title for paper in openreview.read(json.dumps(note))] == ["T"]


def test_an_import_is_there_by_its_id_and_beside_what_ships(tmp_path, monkeypatch):
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    assert library.revision() == ""
    assert library.by_id("a-widget") is None
    library.add([Entry("", "A Widget", ("Ada One",)), Entry("pes", "Another Widget"), Entry("mine", "A Third Widget")])
    told = {entry.title: entry.id for entry in library.all_entries() if "Widget" in entry.title}
    assert told == {"A Widget": "a-widget", "Another Widget": "pes-2", "A Third Widget": "mine"}
    for title, paper_id in told.items():
        found = library.by_id(paper_id)
        assert found is not None
        assert found.title == title
    shipped = library.by_id("pes")
    assert shipped is not None
    library.add([Entry("", shipped.title, shipped.authors, abstract="What it says.")])
    now = library.by_id("pes")
    assert now is not None
    assert (now.abstract, now.problem, now.asks) == ("What it says.", shipped.problem, shipped.asks)
    assert [entry for entry in library.all_entries() if entry.id == "pes"] == [now]


@functools.cache
def edits(first, second):
    """Optimal string alignment, by its definition."""
    if not first or not second:
        return len(first) + len(second)
    least = min(
        edits(first[:-1], second) + 1, edits(first, second[:-1]) + 1,
        edits(first[:-1], second[:-1]) + (first[-1] != second[-1]),
    )  # fmt: skip
    if first[-2:] == second[-2:][::-1] and len(first) > 1:
        least = min(least, edits(first[:-2], second[:-2]) + 1)
    return least


def test_a_distance_is_the_fewest_edits_by_its_definition():
    words = ["".join(letters) for size in range(6) for letters in itertools.product("ab", repeat=size)][:40]
    words += ["abcab", "bacba"]
    for first, second in itertools.product(words, repeat=2):
        for most in (0, 1, 3, 9):
            assert distance(first, second, most) == min(edits(first, second), most + 1), (first, second, most)


@pytest.mark.parametrize("marks", ['""', "“”", "„“", "””"])
def test_what_stands_between_quotation_marks_is_held_together(marks):
    text, phrases = quoted(f"a {marks[0]}noisy labels{marks[1]} b {marks[0]}edge-of stability{marks[1]} c")
    assert text.split() == ["a", "noisy", "labels", "b", "edge-of", "stability", "c"]
    assert phrases == [sequence("noisy labels"), sequence("edge of stability")]
    assert quoted(f"a {marks[0]} {marks[1]} b")[1] == quoted(f"a {marks[0]}b c")[1] == []


@pytest.mark.parametrize(
    "field", ["name", "title", "problem", "does", "demo", "abstract", "asks", "symptoms", "also", "authors"]
)
def test_a_phrase_is_found_in_every_text_of_a_paper_wherever_it_begins(field):
    for text, there in (
        ("labels noisy noisy label", True), ("Noisy-labels", True), ("noisy x labels", False), ("labels noisy", False),
        ("noisy", False), ("", False),
    ):  # fmt: skip
        value = ("x", text) if field in ("asks", "symptoms", "also", "authors") else text
        assert _contains(Entry(**{"id": "x", "title": "T", field: value}), sequence("noisy labels")) == there, text
