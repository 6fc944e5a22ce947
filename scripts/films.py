"""What the pages show moving, recorded anew: papers/*/films.jsonl.

    python scripts/films.py [PAPER | PAPER/FILM ...]     by default all that are declared; a minute each

A film is no measurement: it shows seed 0 at the scale ``desk``, whatever came of it.
"""

import datetime
import importlib
import json
import sys
from importlib import metadata
from typing import Any

import jax

from laureate import papers
from laureate.lab.claim import Film, Paper
from laureate.lab.reference import path_of
from laureate.loops import plain_scene

SCALE, SEED = "desk", 0


def load(reference: str) -> Any:
    """What a ``"module:name"`` stands for."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def recorded(paper: Paper, film: Film) -> list[dict[str, Any]]:
    """A line an arm."""
    experiment = next(one for one in paper.experiments if one.name == film.experiment)
    scale = experiment.scales[SCALE]
    problem = load(experiment.problem)(**scale.problem) if experiment.problem else None
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("laureate", "jax"))
    about = {"seed": SEED, "scale": SCALE, "day": datetime.date.today().isoformat(), "versions": versions}
    lines = []
    for name in film.arms:
        arm = experiment.arm(name)
        with jax.threefry_partitionable(False):  # as the lab's worker draws
            scene, said = load(film.recorder)(jax.random.key(SEED), arm.settings, problem, scale.settings)
        lines.append({"film": film.name, "arm": name, "said": said, **about, "scene": plain_scene(scene)})
        print(f"{paper.id}/{film.name}, {name}: {said}, {len(json.dumps(lines[-1])) / 1000:.1f} kB")
    return lines


def main() -> None:
    """Record and write, a film at a time."""
    for word in sys.argv[1:] or papers.paper_ids():
        paper_id, _, wanted = word.partition("/")
        paper = papers.paper(paper_id)
        path = path_of(paper.id).with_name("films.jsonl")
        for film in paper.films:
            if wanted in ("", film.name):
                lines = path.read_text("utf-8").splitlines() if path.exists() else []
                kept = {(line["film"], line["arm"]): line for line in map(json.loads, lines)}
                kept |= {(film.name, line["arm"]): line for line in recorded(paper, film)}
                order = [(one.name, arm) for one in paper.films for arm in one.arms]
                text = [json.dumps(kept[at], ensure_ascii=False, separators=(",", ":")) for at in order if at in kept]
                path.write_text("\n".join([*text, ""]), "utf-8")


if __name__ == "__main__":
    main()
