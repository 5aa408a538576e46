"""Golden files: models and numbers of an independent implementation, in `golden/`."""

from pathlib import Path

import numpy as np

import cmdpax

GOLDEN_FOLDER = Path(__file__).parent / "golden"
GOLDEN_NAMES = ("bandit", "paper", "two_constraints")


class Golden:
    """A golden file: the model, and numbers by their keys."""

    def __init__(self, name: str) -> None:
        self.name = name
        with np.load(GOLDEN_FOLDER / f"{name}.npz") as archive:
            self.numbers = {key: archive[key] for key in archive.files}
        self.cmdp = cmdpax.CMDP(*(self.numbers[f"cmdp_{array}"] for array in cmdpax.CMDP.ARRAYS))

    def __getitem__(self, key: str) -> np.ndarray:
        return self.numbers[key]
