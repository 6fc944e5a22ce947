"""The trials of PAC confidence: do they measure what they say?

TO WRITE: tests against numbers that are known from elsewhere; what breaks the trial on purpose turns them red.
"""

from laureate.papers.pac_confidence.about import PAPER


def test_the_paper_is_the_catalogues():
    assert PAPER.id == "pac-confidence"
