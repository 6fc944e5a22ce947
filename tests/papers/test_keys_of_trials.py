"""Every trial of every paper draws once from each of its keys, but where it stands here why not.

Trials are traced, and of their programs only what makes and consumes keys is compiled. Arms have the same keys on
purpose, so each is watched on its own: whatever one arm draws twice from a key is the same numbers twice, on purpose
where sides are compared (`AGAIN`), else a fault that no test of a metric sees. A trial of most
papers is watched in ``make test``, one arm of all in ``make check``; all arms, and the trials that read a clock or
start processes, in ``make test-all``.
That a key is both drawn from and folded into is let be here: trials run with the other layout of threefry, in which
``split(key, n)[i]`` is not ``fold_in(key, i)`` (the lab's worker).
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import jax
import pytest
from test_every_trial import ASKED, EXPERIMENTS, STOPS, cell_of, check_outcome, traced

import laureate
from laureate.lab.running.worker import compute
from laureate.testing import KeyRecorder
from laureate.testing._random import keys_of, traced_anew

PACKAGE = str(Path(laureate.__file__).parent) + os.sep
PAPERS, TESTING = (PACKAGE + name + os.sep for name in ("papers", "testing"))
RATES = "all rates and widths of a grid are tried with the same keys, so that nothing else differs"
POINTS = "what is compared is judged by the same draws: checkpoints, sizes, correlations, samplers, the two signs"
ONCE_MORE = "what was made from a key is made from it once more, to be the same"
SEED = "a fixed key, which is that of seed 0 too; what is drawn from it and the keys it is split into are unrelated"
UNUSED = "of the draws one is used; the others are multiplied by 0 or not chosen, or every weight is replaced"
UNRELATED = "drawn from, and split into keys from which something else is drawn: unrelated numbers"
# Of trials: why keys are used again; in which functions, and how often one is at most. Where a key is used by several
# draws or functions, these are named.
AGAIN: dict[str, dict[str, dict[str, int]]] = {
    "alista:denoising": {SEED: {"normal in denoising + split in denoising": 13}},
    "alista:conditioning": {
        UNUSED: {"normal in conditioning + split in conditioning": 2, "normal in _network + split in train": 4},
        POINTS: {"train": 2},
    },
    "biggan:images": {SEED: {"normal in eye_of + split in images": 2}, ONCE_MORE: {"make": 2}, POINTS: {"drawn": 24}},
    "biggan:few_images": {SEED: {"normal in eye_of + split in few_images": 2}, POINTS: {"drawn": 2}},
    "cgml:modes": {ONCE_MORE: {"split in answered + split in modes": 2}, POINTS: {"drawn": 4}},
    "cgml:ring": {ONCE_MORE: {"split in answered + split in ring": 2}, POINTS: {"drawn": 2}},
    "cgml:completion": {POINTS: {"drawn": 2}},
    "darts-pt:selection": {POINTS: {"whole": 4, "start": 4, "train": 4}},
    "darts-pt:trajectory": {POINTS: {"searched": 5, "train": 5}},
    "darts-pt:validation": {POINTS: {"validation": 2}},
    "directpred:collapse": {POINTS: {"collapse": 2}, ONCE_MORE: {"normal in _train + normal in collapse": 2}},
    "dreamer-v2:crossroads": {RATES: {"loss": 2, "look": 2}},
    "dreamer-v2:agents": {
        RATES: {"dreamer": 3, "dreamer_of": 3, "run_of": 3, "update": 3, "ppo": 3, "network_of": 3},
        ONCE_MORE: {"split in dreamer_of + split in network_of": 6},
    },
    "dynamics-cycle:pairs": {POINTS: {"found_by": 2}},
    "gibbs-with-gradients:exactness": {"two energies of different sizes, each judged by itself": {"__init__": 2}},
    "gibbs-with-gradients:trained": {SEED: {"split in trained + split in trained_rbm._trained": 2}},
    "gibbs-with-gradients:seconds": {
        "four energies, each judged by itself; three calls are timed": {
            "normal in seconds + split in seconds": 2,
            "bernoulli in _distances + randint in _distances": 12,
            "_distances": 12,
            "_step": 12,
        }
    },
    "gradvac:dialects": {RATES: {"dialects": 4}},
    "gumbel-rao:samples": {POINTS: {"samples": 2}},
    "gumbel-rao:temperature": {POINTS: {"ratio": 4}},
    "gvp:pose": {RATES: {"_pose": 2, "divided": 2, "orthogonal": 2, "trained": 2}},
    "gvp:gate": {RATES: {"_gate": 2, "divided": 2, "orthogonal": 2, "trained": 2}},
    "gvp:invariants": {RATES: {"_invariants": 2, "drawn": 2, "trained": 2}},
    "gvp:trend": {RATES: {"_off_centre_errors": 4, "divided": 4, "of_size": 8, "trained": 8}},
    "gvp:residue_labels": {
        RATES: {"divided": 2, "_labelling": 2, "_labelled": 2, "trained": 2, "loss": 2},
        ONCE_MORE: {"split in _labelling + split in residue_labels": 2},
    },
    "gvp:decoys": {
        RATES: {"divided": 2, "_scoring": 2, "_scored": 2, "trained": 2, "loss": 2, "predicted": 2},
        ONCE_MORE: {"split in _scoring + split in decoys": 2},
    },
    "gvp:design": {
        RATES: {"divided": 2, "_designing": 2, "_designed": 2, "trained": 2, "log_probabilities": 2},
        ONCE_MORE: {"split in _designing + split in design": 2},
    },
    "hopfield-rbm:planted_start": {RATES: {"record": 2}},
    "hopfield-rbm:start": {RATES: {"record": 2, "constant": 2}},
    "hopfield-rbm:capacity": {POINTS: {"restored": 2}},
    "hopfield-rbm:speed": {POINTS: {"speed": 3, "run": 3, "split in step + uniform in step": 3}},
    "interaction-attack:transferred": {POINTS: {"attacked": 2, "_trajectory": 2}},
    "interaction-attack:strength": {POINTS: {"attacked": 3, "_last": 3}},
    "knockoff-gan:filters": {POINTS: {"table": 3, "correlation": 3, "respond": 3}},
    "knockoff-gan:validity": {UNUSED: {"one": 2}},
    "knockoff-gan:real": {UNRELATED: {"split in judged_on_real + uniform in judged_on_real": 2}},
    "knockoff-gan:real_network": {UNRELATED: {"split in judged_on_real + uniform in judged_on_real": 2}},
    "localized-learning:dense": {RATES: {"trained": 4}},
    "localized-learning:schedules": {RATES: {"_fitted": 2}},
    "mesh-graph-nets:reach": {POINTS: {"trained": 2, "drawn": 2}},
    "pes:unbiased": {"an episode that has keys of its own draws nothing from those it is handed": {"unbiased": 2}},
    "pes:variance": {POINTS: {"measured": 3, "add": 3}},
    "pes:training": {POINTS: {"loss": 3, "training": 2}},
    "pes:character_lstm": {"a text that is given draws nothing from the keys it is handed": {"character_lstm": 2}},
    "pes:tuning": {POINTS: {"tuning": 2}},
    "quant-noise:text": {RATES: {"step": 2}},
    "quant-noise:depth": {
        RATES: {"seen": 4},
        UNUSED: {"split in seen + split in step": 6, "bits in seen + randint in step": 6},
    },
    "quant-noise:bytes_and_accuracy": {RATES: {"epoch": 2, "step": 2}},
    "quant-noise:overhead": {"every call that is timed is the same": {"_steps": 2}},
    "raps:noise": {POINTS: {"judged": 3}},
    "raps:classes": {POINTS: {"judged": 3}},
    "rnd:actors": {POINTS: {"training_of": 2, "trained": 2, "bonus_of": 2, "update": 2}},
    "sksd:particles": {RATES: {"moved": 8, "step": 8, "walk": 8}},
    "sksd:power": {RATES: {"signal": 5}},
    "sksd:level": {RATES: {"signal": 5}},
    "tensor-train-pde:bond": {POINTS: {"at_degree": 4, "_mean_residual": 4}},
    "tensor-train-pde:dimension": {POINTS: {"_value": 8}},
    "tensor-train-pde:against_networks": {POINTS: {"_value": 3}},
    "vdb:supports": {ONCE_MORE: {"make": 2, "regulariser_of": 2}, POINTS: {"draw": 6}},
    "vdb:real_images": {ONCE_MORE: {"make": 2, "regulariser_of": 2}, POINTS: {"draw": 6}},
}

# Of papers the trial that `make test` watches: one of less than a second. Where all take longer, `make check` does.
QUICK = "alista:conditioning biggan:singular darts-pt:proposition detag:quadratics directpred:collapse gradvac:steady"
QUICK += " dreamer-v2:straight_through gibbs-with-gradients:to_posterior gumbel-rao:temperature hopfield-rbm:sampling"
QUICK += " important-neurons:null_level knockoff-gan:validity logit-adjustment:identity lure:greedy raps:tuning"
QUICK += " pes:influence_balancing rnd:decay sksd:chain spline-calibration:measure vdb:gap"
SHORT = dict(sorted((trial.partition(":")[0], trial) for trial in QUICK.split()))


def trials():
    """The arms of each trial that are programs of their own: those that differ in floats alone draw alike."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, (paper, experiment) in EXPERIMENTS.items():
        programs = found.setdefault(f"{paper.id}:{experiment.trial.partition(':')[2]}", [])
        programs += [(name, arm.name) for arm in experiment.arms]
    return found


