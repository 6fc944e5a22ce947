"""Names of a user's file, seen without running it: as many as Python itself would bind, at their lines."""

import ast
import textwrap

import pytest

from laureate.lab.running import trying
from laureate.lab.running.references import bindings, check_file

# All of each is executed, so that Python binds whatever is bound.
SOURCES = {
    "blocks": """
        if True:
            class Mine:
                inner = 1
        try:
            def ours(x):
                local = x
                return local
        finally:
            import math as maths
        for i in (1,):
            with open(__file__) as opened:
                async def later(): pass
        else:
            after = 1
        """,
    "targets": """
        import os.path, json as js
        from math import sin, cos as cosine
        a = b = 1
        (c, [d, *e]), f = (1, [2, 3]), 4
        g: int = 5
        h = [inner for inner in range(3)] and {k: v for k, v in []}
        if (i := 3) and (lambda z: (z, 1)):
            pass
        a += 1
        """,
    "match": """
        match [1, 2]:
            case [first, *_]:
                found = first
        while True:
            stopped = True
            break
        """,
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_names_are_those_that_python_binds(name, tmp_path):
    source, bound = textwrap.dedent(SOURCES[name]), {"__file__": str(tmp_path / "mine.py")}
    (tmp_path / "mine.py").write_text(source)
    exec(source, bound)
    found = bindings(ast.parse(source))
    assert set(found) == bound.keys() - {"__builtins__", "__file__", "__annotations__"}
    for one in found:
        assert check_file(f"{tmp_path / 'mine.py'}:{one}") == f"{tmp_path / 'mine.py'}:{one}"


def test_where_a_problem_is_defined_is_where_its_name_is_bound_and_not_where_it_is_used(tmp_path):
    """The first line that binds it, also in a block."""
    path = tmp_path / "mine.py"
    path.write_text("def use():\n    return mine\n\nother = [mine for mine in ()]\nif use:\n    mine = 1\nmine += 1\n")
    assert trying._defined(f"{path}:mine") == " (line 6)"
    assert trying._defined(f"{path}:other") == " (line 4)"
    assert trying._defined(f"{path}:none") == ""
