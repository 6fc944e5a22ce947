"""The trials of Spline calibration / KS error: do they measure what they say?

TO WRITE: tests against numbers that are known from elsewhere; what breaks the trial on purpose turns them red.
"""

from laureate.papers.spline_calibration.about import PAPER


def test_the_paper_is_the_catalogues():
    assert PAPER.id == "spline-calibration"
