"""The paper's own equations, by the backward tensor-train solver.

When each claim was declared and changed, why, and whether results had been seen by then, is in ``ledger.jsonl``.
Truth comes from quadrature, a spectral solution or an unbiased simulation, never from the paper's own numbers.
"""

from typing import Any

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale

__all__ = ["ALLEN_CAHN", "CIR", "DOUBLE_WELL_20", "DOUBLE_WELL_50", "HJB"]

TRIALS = "laureate.papers.tensor_train_pde.trials"
PROBLEMS = "laureate.problems.pdes"
OFFERS = ("x0", "horizon", "drift", "diffusion", "driver", "terminal", "exact")
GAUSSIAN: dict[str, Any] = {"low": -6, "high": 6}  # the interval of the basis: integers, since the basis is compiled in
OURS = "Our own float64 JAX solver with ridge ALS of fixed rank in place of the authors' xerus SALSA."

MEAN_OF_G = Arm("mean-of-g", "no solver: the mean of g", scheme="mean-of-g")
MONTE_CARLO = Arm("monte-carlo", "no solver: Monte Carlo of exp(−g)", scheme="monte-carlo")
CAPPED = (Guard("limit", "error", high=10.0),)  # a diverged run counts as 10, as in the trials
CONSTANT_AND_G = (
    "The train has degree 0 and rank 1: a constant plus c·g, two unknowns a time step, as in the authors' own setting "
    "of this benchmark. That this suffices says more about g than about tensor trains."
)

HJB = Experiment(
    name="hjb",
    title="The Hamilton-Jacobi-Bellman benchmark in 100 dimensions",
    trial=f"{TRIALS}:value_at_start",
    problem=f"{PROBLEMS}:HJBLog",
    accepts=OFFERS,
    arms=(Arm("implicit", scheme="implicit"), Arm("explicit", scheme="explicit"), MEAN_OF_G, MONTE_CARLO),
    guards=CAPPED,
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"dimension": 3},
            steps=3,
            paths=60,
            degree=0,
            rank=1,
            use_terminal=True,
            **GAUSSIAN,
        ),
        "smoke": Scale(
            10, cost=3, problem={"dimension": 100}, steps=20, paths=500, degree=0, rank=1, use_terminal=True, **GAUSSIAN
        ),
        "desk": Scale(
            10,
            cost=16.5,
            block=2,
            problem={"dimension": 100},
            steps=100,
            paths=2000,
            degree=0,
            rank=1,
            use_terminal=True,
            **GAUSSIAN,
        ),
        "full": Scale(
            20,
            cost=120,
            block=2,
            problem={"dimension": 100},
            steps=100,
            paths=2000,
            degree=0,
            rank=1,
            use_terminal=True,
            **GAUSSIAN,
        ),
    },
    claims=(
        Claim(
            "hjb-100",
            "The implicit scheme finds V(0, 0) of the 100-dimensional HJB equation with a relative error of at most "
            "2e-4 (median over seeds).",
            metric="error",
            unit="relative error",
            method="implicit",
            kind="bound",
            at_most=2e-4,
            source="section 4.1, table 1",
            role="headline",
            reported="8.1e-5 at t = 0 (the authors' notebook)",
            trivial="mean-of-g",
        ),
        Claim(
            "implicit-explicit",
            "The implicit scheme, whose martingale term cancels noise, has a smaller error of V(0, 0) than the "
            "explicit one.",
            metric="error",
            unit="relative error",
            method="implicit",
            baseline="explicit",
            source="section 4.1, table 1",
            reported="5.9e-5 against 3e-4 (remembered by our notes, not checked)",
            role="headline",
            trivial="mean-of-g",
        ),
        Claim(
            "hjb-100-table",
            "How large is the error of every arm, and of simulation without any solver?",
            metric="error",
            unit="relative error",
            method="implicit",
            kind="question",
            source="section 4.1, table 1; simulation is ours",
            role="extension",
        ),
    ),
    deviations=(
        OURS,
        CONSTANT_AND_G,
        "Error against quadrature, 4.590161724604866; the paper's reference is a Monte Carlo value 3.7e-5 away.",
        "Three seeds were looked at while the solver was written; the bound is from earlier notes, not from them.",
        "Smoke takes time steps of 0.05 and 500 paths (paper and desk: 0.01 and 2,000). The bound was refuted there, "
        "at 3.6e-4, and both the bound and the size were left as they were.",
    ),
    x64=True,
)

