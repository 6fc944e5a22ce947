"""The table of a race as plain text, for a terminal."""

from collections.abc import Sequence

from laureate.pages.race import cells, columns
from laureate.pages.wording import duration
from laureate.racing.results import RaceResult

__all__ = ["lines", "text"]


def text(race: RaceResult) -> str:
    """Everything but the picture."""
    budget = f"{race.budget:,} {race.unit}, {race.seeds} seeds"
    parts = [f"{race.title} {race.problem} · {budget} · {race.metric.words}", "", *lines(race), ""]
    for row in race.rows:
        parts += [f"  {row.entrant}: {word}" for word in row.words]
    parts += [f"  note: {note}" for note in race.notes]
    if race.by_seconds is not None and race.moment is not None and len(race.by_seconds.order) > 1:
        order = ", ".join(race.by_seconds.order[:3])
        parts.append(f"  at equal seconds ({duration(race.moment)} a run): {order}")
    if len(race.standing.order) > 1:
        parts.append(f"  nobody is both faster and better than: {', '.join(race.pareto)}")
    if changes := leads(race):
        parts.append(f"  best on the way: {changes}")
    return "\n".join([*parts, "", race.advice, *(["", race.code] if race.code else [])])


def lines(race: RaceResult) -> list[str]:
    """The table, its columns as wide as they need to be."""
    table: list[Sequence[str]] = [columns(race.metric), *map(cells, race.rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return [
        "  " + "  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip() for row in table
    ]


def leads(race: RaceResult) -> str:
    """Who was best at which budget, where it was not one from start to end."""
    if len({name for _, name in race.envelope}) < 2:
        return ""
    changes = [pair for i, pair in enumerate(race.envelope) if i == 0 or race.envelope[i - 1][1] != pair[1]]
    return ", ".join(f"{name} from {cost:,}" for cost, name in changes)
