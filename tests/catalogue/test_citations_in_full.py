"""Citations of every kind of paper, field by field: with and without authors, venue, year, name and address."""

import itertools

import pytest

from laureate.catalogue import Entry, citation
from laureate.catalogue.importers import bibtex

AUTHORS = {
    (): [],
    ("Plato",): [{"family": "Plato"}],
    ("Di He", "Ada van der Sa"): [{"family": "He", "given": "Di"}, {"family": "van der Sa", "given": "Ada"}],
}
# Venue -> what a bibliography calls it, and its year.
VENUES = {
    "": ("", None),
    "ICML 2021": ("International Conference on Machine Learning", 2021),
    "NeurIPS 1999": ("Advances in Neural Information Processing Systems", 1999),
    "Workshop 2020 on Widgets": ("Workshop on Widgets", 2020),
    "TMLR": ("TMLR", None),
    "2021": ("", 2021),  # a list that knows the year alone: it appeared nowhere that could be named
    "ICLR 2022 Submission": ("ICLR 2022", 2022),
}
# An address -> how it stands between braces.
URLS = {
    "": "",
    "https://x.org/a_b?c=1": "https://x.org/a_b?c=1",
    "https://x.org/a}{b\\c%20": "https://x.org/a%7D%7Bb%5Cc%20",
}
TITLES = {("On Widgets: A Study", ""): "on", ("Σ-Widgets", "WidGets 2"): "widgets2"}


def test_names_of_institutions_are_read_back_whole():
    """A comma or an "and" in a name would make two of it."""
    for authors in itertools.permutations(("Barnes & Noble and Sons", "OpenAI, Inc.", "Ada Lovelace", "Ferdinand"), 3):
        entry = Entry("widgets", "On Widgets", authors, "ICML 2021")
        (back,) = bibtex.read(citation.bibtex(entry))
        assert back.authors == authors
        assert [one.get("literal", one.get("family")) for one in citation.csl(entry)["author"]] == [
            {"Ada Lovelace": "Lovelace"}.get(name, name) for name in authors
        ]


def test_no_two_papers_of_a_bibliography_have_one_key():
    papers = [
        Entry(f"w{i}", title, ("Ada Lovelace",), "ICML 2021") for i, title in enumerate(["A B", "A C", "On D", "A E"])
    ]
    texts = list(citation.bibliography(papers))
    keys = [fields["@key"] for text in texts for fields in bibtex.fields_of(text)]
    assert keys == ["lovelace2021a", "lovelace2021a-2", "lovelace2021on", "lovelace2021a-3"]
    assert [text.replace(key, "k") for text, key in zip(texts, keys, strict=True)] == [
        citation.bibtex(paper, "k") for paper in papers
    ]
    assert texts[0] == citation.bibtex(papers[0])


@pytest.mark.parametrize("venue", VENUES)
def test_every_field_is_told_once_and_only_where_it_is_known(venue):
    for authors, decision, (title, name), url in itertools.product(AUTHORS, ("", "Poster", "Submission"), TITLES, URLS):
        entry = Entry("widgets", title, authors, venue, decision, name=name, url=url)
        long, year = VENUES[venue]
        submitted = decision == "Submission" or "Submission" in venue
        kind = "manuscript" if submitted else "paper-conference" if long else "article"
        csl = {"id": "widgets", "type": kind, "title": title, "author": AUTHORS[authors]}
        csl |= {"issued": {"date-parts": [[year]]}} if year else {}
        csl |= {"container-title": long, "event-title": venue} if long and not submitted else {}
        assert citation.csl(entry) == csl | ({"URL": url} if url else {})

        (fields,) = bibtex.fields_of(citation.bibtex(entry))
        family = {(): "anonymous", ("Plato",): "plato"}.get(authors, "he")
        expected = {
            "@type": "inproceedings" if long and not submitted else "misc",
            "@key": f"{family}{year or ''}{TITLES[title, name]}",
            "@line": "1",
            "title": f"{{{title}}}",
        }
        if authors:
            parts = [(one["family"], one.get("given")) for one in AUTHORS[authors]]
            expected["author"] = " and ".join(", ".join(filter(None, names)) for names in parts)
        if submitted:
            place = venue.removesuffix(" Submission") if long else ""
            expected["note"] = f"Submitted to {place}" if place else "Submission"
        elif long:
            expected["booktitle"] = long
        expected |= {"year": str(year)} if year else {}
        assert fields == expected | ({"url": URLS[url]} if url else {})
