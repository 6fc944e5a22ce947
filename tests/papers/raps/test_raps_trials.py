"""The trials of RAPS: do they measure what they say?

TO WRITE: tests against numbers that are known from elsewhere; what breaks the trial on purpose turns them red.
"""

from laureate.papers.raps.about import PAPER


def test_the_paper_is_the_catalogues():
    assert PAPER.id == "raps"
