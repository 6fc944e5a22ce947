"""What an address says: parts and a query, with whatever was quoted in them."""

from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from laureate.pages.figures import csv_of
from laureate.pages.render import Site
from laureate.pages.requests import LONGEST_ADDRESS, RefusedError, RequestHandler


def address(path: str):
    handler = RequestHandler.__new__(RequestHandler)  # without a connection
    handler.path = path
    return handler._address()


@pytest.mark.parametrize(
    ("path", "parts", "query"),
    [
        ("/", [""], {}),
        ("/papers/pes/", ["papers", "pes"], {}),
        ("/a%20b/c%2Fd%C3%BC?x=%26&y=a+b#z?", ["a b", "c/dü"], {"x": "&", "y": "a b"}),
        ("//[/x?a=1?b", ["[", "x"], {"a": "1?b"}),
    ],
)
def test_parts_and_query_are_unquoted(path, parts, query):
    assert address(path) == (parts, query)


def test_an_address_that_is_too_long_is_refused():
    assert address("/" + "x" * (LONGEST_ADDRESS - 1))[0] == ["x" * (LONGEST_ADDRESS - 1)]
    with pytest.raises(RefusedError, match="too long"):
        address("/" + "x" * LONGEST_ADDRESS)


def test_what_an_address_is_made_of_comes_back():
    """Whatever a part, a query, a claim or a table says: an address that is read gives it back."""
    hostile = "a b?c#d%41&\"<ü>'"
    parts, query = address(Site(live=True).url("papers", hostile, q=hostile))
    assert (parts, query) == (["papers", hostile], {"q": hostile})
    path, _, fragment = Site(live=True).claim(f"pes/{hostile}").partition("#")
    assert (path, unquote(fragment), fragment.isascii()) == ("/method/pes", hostile, True)
    figure = SimpleNamespace(name="pes/one", table=lambda: (["seed", hostile], [(0, 1.5)]))
    ((_, data, name),) = Site().data(None, figure)  # pyright: ignore[reportArgumentType]
    kind, _, table = data.partition(",")
    assert (kind, name) == ("data:text/csv;charset=utf-8", "reference-pes-one.csv")
    assert not set(table) & set('#" <\n')
    assert unquote(table) == csv_of(figure, 7)  # pyright: ignore[reportArgumentType]
