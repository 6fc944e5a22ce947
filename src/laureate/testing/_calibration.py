"""What every calibration map promises."""

from collections.abc import Collection
from typing import Any

import equinox as eqx
import jax
import numpy as np

from laureate._core import Status
from laureate.testing._checks import (
    Check,
    Program,
    every_number_is_used,
    inexact_types,
    no_retrace,
    numbers_as_arrays,
    on_host,
)

__all__ = ["check_calibrator"]


def check_calibrator(
    calibrator: Any,
    p: Any,
    y: Any,
    *,
    rtol: float = 1e-4,
    cost: int | tuple[int, int] | None = None,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``fit(p, y, weights).transform(p)`` of a calibrator, for scores p [rows] and hits y [rows].

    calibrator: an Equinox module; what ``fit`` gives has ``transform`` and ``info``.
    p, y: scores in [0, 1] and hits, at least twenty, some scores equal.
    rtol: how far two fits of the same rows may be apart.
    cost: what ``info.cost`` must be, or the least and the most; without it, any number from 1 on will do.
    unused: numbers of the calibrator or its map that rightly change nothing, by the ends of their paths.
    skip: properties to leave out: those in the list that is returned.

    Properties: finite probabilities in [0, 1], of the shape of the scores that are asked; cost and status set; no
    retrace on a second call; the order of the rows does not matter; a row of weight 2 counts as two; the scores asked
    do not see each other; vmap over data sets is a loop; a map saved, and loaded into that of other rows, is the same;
    every number of the calibrator changes its map, every number of the map what it gives; double precision stays so.
    """
    check, calibrator = Check(type(calibrator).__name__, skip), numbers_as_arrays(calibrator)
    p, y = (np.tile(np.asarray(part, np.float32), 2) for part in (p, y))
    size, ones = len(p) // 2, np.ones(len(p), np.float32)
    asked = np.linspace(0.0, 1.0, 12, dtype=np.float32).reshape(3, 4)

    def fitted(calibrator, p, y, weights, asked):
        found = calibrator.fit(p, y, weights)
        return found.transform(asked), found.info, found

    program = Program(fitted)
    *whole, found_map = program(calibrator, p, y, ones, asked)
    gamma, info = on_host(whole)
    if check.wants("probabilities"):
        check.require(gamma.shape == asked.shape, f"the shape {asked.shape}", gamma.shape, "transform is elementwise.")
        sound = np.isfinite(gamma).all() and np.all((gamma >= 0) & (gamma <= 1))
        check.require(sound, "numbers within [0, 1]", gamma, "Clip what a fit gives beyond.")
    if check.wants("report"):
        found = {name: check.attribute(info, name, "info has cost and status.") for name in ("cost", "status")}
        check.require(found["status"] == Status.OK, "status OK", found["status"], "The rows are sound.")
        least, most = (cost, cost) if isinstance(cost, int) else cost or (1, np.inf)
        expected = f"a cost of {least}" + ("" if least == most else f" to {most:g}" if cost else " at least")
        check.require(least <= found["cost"] <= most, expected, found["cost"], "It counts passes over the rows.")
    order = np.random.default_rng(0).permutation(len(p))
    no_retrace(check, program, [lambda: program(calibrator, p[order], y[order], ones, asked)], 0)
    if check.wants("the order of rows does not matter"):
        again = program(calibrator, p[order], y[order], ones, asked)[0]
        check.close(again, gamma, rtol, "the same map from the same rows", "Treat rows of equal score as one group.")
    if check.wants("weights count rows"):
        # Every row stands twice. Thrice or once, it weighs two in all; whoever does not weigh counts three and one.
        place = np.concatenate([np.arange(size), np.resize(np.arange(0, size, 2), size)])
        uneven = (2 / np.bincount(place)[place]).astype(np.float32)
        weighed = program(calibrator, p[place], y[place], uneven, asked)[0]
        check.close(weighed, gamma, rtol, "the map of whole rows", "Weigh sums.")
    if check.wants("scores do not see each other"):
        other = on_host(program(calibrator, p, y, ones, asked[::-1] ** 2)[0])
        check.close(other[2, 0], gamma[0, 0], rtol, "the same value for score 0", "transform is elementwise.")
    if check.wants("vmap over data sets is a loop"):
        flipped = np.where(np.arange(len(p)) % size < 3, 1 - y, y)  # another data set
        each = jax.vmap(lambda y: fitted(calibrator, p, y, ones, asked)[0])
        together = Program(each)(np.stack([y, flipped]))
        alone = program(calibrator, p, flipped, ones, asked)[0]
        check.close(together, np.stack([gamma, alone]), rtol, "the maps of single fits", "No Python branch on values.")
    asking = Program(lambda which: which.transform(asked))
    if check.wants("saved and loaded"):
        other = program(calibrator, p, 1 - y, ones, asked)[2]
        remedy = "What the map needs must be among its arrays."
        check.close(asking(check.saved(found_map, other)), gamma, rtol, "the same map from its file", remedy)
    every_number_is_used(check, calibrator, lambda which: program(which, p, y, ones, asked)[0], unused)
    paths = jax.tree_util.tree_leaves_with_path(found_map.info)
    reports = [f".info{jax.tree_util.keystr(path)}" for path, _ in paths]
    every_number_is_used(check, found_map, asking, (*unused, *reports))
    if check.wants("double precision"):
        with jax.enable_x64(True):
            shapes = [jax.ShapeDtypeStruct(part.shape, np.float64) for part in (p, y, ones, asked)]
            types = inexact_types(eqx.filter_eval_shape(fitted, calibrator, *shapes)[0])
        check.require(types == {"float64"}, "float64 probabilities from float64 scores", types, "Name no type.")
    return check.finish()