ALLEN_CAHN = Experiment(
    name="allen-cahn",
    title="The Allen-Cahn equation in 100 dimensions",
    trial=f"{TRIALS}:value_at_start",
    problem=f"{PROBLEMS}:AllenCahn",
    accepts=OFFERS,
    arms=(Arm("implicit", scheme="implicit"), Arm("explicit", scheme="explicit"), MEAN_OF_G),
    guards=CAPPED,
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"dimension": 3},
            steps=3,
            paths=60,
            degree=0,
            rank=1,
            use_terminal=True,
            **GAUSSIAN,
        ),
        "smoke": Scale(
            10, cost=3, problem={"dimension": 100}, steps=15, paths=500, degree=0, rank=1, use_terminal=True, **GAUSSIAN
        ),
        "desk": Scale(
            10,
            cost=6,
            block=5,
            problem={"dimension": 100},
            steps=30,
            paths=2000,
            degree=0,
            rank=1,
            use_terminal=True,
            **GAUSSIAN,
        ),
        "full": Scale(
            20,
            cost=40,
            block=5,
            problem={"dimension": 100},
            steps=100,
            paths=8000,
            degree=0,
            rank=1,
            use_terminal=True,
            **GAUSSIAN,
        ),
    },
    claims=(
        Claim(
            "allen-cahn-100",
            "The implicit scheme finds V(0, 0) of the 100-dimensional Allen-Cahn equation with a relative error of at "
            "most 5e-3 (median over seeds).",
            metric="error",
            unit="relative error",
            method="implicit",
            kind="bound",
            at_most=5e-3,
            source="appendix, Allen-Cahn",
            role="stand-in",
            trivial="mean-of-g",
        ),
    ),
    deviations=(
        OURS,
        CONSTANT_AND_G,
        "Truth is the radial equation solved spectrally, 0.052781; the usual 0.052802 is a simulation.",
    ),
    x64=True,
)

DOUBLE_WELL_50 = Experiment(
    name="double-well-separable",
    title="Control in fifty separable double wells",
    trial=f"{TRIALS}:trajectories",
    problem=f"{PROBLEMS}:DoubleWell",
    accepts=OFFERS,
    arms=(Arm("implicit", scheme="implicit"),),
    guards=CAPPED,
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"dimension": 2},
            steps=3,
            paths=60,
            degree=3,
            rank=2,
            use_terminal=False,
            low=-3,
            high=3,
        ),
        "desk": Scale(
            10,
            cost=35,
            block=5,
            problem={"dimension": 50},
            steps=10,
            paths=2000,
            degree=3,
            rank=2,
            use_terminal=False,
            low=-3,
            high=3,
        ),
        "full": Scale(
            10,
            cost=600,
            block=2,
            problem={"dimension": 50},
            steps=50,
            paths=2000,
            degree=3,
            rank=2,
            use_terminal=False,
            low=-3,
            high=3,
        ),
    },
    claims=(
        Claim(
            "double-well-50",
            "In 50 dimensions the mean relative error along trajectories is at most 2 % (median over seeds).",
            metric="error",
            unit="relative error",
            method="implicit",
            kind="bound",
            at_most=0.02,
            source="section 4.2, double well, d = 50",
            role="stand-in",
        ),
    ),
    curves=(Curve("curve", "time", "relative error along trajectories", "t", "relative error"),),
    deviations=(
        OURS,
        "Time steps of 0.05 at desk scale (paper: 0.01). Not at smoke, for its seconds alone.",
        "g is in the trains' span and is not added.",
        "A few seeds in 10 dimensions were seen while the solver was written; the bound is from earlier notes.",
        "The networks of the paper's table were not run here: they are compared at equal time on HJB alone.",
        "No trivial arm: the mean of g, without the nonlinear term, is 2.9 % off at t = 0 and right at the end, "
        "so that a bound of 2 % along trajectories says less than the number measured does (seen afterwards).",
    ),
    x64=True,
)

