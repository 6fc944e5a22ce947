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
    "ICLR 2022 Submission": ("ICLR 2022", 2022),
}
TITLES = {("On Widgets: A Study", ""): "on", ("Σ-Widgets", "WidGets 2"): "widgets2"}


@pytest.mark.parametrize("venue", VENUES)
def test_every_field_is_told_once_and_only_where_it_is_known(venue):
    for authors, decision, (title, name), url in itertools.product(
        AUTHORS, ("", "Poster", "Submission"), TITLES, ("", "https://x.org/a_b?c=1")
    ):
        entry = Entry("widgets", title, authors, venue, decision, name=name, url=url)
        long, year = VENUES[venue]
        submitted = decision == "Submission" or "Submission" in venue
        kind = "manuscript" if submitted else "paper-conference" if venue else "article"
        csl = {"id": "widgets", "type": kind, "title": title, "author": AUTHORS[authors]}
        csl |= {"issued": {"date-parts": [[year]]}} if year else {}
        csl |= {"container-title": long, "event-title": venue} if venue and not submitted else {}
        assert citation.csl(entry) == csl | ({"URL": url} if url else {})

        (fields,) = bibtex.fields_of(citation.bibtex(entry))
        family = {(): "anonymous", ("Plato",): "plato"}.get(authors, "he")
        expected = {
            "@type": "inproceedings" if venue and not submitted else "misc",
            "@key": f"{family}{year or ''}{TITLES[title, name]}",
            "@line": "1",
            "title": f"{{{title}}}",
        }
        if authors:
            parts = [(one["family"], one.get("given")) for one in AUTHORS[authors]]
            expected["author"] = " and ".join(", ".join(filter(None, names)) for names in parts)
        if submitted:
            place = venue.removesuffix(" Submission")
            expected["note"] = f"Submitted to {place}" if place else "Submission"
        elif venue:
            expected["booktitle"] = long
        expected |= {"year": str(year)} if year else {}
        assert fields == expected | ({"url": url} if url else {})
