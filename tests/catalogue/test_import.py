"""Importers: real forms read right, bad files refused whole, and nothing trusted."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laureate.catalogue import Catalogue, Entry, entries, library
from laureate.catalogue.importers import bibtex, listing, openreview, read_file, virtual_site
from laureate.catalogue.importers._clean import Malformed, clean, split_venue, without_tex
from laureate.lab.errors import UserError

DATA = Path(__file__).parent / "data"


def test_openreview_api_1():
    first, second = read_file(DATA / "api1.json")
    assert first.title == "A Toy Paper on Widgets"
    assert first.authors == ("Ada Lovelace", "Grace Hopper")
    assert (first.venue, first.decision) == ("ICLR 2020", "Oral")
    assert "gyroscopic" in first.abstract
    assert first.url == "https://openreview.net/forum?id=aB1"
    assert (second.venue, second.decision) == ("ICLR 2020", "Poster")
    assert second.title == "Another <script>alert(1)</script> Paper"


def test_openreview_api_2():
    (paper,) = read_file(DATA / "api2.json")
    assert paper.title == "Gyroscopes for Widgets"
    assert paper.authors == ("Émilie du Châtelet", "Sophie Germain")
    assert (paper.venue, paper.decision) == ("NeurIPS 2023", "Spotlight")


def test_openreview_a_note_a_line():
    notes = json.loads((DATA / "api1.json").read_text("utf-8"))["notes"]
    assert len(openreview.read("\n".join(json.dumps(note) for note in notes))) == 2


def test_bibtex():
    first, second = read_file(DATA / "papers.bib")
    assert first.title == "Solving high-dimensional parabolic PDEs using the tensor train format"
    assert first.authors == ("Lorenz Richter", "Leon Sallandt", "Nikolas Nüsken")
    assert first.venue == "ICML 2021"
    assert second.title == "Widgets & Undecidability: ε-greedy thoughts"
    assert second.authors == ("Kurt Gödel", "Émile Zola")
    assert second.abstract == "Some widgets cannot be decided."
    assert second.venue == "JMLR 1931"


def test_virtual_site():
    papers = read_file(DATA / "awards.html")
    assert [paper.decision for paper in papers] == ["Poster", "Oral", "Poster"]
    assert {paper.award for paper in papers} == {"Outstanding Paper", "Outstanding Paper Honorable Mention"}
    assert papers[0].authors == ("Paul Vicol", "Luke Metz", "Jascha Sohl-Dickstein")
    assert {paper.venue for paper in papers} == {"ICML 2021"}
    # MathJax wrote the number three times; it is read once.
    assert "directly sets the predictor, outperforms linear predictor by 2.5% in 300-epoch" in papers[2].abstract
    assert papers[0].url == "https://icml.cc/virtual/2021/poster/10175"


def test_an_award_is_that_of_its_own_row():
    """On a page where some rows have none, and some cards are in no row."""
    card = '<div class="displaycards"><a class="small-title" href="/virtual/2021/oral/1">{}</a></div>'
    rows = [("A", "Outstanding Paper"), ("B", ""), ("C", "Test of Time"), ("D", "Thursday")]
    table = "".join(f"<tr><td><div>{award}</div></td><td>{card.format(title)}</td></tr>" for title, award in rows)
    found = virtual_site.read(f"{card.format('Z')}<table>{table}</table>")
    assert {paper.title: paper.award for paper in found} == dict(rows) | {"D": "", "Z": ""}


def test_listing():
    papers = read_file(DATA / "listing.md")
    shipped = {entry.title_key(): entry for entry in entries()}
    assert len(papers) == 6
    for paper in papers:
        known = shipped[paper.title_key()]
        assert (paper.authors, paper.decision) == (known.authors, known.decision)
        assert len(paper.abstract) > 100
    assert papers[3].title == "Temporally-Extended ε-Greedy Exploration"


def test_one_paper_listed_twice_is_one(home):
    done = library.add(read_file(DATA / "awards.html"))
    assert done == library.Imported(new=0, enriched=2, known=0)
    pes = next(entry for entry in library.all_entries() if entry.id == "pes")
    assert (pes.decision, pes.award) == ("Oral", "Outstanding Paper")
    assert pes.abstract.startswith("Unrolled computation graphs")
    assert pes.does == next(entry for entry in entries() if entry.id == "pes").does
    assert library.add(read_file(DATA / "awards.html")) == library.Imported(new=0, enriched=0, known=2)
    assert len(list(library.all_entries())) == 873


def test_imported_papers_are_found_by_their_abstracts(home):
    library.add([*read_file(DATA / "api1.json"), *read_file(DATA / "api2.json"), *read_file(DATA / "papers.bib")])
    with Catalogue() as catalogue:
        assert catalogue.size == 877
        assert catalogue.search("steady what wobbles").hits[0].entry.title == "A Toy Paper on Widgets"
        assert catalogue.search("spinning tops").hits[0].entry.venue == "NeurIPS 2023"
        assert catalogue.search("Grace Hopper").hits[0].entry.title == "A Toy Paper on Widgets"


def test_decisions_merge_to_the_rarer(home):
    paper = Entry("", "On the Merging of Widgets", ("Ada Lovelace",), "ICLR 2020")
    poster, oral = (dataclasses.replace(paper, decision=decision) for decision in ("Poster", "Oral"))
    library.add([poster, oral])
    library.add([poster])
    (found,) = [entry for entry in library.all_entries() if "Merging" in entry.title]
    assert found.decision == "Oral"


def test_equal_titles_of_other_authors_are_two_papers(home):
    library.add(
        [
            Entry("", "Widgets", ("Ada Lovelace",)),
            Entry("", "Widgets", ("Alan Turing",)),
            Entry("", "widgets", ("A. Turing",)),
        ]
    )
    assert sorted(entry.id for entry in library.all_entries() if entry.title_key() == "widgets") == [
        "widgets",
        "widgets-2",
    ]


def test_every_paper_of_an_import_is_counted_once(home):
    """Whatever is listed twice, in whatever order: new, enriched or known, and each under one of these alone."""
    paper = Entry("", "On the Counting of Widgets", ("Ada Lovelace",), "ICLR 2020")
    poster, oral = (dataclasses.replace(paper, decision=decision) for decision in ("Poster", "Oral"))
    other = Entry("", "Another Widget")
    assert library.add([poster, oral, poster, other]) == library.Imported(new=2, enriched=0, known=0)
    assert library.add([poster, other, other]) == library.Imported(new=0, enriched=0, known=2)
    told = dataclasses.replace(paper, abstract="They count.")
    assert library.add([poster, told, oral, other]) == library.Imported(new=0, enriched=1, known=1)


def test_an_import_that_brings_something_makes_the_index_old_and_another_does_not(home):
    paper = Entry("", "On the Indexing of Widgets", ("Ada Lovelace",), "ICLR 2020")
    told = dataclasses.replace(paper, abstract="They are found by their threads.")
    first = next(entry for entry in entries() if not entry.award)
    imports = [
        ([paper], True),
        ([paper], False),
        ([told], True),  # an abstract
        ([told, paper], False),
        ([dataclasses.replace(told, decision="Oral")], True),
        ([dataclasses.replace(first, award="Best Widget")], True),  # of a paper that ships
        ([], False),
    ]
    for papers, brings in imports:
        before = library.revision()
        done = library.add(papers)
        assert (done.new + done.enriched > 0) == brings
        assert (library.revision() != before) == brings


@pytest.mark.parametrize(
    ("title", "name", "paper_id"),
    [
        ("DICE: Diversity", "DICE", "dice-2030"),
        ("DreamNet 2: On Dreams", "DreamNet 2", "dreamnet-2-2030"),
        ("a b c: lower", "", "a-b-c-lower-2030"),
        ("One Two Three: Four", "One Two Three", "one-two-three-2030"),
        ("One Two Three Four: Five Six Seven", "", "one-two-three-four-five-six-2030"),
        ("No Colon", "", "no-colon-2030"),
    ],
)
def test_a_paper_is_known_by_what_stands_before_the_colon(home, title, name, paper_id):
    library.add([Entry("", title, (), "ICLR 2030")])
    (found,) = [entry for entry in library.all_entries() if entry.title == title]
    assert (found.name, found.id) == (name, paper_id)


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("cut.json", '{"notes": [\n {"id": "a", "content": {"title": "T"', ":2: not JSON"),
        ("title.json", '[\n{"id": "a", "content": {"title": 3}}]', ":2: the note 'a' must have a title; got 3"),
        ("authors.json", '[{"id": "a", "content": {"title": "T", "authors": [1]}}]', ":1: authors of 'T'"),
        ("text.json", '["note"]', ":1: notes[0] must be an object"),
        ("other.json", '{"papers": []}', ":1: a list of notes"),
        ("lines.json", '{"id": "a", "content": {"title": "T"}}\n{"id": ', ":2: not JSON"),
        ("deep.json", "[" * 100_000, ":1: "),
        ("open.bib", "\n@article{a,\n title = {never closed,\n year = 2020\n", ":3: the brace"),
        (
            "last.bib",
            "\n@article{a,\n title = {never closed,\n year = 2020\n}\n",
            ":2: the @article entry is never closed",
        ),
        ("comma.bib", "@article{a,\n title = {T}\n year = 2020\n}", ":3: a comma or '}' after title expected"),
        (
            "rest.bib",
            "@article{a,\n title = {T} 01234567890123456789!\n}",
            ":2: a comma or '}' after title expected; got '01234567890123456789'",
        ),
        ("value.bib", "@article{a,\n title = ,\n}", ":2: a value expected"),
        ("end.bib", "@article{a, title = {T},", ":1: the @article entry is never closed"),
        ("quote.bib", '@article{a,\n title = "T }', ":2: the quotation mark"),
        (
            "cut.html",
            '<div class="displaycards"><a class="small-title" href="/virtual/2021/oral/1">T</a>',
            ":1: the card of 'T'",
        ),
        ("card.html", '<div>\n<div class="displaycards"></div></div>', ":2: a card without a title"),
        ("none.html", "<p>no card</p>", ": no paper found"),
        ("none.md", "## A heading\n\nprose\n", ":1: no authors and no abstract under 'A heading'"),
        ("prose.txt", "just words", ":1: none of the forms"),
        ("empty.bib", "", ":1: none of the forms"),
    ],
)
def test_a_malformed_file_is_one_line_that_says_where_and_what(tmp_path, name, text, where):
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as caught:
        read_file(tmp_path / name)
    assert f"{name}{where}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_not_a_text_and_not_a_file(tmp_path):
    (tmp_path / "image.bib").write_bytes(b"@misc{\n\xff\xfe")
    with pytest.raises(UserError, match=r"image.bib:2: not UTF-8"):
        read_file(tmp_path / "image.bib")
    with pytest.raises(UserError, match="No such file"):
        read_file(tmp_path / "missing.bib")
    with pytest.raises(UserError, match="Is a directory"):
        read_file(tmp_path)


def test_one_bad_paper_and_nothing_is_imported(home):
    class Bad(Entry):
        def title_key(self):
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        library.add([Entry("", "Good"), Bad("", "Bad")])
    assert len(list(library.all_entries())) == 873


def test_killed_in_the_middle_and_nothing_is_imported(home):
    code = (
        "import os\n"
        "from laureate.catalogue import Entry, library\n"
        "def papers():\n"
        "    for number in range(500):\n"
        "        yield Entry('', f'Widget {number}')\n"
        "    os.kill(os.getpid(), 9)\n"
        "library.add(papers())\n"
    )
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True).returncode == -9
    assert len(list(library.all_entries())) == 873
    assert library.add([Entry("", "Widget 1")]).new == 1


def test_text_from_outside_is_plain_and_bounded():
    assert clean("red \x1b[31malert\x07\u202e reversed\u200b") == "red [31malert reversed"
    assert len(clean("x" * 100_000)) == 20_000
    link = '<a class="small-title" href="javascript:alert(1)">A <b>bold</b> title<script>alert(1)</script></a>'
    page = f'<div class="displaycards">{link}</div>'
    (paper,) = virtual_site.read(page)
    assert paper.title == "A bold title"
    assert paper.url == ""
    (paper,) = bibtex.read("@misc{a, title={T}, url={javascript:alert(1)}}")
    assert paper.url == ""
    (paper,) = listing.read("## [T](javascript:alert)\n\n- A B\n")
    assert paper.url == ""
    (paper,) = openreview.read('[{"id": "../../x y", "content": {"title": "T"}}]')
    assert paper.url == ""


def test_tex_and_venues():
    assert without_tex(r"N{\"u}sken, {\L}ukasz, \c{C}a, \'{e}, \emph{so}") == "Nüsken, Łukasz, Ça, é, so"
    assert without_tex(r"$\epsilon$-greedy at 5\%") == "ε-greedy at 5%"
    assert split_venue("ICLR 2021 Poster") == ("ICLR 2021", "Poster")
    assert split_venue("Submitted to ICLR 2024") == ("ICLR 2024", "Submission")
    assert split_venue("NeurIPS 2022 Accept") == ("NeurIPS 2022", "Poster")
    assert split_venue("TMLR") == ("TMLR", "")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damaged_files_are_read_or_refused_never_worse(data):
    """Cut, doubled or changed anywhere: papers or Malformed, nothing else."""
    readers = {
        "api1.json": openreview.read,
        "papers.bib": bibtex.read,
        "awards.html": virtual_site.read,
        "listing.md": listing.read,
    }
    name = data.draw(st.sampled_from(sorted(readers)))
    text = (DATA / name).read_text("utf-8")
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    text = text[:start] + data.draw(st.text(max_size=20)) + text[end:]
    try:
        papers = readers[name](text)
    except Malformed:
        pass
    else:
        assert all(paper.title == clean(paper.title, 500) for paper in papers)


def test_what_is_left_out_is_counted_with_the_reason(home, tmp_path, capsys):
    from laureate.cli import cli

    text = "@misc{a, title = {Left or Right}}\n@misc{b, author = {Nobody}}\n@misc{c, title = {Left or Right}}\n"
    (tmp_path / "some.bib").write_text(text)
    notes = [{"id": "p", "content": {"title": "A paper"}}, {"id": "r", "replyto": "p", "content": {"review": "no"}}]
    (tmp_path / "some.json").write_text(json.dumps(notes))
    files = [str(tmp_path / "some.bib"), str(tmp_path / "some.json")]
    cli.main(["import", *files, "--json"], standalone_mode=False)
    told = json.loads(capsys.readouterr().out)
    assert (told["read"], told["new"]) == (3, 2)
    assert told["left_out"] == {
        "entries without a title": 1,
        "notes that are no papers (reviews, comments, decisions)": 1,
        "listings of a paper that these files list more than once": 1,
    }


def test_a_doi_is_one_address_however_it_is_written():
    for written in ("10.1/x", "https://doi.org/10.1/x"):
        (paper,) = bibtex.read(f"@misc{{a, title={{T}}, doi={{{written}}}}}")
        assert paper.url == "https://doi.org/10.1/x"


def test_a_note_that_answers_nobody_or_itself_is_a_paper():
    for reply in ({}, {"replyto": None}, {"replyto": ""}, {"replyto": "aB1"}):
        note = {"id": "aB1", "forum": "aB1", "content": {"title": "T"}} | reply
        assert len(openreview.read(json.dumps([note]))) == 1, reply
    assert not openreview.read(json.dumps([note | {"replyto": "cD2"}]))


def test_the_first_listing_keeps_its_words_where_the_second_has_no_more():
    first = Entry("a", "T", ("Ada Lovelace", "Grace Hopper"), abstract="ours", url="https://a.org")
    second = Entry("", "T", ("A. Lovelace", "G. Hopper"), abstract="hers", url="https://b.org")
    assert library.merge(first, second) == first
    third = dataclasses.replace(second, authors=(*second.authors, "Alan Turing"))
    assert library.merge(first, third) == dataclasses.replace(first, authors=third.authors)