DOUBLE_WELL_20 = Experiment(
    name="double-well-interacting",
    title="Control in twenty interacting double wells",
    trial=f"{TRIALS}:interacting",
    problem=f"{PROBLEMS}:InteractingDoubleWell",
    accepts=OFFERS[:-1],
    arms=(Arm("implicit", scheme="implicit"),),
    guards=CAPPED,
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"dimension": 2},
            steps=3,
            paths=60,
            degree=3,
            rank=2,
            use_terminal=True,
            low=-8,
            high=2,
            reference_paths=50,
        ),
        "desk": Scale(
            10,
            cost=15.5,
            block=5,
            problem={"dimension": 20},
            steps=30,
            paths=1000,
            degree=3,
            rank=2,
            use_terminal=True,
            low=-8,
            high=2,
            reference_paths=2000,
        ),
        "full": Scale(
            10,
            cost=400,
            block=1,
            problem={"dimension": 20},
            steps=30,
            paths=2000,
            degree=7,
            rank=6,
            use_terminal=True,
            low=-8,
            high=2,
            reference_paths=20_000,
        ),
    },
    claims=(
        Claim(
            "double-well-20",
            "In 20 interacting dimensions V(0, x0) is within 2 % of an unbiased simulation (median over seeds).",
            metric="error",
            unit="relative error",
            method="implicit",
            kind="bound",
            at_most=0.02,
            source="section 4.2, double well, d = 20",
            role="stand-in",
        ),
    ),
    deviations=(
        OURS,
        "Degree 3 and rank 2 at desk scale (paper: 7 and 6). Not at smoke, for its seconds alone.",
        "The reference is importance sampling under the learned control, unbiased for any control; plain Monte Carlo "
        "of exp(−g) is hopeless here.",
        "The couplings are drawn by numpy with seed 42, not by torch.",
        "The networks of the paper's table were not run here: they are compared at equal time on HJB alone.",
        "No trivial arm: the mean of g is 9 % off at x0 (seen afterwards).",
    ),
    x64=True,
)

CIR = Experiment(
    name="bond",
    title="The price of a bond under 100 Cox-Ingersoll-Ross rates",
    trial=f"{TRIALS}:bond",
    problem=f"{PROBLEMS}:CIRBond",
    accepts=OFFERS[:-1],
    arms=(Arm("implicit", scheme="implicit"),),
    guards=(*CAPPED, Guard("limit", "residual", low=-12.0, high=1.0)),
    scales={
        "tiny": Scale(
            2,
            block=2,
            compilation="lightest",
            problem={"dimension": 2},
            steps=4,
            paths=60,
            rank=1,
            use_terminal=False,
            low=0,
            high=6,
            reference_paths=50,
        ),
        "smoke": Scale(
            10,
            cost=5,
            problem={"dimension": 5},
            steps=10,
            paths=500,
            rank=1,
            use_terminal=False,
            low=0,
            high=6,
            reference_paths=5000,
        ),
        "desk": Scale(
            10,
            cost=31,
            block=5,
            problem={"dimension": 100},
            steps=10,
            paths=1000,
            rank=1,
            use_terminal=False,
            low=0,
            high=6,
            reference_paths=5000,
        ),
        "full": Scale(
            10,
            cost=300,
            block=2,
            problem={"dimension": 100},
            steps=100,
            paths=1000,
            rank=1,
            use_terminal=False,
            low=0,
            high=6,
            reference_paths=100_000,
        ),
    },
    claims=(
        Claim(
            "cir-100",
            "The residual of the bond's equation falls as the degree of the basis grows from 0 to 3.",
            metric="residual",
            method="implicit",
            kind="trend",
            against="degree",
            better="lower",
            unit="log10 of the mean |residual|, a degree",
            source="section 4.3, CIR",
            role="stand-in",
        ),
        Claim(
            "cir-100-value",
            "How far is the bond's price, with degree 3, from Monte Carlo's?",
            metric="error",
            unit="relative error",
            method="implicit",
            kind="question",
            source="section 4.3, CIR",
            role="stand-in",
        ),
    ),
    deviations=(
        OURS,
        "Time steps of 0.1 at desk scale (paper: 0.01). The implicit step 1/(1 + rΔt) against exp(−rΔt) is then a bias "
        "of about 5 % in the price; a bound on it, first declared, was made a question when a unit test showed this.",
        "A few seeds of this equation were seen while the solver was written; 5 dimensions at smoke scale.",
        "For seconds, all degrees run as one program: the first functions of the basis of degree 3, the others zero.",
        "The parameters are drawn by numpy with seed 42; the basis lives on (0, 6), the paper's on (−0.2, 6).",
        "g = 1 is in the trains' span and is not added.",
    ),
    x64=True,
)
