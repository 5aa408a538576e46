"""The playground in a browser: its iteration is the library's, its words are its numbers."""

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

import browsing
import cmdpax
from page_cases import Example, eventually

Page = Any
Opener = Callable[..., Page]

ASSETS = files("cmdpax.reporting") / "assets"
NAMES = ("playground.html", "core.js", "charts.js", "playground.js")
NUM_ITERATIONS = 2000
PRESETS = {"vanilla": (0.2, 0.0, 0.0), "regularized": (0.2, 0.05, 0.0), "margin": (0.2, 0.05, 0.07)}
CHARTS = ("violation", "regret", "multiplier", "plane")


def one_step(rewards: Any, constraint_rewards: Any, threshold: float) -> cmdpax.CMDP:
    """One decision between options."""
    return cmdpax.CMDP(
        transitions=np.ones((1, 1, len(rewards), 1)),
        rewards=np.reshape(rewards, (1, 1, -1)),
        constraint_rewards=np.reshape(constraint_rewards, (1, 1, 1, -1)),
        thresholds=[threshold],
        initial=[1.0],
    )


def described(cmdp: cmdpax.CMDP, max_multiplier: float = 6.0) -> dict[str, Any]:
    """A problem as the page has it."""
    solution = cmdpax.solve(cmdp)
    return {
        "rewards": cmdp.rewards.ravel().tolist(),
        "constraint_rewards": cmdp.constraint_rewards.ravel().tolist(),
        "threshold": float(cmdp.thresholds[0]),
        "optimum": float(solution.value),
        "multiplier": float(solution.multipliers[0]),
        "max_multiplier": max_multiplier,
    }


def simulated(
    page: Page, problem: Mapping[str, Any], step_size: float, regularization: float, margin: float
) -> dict[str, np.ndarray]:
    settings = {
        "stepSize": step_size,
        "regularization": regularization,
        "margin": margin,
        "iterations": NUM_ITERATIONS,
    }
    found = page.evaluate(
        """([problem, settings]) => {
             const run = cmdpax.playground.simulate(problem, settings);
             if (!Object.values(run).every((series) => series instanceof Float64Array)) throw run;
             return Object.entries(run).map(([name, series]) => [name, Array.from(series)]);
           }""",
        [problem, settings],
    )
    return {name: np.asarray(series) for name, series in found}


def expected(
    cmdp: cmdpax.CMDP,
    step_size: float,
    regularization: float,
    margin: float,
    max_multiplier: float = 6.0,
    num_iterations: int = NUM_ITERATIONS,
) -> dict[str, np.ndarray]:
    """The same by the library: it learns against c + margin and is judged by c."""
    aimed = cmdp.replace(thresholds=cmdp.thresholds + margin)
    run = cmdpax.iterate(
        aimed,
        "primal-dual",
        num_iterations=num_iterations,
        step_size=step_size,
        regularization=regularization,
        max_multiplier=max_multiplier,
    )
    suboptimality = cmdpax.solve(cmdp).value - run.value
    violation = cmdp.thresholds - run.constraint_values
    strong = cmdpax.learning.history.strong_regret(suboptimality, violation)
    weak = cmdpax.learning.history.weak_regret(suboptimality, violation)
    return {
        "value": run.value,
        "constraintValue": run.constraint_values[:, 0],
        "multiplier": run.multipliers[:, 0],
        "violation": violation[:, 0],
        "suboptimality": suboptimality,
        "strongConstraint": strong.constraints[:, 0],
        "weakConstraint": weak.constraints[:, 0],
        "strongObjective": strong.objective,
        "weakObjective": weak.objective,
    }


