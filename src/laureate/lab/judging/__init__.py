"""From numbers to verdicts: pure functions that read no file and start no process."""

__all__ = ["DIGEST_RULES", "RULES", "RULE_CHANGES"]

# Raise it when a claim can come out differently from the same numbers, and say here and in docs/DESIGN.md why.
# The digests of the ledgers hold the rules up to 2; a change after that is one line here and not one for every claim.
RULES = 3
DIGEST_RULES = 2
RULE_CHANGES = {
    1: "means by sign flips and BCa intervals",
    2: "bounds by the median and the sign test, expanded intervals, guards",
    3: "2026-11-17, after results: what is no measurement (an arm at a limit, a constant, a guard's number that is not "
    "finite, too few effective samples) refutes nothing either, nor does a method at the edge of its own grid; a "
    "look with another number of seeds pays for the earlier ones",
}
