"""The pages of the documentation that come from the code: mkdocs calls this while it builds (``make docs``).

- ``areas/<area>.md``: which method when, from the verdicts that ship; a worked example for every paper, executed now;
  the reference from docstrings.
- ``own_problem.md``: what a problem of one's own must offer, by kind.
- ``contributing.md``: CONTRIBUTING.md, with its links as they are from here.

LAUREATE_DOCS_EXAMPLES=skip leaves the examples unexecuted, for a quick look; the page says so then.
"""

import functools
import importlib
import inspect
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from html import escape
from logging import getLogger
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files  # pyright: ignore[reportMissingImports]

from laureate.lab.claim import ROLES, Paper
from laureate.lab.judging.results import ClaimResult, by_role, claims_of, tally
from laureate.lab.reference import reference
from laureate.lab.running.skeleton import wanted
from laureate.pages.figures import claim_figure
from laureate.pages.mathml import mathml
from laureate.pages.render import static
from laureate.pages.wording import MARKS, duration, number, origins, plural, sentence, unit_of
from laureate.papers import all_papers

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
from docstrings import as_markdown  # noqa: E402

SECONDS = 300
LOG = getLogger("mkdocs.hooks.documentation")
# Run after an example: what it made, in a line each.
TELL = """
for _name, _value in list(globals().items()):
    if _name.startswith("_") or _name in _before or callable(_value) or type(_value).__name__ == "module":
        continue
    _text = " ".join(repr(_value).split())
    print(f"{_name} = {_text if len(_text) <= 100 else _text[:97] + '...'}")
"""


def on_config(config: Any) -> Any:
    """The areas that there are, into the navigation."""
    pages = [{"Overview": "areas.md"}]
    pages += [{area: f"areas/{area}.md"} for area in sorted({paper.area for paper in all_papers()})]
    config.nav = [{"Areas": pages} if "Areas" in entry else entry for entry in config.nav]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made."""
    papers = all_papers()
    areas: dict[str, list[Paper]] = {}
    for paper in papers:
        areas.setdefault(paper.area, []).append(paper)
    made = {f"areas/{area}.md": area_page(area, mine) for area, mine in sorted(areas.items())}
    made |= {"areas.md": areas_page(areas), "own_problem.md": own_problem_page(papers)}
    made["contributing.md"] = contributing_page()
    made["stylesheets/charts.css"] = charts_css()
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that lead out of docs/ in the repository become names: the site has no such page."""
    return re.sub(r"\[([^\]]+)\]\(\.\./(?:examples|src|tests)[^)]*\)", r"\1", markdown)


def areas_page(areas: dict[str, list[Paper]]) -> str:
    """A line an area."""
    lines = ["# Areas", "", "One package an area; who has read one method can read them all.", ""]
    lines += ["| area | the problem | papers |", "|---|---|---|"]
    for area, mine in sorted(areas.items()):
        problem = mine[0].problem.partition(". ")[0].rstrip(".")
        names = ", ".join(f"`{paper.id}`" for paper in mine)
        lines.append(f"| [`laureate.{area}`](areas/{area}.md) | {problem}. | {names} |")
    return "\n".join(lines) + "\n"


def area_page(area: str, papers: list[Paper]) -> str:
    """Which method when, worked examples, the reference."""
    parts = [f"# laureate.{area}", ""]
    module = importlib.import_module(f"laureate.{area}")
    parts += [as_markdown(inspect.cleandoc(module.__doc__ or "")), ""]
    parts += ["## Which method when", "", *which_when(papers), ""]
    for paper in papers:
        parts += [*paper_section(paper), ""]
    parts += ["## Reference", ""]
    for name in module.__all__:
        parts += [f"::: laureate.{area}.{name}", ""]
    return "\n".join(parts)


