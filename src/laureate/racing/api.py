"""``race(problem)``: from a problem to an answer, in Python and behind the command."""

import contextlib
import inspect
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from laureate.lab.errors import UserError
from laureate.lab.running.plan import unknown
from laureate.lab.running.references import check_file, is_file, load
from laureate.lab.running.run import Progress
from laureate.lab.running.trying import in_their_file
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store
from laureate.pages.race import page
from laureate.racing.conclusion import Race, conclude
from laureate.racing.discipline import Discipline, Entrant
from laureate.racing.disciplines import disciplines
from laureate.racing.kinds import detect, missing, offers, spoken
from laureate.racing.objects import hold
from laureate.racing.running import Course, run_course
from laureate.racing.standing import enough_seeds

__all__ = ["race"]


def race(
    problem: Any,
    *,
    seconds: float = 60.0,
    budget: int = 0,
    kind: str = "",
    metric: str = "",
    only: str | Iterable[str] = (),
    seeds: int | None = None,
    workers: int | None = None,
    on: str = "",
    fresh: bool = False,
    store: Store | None = None,
    command: str = "",
    progress: Progress | None = None,
    patience: float | None = None,
    among: Iterable[Discipline] = (),
) -> Race:
    """Which of these methods is best on my own problem?

    problem: an object, a dictionary, or ``"FILE.py:NAME"``. What it offers says of which kind it is; ``laureate race
        --list`` says what each kind must offer. An object of this process runs in it and is raced anew every time, for
        its code cannot be told from another's; one in a file is resumed, run by several workers, and stopped where an
        entrant does not end.
    seconds: about how long all may compute together, compile time apart; one budget in cost follows for everybody.
    budget: that cost itself, in the discipline's unit.
    kind: the discipline, where the problem could be of several.
    metric: what quality is; by default the discipline's first. only: some of the entrants.
    seeds: how many score, by default enough to tell all entrants apart; other seeds tune.
    workers, on, fresh: as of ``laureate run``. patience: seconds that one piece of work may take before it is stopped.
    """
    if not (seconds > 0 and budget >= 0):
        raise UserError(f"seconds must be > 0 and budget >= 0; got {seconds} and {budget}.")
    known = list(among) or disciplines()
    reference = check_file(problem, "laureate race") if isinstance(problem, str) else hold(problem)
    what = reference.rpartition("/")[2] if isinstance(problem, str) else "The problem"
    with _errors_with_their_line(reference):
        given = load(reference) if isinstance(problem, str) else problem
        made = _made(given, known, what)
    discipline = _discipline(made, known, kind, what)
    with _errors_with_their_line(reference):
        facts = dict(load(discipline.facts)(made))
    fragments, usual = facts.pop("code", {}), facts.pop("budget", 0)
    entrants, absent = _entrants(discipline, made, only, facts.pop("absent", {}))
    chosen = [one.name for one in discipline.metrics]
    if metric and metric not in chosen:
        raise unknown(metric, chosen)
    if seeds is not None and seeds < 2:
        raise UserError(f"seeds must be >= 2; got {seeds}.", "One seed tells nothing of chance.")
    course = Course(
        discipline=discipline,
        entrants=entrants,
        reference=reference,
        accepts=() if isinstance(made, Mapping) else tuple(discipline.needs),
        facts=facts,
        fragments=fragments,
        metric=discipline.metric(metric),
        seeds=seeds or enough_seeds(len(entrants)),
        seconds=float(seconds),
        budget=int(budget or usual),
        factory=made is not given,
        dictionary=isinstance(made, Mapping),
        points=3 if discipline.one_shot else 6,
        nonce="" if isinstance(problem, str) else uuid.uuid4().hex,
    )
    kept = store or Store(store_path())
    run = run_course(
        kept, course, workers=workers, on=on, fresh=fresh, command=command, progress=progress, patience=patience
    )
    found = conclude(course, run, absent)
    kept.add_artefact(run.number, "race.json", "application/json", json.dumps(found.to_json()).encode())
    kept.add_artefact(run.number, "race.html", "text/html", page(found).encode())
    return found


@contextlib.contextmanager
def _errors_with_their_line(reference: str) -> Iterator[None]:
    """What goes wrong inside a user's file is reported with its line; all else is raised as it is."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if is_file(reference) and (words := in_their_file(reference, error)):
            raise UserError(words, "Nothing was run.") from error
        raise


def _made(problem: Any, known: list[Discipline], what: str) -> Any:
    """The problem itself: a class or a function that needs no argument makes it, as for ``laureate run --problem``."""
    if not callable(problem):
        return problem
    if not isinstance(problem, type) and any(not missing(problem, one) for one in known):
        return problem
    needed = [
        name
        for name, one in _parameters(problem).items()
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    if needed and isinstance(problem, type):
        raise UserError(f"{what} is a class whose objects need {', '.join(needed)}.", "Give an object of it.")
    return problem if needed else problem()


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # built in, and silent about it
        return {}


def _discipline(problem: Any, known: list[Discipline], kind: str, what: str) -> Discipline:
    if not kind:
        return detect(problem, known, what)
    named = {one.name: one for one in known}
    if kind not in named:
        raise unknown(kind, list(named))
    if lacking := missing(problem, named[kind]):
        needs = "; ".join(f"{spoken(name)}, {named[kind].needs[name]}" for name in lacking)
        raise UserError(f"{what} is not {named[kind].kind}.", f"For that it lacks: {needs}.")
    return named[kind]


def _entrants(
    discipline: Discipline, problem: Any, only: str | Iterable[str], absent: Mapping[str, str]
) -> tuple[tuple[Entrant, ...], dict[str, str]]:
    """Who runs, and who stays out with the reason."""
    names = [one.name for one in discipline.entrants]
    wanted = [name.strip() for name in only.split(",")] if isinstance(only, str) and only else list(only or names)
    for name in wanted:
        if name not in names:
            raise unknown(name, names)
    running, out = [], {}
    for one in discipline.entrants:
        lacking = [spoken(name) for name in one.needs if not offers(problem, name)]
        if one.name not in wanted:
            continue
        if lacking or one.name in absent:
            out[one.name] = absent.get(one.name) or f"the problem does not offer {', '.join(lacking)}"
        else:
            running.append(one)
    if not running:
        raise UserError("Nobody is left to run.", "; ".join(f"{name}: {why}" for name, why in out.items()))
    return tuple(running), out
