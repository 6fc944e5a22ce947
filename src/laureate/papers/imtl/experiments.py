"""Where all is known: equal projections, units that do not matter, and signs that do, on random gradients."""

from laureate.lab.claim import Arm, Claim, Experiment, Guard, Scale

__all__ = ["GEOMETRY", "OUR_OWN", "PILOTS"]

PILOTS = "The method note's pilots were known when this was declared."
OUR_OWN = "our own question"

GEOMETRY = Experiment(
    "geometry",
    title="Are projections equal, and what does another unit of a loss change?",
    trial="laureate.papers.imtl.trials:geometry",
    arms=(
        Arm("five", "5 tasks near a subspace", tasks=5, near="subspace", cosine=0.0),
        Arm("two", "2 unrelated tasks", tasks=2, near="common", cosine=0.0),
        Arm("three", "3 tasks near a subspace", tasks=3, near="subspace", cosine=0.0),
        Arm("ten", "10 tasks, cosine 0.3", tasks=10, near="common", cosine=0.3),
        Arm("forty", "40 tasks, cosine 0.7", tasks=40, near="common", cosine=0.7),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", draws=4, dim=50),
        "smoke": Scale(12, block=12, cost=9.0, compilation="lightest", draws=60, dim=100),
        "desk": Scale(12, block=12, cost=20.0, compilation="lightest", draws=400, dim=100),
        "full": Scale(24, block=12, cost=1500.0, draws=20000, dim=100),
    },
    claims=(
        Claim(
            "equal-projections",
            "The step of IMTL-G has the same projection onto every task's unit gradient, to a relative 1e-9 in double "
            "precision wherever the cosine matrix has a condition number below 1,000.",
            metric="log10_spread",
            method="five",
            kind="bound",
            at_most=-9.0,
            unit="log10 of the largest relative difference",
            source="equation 1",
            role="check",
            reported="equal",
        ),
        Claim(
            "scale-free",
            "With projections of unit gradients, other units of the losses, over six decades, leave the direction as "
            "it is: 1 - cosine below 1e-9.",
            metric="log10_turn",
            method="five",
            kind="bound",
            at_most=-9.0,
            unit="log10 of 1 - cosine",
            source="theorem 2",
            role="check",
            reported="invariant",
        ),
        Claim(
            "scale-free-sign",
            "As published, with weights that sum to 1, such a change of units turns the step into its opposite for "
            "more than a twentieth of random gradients of five tasks near a subspace.",
            metric="flipped",
            method="five",
            kind="bound",
            at_least=0.05,
            unit="share of draws",
            source="theorem 2, whose constant need not be positive",
            role="extension",
        ),
        Claim(
            "uphill",
            "With forty tasks of cosine 0.7 the published step goes uphill for every task in more than a twentieth of "
            "draws.",
            metric="uphill",
            method="forty",
            kind="bound",
            at_least=0.05,
            unit="share of draws",
            source="figure 4 shows positive weights on three tasks; our own question",
            role="extension",
        ),
        Claim(
            "step-length",
            "A hundredth of one of two losses makes the published step more than thirty times shorter.",
            metric="log10_length",
            method="two",
            kind="bound",
            at_most=-1.477,
            unit="log10 of the ratio of lengths, median over draws",
            source="the closed form for two tasks",
            role="check",
        ),
        Claim(
            "two-tasks",
            "With two tasks IMTL-G is the sum of unit gradients: 1 - cosine below 1e-9.",
            metric="log10_apart",
            method="two",
            kind="bound",
            at_most=-9.0,
            unit="log10 of 1 - cosine",
            source="theorem 1; for two tasks its condition always holds",
            role="check",
        ),
        Claim(
            "weights-below-zero",
            "How often is a published weight negative?",
            metric="negative",
            method="five",
            kind="question",
            unit="share of draws",
            source="figure 4: positive throughout training, on three tasks",
            role="extension",
        ),
        Claim(
            "sound-draws",
            "In what share of draws is the condition number below 1,000, so that equal projections and the direction "
            "are looked at?",
            metric="sound",
            method="five",
            kind="question",
            unit="share of draws",
            source=OUR_OWN,
            role="check",
        ),
    ),
    guards=(Guard("effective", "sound", low=0.1, claims=("equal-projections", "scale-free")),),
    deviations=(
        "Random gradients with log-normal lengths instead of a network's. " + PILOTS,
        "Our default asks the coefficients of unit gradients to sum to the number of tasks, which is never negative; "
        "the published sum of weights is the other setting.",
    ),
    x64=True,
    over="data sets",
)
