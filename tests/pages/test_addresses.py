"""What an address says: parts and a query, with whatever was quoted in them."""

import pytest

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
