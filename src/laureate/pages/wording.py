"""Numbers, times and verdicts in the words and signs that every page uses."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laureate.lab.judging.results import ClaimResult, Result
    from laureate.lab.judging.standing import Standing

__all__ = [
    "MARKS", "best_here", "busy", "centre", "csv_text", "duration", "in_words", "interval", "looks", "means", "moment",
    "number", "origin", "origins", "plural", "rival", "sentence", "settings", "unit_of",
]  # fmt: skip

BUSY = 1.25  # wall over CPU seconds from which on a machine counts as busy
# A verdict is a sign and a word; its colour comes on top and is never alone.
MARKS = {"supported": "✔", "refuted": "✘", "inconclusive": "?", "not run": "·"}


def number(value: float | None, digits: int = 3) -> str:
    """A number for people: three digits, a real minus sign, a dash where there is none.

    >>> number(-0.0412345), number(None), number(1.5e-6)
    ('−0.0412', '–', '1.5·10⁻⁶')
    """
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value + 0.0:.{digits}g}"  # no minus before a 0
    mantissa, e, exponent = text.partition("e")
    if e:
        raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        text = f"{mantissa}·10{raised}"
    return text.replace("-", "−")


def settings(config: Mapping[str, Any], between: str = " ") -> str:
    """The settings of a method in a row.

    >>> settings({"rate": 0.10, "scan": "random"}), settings({"size": 2}, " = ")
    ('rate 0.1, scan random', 'size = 2')
    """
    shown = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in config.items()}
    return ", ".join(f"{name}{between}{value}" for name, value in shown.items())


def centre(result: "ClaimResult") -> str:
    """An effect, with as many digits as its interval."""
    return number(result.effect, _digits(result))


def interval(result: "ClaimResult") -> str:
    """An effect's 95 % interval; empty where there is none."""
    digits = _digits(result)
    return f"[{number(result.low, digits)}, {number(result.high, digits)}]" if result.has_effect else ""


def _digits(result: "ClaimResult") -> int:
    """Three, or as many up to five as show that the ends of the interval differ."""
    ends = (result.low, result.high)
    return next((digits for digits in (3, 4, 5) if len({number(end, digits) for end in ends}) > 1), 3)


def means(result: "ClaimResult") -> str:
    """What the arms themselves reached: method, baseline, the trivial arm, and the seed that speaks most against it."""
    measured = result.measured
    if measured is None:
        return ""
    arms = {result.method: measured.method_mean, result.baseline: measured.baseline_mean}
    parts = [f"{arm} {number(mean)}" for arm, mean in arms.items() if arm and math.isfinite(mean)]
    if result.trivial and math.isfinite(measured.trivial_mean):
        parts.append(f"trivial ({result.trivial}) {number(measured.trivial_mean)}")
    if len(measured.effects) > 1 and math.isfinite(measured.worst_effect):
        parts.append(f"worst seed {number(measured.worst_effect)}")
    return " · ".join(parts)


def rival(result: "ClaimResult") -> str:
    """That the baseline does not beat the trivial arm either; empty where it does, or there is none of both."""
    return f"{result.baseline} is itself no better than {result.trivial}" if result.weak_rival else ""


def looks(result: "ClaimResult") -> str:
    """That a claim was judged before with other seeds or numbers, and what that costs; empty where it was not."""
    parts = []
    if result.looks:
        before, look = ", ".join(map(str, result.looks)), 1 + len(result.looks)
        parts.append(f"look {look}: judged before with {before} seeds, so its p counts {result.price} times")
    if result.remeasured:
        times = "once" if result.remeasured == 1 else f"{result.remeasured} times"
        parts.append(f"measured {times} before with as many seeds and other numbers: other code, or a clock")
    return "; ".join(parts)


def busy(result: "ClaimResult") -> str:
    """That the machine had other work while a clock was read; empty where it had not, or no clock was read."""
    if not result.busy > BUSY:
        return ""
    return f"the machine was busy: the wall's clock ran {number(result.busy, 2)} times as long as the CPU's"


def origin(result: "Result") -> str:
    """Which run found a result, or that it ships with the package, and what it was measured with."""
    if not result.reference:
        return f"run {result.run}"
    return ", ".join(filter(None, ("our reference", result.machine, result.versions, result.started[:10])))


def origins(results: Iterable["Result"]) -> str:
    """Where and when the results that ship were measured: once for many of them."""
    found = dict.fromkeys(origin(result).removeprefix("our reference, ") for result in results if result.reference)
    return "; ".join(found)


def in_words(name: str) -> str:
    """The name of a metric as words.

    >>> in_words("log_ess_per_step")
    'log ess per step'
    """
    return name.replace("_", " ")


def unit_of(result: "Result") -> str:
    """What an effect is counted in: its declared unit, else the metric itself, in words."""
    return result.unit or in_words(result.metric)


def best_here(standing: "Standing") -> str:
    """Which arm is best on a problem, by how much, and how sure that is, in one sentence."""
    best, others = standing.best, standing.ranked[1:]
    if best is None:
        return "No arm gave finite numbers here."
    if standing.level_ground:
        why = f": {best.note}" if best.note else ", which says nothing about them"
        return f"No arm is ahead here: all of them end at {number(best.mean)}{why}."
    if not others:
        return f"{best.arm} alone gave finite numbers here: {number(best.mean)}."
    second = others[0]
    unit = f" {standing.unit}" if standing.unit else ""
    gap = f"{number(second.behind)}{unit} [{number(second.behind_low)}, {number(second.behind_high)}]"
    open_ones = [place.arm for place in others if not place.beaten]
    sure = "surely better than every other arm"
    if open_ones:
        sure = f"but not surely better than {' and '.join(open_ones)}: the interval includes 0"
    words = f"Best here: {best.arm}, by {gap} over {second.arm}, {sure}."
    return words if not best.note else f"{words} Read it with care: {best.note}."


def sentence(text: str) -> str:
    """A claim as a sentence: its first word with a capital, unless it is a name or a sign.

    >>> sentence("batches of 64 do better."), sentence("cGML gives both."), sentence("t = 0.5 is best.")
    ('Batches of 64 do better.', 'cGML gives both.', 't = 0.5 is best.')
    """
    return text[:1].upper() + text[1:] if re.match(r"([a-z]{2,}|a)\b(?!-)", text) else text


def plural(word: str, count: int) -> str:
    """``3 checks``.

    >>> plural("check", 1), plural("stand-in", 2)
    ('1 check', '2 stand-ins')
    """
    return f"{count} {word}{'s' * (count != 1)}"


def duration(seconds: float | None) -> str:
    """Seconds for people."""
    if seconds is None:
        return "–"
    for limit, divisor, digits, unit in ((1, 1, 2, "s"), (10, 1, 1, "s"), (100, 1, 0, "s"), (6000, 60, 0, "min")):
        if seconds < limit:
            return f"{seconds / divisor:.{digits}f} {unit}"
    return f"{seconds / 3600:.0f} h"


def moment(stamp: str | None) -> str:
    """A stored time, to the minute."""
    return f"{stamp.replace('T', ' ')[:16]} UTC" if stamp else "–"


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as comma-separated values; a text that a spreadsheet would take for a formula is marked as text."""
    import csv
    import io

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return stream.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