def which_when(papers: list[Paper]) -> list[str]:
    """A line a paper: for which problem, what the verdicts that ship mean for the reader, and how many there are."""
    lines = ["| you have | then | of the paper's claims |", "|---|---|---|"]
    found = [result for paper in papers for result in claims_of(paper, reference(paper))]
    for paper in papers:
        claims = [claim for claim in found if claim.paper == paper.id and claim.role in ("headline", "stand-in")]
        counts = "<br>".join(
            f"{MARKS[word]}&nbsp;{count}&nbsp;{word.replace(' ', '&nbsp;')}" for word, count in tally(claims).items()
        )
        name = f"[{paper.title}](#{paper.id}): "
        lines.append(f"| {_cell(paper.problem)} | {name}{_cell(paper.meaning or paper.idea)} | {counts} |")
    words = origins(found)
    measured = f"Measured: {words}." if words else "Not measured yet: `laureate run ID` does it on your machine."
    note = (
        f"{measured} A verdict is about this re-measurement, at its scale; see [how verdicts are made](../verdicts.md)."
    )
    return [*lines, "", note]


def claim_table(claims: list[ClaimResult]) -> list[str]:
    """Headlines and stand-ins with their numbers, folded."""
    lines = ["| it is claimed that | verdict | by how much | the paper |", "|---|---|---|---|"]
    for claim in claims:
        said, paper_says = _cell(sentence(claim.statement)), _cell(claim.reported)
        lines.append(f"| {said} | {_verdict(claim)} | {_effect(claim)} | {paper_says} |")
    return [
        f'??? abstract "The {len(claims)} claims that are the paper\'s own"',
        "",
        *(f"    {line}" for line in lines),
        "",
    ]


def _verdict(claim: ClaimResult) -> str:
    return f"{MARKS[claim.verdict]}&nbsp;{claim.verdict.replace(' ', '&nbsp;')}"


def _effect(claim: ClaimResult) -> str:
    if not claim.has_effect:
        return ""
    return _cell(f"{number(claim.effect)} {unit_of(claim)} [{number(claim.low)}, {number(claim.high)}]")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def paper_section(paper: Paper) -> list[str]:
    """The problem, the idea, the equation, the example with what came out, a picture, the cost."""
    claims = claims_of(paper, reference(paper))
    lines = [f"## {paper.title} {{ #{paper.id} }}", "", f"*{', '.join(paper.authors)}, {paper.venue} {paper.year}*", ""]
    if paper.meaning:
        lines += ['!!! note "What it means for you"', "", f"    {paper.meaning}", ""]
    lines += [f"**The problem.** {paper.problem}", "", f"**The idea.** {paper.idea}", ""]
    lines += [f'<div class="equation">{mathml(paper.equation)}</div>', "", "**In your code**", ""]
    lines += ["```python", paper.example.strip("\n"), "```", "", *executed(paper), ""]
    figures = [
        (claim, figure) for mine in by_role(claims).values() for claim in mine if (figure := claim_figure(claim))
    ]
    for claim, figure in figures[:2]:
        drawing = figure.drawing().replace("\n", "")
        lines += [
            f'<figure class="measured">{drawing}<figcaption>{escape(sentence(claim.statement))} '
            f"({escape(figure.caption)})</figcaption></figure>",
            "",
        ]
    own = [claim for role, mine in by_role(claims).items() if role in ("headline", "stand-in") for claim in mine]
    lines += claim_table(own)
    for role, mine in by_role(claims).items():
        counts = ", ".join(f"{count} {word}" for word, count in tally(mine).items())
        lines.append(f"- {plural(role, len(mine))} ({ROLES[role]}): {counts}")
    costs = {
        name: sum(e.scales[name].cost for e in paper.experiments if name in e.scales) for name in ("smoke", "desk")
    }
    times = ", ".join(f"{name} about {duration(seconds)}" for name, seconds in costs.items())
    lines += ["", f"To measure it: `laureate run {paper.id}` ({times} on two cores)."]
    return lines


def executed(paper: Paper) -> list[str]:
    """The example and what it made; all are run when the first is wanted, as many at a time as there are cores."""
    if os.environ.get("LAUREATE_DOCS_EXAMPLES") == "skip":
        return ["*Not executed in this build.*"]
    return _all_executed()[paper.id]


@functools.cache
def _all_executed() -> dict[str, list[str]]:
    papers = all_papers()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((paper.id for paper in papers), pool.map(_executed, papers), strict=True))


