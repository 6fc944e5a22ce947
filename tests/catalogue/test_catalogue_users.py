"""What people met who searched: a count is the count, whatever page is asked for."""

import pytest

ASKED = {
    "words": ("speech", {"topic": "audio"}),
    "corrected": ("speach", {"topic": "audio"}),
    "phrase": ('"neural networks"', {"topic": "graphs-geometry"}),
    "phrases": ('"gradient" "network"', {"topic": "optimisation"}),
    "no such phrase": ('"networks neural"', {"topic": "audio"}),
    "filters alone": ("", {"topic": "audio", "decision": "poster"}),
    "everything": (None, {}),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_total_does_not_depend_on_the_page(shipped, name):
    question, filters = ASKED[name]

    def search(**page):
        return shipped.listed(**page) if question is None else shipped.search(question, **filters, **page)

    whole = search(limit=1000)
    assert whole.total == len(whole.hits) > 5
    assert len({hit.entry.id for hit in whole.hits}) == whole.total
    assert (bool(whole.corrected), whole.ignored_phrase) == (name == "corrected", name == "no such phrase")
    for limit, offset in ((1, 0), (2, 2), (4, 4), (10, whole.total - 3), (10, whole.total), (10, whole.total + 5)):
        page = search(limit=limit, offset=offset)
        assert (page.total, page.corrected, page.ignored_phrase) == (whole.total, whole.corrected, whole.ignored_phrase)
        assert page.hits == whole.hits[offset : offset + limit]
