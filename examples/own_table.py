"""Which measurements matter for your own table, and what the knockoffs are worth there.

    python examples/own_table.py
    laureate run knockoff-gan/real-features --problem examples/own_table.py:table

Your table is a matrix of inputs and a response. The second line asks what a selection would be worth on your inputs:
it makes up responses whose true variables it knows, and counts mistakes and finds.
"""

import numpy as np
from sklearn.datasets import load_diabetes

from laureate.problems.tables import Table
from laureate.selection import CopulaKnockoffs, KnockoffSelector


def inputs_and_response():
    """scikit-learn's diabetes patients, with pairwise products: 442 × 55, whatever you have instead."""
    measured, progression = map(np.asarray, load_diabetes(return_X_y=True, scaled=False))
    standard = (measured - measured.mean(0)) / measured.std(0)
    pairs = [standard[:, i] * standard[:, j] for i in range(10) for j in range(i + 1, 10)]
    names = [f"x{i}" for i in range(10)] + [f"product {k}" for k in range(len(pairs))]
    return np.column_stack([standard, *pairs]), progression, names


def table():
    x, y, _ = inputs_and_response()
    return Table(x, y)


def main(draws: int = 1) -> list[str]:
    x, y, names = inputs_and_response()
    # Products of columns are no Gaussian table: it selects all the same, and warns of what the validity test found.
    selector = KnockoffSelector(CopulaKnockoffs(), q=0.3, num_draws=draws, allow_invalid=True, random_state=0).fit(x, y)
    print(selector.explanation_)
    return [name for name, chosen in zip(names, selector.support_, strict=True) if chosen]


if __name__ == "__main__":
    print(", ".join(main()) or "nothing")
