"""From numbers to verdicts: pure functions that read no file and start no process."""

__all__ = ["RULES"]

# Raise it when a claim can come out differently from the same numbers: every claim then gets a line in its ledger.
# 1: means by sign flips and BCa intervals. 2: bounds by the median and the sign test, expanded intervals, guards.
RULES = 2