def _executed(paper: Paper) -> list[str]:
    """In a process of its own; one that fails stops the build. What was compiled is kept for the next."""
    code = f"_before = set(globals()) | {{'_before'}}\n{paper.example}\n{TELL}"
    start = time.monotonic()
    kept = {"JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache" / "docs")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | kept,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=ROOT,
    )
    LOG.info(f"The example of {paper.id} took {duration(time.monotonic() - start)}")
    if done.returncode:
        raise RuntimeError(f"The example of {paper.id} fails:\n{done.stderr[-2000:]}")
    return ["Executed when this page was built; it made:", "", "```text", done.stdout.strip("\n"), "```"]


def own_problem_page(papers: list[Paper]) -> str:
    """What each kind of problem must offer."""
    lines = ["# Find, run, use: with your own problem", "", OWN_PROBLEM]
    for paper in papers:
        kinds: dict[tuple[str, ...], list[str]] = {}
        first: dict[tuple[str, ...], Any] = {}
        for experiment in paper.experiments:
            if experiment.accepts:
                kinds.setdefault(experiment.accepts, []).append(f"`{paper.id}/{experiment.name}`")
                first.setdefault(experiment.accepts, experiment)
        if not kinds:
            continue
        lines += ["", f"## {paper.id}", "", paper.problem, ""]
        for accepts, names in kinds.items():
            lines += [f"{', '.join(names)} take{'s' * (len(names) == 1)} a problem that offers", ""]
            for want in wanted(first[accepts]):
                gives = f", {want.gives}" if want.arguments is None else f" → {want.gives}"
                own = f": the paper's own: {want.meaning}" if want.meaning else ""
                lines.append(f"- `{want.signature}`{gives * bool(want.gives)}{own}")
            lines += [""]
    return "\n".join(lines) + "\n"


OWN_PROBLEM = """
1. `laureate find "what you see, in your own words"` names papers; those that run here say so.
2. `laureate show ID` says what was measured, and which experiments take a problem of yours.
3. `laureate run ID --problem new` writes a commented file to fill in.
4. `laureate run ID --scale smoke --problem my_file.py:Mine` traces it once before anything starts (what is missing is
   reported with its line), then compares all arms on it: which is best here, by how much, and how sure that is.
5. `from laureate.<area> import ...` in your own code.

For example, which rate and momentum bring a ball to rest soonest, as `momentum.py`:

```python
import jax
import jax.numpy as jnp


class Momentum:
    horizon = 100  # steps an episode

    def theta0(self, key):  # what is tuned: the logarithm of a rate, the logit of a momentum
        return jnp.array([-3.0, 2.0])

    def init(self, key, theta):  # the first state, any pytree
        return jnp.array([1.0, 0.0])

    def step(self, key, theta, state):  # the next state, and the loss of this step
        place, speed = state
        speed = jax.nn.sigmoid(theta[1]) * speed - jnp.exp(theta[0]) * place
        return jnp.stack([place + speed, speed]), (place + speed) ** 2
```

```
laureate run pes --scale smoke --problem momentum.py:Momentum
```

Nothing leaves your machine, and results lie in one folder (`laureate doctor` says which).
"""


def contributing_page() -> str:
    """CONTRIBUTING.md with its links as they are from docs/."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return text.replace("](docs/", "](")


def charts_css() -> str:
    """The part of the pages' style that pictures need, with the colours of both schemes."""
    style = static("style.css")
    light = style[style.index(":root {") : style.index("}") + 1]
    dark = re.search(r':root\[data-theme="dark"\] \{(.*?)\n\}', style, re.S)
    rules = style[style.index("/* charts */") : style.index("/* the catalogue */")]
    rules = "\n".join(line for line in rules.splitlines() if not line.startswith(("figure", "figcaption")))
    slate = dark[1].replace("color-scheme: dark;", "") if dark else ""
    light = light.replace("color-scheme: light dark;", "")
    ours = ".measured svg { max-width: 30rem; }\n.equation { overflow-x: auto; padding: 0.5rem 0; }\n"
    ours += ".equation math { margin: 0.5rem 0; }\n"
    ours += "msub > :nth-child(2), msubsup > :nth-child(2) { padding-top: 0.3em; }\n"
    ours += ".md-typeset table:not([class]) td { vertical-align: top; }\n.md-typeset td code { white-space: nowrap; }\n"
    return f"{light}\n[data-md-color-scheme=slate] {{{slate}\n}}\n{rules}\n{ours}"