def assert_same(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> None:
    assert found.keys() == wanted.keys()
    for name, series in wanted.items():
        np.testing.assert_allclose(found[name], series, rtol=0, atol=1e-9, err_msg=name)


def script(source: str) -> str:
    return f"<script>{source}</script>"


@pytest.fixture
def playground(open_page: browsing.Pages) -> Page:
    """The playground alone, without Plotly: its words and controls do not wait for the charts."""
    payload = {"playground": described(cmdpax.environments.make("bandit"))}
    text = {name: (ASSETS / name).read_text(encoding="utf-8") for name in NAMES}
    return open_page(
        "<!doctype html><html lang=en><meta charset=utf-8><title>playground</title>"
        f"<body>{text['playground.html']}"
        f"<script type=application/json id=payload>{json.dumps(payload)}</script>"
        + "".join(script(text[name]) for name in NAMES if name.endswith(".js"))
        + script("cmdpax.playground.start()")
    )


def setting(page: Page, name: str, value: float) -> None:
    page.locator(f"#playground-{name}").fill(str(value))


def words(page: Page, name: str) -> str:
    """The text once the next frame has brought it up to date."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return page.text_content(f"#playground-{name}")


# ------------------------------------------------------------------------------------ the iteration


@pytest.mark.parametrize(
    ("step_size", "regularization", "margin", "max_multiplier"),
    [
        *((*settings, 6.0) for settings in PRESETS.values()),
        (0.05, 0.0, 0.15, 6.0),
        (0.5, 0.1, 0.15, 6.0),
        (0.5, 0.005, 0.0, 6.0),
        pytest.param(2.0, 0.0, 0.0, 6.0, id="large step"),
        pytest.param(5.0, 0.2, 0.1, 6.0, id="larger step"),
        pytest.param(0.2, 0.0, 0.0, 0.7, id="clipped"),
        pytest.param(0.2, 0.02, 0.05, 0.7, id="clipped and regularized"),
    ],
)
def test_the_minimal_example_is_iterated_as_by_the_library(
    playground: Page,
    step_size: float,
    regularization: float,
    margin: float,
    max_multiplier: float,
) -> None:
    cmdp = cmdpax.environments.make("bandit")
    settings = (step_size, regularization, margin)
    found = simulated(playground, described(cmdp, max_multiplier), *settings)
    assert_same(found, expected(cmdp, *settings, max_multiplier))
    if max_multiplier < 1:
        assert found["multiplier"].max() == max_multiplier


@pytest.mark.parametrize("seed", range(3))
def test_any_options_are_iterated_as_by_the_library(playground: Page, seed: int) -> None:
    """The minimal example is symmetric, and hides what is wrong by a constant."""
    draw = np.random.default_rng(seed)
    rewards, constraint_rewards = draw.uniform(size=(2, 5))
    cmdp = one_step(rewards, constraint_rewards, 0.8 * constraint_rewards.max())
    settings = (0.3, 0.03 * seed, 0.02)
    assert_same(simulated(playground, described(cmdp), *settings), expected(cmdp, *settings))


def test_the_page_has_the_options_of_the_minimal_example(playground: Page) -> None:
    cmdp = cmdpax.environments.make("bandit")
    rows = playground.locator("#playground tbody tr").all()
    shown = [[float(cell) for cell in row.locator("td").all_text_contents()] for row in rows]
    options = np.stack([cmdp.rewards.ravel(), cmdp.constraint_rewards.ravel()], axis=1)
    np.testing.assert_allclose(shown, options)
    text = playground.text_content(".playground-problem p")
    assert f"at least {cmdp.thresholds[0]:.1f}" in text
    assert f"safe is {cmdpax.solve(cmdp).value:.1f}" in text


# ---------------------------------------------------------------------------------------- the words


@pytest.mark.parametrize("name", PRESETS)
def test_the_account_is_that_of_the_library(playground: Page, name: str) -> None:
    playground.click(f"[data-preset={name}]")
    run = expected(cmdpax.environments.make("bandit"), *PRESETS[name], num_iterations=800)
    strong, weak = run["strongConstraint"][-1], run["weakConstraint"][-1]
    unsafe = int((run["violation"] > 1e-9).sum())
    summary = words(playground, "summary")
    assert f"In 800 episodes {unsafe} were unsafe, by {strong:.1f} in all" in summary
    assert f"safer than needed, by {strong - weak:.1f} in all" in summary
    assert f"leaves {weak:.1f} (weak regret)".replace("-", "−") in summary
    shown = [words(playground, side) for side in ("unsafe", "safe", "left")]
    assert shown == [f"{strong:.1f}", f"{strong - weak:.1f}", f"{weak:.1f}".replace("-", "−")]
    assert ("the errors cancel" in summary) == (name != "regularized")


def test_the_presets_tell_the_story() -> None:
    """What the page's sentences are about, whatever they say."""
    runs = {
        name: expected(cmdpax.environments.make("bandit"), *settings, num_iterations=800)
        for name, settings in PRESETS.items()
    }
    strong = {name: run["strongConstraint"] for name, run in runs.items()}
    late = {name: run["violation"][-200:] for name, run in runs.items()}
    # Vanilla: it swings to the end, the strong regret grows evenly, the weak one is nothing.
    assert np.ptp(late["vanilla"]) > 0.5
    assert strong["vanilla"][399] == pytest.approx(strong["vanilla"][-1] / 2, rel=0.1)
    assert abs(runs["vanilla"]["weakConstraint"][-1]) < 0.03 * strong["vanilla"][-1]
    # Regularized: it settles, unsafe by about τ. With a margin: safe, and no more strong regret.
    assert np.ptp(late["regularized"]) < 0.01
    assert late["regularized"].mean() == pytest.approx(0.05, rel=0.1)
    assert np.ptp(late["margin"]) < 0.01
    assert late["margin"].max() < 0
    assert strong["margin"][-1] < strong["vanilla"][-1] / 5


@pytest.mark.parametrize(
    ("step_size", "regularization", "margin", "said"),
    [
        (0.2, 0, 0, "Nothing damps the swing"),
        (0.3, 0, 0.05, "nothing damps it"),
        (0.1, 0.005, 0, "damps the swing, slowly here"),
        (0.2, 0.05, 0, "it settles, but 0.049 on the unsafe side"),
        (0.2, 0.05, 0.07, "stops growing after episode 326. The price: 0.019 of reward"),
        (0.5, 0.1, 0.1, "The price: 0.000 of reward per episode."),
    ],
)
def test_what_is_to_be_learned(
    playground: Page, step_size: float, regularization: float, margin: float, said: str
) -> None:
    setting(playground, "step-size", step_size)
    setting(playground, "regularization", regularization)
    setting(playground, "margin", margin)
    assert said in words(playground, "lesson")


# ------------------------------------------------------------------------------------- the controls


def pressed(page: Page) -> list[str]:
    buttons = page.locator("#playground [data-preset][aria-pressed=true]").all()
    return [button.get_attribute("data-preset") for button in buttons]


def test_it_starts_with_vanilla_and_shows_its_settings(playground: Page) -> None:
    assert pressed(playground) == ["vanilla"]
    for name, value in (("step-size", "0.20"), ("regularization", "0.000"), ("margin", "0.000")):
        assert words(playground, f"{name}-value") == value


def test_the_keyboard_is_enough(playground: Page) -> None:
    playground.focus("[data-preset=regularized]")
    playground.keyboard.press("Enter")
    before = words(playground, "summary")
    assert pressed(playground) == ["regularized"]
    playground.keyboard.press("Tab")  # the next button
    playground.keyboard.press("Tab")  # the first slider
    playground.keyboard.press("ArrowRight")
    assert words(playground, "step-size-value") == "0.21"
    assert words(playground, "summary") != before
    assert pressed(playground) == []


def test_the_regret_of_the_reward_can_be_asked_for(playground: Page) -> None:
    run = expected(cmdpax.environments.make("bandit"), *PRESETS["vanilla"], num_iterations=800)
    assert f"strong regret {run['strongConstraint'][-1]:.1f}" in words(playground, "regret-text")
    playground.select_option("#playground-account", "objective")
    caption = words(playground, "regret-text")
    assert f"strong regret {run['strongObjective'][-1]:.1f}" in caption
    assert f"weak regret {run['weakObjective'][-1]:.1f}".replace("-", "−") in caption


def test_every_control_has_a_name(playground: Page) -> None:
    for control in playground.locator("#playground :is(input, select)").all():
        assert control.evaluate("(control) => control.labels.length") == 1
    for chart in CHARTS:
        assert words(playground, f"{chart}-text")


# --------------------------------------------------------------------------------------- the charts


def assert_drawn(page: Page, chart: str, trace: int, series: np.ndarray) -> None:
    element = f"document.getElementById('playground-{chart}')"
    found = page.evaluate(f"() => Array.from({element}.data[{trace}].y)")
    np.testing.assert_allclose(found, series, rtol=0, atol=1e-9)


def test_the_charts_show_the_run_and_follow_the_sliders(
    small: Example, open_report: Opener
) -> None:
    page = open_report(small)
    setting(page, "regularization", 0.03)
    run = expected(cmdpax.environments.make("bandit"), 0.2, 0.03, 0.0, num_iterations=800)

    def check() -> None:
        assert_drawn(page, "violation", 0, run["violation"].clip(min=0))
        assert_drawn(page, "violation", 1, run["violation"].clip(max=0))
        assert_drawn(page, "violation", 2, run["violation"])
        assert_drawn(page, "regret", 0, run["strongConstraint"])
        assert_drawn(page, "regret", 1, run["weakConstraint"])
        assert_drawn(page, "multiplier", 0, run["multiplier"])

    eventually(page, check)


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_jumps_and_nothing_sticks_out(
    small: Example, open_report: Opener, width: int
) -> None:
    page = open_report(small, width=width)
    heights = set()
    for name in PRESETS:
        page.click(f"[data-preset={name}]")
        words(page, "summary")
        heights.add(page.evaluate("() => document.getElementById('playground').scrollHeight"))
    assert len(heights) == 1
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_the_plane_has_two_views(small: Example, open_report: Opener) -> None:
    page = open_report(small)

    def check(title: str) -> None:
        chart = "document.getElementById('playground-plane')"
        assert page.evaluate(f"() => {chart}.layout.yaxis.title.text") == title

    eventually(page, lambda: check("multiplier λ"))
    page.select_option("#playground-against", "value")
    eventually(page, lambda: check("reward"))
