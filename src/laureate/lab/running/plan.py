"""From words on the command line to cells of work: which claims, which arms, which seeds.

Cell = (experiment, arm, problem, scale, block of seeds). Blocks are whole and aligned: cell k of an arm always computes
the seeds [k*block, (k+1)*block), so more seeds only add cells, and no bit of a result depends on how many were asked
for.
"""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from laureate._data import digest
from laureate.lab.cell import DEFAULT_PROBLEM, Cell
from laureate.lab.claim import Claim, Experiment, Paper, Scale
from laureate.lab.errors import UserError
from laureate.lab.running.fingerprint import fingerprint

__all__ = ["Selection", "plan", "scale_of", "select", "unknown"]

MOST_LISTED = 30  # names in an error


@dataclass(frozen=True)
class Selection:
    """Claims of one experiment that are to be decided."""

    paper: Paper
    experiment: Experiment
    claims: tuple[Claim, ...]

    def arms(self) -> tuple[str, ...]:
        """The arms these claims need, in declared order; all of them where the whole experiment is asked for."""
        needed = {name for claim in self.claims for name in self.experiment.arms_of(claim)}
        whole = self.claims == self.experiment.claims
        return tuple(arm.name for arm in self.experiment.arms if whole or arm.name in needed)


def select(
    words: Iterable[str], paper_ids: list[str], load_paper: Callable[[str], Paper], everything: bool = False
) -> list[Selection]:
    """What ``pes``, ``pes/x`` (a claim, else an experiment), ``pes/x/`` (the experiment) or ``--all`` stand for."""
    words = list(words)
    if everything:
        words = paper_ids
    if not words:
        raise UserError("Say what to run: a paper, a claim, or --all.", f"There are: {', '.join(paper_ids)}.")
    chosen: dict[tuple[str, str], tuple[Paper, Experiment, set[str]]] = {}
    for word in words:
        paper_id, _, name = word.partition("/")
        if paper_id not in paper_ids:
            raise unknown(word, paper_ids)
        paper = load_paper(paper_id)
        everyone = [(experiment, claim) for experiment in paper.experiments for claim in experiment.claims]
        # A claim and its experiment may share a name: it is the claim that is asked for, unless a slash says otherwise.
        matches = [(experiment, claim) for experiment, claim in everyone if name == claim.name] or [
            (experiment, claim) for experiment, claim in everyone if name.removesuffix("/") in ("", experiment.name)
        ]
        if not matches:
            raise unknown(name, [claim.name for claim in paper.claims], within=f"{paper_id}/")
        for experiment, claim in matches:
            chosen.setdefault((paper_id, experiment.name), (paper, experiment, set()))[2].add(claim.name)
    return [
        Selection(paper, experiment, tuple(claim for claim in experiment.claims if claim.name in names))
        for paper, experiment, names in chosen.values()
    ]


def unknown(word: str, known: list[str], within: str = "") -> UserError:
    """The error for an id that is not there, with the nearest that are."""
    near = difflib.get_close_matches(word, known, n=3) or [name for name in known if word and word in name]
    listed = [f"{within}{name}" for name in near or known]
    more = "" if len(listed) <= MOST_LISTED else f" and {len(listed) - MOST_LISTED} more"
    shown = ", ".join(listed[:MOST_LISTED])
    remedy = f"Did you mean {' or '.join(listed)}?" if near else f"There are: {shown}{more}."
    return UserError(f"There is no {within + word!r}.", remedy)


def plan(
    selections: Iterable[Selection], scale: str, seeds: int | None = None, problem: str = DEFAULT_PROBLEM
) -> list[Cell]:
    """All cells that the selected claims need, done or not."""
    cells = []
    for selection in selections:
        chosen = scale_of(selection.experiment, scale)
        total = seeds or chosen.seeds
        blocks = range(0, total, chosen.block)
        firsts = [_cell(selection, arm, scale, chosen, problem) for arm in selection.arms()]
        if selection.experiment.over_seeds == "loop":
            # A clock may be read: arms take turns, so that all see the same load.
            cells.extend(replace(first, start=start) for start in blocks for first in firsts)
        else:
            cells.extend(replace(first, start=start) for first in firsts for start in blocks)
    return cells


def scale_of(experiment: Experiment, scale: str) -> Scale:
    """The experiment's scale of that name."""
    if scale not in experiment.scales:
        raise UserError(
            f"Experiment {experiment.name!r} has no scale {scale!r}.", f"It has: {', '.join(experiment.scales)}."
        )
    return experiment.scales[scale]


def _cell(selection: Selection, arm: str, scale_name: str, scale: Scale, problem: str) -> Cell:
    """The first block of an arm; the others differ in where they start."""
    experiment = selection.experiment
    own = problem == DEFAULT_PROBLEM
    reference = experiment.problem if own else problem
    configuration = {
        "paper": selection.paper.id,
        "experiment": experiment.name,
        "arm": arm,
        "arm_settings": dict(experiment.arm(arm).settings),
        "problem": DEFAULT_PROBLEM if own else reference.rpartition(":")[2],
        "problem_settings": dict(scale.problem) if own else {},
        "scale_settings": dict(scale.settings),
        "block": scale.block,
        "over_seeds": experiment.over_seeds,
        "x64": experiment.x64,
        "compilation": scale.compilation or ("thorough" if scale_name == "full" else "light"),
    }
    if own and (data := experiment.data_at(scale_name)):
        configuration["data"] = {name: digest(name) for name in data}
    return Cell(
        paper=selection.paper.id,
        experiment=experiment.name,
        arm=arm,
        problem=problem,
        scale=scale_name,
        start=0,
        count=scale.block,
        trial=experiment.trial,
        problem_reference=reference,
        problem_settings=configuration["problem_settings"],
        accepts=experiment.accepts,
        arm_settings=configuration["arm_settings"],
        scale_settings=configuration["scale_settings"],
        over_seeds=experiment.over_seeds,
        x64=experiment.x64,
        compilation=configuration["compilation"],
        fingerprint=fingerprint(configuration, (experiment.trial, reference)),
    )
