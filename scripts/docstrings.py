"""Our docstrings as Markdown, for the reference: doctests and equations become code, settings a list."""

import re
from typing import Any

import griffe  # pyright: ignore[reportMissingImports]

# ``name: meaning`` or ``name, other: meaning``, at the start of a paragraph or after another; prose has blanks before.
NAME = r"\*{0,2}(?:[a-z_]\w*|[A-Z]\w?)"
SETTING = re.compile(rf"^({NAME}(?:, {NAME})*): (.*)$")


class Docstrings(griffe.Extension):
    """Rewrites every docstring before it is rendered."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """An object was read."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """A docstring of ours as Markdown.

    >>> as_markdown("It adds::\\n\\n    a + b\\n\\nfirst: a number\\n\\n>>> 1 + 1\\n2")
    'It adds:\\n\\n    a + b\\n\\n- `first`: a number\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    out: list[str] = []
    in_test = in_setting = False
    for line in text.splitlines():
        if line.startswith(">>>") and not in_test:
            out.append("```pycon")
            in_test = True
        elif in_test and not line.strip():
            out.append("```")
            in_test = False
        if in_test:
            out.append(line)
            continue
        found = SETTING.match(line)
        begins = in_setting or not out or not out[-1].strip()
        if found and begins and not line.endswith("::"):
            out.append(f"- `{found[1]}`: {found[2]}")
            in_setting = True
            continue
        in_setting = in_setting and line.startswith("    ")
        out.append(line[:-1] if line.endswith("::") else line)
    return "\n".join([*out, "```"] if in_test else out)
