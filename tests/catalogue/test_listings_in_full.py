"""What readers and the library make of a listing, whatever stands in it and in whatever order it comes."""

import dataclasses
import itertools
import json

import pytest

from laureate.catalogue import Entry, entries, library
from laureate.catalogue.entry import DECISIONS
from laureate.catalogue.importers import bibtex, listing, openreview, virtual_site
from laureate.catalogue.importers._clean import Malformed

CARD = '<div class="displaycards"><a class="small-title" href="/virtual/2021/poster/1">{}</a></div>'


def test_items_of_a_listing_may_come_in_any_order():
    """The first that is no abstract names the authors; what follows is a remark."""
    items = ["- Ada Lovelace, Di He", "* abstract@[open-review\\(Oral\\)](x): What it says", "+ code at home"]
    for order in itertools.permutations(items):
        if order.index(items[0]) < order.index(items[2]):
            (paper,) = listing.read("# ICLR 2020\n\n## [T](https://x.org/1) ##\n\n" + "\n".join(order))
            told = (paper.title, paper.authors, paper.venue, paper.decision, paper.abstract, paper.url)
            assert told == ("T", ("Ada Lovelace", "Di He"), "ICLR 2020", "Oral", "What it says", "https://x.org/1")


BEFORE = {
    "html": ["", "\n\n", "<!-- a\nb\n-->", "<!doctype html\n>\n", "<?php\n\n?>", "<p>text\n</p>"],
    "bib": [
        "",
        "\n\n",
        "% a remark\n",
        "@comment{a\n{b}\n}",
        "@string{x = {a\nb}}\n",
        "@misc{a, title = {One\ntwo}}\n",
    ],
    "md": ["", "\n\n", "# ICLR 2020\n\n", "## [A](x)\n- B C\n\n"],
}
WRONG = {
    "html": (virtual_site.read, '<div class="displaycards"></div>'),
    "bib": (bibtex.read, "@misc{b, title = ,}"),
    "md": (listing.read, "## A heading\n\nprose\n"),
}


@pytest.mark.parametrize("form", WRONG)
def test_the_line_that_is_named_is_the_line_where_it_stands(form):
    """Whatever comes before it: remarks, declarations, other papers."""
    read, wrong = WRONG[form]
    for before in itertools.product(BEFORE[form], repeat=2):
        text = "".join(before)
        if not text.endswith("\n") and form == "md" and text:
            continue
        with pytest.raises(Malformed) as caught:
            read(text + wrong)
        assert caught.value.line == text.count("\n") + 1, before


# What str.splitlines() ends a line at, beside what ends one; JSON has the first three in its strings as they are.
NO_ENDS = ("\u2028", "\u2029", "\x85", "\x0c", "\x0b", "\x1c")
NOTE = '{"id": "a", "content": {"title": "One@two", "abstract": "It@says"}}'
NO_NOTE = '{"id": "b", "content": {"title": 7}}'
NO_CARD = '<div class="displaycards"></div>'
# Of each form: its reader, a paper where @ is such a sign, and what is wrong on the second line after it.
LISTED = {
    "lines": (openreview.read, NOTE, NO_NOTE),
    "list": (openreview.read, f"[{NOTE},", f"{NO_NOTE}]"),
    "bib": (bibtex.read, "@misc{a, title = {One@two}, abstract = {It@says}}", "@misc{b, title = ,}"),
    "md": (listing.read, "## One@two\n\n- Ada@Lovelace\n- abstract: It@says", "## A heading\n\nprose\n"),
    "html": (virtual_site.read, CARD.format('One@two</a><p class="abstract-display">It@says</p><a>'), NO_CARD),
}


