"""The example runs: the monitor tells health from collapse, and the probes give intervals."""

import pytest

from example_files import EXAMPLES, loaded


def example():
    return loaded(EXAMPLES / "own_encoder.py")


@pytest.mark.slow
def test_own_encoder_is_watched_and_probed(capsys):
    found, reports = example().main(steps=400)
    assert not bool(reports["DirectPred"].collapsed)
    assert float(reports["DirectPred"].effective_rank) > 2 * float(reports["no predictor"].effective_rank)
    told = capsys.readouterr().out
    assert "effective rank" in told
    for probes in found.values():
        for share in probes.values():
            assert 0 <= share.low < share.value < share.high <= 1
    # Four kinds of signal: a quarter by chance.
    assert float(found["DirectPred"]["fine-tuned"].low) > 0.25
