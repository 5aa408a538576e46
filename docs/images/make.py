"""Make the pictures of the documentation: `python docs/images/make.py`, about two minutes.

Three are figures that `cmdpax reproduce` draws, two show pages in a browser (chromium must be
there), one is an example's, four are the cookbook's; the others are of a frontier, of policies, of
schemes and of the audit.
"""

import contextlib
import doctest
import runpy
import shutil
import tempfile
from pathlib import Path
from typing import Any

import PIL.Image

import cmdpax
from cmdpax.board import stored
from cmdpax.figures import plot_frontier, plot_policy, plot_potentials, plot_schemes, save_figure
from cmdpax.paper.audit.closed_form import proved_bound
from cmdpax.reporting.board_page import write_board_page

HERE = Path(__file__).parent
SCHEMES = (
    *("primal-dual", "dual", "rpg-pd", "opg-pd", "omwu-pd"),
    *("reload", "pid", "accelerated-dual", "augmented-lagrangian", "crpo"),
)
FIGURES = ("iterates.png", "regret-primal-dual.png", "long-run.png")


def show_page(page: Path, part: str, picture: Path) -> None:
    """A part of a page, as a browser shows it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1000, "height": 1400}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.locator("html[data-ready]").wait_for(state="attached")
        tab.locator(f"#{part}").screenshot(path=picture)
        browser.close()


def draw_policies() -> None:
    """The map of `pictures.md`, and the steps of a video stream."""
    text = (HERE.parent / "pictures.md").read_text(encoding="utf-8")
    block = text.split("```pycon\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    code = "\n".join(line[4:] for line in block.splitlines())
    exec(code.rpartition("save_figure(")[0], names)  # the example of the page itself
    save_figure(plot_policy(names["yard"], names["solution"].policy), HERE / "policy.png")
    stream = cmdpax.environments.make("streaming")
    save_figure(plot_policy(stream, cmdpax.solve(stream).policy), HERE / "policy-steps.png")


def draw_cookbook() -> None:
    """The pictures of `cookbook.md`, by running the page."""
    text = (HERE.parent / "cookbook.md").read_text(encoding="utf-8")
    blocks = "".join(part.split("```")[0] for part in text.split("```pycon\n")[1:])
    examples = doctest.DocTestParser().get_examples(blocks)
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for example in examples:
            exec(example.source, names)
        for picture in Path(folder).glob("*.png"):
            shutil.copyfile(picture, HERE / picture.name)


def draw_schemes() -> None:
    """The picture of `schemes.md`: every scheme on two models, with η = 0.2 where it has an η."""
    models = {
        "bandit, the minimal example": cmdpax.environments.make("bandit"),
        "random, the paper's CMDP": cmdpax.environments.make("random"),
    }
    found = {
        title: {name: iterate_with(cmdp, name) for name in SCHEMES}
        for title, cmdp in models.items()
    }
    save_figure(plot_schemes(models, found), HERE / "schemes.png")
    picture = PIL.Image.open(HERE / "schemes.png").convert("RGB").quantize(64)  # a quarter as large
    picture.save(HERE / "schemes.png", optimize=True)


def iterate_with(cmdp: cmdpax.CMDP, name: str) -> cmdpax.Iterates:
    """2000 iterations."""
    has_step = name not in ("accelerated-dual", "augmented-lagrangian")
    given = {"step_size": 0.2} if has_step else {}
    return cmdpax.iterate(cmdp, name, num_iterations=2000, **given)


if __name__ == "__main__":
    draw_schemes()
    queue = cmdpax.environments.make("queue")
    figure = plot_frontier(cmdpax.frontier(queue), own_threshold=queue.bounds[0])
    save_figure(figure, HERE / "frontier.png")
    draw_policies()
    draw_cookbook()
    with tempfile.TemporaryDirectory() as folder:
        made = cmdpax.reproduce(folder)
        for path in made.figures:
            if path.name in FIGURES:
                shutil.copyfile(path, HERE / path.name)
        show_page(made.page, "story", HERE / "report.png")
        page = Path(folder) / "board.html"
        page.write_text(write_board_page(stored("quick")), encoding="utf-8")
        show_page(page, "tradeoff-chart", HERE / "board.png")
    cmdp = cmdpax.environments.make("random")
    audits = {
        tau: cmdpax.audit(cmdp, num_iterations=3000, regularization=tau)
        for tau in (0.01, 0.02, 0.05)
    }
    bounds = {tau: proved_bound(found.problem, found.potentials) for tau, found in audits.items()}
    potentials = {tau: found.potentials for tau, found in audits.items()}
    save_figure(plot_potentials(potentials, bounds), HERE / "potential.png")
    example = runpy.run_path(str(HERE.parent.parent / "examples" / "frozen_lake.py"))
    example["main"](HERE / "frozen_lake.png")