@pytest.mark.parametrize("form", LISTED)
def test_only_the_end_of_a_line_ends_it(form):
    """Texts from other programs have form feeds and separators of their own: a blank each, and no line is counted."""
    read, paper, wrong = LISTED[form]
    for end, sign in itertools.product(("\n", "\r\n"), (" ", *NO_ENDS)):
        if sign < " " and form in ("lines", "list"):
            continue  # no JSON
        given = paper.replace("\n", end).replace("@two", f"{sign}two").replace("@says", f"{sign}says")
        given = given.replace("@Love", f"{sign}Love")
        with pytest.raises(Malformed) as caught:
            read(f"{given}{end}{end}{wrong}")
        assert caught.value.line == given.count("\n") + 3, (sign, end)
        (found,) = read(given.rstrip(",") + "]" * (form == "list"))
        assert (found.title, found.abstract) == ("One two", "It says"), sign
        assert found.authors == (("Ada Lovelace",) if form == "md" else ())


@pytest.mark.parametrize("given", ['One "two" three', "{One} {{two}} three", 'a "quoted {part}" b', "a, b = c # d @ e"])
def test_a_value_of_bibtex_is_what_stands_in_it_however_it_is_written(given):
    """In braces or in quotation marks, which may stand in braces inside, alone or joined with names of any capitals."""
    braced = "{" + given + "}"
    quoted = '"' + given.replace('"', '{"}') + '"'
    for text, expected in (
        (braced, given),
        (quoted, given.replace('"', '{"}')),
        (f"{braced} # wiDgets # {quoted}", given + "All of {them}" + given.replace('"', '{"}')),
        ("JAN # 7", "Jan7"),
    ):
        for opening, closing in ("{}", "()"):
            named = f"@String{opening}WIDGETS = {{All of {{them}}}}{closing}"
            source = f"{named}\n@Misc{opening}k, Title = {text}, year=1999{closing}"
            if opening == "(" and ")" in text:
                continue
            (fields,) = bibtex.fields_of(source)
            assert fields == {"@type": "misc", "@key": "k", "@line": "2", "title": expected, "year": "1999"}


# A name as BibTeX writes it -> as we show it. What braces hold is one name, whatever words stand in it.
NAMES = {
    "Ada Lovelace": "Ada Lovelace",
    "Lovelace, Ada": "Ada Lovelace",
    "van der Maaten, Laurens": "Laurens van der Maaten",
    "Davis, Jr., Sammy": "Sammy Davis Jr.",
    "{Barnes and Noble}": "Barnes and Noble",
    "{OpenAI, Inc.}": "OpenAI, Inc.",
    r"Erd{\H{o}}s, P{\'a}l": "Pál Erdős",
    "{Band and} {Sand}": "Band and Sand",
    "Brand, Andy": "Andy Brand",
    "Plato": "Plato",
}


@pytest.mark.parametrize("joined", [" and ", "\n  AND\t"])
def test_every_author_of_bibtex_is_one_however_the_name_is_written(joined):
    for number, written in enumerate(itertools.permutations(NAMES, 2)):
        names = [*written, "others"][: 2 + number % 2]
        for opening, closing in ("{}", '""'):
            text = f"@misc{{k, title = {{T}}, author = {opening}{joined.join(names)}{closing}}}"
            (paper,) = bibtex.read(text)
            assert paper.authors == tuple(dict.fromkeys(NAMES[name] for name in written)), text
    many = [f"Author Number{i}" for i in range(2000)]
    (paper,) = bibtex.read(f"@misc{{k, title = {{T}}, author = {{{joined.join(many)}}}}}")
    assert paper.authors == tuple(many)


