"""Make the pictures of the documentation: `python docs/images/make.py`, a few seconds.

They are two of the figures that `cmdpax reproduce` draws.
"""

import tempfile
from pathlib import Path

import cmdpax
from cmdpax.figures import save_figure
from cmdpax.reproduction.experiment import PRIMAL_DUAL, Scale, specifications
from cmdpax.reproduction.pictures import iterates, regrets

FOLDER = Path(__file__).parent

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        paper = cmdpax.sweep(specifications(Scale())["paper"], folder)
        first = next(iter(paper.cmdps))
        save_figure(iterates(paper, first), FOLDER / "iterates.png")
        save_figure(regrets(paper, PRIMAL_DUAL, first), FOLDER / "regret-primal-dual.png")
