"""Solvers of parabolic equations in many dimensions."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

TRAIN = "Polynomials(low, high, degree), rank, num_steps=steps, num_samples=max(200, budget // steps)"

DISCIPLINE = Discipline(
    name="pde",
    title="Which solver finds V(0, x0) best?",
    kind="a parabolic equation",
    problem="pde",
    area="pde",
    needs={
        "x0": "the point [d] where the value is wanted",
        "horizon": "the time T > 0 of the terminal condition",
        "drift": "b(t, x) -> [d]",
        "diffusion": "sigma(t, x) -> a number, a diagonal [d] or a matrix",
        "driver": "h(t, x, y, z) -> a number, with y = V and z = sigma' grad V",
        "terminal": "g(x) -> a number",
    },
    offers={
        "exact": "exact(t, x): the true solution, to be judged by",
        "reference": "V(0, x0) as a number, where that is known; with neither, long Monte Carlo stands in if it can",
        "interval": "(low, high) within which the paths stay; by default from pilot paths",
    },
    metrics=(Metric("error", "relative error of V(0, x0)", "lower", log=True),),
    unit="points of paths",
    entrants=(
        Entrant(
            "tensor-train-implicit", f"TensorTrainSolver({TRAIN}, scheme='implicit')",
            {"rank": (1, 2), "degree": (2, 3)}, natural={"rank": "low", "degree": "low"},
        ),
        Entrant(
            "tensor-train-explicit", f"TensorTrainSolver({TRAIN}, scheme='explicit')",
            {"rank": (1, 2), "degree": (2, 3)}, natural={"rank": "low", "degree": "low"},
        ),
        Entrant(
            "deep-bsde",
            "DeepBSDE(num_steps=steps, batch=64, width=32, learning_rate=learning_rate,"
            " num_updates=max(1, budget // (64 * steps)))",
            {"learning_rate": (0.001, 0.003, 0.01, 0.03)},
        ),
        Entrant(
            "deep-backward",
            # Half of the points to simulate, half to learn from.
            "DeepBackward(num_steps=steps, num_samples=max(64, budget // (2 * steps)), batch=64, width=32,"
            " learning_rate=learning_rate, num_updates=max(1, budget // (128 * (steps + 8))))",
            {"learning_rate": (0.0003, 0.001, 0.003, 0.01)},
        ),
        Entrant("monte-carlo", "MonteCarlo(max(2, budget // steps), steps, form)"),
    ),
    trial="laureate.racing.tracks.pde:trial",
    facts="laureate.racing.tracks.pde:facts",
    script="""
with jax.enable_x64(True):  # and so must be where pde was made: its x0 is float64
    solver = {method}
    print(solver.run(jax.random.key(0), pde).v0)
""",
    smallest=4000,
    largest=50_000_000,
    one_shot=True,
    x64=True,
    absent={
        "ALS": "a regression inside a solver, and the tensor train's own default",
        "FunctionalTensorTrain": "a function that a solver fits",
        "Solution": "what a solver finds",
        "SALSA": "a regression inside a solver; where a rank is a guess, regression=SALSA()",
    },
    notes=("a point of a path counts once, however often a regression or a network looks at it; see the seconds",),
)  # fmt: skip