TRIALS = trials()
LOOPED = {trial for trial, arms in TRIALS.items() if EXPERIMENTS[arms[0][0]][1].over_seeds == "loop"}


def place():
    """The innermost function of a paper that is at work, else of the package."""
    frame, found = sys._getframe(1), ""
    while frame is not None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if not name.startswith("<"):
            if file.startswith(PAPERS):
                return name
            if file.startswith(PACKAGE) and not file.startswith(TESTING):
                found = found or f"{Path(file).stem}.{name}"
        frame = frame.f_back
    return found or "elsewhere"


def drawn_again(recorder):
    """Where keys were used more than once, and how often one was at most; by the draws, where they are several."""
    jax.effects_barrier()
    found = {}
    for uses in recorder.uses.values():
        if uses.total() > 1:
            where = " + ".join(sorted(uses)) if len(uses) > 1 else next(iter(uses)).partition(" in ")[2]
            found[where] = max(found.get(where, 0), uses.total())
    return found


def keys_of_trial(name, arm):
    """Those of one seed: traced, or, where a trial reads a clock or starts processes, by running it."""
    cell = replace(cell_of(name, arm), count=1)
    if cell.over_seeds != "loop":
        return traced(cell, lambda trial, *given: keys_of(trial, *given, place=place))[0]
    with KeyRecorder(place) as recorder, traced_anew():
        outcome = compute(cell)
    check_outcome(outcome)
    return recorder


