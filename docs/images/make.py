"""Make the pictures of the documentation: `python docs/images/make.py`, about two minutes.

They are three of the figures that `cmdpax reproduce` draws.
"""

import shutil
import tempfile
from pathlib import Path

import cmdpax

FIGURES = ("iterates.png", "regret-primal-dual.png", "long-run.png")

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = cmdpax.reproduce(folder)
        for path in made.figures:
            if path.name in FIGURES:
                shutil.copyfile(path, Path(__file__).parent / path.name)
