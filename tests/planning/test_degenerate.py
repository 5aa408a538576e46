"""Random degenerate models, a few of every shape; `make certify` tries thousands."""

import pytest

from certified import flaws_of_seed
from degenerate import SHAPES

MODELS_PER_SHAPE = 18  # 306 in all

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_degenerate_models_of_every_shape(shape: int) -> None:
    for index in range(MODELS_PER_SHAPE):
        assert flaws_of_seed(shape + index * len(SHAPES)) == []
