"""What people met who searched: a count is the count, whatever page is asked for."""

import pytest


@pytest.mark.parametrize("question", ['"neural networks"', "neural networks", '"gradient" "network"'])
def test_the_total_does_not_depend_on_the_page(shipped, question):
    everything = shipped.search(question, limit=1000)
    assert everything.total == len(everything.hits) > 12
    for limit, offset in ((1, 0), (5, 0), (5, 10), (10, everything.total - 3), (10, everything.total + 5)):
        page = shipped.search(question, limit=limit, offset=offset)
        assert page.total == everything.total
        assert page.hits == everything.hits[offset : offset + limit]
