"""The shipped data: valid, unique, and joined with what runs."""

import collections
import json
import subprocess
import sys

from laureate import papers
from laureate.catalogue import entries
from laureate.catalogue.entry import SHIPPED, entry_of, problems_of


def test_every_record_follows_the_schema():
    records = [json.loads(line) for line in SHIPPED.read_text("utf-8").splitlines()]
    assert len(records) == 873
    assert {record["id"]: wrong for record in records if (wrong := problems_of(record))} == {}


def test_schema_sees_what_is_wrong():
    record = entries()[0].record()
    del record["abstract"]
    assert problems_of(record) == []
    for change in (
        {"topic": "cooking"},
        {"fit": 7},
        {"fit": True},
        {"asks": ["one"]},
        {"id": "Not Kebab"},
        {"title": ""},
        {"title": "two  blanks"},
        {"authors": "one text"},
        {"colour": "red"},
    ):
        assert problems_of(record | change), change


def test_a_record_of_an_older_version_is_read():
    record = entries()[0].record()
    record["area"] = record.pop("topic")
    assert entry_of(record) == entries()[0]
    assert entry_of({"id": "a", "title": "A"}).topic == ""


def test_ids_and_titles_are_unique():
    for key in (lambda entry: entry.id, lambda entry: entry.title_key()):
        counts = collections.Counter(map(key, entries()))
        assert [name for name, count in counts.items() if count > 1] == []


def test_every_running_paper_is_in_the_catalogue():
    by_id = {entry.id: entry for entry in entries()}
    for paper_id in papers.paper_ids():
        assert paper_id in by_id
        assert by_id[paper_id].title_key() == "".join(filter(str.isalnum, papers.paper(paper_id).title.lower()))


def test_terms_are_no_text_to_read():
    for entry in entries():
        assert list(entry.terms) == sorted(entry.terms)
        assert len(entry.terms) <= 30


def test_loads_nothing_heavy():
    code = (
        "import sys, laureate.cli.find, laureate.cli.import_papers, laureate.cli.cite, laureate.catalogue.importers\n"
        "import laureate.catalogue.citation, laureate.catalogue.library\n"
        "print([name for name in ('jax', 'numpy', 'scipy', 'rich', 'jinja2') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