def on_purpose(trial):
    return {where: times for places in AGAIN.get(trial, {}).values() for where, times in places.items()}


def rows():
    """One arm of each trial."""
    for trial, arms in TRIALS.items():
        paper = trial.partition(":")[0]
        quick = trial == SHORT.get(paper) or bool(ASKED)
        marks = [pytest.mark.slow] if trial in LOOPED else [] if quick else [pytest.mark.thorough]
        yield pytest.param(trial, *arms[0], id=trial, marks=marks)


@STOPS
@pytest.mark.parametrize(("trial", "name", "arm"), list(rows()))
def test_no_key_is_used_twice_but_on_purpose(trial, name, arm):
    found, known = drawn_again(keys_of_trial(name, arm)), on_purpose(trial)
    assert {where: times for where, times in found.items() if times > known.get(where, 1)} == {}


@pytest.mark.slow  # the first arm of each runs
@pytest.mark.parametrize("trial", sorted(set(TRIALS) - LOOPED))
def test_nor_in_any_arm_and_nothing_is_excused_that_does_not_happen(trial):
    programs = {cell_of(*one).program: one for one in reversed(TRIALS[trial])}
    found: dict[str, int] = {}
    for one in programs.values():
        again = drawn_again(keys_of_trial(*one))
        found |= {where: max(times, found.get(where, 0)) for where, times in again.items()}
    assert found == on_purpose(trial)


def test_what_is_excused_and_what_is_quick_are_trials():
    assert set(AGAIN) | set(SHORT.values()) <= set(TRIALS) or ASKED
