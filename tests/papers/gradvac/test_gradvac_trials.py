"""The trials of GradVac: do they measure what they say?

TO WRITE: tests against numbers that are known from elsewhere; what breaks the trial on purpose turns them red.
"""

from laureate.papers.gradvac.about import PAPER


def test_the_paper_is_the_catalogues():
    assert PAPER.id == "gradvac"
