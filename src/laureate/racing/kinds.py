"""Of which kind a problem is: by what it offers, and by nothing else."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from laureate.lab.errors import UserError
from laureate.racing.discipline import Discipline

__all__ = ["detect", "missing", "offers", "spoken"]

SHOWN = 12  # names of what a problem offers, at most


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
    """The error for a problem that lacks something for every discipline: what it offers, the nearest kinds first."""
    given = offered(problem)
    # Ties go to what is written nearly the same, then to whoever lacks least.
    near = {one.name: len(one.needs) - len(missing(problem, one)) for one in disciplines}
    close = {one.name: sum(_meant(name, given) != "" for name in missing(problem, one)) for one in disciplines}
    ranked = sorted(
        disciplines, key=lambda one: (-(near[one.name] + close[one.name]) / len(one.needs), -near[one.name])
    )
    has = f" offers {', '.join(given[:SHOWN])}{', …' * (len(given) > SHOWN)}" if given else " offers nothing"
    start = f"{what} ({type(problem).__name__}){has}: no kind of problem that can be raced."
    listed = "`laureate race --list` says what each kind must offer."
    nearest = ranked[0]
    if near[nearest.name] + close[nearest.name] == 0:
        return UserError(start, listed)
    lacking = "; ".join(_lacking(name, nearest.needs[name], given) for name in missing(problem, nearest))
    remedy = f"Nearest is {nearest.kind} ({nearest.name}). For that it lacks {lacking}."
    others = [one for one in ranked[1:] if near[one.name] and len(missing(problem, one)) == 1][:3]
    if others:
        near_too = (f"{one.kind} ({one.name}), without {spoken(missing(problem, one)[0])}" for one in others)
        remedy += f" Near is also {'; '.join(near_too)}."
    return UserError(start, f"{remedy} {listed}")


def _lacking(name: str, meaning: str, given: list[str]) -> str:
    """What is missing and means; a meaning that is a call says the name itself."""
    return (
        f"{meaning}{_meant(name, given)}"
        if meaning.startswith(f"{name}(")
        else (f"{spoken(name)}{_meant(name, given)}, {meaning}")
    )


def offered(problem: Any) -> list[str]:
    """The names that a problem has to offer: its keys, or its public attributes."""
    if isinstance(problem, Mapping):
        return [str(name) for name in problem]
    if problem is None or isinstance(problem, int | float | complex | str | bytes | list | tuple | set):
        return []
    call = ["__call__"] if offers(problem, "__call__") else []
    return [spoken(name) for name in call] + [name for name in dir(problem) if not name.startswith("_")]


def _meant(name: str, given: list[str]) -> str:
    """A name that is written nearly as the one that is missing, in words."""
    found = difflib.get_close_matches(name.lower(), [one.lower() for one in given], 1, 0.8)
    return f" (it has {next(one for one in given if one.lower() == found[0])})" if found else ""


def spoken(name: str) -> str:
    """A name as a person would say it."""
    return "a call" if name == "__call__" else name
