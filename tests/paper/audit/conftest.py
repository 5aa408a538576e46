"""Short trials of the last-iterate theorem: what they find is tested on its own."""

from collections.abc import Iterator

import pytest

from cmdpax.paper.audit import last_iterate


@pytest.fixture(scope="module", autouse=True)
def short_trials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(last_iterate, "_TRIALS", 60)
        patch.setattr(last_iterate, "_TRIED", (0.05,))
        yield
