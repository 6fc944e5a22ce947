"""Normal equations want double precision; the context keeps it from leaking into other areas' tests."""

import jax
import pytest


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield
