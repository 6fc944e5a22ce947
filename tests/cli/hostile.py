"""What people and machines hand over, at random from the pieces that hurt: for the tests and for scripts/fuzz.py."""

import json

from hypothesis import strategies as st

PROBLEM_PIECES = (
    "bowl = 1\n", "class bowl:\n    offset = 1.0\n", "def bowl(", "import json\n", "import broken\n", "\0", "\ufeff",
    "from . import x\n", "# coding: nonsense\n", "\x0c", "'''", "(" * 300, "1+" * 900, "lambda:" * 200, "[" * 150,
    "\t x\n", "async def bowl(): ...\n", "bowl: int = 3\n", "from os import *\n", "if 1:\n  bowl = 2\n",
    "bowl = '\\udcff'\n", "\\\n",
)  # fmt: skip
FIELDS = (
    "id", "forum", "replyto", "invitation", "invitations", "content", "title", "authors", "abstract", "venue",
    "venueid", "decision", "value", "notes",
)  # fmt: skip
BIBTEX_PIECES = (
    "@article{a,", "@misc(b,", "@string{s = ", "@comment{", "title = ", "author = ", "{", "}", '"', " # ", "s", ",",
    "and ", "\\'", '{\\"u}', "$x$", "url={http://x}", ")", "\n", "@", "doi = {10.1/x}", "year = 2020", "others",
)  # fmt: skip
HTML_PIECES = (
    '<div class="displaycards">', "</div>", '<a class="small-title" href="/virtual/2021/oral/1">', "</a>", "<tr>",
    '<div class="author-str">', "A · B", '<div class="abstract-display">', "<script>", "</script>", "<!--", "-->",
    "<![CDATA[", "&#x110000;", "&lt;", "<br>", "icml.cc/virtual/2021", "Outstanding Paper", "<", ">", "</", "<?", "<!",
)  # fmt: skip
MARKDOWN_PIECES = (
    "# ", "## ", "\n", "- ", "[T](http://x)", "[", "](", ")", "abstract", "@", ": ", "\\(Poster\\)", "ICLR 2021",
    "A, B", "*", "  ", "#", "\\",
)  # fmt: skip


def joined(pieces: tuple[str, ...], most: int = 25) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces) | st.text(max_size=6), max_size=most).map("".join)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)
CONTENT = st.fixed_dictionaries(
    {"title": st.text(min_size=1) | VALUES},
    optional=dict.fromkeys(("authors", "abstract", "venue", "venueid", "decision"), VALUES),
)
NOTES = st.lists(
    st.fixed_dictionaries(
        {"id": st.text(max_size=4) | VALUES, "content": CONTENT},
        optional=dict.fromkeys(("forum", "replyto", "invitation", "invitations"), VALUES),
    ),
    max_size=3,
)
PROBLEMS = joined(PROBLEM_PIECES, 6)
# A file's name -> what may stand in it.
FORMS: dict[str, st.SearchStrategy] = {
    "notes.json": (NOTES | VALUES).map(json.dumps),
    "papers.bib": joined(BIBTEX_PIECES),
    "page.html": joined(HTML_PIECES).map(lambda text: f"<html>{text}"),
    "list.md": joined(MARKDOWN_PIECES).map(lambda text: f"# {text}"),
    "any.txt": st.text(),
    "bytes.bin": st.binary(),
}

# No slash: what is typed must not lead out of the test's own folder.
TYPED = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), max_size=12) | st.sampled_from(
    (
        "-1", "0", "²", "٣", "9" * 30, "9" * 5000, "1e9", "nan", "--", "-", "~", "~nobody", "\x1b[31m", "\u202e",
        "\udcff", "a" * 300, "toy/", "toy/better/x", "x.py:y", ".py:", ":", "mine.py:", "mine.py:bowl", "'", '"', "*",
        " ",
    )
)  # fmt: skip
WORDS = {
    "find": (
        "--topic", "--area", "--kind", "--venue", "--decision", "--runs", "--limit", "--json", "vision", "oral",
        "noisy",
    ),
    "run": (
        "toy", "toy/better", "--all", "--scale", "smoke", "desk", "full", "--seeds", "--workers", "auto", "1",
        "--problem", "--fresh", "--quiet", "--gate", "--json",
    ),
    "board": ("--json",),
    "show": ("toy", "toy/better", "--json"),
    "compare": ("1", "2", "--json"),
    "export": ("papers", "1", "--csv", "--json", "--bibtex"),
    "cite": ("toy", "fno", "1", "--csl", "--json"),
    "import": ("papers.bib", "mine.py", "--venue", "--json"),
    "doctor": ("--json", "--repair"),
    "report": ("1",),
    "web": ("--port", "--host"),
    "--version": ("",),
    "--help": ("",),
    "nonsense": ("",),
}  # fmt: skip


@st.composite
def command_lines(draw) -> list[str]:
    """Words after ``laureate``."""
    command = draw(st.sampled_from(sorted(WORDS)))
    words = draw(st.lists(st.sampled_from(WORDS[command]) | TYPED, max_size=5))
    if command == "report" and not any(word.isdecimal() for word in words):
        words = ["1", *words]  # the whole site takes a second
    if command == "web":
        words = [*words, "--port", "none"]  # a server would not come to an end
    return [command, *words]
