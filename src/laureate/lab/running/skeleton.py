"""A problem of one's own to fill in: what an experiment asks for, with the words of the paper's own problem.

Read from the sources, never by importing: the answer comes before jax is loaded.
"""

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from laureate.lab.claim import Experiment, Paper
from laureate.lab.running.definitions import program

__all__ = ["Wanted", "first_scale", "skeleton", "wanted"]

WIDTH = 100
ADVICE = (
    "Fill in what says so; {quick} Write it in jax.numpy: it is compiled, and run for many seeds at once. What is said "
    "of each part is what the paper's own problem does there; yours must only be called alike and give the same kind "
    "of thing."
)
SHORT = "`--scale smoke` shows in seconds whether it works."
TRACED = "it is traced once before anything starts, and what does not fit is reported then."


@dataclass(frozen=True)
class Wanted:
    """One attribute that a problem must offer.

    arguments: how it is called, where it is a function. meaning: what the paper's own is or does. gives: of which kind
    and shape it is, or what a call gives.
    """

    name: str
    arguments: str | None = None
    meaning: str = ""
    gives: str = ""

    @property
    def signature(self) -> str:
        """``step(key, theta, state)``, or the name alone."""
        if self.arguments is None:
            return self.name
        return f"{self.name}({', '.join(name for name in self.arguments.split(', ') if name != 'self')})"

    @property
    def words(self) -> str:
        """``sample(key, num_rows) → floats [n, K]: what the paper's own does``, on one line."""
        gives = f" → {self.gives}" if self.arguments is not None else f", {self.gives}"
        return self.signature + gives * bool(self.gives) + (f": {self.meaning}" if self.meaning else "")


def first_scale(experiments: Iterable[Experiment]) -> str:
    """The words for a first try: those of smoke where one of them has it, else none, which means desk."""
    return "--scale smoke" if any("smoke" in experiment.scales for experiment in experiments) else ""


def wanted(experiment: Experiment) -> list[Wanted]:
    """What a problem for this experiment must offer, in the words of the paper's own."""
    classes = _classes(experiment)
    return [_wanted(name, classes) for name in experiment.accepts]


def _classes(experiment: Experiment) -> list[ast.ClassDef]:
    """The class of the paper's problem and those it is made of, the nearest to what is asked for first."""
    found = []
    for path, name in program((experiment.problem,)).definitions:
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                found.append(node)
    asked = experiment.problem.rpartition(":")[2]
    offered = {id(node): len(set(experiment.accepts) & set(_members(node))) for node in found}
    return sorted(found, key=lambda node: (node.name != asked, -offered[id(node)], node.name))


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def _members(node: ast.ClassDef) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found[statement.target.id] = statement
        elif isinstance(statement, ast.Assign):
            found |= {target.id: statement for target in statement.targets if isinstance(target, ast.Name)}
    return found


def _wanted(name: str, classes: "list[ast.ClassDef]") -> Wanted:
    for node in classes:
        member = _members(node).get(name)
        if isinstance(member, ast.FunctionDef):
            meaning = (ast.get_docstring(member) or "").partition("\n\n")[0]
            gives = _kind(member.returns, classes)
            if any(isinstance(mark, ast.Name) and mark.id == "property" for mark in member.decorator_list):
                return Wanted(name, None, _plain(meaning), gives)
            arguments = ", ".join(argument.arg for argument in member.args.args)
            return Wanted(name, arguments, _plain(meaning), gives)
        if member is not None:
            gives = _kind(member.annotation, classes) if isinstance(member, ast.AnnAssign) else ""
            return Wanted(name, None, _plain(_documented(name, ast.get_docstring(node) or "")), gives)
    return Wanted(name)


