"""One browser for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.viz.browser import Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()