def test_what_was_decided_is_said_by_the_decision_and_else_by_the_venue():
    for venue, decision in itertools.product(
        ("", "ICLR 2021", "ICLR 2021 Poster", "Submitted to ICLR 2021"),
        ("", "Accept (Oral)", "Accept (Spotlight)", "Reject"),
    ):
        paper = {"id": "p", "content": {"title": "T", "venue": venue}}
        decided = {"id": "d", "forum": "p", "replyto": "p", "content": {"decision": decision}}
        other = {"id": "q", "content": {"title": "Another"}}
        word = {"Accept (Oral)": "Oral", "Accept (Spotlight)": "Spotlight", "Reject": "Submission"}.get(decision, "")
        said = {"ICLR 2021 Poster": "Poster", "Submitted to ICLR 2021": "Submission"}.get(venue, "")
        # A paper opens its own forum, and need not say so.
        for own, place in itertools.product(({"forum": "p"}, {"forum": None}, {}), (1, -1)):
            order = [paper | own, decided, other | ({"forum": "q"} if own else {})][::place]
            read = {found.title: found for found in openreview.read(json.dumps({"notes": order}))}
            assert (read["T"].decision, read["T"].venue) == (word or said, "ICLR 2021" if venue else "")
            assert read["Another"].decision == ""
            assert read["T"].url == "https://openreview.net/forum?id=p"


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Entry)])
def test_two_listings_are_the_first_filled_from_the_second(name):
    """Field by field, where either, both or none of them says something; longer abstracts and lists of authors win."""
    values = {
        "authors": [(), ("Ada One",), ("Bea Two",), ("Ada One", "Bea Two")],
        "abstract": ["", "one", "two", "longer"],
        "decision": ["", *DECISIONS, "Withdrawn"],
        "reviewed": [False, True],
        "fit": [0, 3],
    }
    lists = ("asks", "terms", "symptoms", "also")
    for first, second in itertools.product(
        values.get(name, [(), ("a",), ("b", "c")] if name in lists else ["", "a", "bc"]), repeat=2
    ):
        a, b = (dataclasses.replace(Entry("x", "T"), **{name: value}) for value in (first, second))
        if name in ("authors", "abstract"):
            expected = second if len(second) > len(first) else first
        elif name == "decision":
            known = [word for word in (*DECISIONS, "Withdrawn") if word in (first, second)]
            expected = known[0] if known else ""
        elif name in ("id", "title", "reviewed", "fit", "cpu", "symptoms", "also"):
            expected = first  # ours alone
        else:
            expected = first or second
        assert getattr(library.merge(a, b), name) == expected, (first, second)


def test_one_paper_is_one_where_either_list_has_no_authors_or_they_share_one(home):
    """In either order, of a paper that ships and of one that was imported; a venue given fills what does not say."""
    shipped = next(entry for entry in entries() if len(entry.authors) > 2)
    for number, (first, second) in enumerate(
        itertools.product([(), ("Ada One",), ("A. One", "Bea Two"), ("Bea Two",)], repeat=2)
    ):
        one = not first or not second or bool({n.split()[-1] for n in first} & {n.split()[-1] for n in second})
        title = f"Widgets of kind {number}"
        done = [library.add([Entry("", title, authors)], "ICLR 2030").new for authors in (first, second)]
        assert done == [1, 0 if one else 1], (first, second)
        found = [entry for entry in library.all_entries() if entry.title == title]
        assert len(found) == sum(done)
        assert {entry.venue for entry in found} == {"ICLR 2030"}
    for authors, new in (((), 0), (shipped.authors[:1], 0), (("Nobody Else",), 1)):
        assert library.add([Entry("", shipped.title.upper(), authors, "Other 2001")], "ICLR 2030").new == new
    told = {entry.venue for entry in library.all_entries() if entry.title_key() == shipped.title_key()}
    assert told == {shipped.venue, "Other 2001"}
    assert library.by_id(shipped.id) == shipped


def test_every_listing_is_counted_under_one_of_three(home):
    """New, gained something, or known: together as many as there are papers, in one import or several."""
    shipped = next(entry for entry in entries() if not entry.award)
    listed = [
        Entry("", "A Widget"),
        Entry("", shipped.title, shipped.authors, award="Best"),
        Entry("", "Another Widget"),
    ]
    for given in ([*listed, *listed], listed[:1], [*listed[:1], dataclasses.replace(listed[2], abstract="More.")]):
        done = library.add(given)
        assert done.new + done.enriched + done.known == len({entry.title for entry in given}), given