def _kind(annotation: ast.expr | None, classes: "list[ast.ClassDef]") -> str:
    """A type as words: floats [n, d]; a pair in brackets; a record with its fields; empty where nothing is said."""
    match annotation:
        case ast.Subscript(value=ast.Name(id=("Float" | "Int" | "Bool") as name), slice=ast.Tuple(elts=[_, shape])):
            axes = str(ast.literal_eval(shape)).split()
            word = {"Float": "float", "Int": "integer", "Bool": "boolean"}[name]
            return f"{word}s [{', '.join(axes)}]" if axes else f"one {word}"
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=parts)):
            kinds = [_kind(part, classes) if not isinstance(part, ast.Constant) else "…" for part in parts]
            return f"({', '.join(kinds)})" if all(kinds) else ""
        case ast.Name(id="Array") | ast.Attribute(attr="ndarray"):
            return "an array"
        case ast.Name(id=("int" | "float" | "str" | "bool") as name):
            return {"int": "an integer", "float": "a float", "str": "a text", "bool": "a boolean"}[name]
        case ast.Name(id=name):
            for node in classes:
                if node.name == name and (
                    fields := [n for n, s in _members(node).items() if isinstance(s, ast.AnnAssign)]
                ):
                    return f"{name}({', '.join(fields)})"
            return "" if name == "Any" else name
    return ""


def _documented(name: str, docstring: str) -> str:
    """What a class says of a setting on its line, ``name: meaning`` or ``name, other: meaning``."""
    found = re.search(rf"^(?:[\w, ]+, )?{re.escape(name)}(?:, [\w, ]+)?: (.*(?:\n[ \t]+.*)*)", docstring, re.MULTILINE)
    return re.split(r"(?<=\.) [\w, ]+: ", found[1])[0] if found else ""


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "").split())


def skeleton(paper: Paper, experiments: Iterable[Experiment], file: str) -> str:
    """A Python file with a class for every kind of problem that these experiments take."""
    kinds: dict[tuple[str, ...], list[Experiment]] = {}
    for experiment in experiments:
        kinds.setdefault(experiment.accepts, []).append(experiment)
    names = ["Mine", *(f"Mine{number}" for number in range(2, len(kinds) + 1))]
    lines = [f'"""A problem of my own for {paper.id}: {paper.title}', ""]
    for name, mine in zip(names, kinds.values(), strict=False):
        words = " ".join(f"{paper.id}/{claim}" for claim in _asked(paper, mine))
        lines += [f"    laureate run {words} --problem {file}:{name}"]
    experiments = [experiment for mine in kinds.values() for experiment in mine]
    quick = SHORT if first_scale(experiments) else TRACED
    lines += ["", *textwrap.wrap(ADVICE.format(quick=quick), WIDTH), '"""', "", "import jax", "import jax.numpy as jnp"]
    for name, mine in zip(names, kinds.values(), strict=False):
        lines += ["", "", f"class {name}:", *_comment("For: " + "; ".join(e.title for e in mine), 4)]
        for want in wanted(mine[0]):
            lines += ["", *_member(want)]
    return "\n".join(lines) + "\n"


def _asked(paper: Paper, experiments: Iterable[Experiment]) -> Iterator[str]:
    """The words that select whole experiments: their names, or their claims where a claim has that name."""
    claims = {claim.name for claim in paper.claims}
    for experiment in experiments:
        if experiment.name in claims:
            yield from (claim.name for claim in experiment.claims)
        else:
            yield experiment.name


def _member(want: Wanted) -> list[str]:
    own = f"The paper's own: {want.meaning}" if want.meaning else ""
    if want.arguments is None:
        kind = want.gives and f"{want.gives[:1].upper()}{want.gives[1:]}."
        return [*_comment(" ".join(filter(None, (kind, own))), 4), f"    {want.name} = ...  # fill in"]
    gives = want.gives and f"Gives {want.gives}."
    docstring = textwrap.wrap(" ".join(filter(None, (gives, own))) or "What it gives.", WIDTH - 14)
    body = [f'        """{docstring[0]}', *(f"        {line}" for line in docstring[1:])]
    body[-1] += '"""'
    return [
        f"    def {want.name}({want.arguments}):",
        *body,
        f'        raise NotImplementedError("fill in {want.name}")',
    ]


def _comment(text: str, indent: int) -> list[str]:
    first = " " * indent + "# "
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=first)
