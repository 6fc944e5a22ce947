"""What it costs to look again with more seeds. Nothing here loads NumPy: the pages tell it too."""

__all__ = ["price"]


def price(look: int) -> int:
    """What the p-value of the ``look``-th number of seeds is multiplied by: 1, 10, 30, 60, 100, …, 5 k (k - 1).

    A claim is judged at 5 % with the seeds that are looked at first. Who then asks for more, and again for more, until
    it is supported, finds what is not there: with five looks at 10 to 30 seeds 2.4 times as often. The k-th look may
    err in a share 5 % / (5 k (k - 1)), which for all k > 1 together is 1 %: however many looks are taken, and
    whatever they depend on, a claim that is not true is ever supported with probability 6 % at most.

    >>> [price(k) for k in (1, 2, 3, 4)], sum(1 / price(k) for k in range(2, 10_000)) < 0.2
    ([1, 10, 30, 60], True)
    """
    return 1 if look <= 1 else 5 * look * (look - 1)
