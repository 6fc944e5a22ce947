"""``laureate find``: papers by the problem they solve."""

import textwrap
from typing import TYPE_CHECKING, Any

import click

from laureate.cli._common import MARKS, emit, filled, json_option, plural, say

if TYPE_CHECKING:
    from laureate.catalogue import Catalogue, Result
    from laureate.lab.judging.results import ClaimResult


@click.command()
@click.argument("words", nargs=-1)
@click.option("--topic", "--area", default="", help="Only this topic, such as vision or optimisation.")
@click.option("--kind", default="", help="Only this kind: method, model, theory, analysis, benchmark or system.")
@click.option("--venue", default="", help="Only venues whose name contains this, such as ICML.")
@click.option("--decision", default="", help="Only this decision: oral, spotlight, poster or submission.")
@click.option("--runs", is_flag=True, help="Only papers whose claims can be measured here.")
@click.option("--limit", default=5, show_default=True, type=click.IntRange(1, 100), help="How many papers at most.")
@json_option
def find(
    words: tuple[str, ...],
    topic: str,
    kind: str,
    venue: str,
    decision: str,
    runs: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Papers for your problem, in your own words.

    \b
    laureate find gradients explode in a long unroll
    laureate find noisy labels --topic robustness-security
    laureate find '"label propagation" on graphs'
    """
    from laureate.catalogue import KINDS, TOPICS, Catalogue
    from laureate.catalogue.entry import DECISIONS
    from laureate.lab.errors import UserError
    from laureate.papers import paper_ids

    _one_of("--topic", topic, TOPICS)
    _one_of("--kind", kind, KINDS)
    _one_of("--decision", decision, DECISIONS)
    filters = {"topic": topic, "kind": kind, "venue": venue, "decision": decision, "runs": runs}
    if not words and not any(filters.values()):
        raise UserError("Say what you are looking for.", 'For example: laureate find "labels are noisy"')
    with Catalogue(running=paper_ids()) as catalogue:
        result = catalogue.search(" ".join(words), limit=limit, **filters)
        if as_json:
            emit(_record(" ".join(words), result))
            return
        _show(result)
        if not result.hits:
            _nothing(catalogue, " ".join(words), filters, result)


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value and value.lower() not in map(str.lower, allowed):
        from laureate.lab.running.plan import unknown

        error = unknown(value, [name.lower() for name in allowed])
        error.message = f"{option} has no {value!r}."
        raise error


def _record(question: str, result: "Result") -> dict[str, Any]:
    claims = _claims(result)
    papers = [
        hit.entry.record()
        | {
            "score": hit.score,
            "runs": hit.entry.id in claims,
            "claims": [_short(claim) for claim in claims.get(hit.entry.id, ())],
        }
        for hit in result.hits
    ]
    return {
        "question": question,
        "corrected": [{"typed": typed, "searched": searched} for typed, searched in result.corrected],
        "phrase_ignored": result.ignored_phrase,
        "suggestions": list(result.suggestions),
        "papers": papers,
    }


def _claims(result: "Result") -> "dict[str, list[ClaimResult]]":
    """The claims of those papers found that run here, each with what is shown of it."""
    from laureate.lab.judging.results import claims_of
    from laureate.lab.reference import with_reference
    from laureate.lab.storing.home import store_path
    from laureate.lab.storing.shown import read_shown
    from laureate.papers import paper, paper_ids

    found = [hit.entry.id for hit in result.hits if hit.entry.id in paper_ids()]
    results = read_shown(store_path()) if found else {}
    return {paper_id: claims_of(paper(paper_id), with_reference(paper(paper_id), results)) for paper_id in found}


def _short(claim: "ClaimResult") -> dict[str, Any]:
    names = ("id", "statement", "role", "verdict", "effect", "low", "high", "unit", "scale", "seeds", "run")
    record = claim.to_json()
    return {name: record[name] for name in (*names, "reference")}


def _show(result: "Result") -> None:
    if result.corrected:
        words = ", ".join(f"{searched} (for {typed})" for typed, searched in result.corrected)
        say(f"Searched: {words}")
    if result.ignored_phrase:
        say("No paper has these words in this order; the nearest without the quotation marks:")
    claims = _claims(result)
    for place, hit in enumerate(result.hits, 1):
        entry = hit.entry
        where = f"{entry.venue} {entry.decision}".strip()
        facts = " · ".join(filter(None, (entry.id, where, entry.award, entry.topic, entry.kind)))
        name = f"{entry.name}: " if entry.name and not entry.title.lower().startswith(entry.name.lower()) else ""
        click.echo(f"{place:>2}  " + click.style(filled(name + entry.title, 4).lstrip(), bold=True))
        say(facts, 4)
        if entry.url:
            click.echo(click.style(f"    {entry.url}", dim=True))
        say(entry.problem or textwrap.shorten(entry.abstract, 300, placeholder=" …"), 4, dim=False)
        say(entry.does, 4, dim=False)
        if entry.id in claims:
            _verdicts(entry.id, claims[entry.id])
        click.echo()
    if result.hits and not claims:
        say("None of these runs in Laureate yet; --runs shows those that do.")


def _verdicts(paper_id: str, claims: "list[ClaimResult]") -> None:
    from laureate.lab.judging.results import tally

    counts = ", ".join(f"{MARKS[word]} {count} {word}" for word, count in tally(claims).items())
    shipped = sum(claim.reference for claim in claims)
    whose = "our reference" if shipped == len(claims) else f"{shipped} of them our reference"
    summary = f": {counts}{f' ({whose})' if shipped else ''}" if claims else ""
    click.echo(click.style(filled(f"runs here, {plural('claim', len(claims))}{summary}", 4, 6), fg="green"))
    click.echo(f"    laureate show {paper_id}   laureate run {paper_id}")


def _nothing(catalogue: "Catalogue", question: str, filters: dict[str, Any], result: "Result") -> None:
    used = [f"--{name}" for name, value in filters.items() if value]
    click.echo(f"Nothing found for {question!r}{' with ' + ' '.join(used) if used else ''}.")
    if used and (without := catalogue.search(question, limit=3).hits):
        near = "; ".join(f"{hit.entry.name or hit.entry.title} ({hit.entry.topic})" for hit in without)
        click.echo(f"Without the filter: {near}.")
    if result.suggestions:
        click.echo(f"Words near yours: {', '.join(result.suggestions)}.")
    click.echo("Try the problem in other words, or a whole topic: laureate find --topic vision")
