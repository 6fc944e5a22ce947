"""Of which kind a problem is: by what it offers, and by nothing else."""

from collections.abc import Iterable, Mapping
from typing import Any

from laureate.lab.errors import UserError
from laureate.racing.discipline import Discipline

__all__ = ["detect", "missing", "offers"]


def offers(problem: Any, name: str) -> bool:
    """Whether a problem has something of that name: a key of a dictionary, an attribute, or being callable."""
    if isinstance(problem, Mapping):
        return name in problem
    if name == "__call__":
        return callable(problem) and not isinstance(problem, type)
    return hasattr(problem, name)


def missing(problem: Any, discipline: Discipline) -> list[str]:
    """What a problem lacks for a discipline."""
    return [name for name in discipline.needs if not offers(problem, name)]


def detect(problem: Any, disciplines: Iterable[Discipline], what: str = "The problem") -> Discipline:
    """The discipline that the problem has everything for; the one that needs most, where there are several.

    An unknown kind is an error that names the nearest, and what is missing for it.
    """
    known = list(disciplines)
    fitting = [one for one in known if not missing(problem, one)]
    most = max((len(one.needs) for one in fitting), default=0)
    found = [one for one in fitting if len(one.needs) == most]
    if len(found) == 1:
        return found[0]
    if found:
        kinds = " or ".join(f"{one.kind} ({one.name})" for one in found)
        raise UserError(f"{what} could be {kinds}.", f"Say which: --kind {found[0].name}.")
    raise unknown_kind(problem, known, what)


def unknown_kind(problem: Any, disciplines: list[Discipline], what: str) -> UserError:
    """The error for a problem that lacks something for every discipline, nearest first."""
    share = {one.name: 1 - len(missing(problem, one)) / len(one.needs) for one in disciplines}
    nearest = max(disciplines, key=lambda one: (share[one.name], len(one.needs)))
    if share[nearest.name] == 0:
        kinds = "; ".join(f"{one.kind}: {', '.join(map(spoken, one.needs))}" for one in disciplines)
        return UserError(
            f"{what} ({type(problem).__name__}) offers nothing that a race needs.",
            f"It must offer one of these. {kinds}. `laureate race --list` says more.",
        )
    lacking = "; ".join(f"{spoken(name)}, {nearest.needs[name]}" for name in missing(problem, nearest))
    return UserError(
        f"{what} ({type(problem).__name__}) is of no kind that can be raced; nearest is {nearest.kind}.",
        f"For that it lacks: {lacking}.",
    )


def spoken(name: str) -> str:
    """A name as a person would say it."""
    return "a call" if name == "__call__" else name
