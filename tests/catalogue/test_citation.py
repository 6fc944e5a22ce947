from laureate.catalogue import Entry, citation, entries
from laureate.catalogue.importers import bibtex


def test_what_we_write_we_can_read():
    """Every shipped paper to BibTeX and back: title, authors, year."""
    read = bibtex.read("\n\n".join(map(citation.bibtex, entries())))
    assert len(read) == len(entries())
    for entry, back in zip(entries(), read, strict=True):
        assert back.title_key() == entry.title_key()
        assert back.surnames() == entry.surnames()
        assert back.year == entry.year or entry.decision == "Submission"


def test_signs_that_tex_obeys_are_escaped():
    """In all that somebody else wrote: titles, names and venues, of papers and of submissions."""
    given, escaped = "50% of {x} & y_z", r"50\% of \{x\} \& y\_z"
    text = citation.bibtex(Entry("a", given, ("Ada Lovelace", f"Alan {given}"), f"{given} 2021"))
    assert text.startswith("@inproceedings{lovelace2021")
    assert f"= {{{{{escaped}}}}},\n" in text
    assert text.count(escaped.removesuffix(r" y\_z")) == 3
    assert f"booktitle = {{{escaped}}}" in text
    text = citation.bibtex(Entry("a", "A", ("Ada Lovelace",), f"{given} 2021 submission"))
    assert f"note   = {{Submitted to {escaped} 2021}}" in text


def test_csl():
    entry = next(entry for entry in entries() if entry.id == "detag")
    told = citation.csl(entry)
    assert told["author"][1] == {"family": "De Sa", "given": "Christopher"}
    assert told["issued"] == {"date-parts": [[2021]]}
    assert told["container-title"] == "International Conference on Machine Learning"


def test_a_submission_is_not_cited_as_published():
    entry = next(entry for entry in entries() if entry.decision == "Submission")
    assert citation.bibtex(entry).startswith("@misc")
    assert citation.csl(entry)["type"] == "manuscript"


def test_nobody_loses_a_first_name():
    """A particle belongs to the family; what stands first is given, whatever it is, unless it is the whole name."""
    for particle in ("van", "De", "la", "El"):
        for name, parts in {
            f"Ada {particle} Sa": ("Ada", f"{particle} Sa"),
            f"Ada B. {particle} der Sa": ("Ada B.", f"{particle} der Sa"),
            f"{particle} Sa": (particle, "Sa"),
            f"{particle} {particle} Sa": (particle, f"{particle} Sa"),
        }.items():
            (told,) = citation.csl(Entry("a", "A", (name,)))["author"]
            assert (told.get("given"), told["family"]) == parts
    assert citation.csl(Entry("a", "A", ("Plato",)))["author"] == [{"family": "Plato"}]
