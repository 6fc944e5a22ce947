"""The example runs, on a chain of its own and on a file."""

import numpy as np
import pytest

from example_files import EXAMPLES, loaded


def example():
    return loaded(EXAMPLES / "own_backbone.py")


@pytest.mark.slow
def test_own_backbone_learns_and_proposes(capsys):
    values, sequences = example().main(steps=8)
    assert values[-1] < values[0]
    assert [len(sequence) for sequence in sequences] == [24, 24]
    assert "0 interruptions" in capsys.readouterr().out


def test_own_labels_offer_what_the_lab_asks_for():
    from laureate.papers.gvp.experiments_proteins import SECONDARY

    problem = example().Buried()
    assert all(hasattr(problem, name) for name in SECONDARY.accepts)
    assert [len(labels) for labels in problem.labels] == [len(coords) for coords in problem.chains]
    assert 0.1 < np.concatenate(problem.labels).mean() < 0.9
