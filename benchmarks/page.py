"""The page of a sweep: how long it takes to make, to open and to answer.

    python benchmarks/page.py [--folder DIR ...] [--repeats 5]

Needs `requirements/dev.txt` and chromium. Without folders a sweep with 10⁶ recorded episodes is run
first (two algorithms, five seeds, 100,000 episodes of the minimal example). Times are medians in
milliseconds: text is the first paint, ready is when every chart is drawn. The last column is ready
against a page that has nothing but Plotly and one chart of two points, opened in the same run.
Answers are times from a click to the drawn chart: another account, a zoom by half, a moved slider.
"""

import argparse
import platform
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import cmdpax

EMPTY = """<!DOCTYPE html><title>empty</title><div id="chart"></div><script>{plotly}</script>
<script>Plotly.newPlot("chart", [{{x: [0, 1], y: [0, 1]}}]).then(
  () => (document.documentElement.dataset.ready = "true"));</script>"""
ANSWERS = {
    "account": "document.querySelector('input[name=account][value=weak]').click()",
    "zoom": "document.querySelector('#curves button[data-key=\"+\"]').click()",
    "slider": "const s = document.getElementById('playground-regularization'); "
    "s.value = 0.05; s.dispatchEvent(new Event('input', {bubbles: true}))",
}
CHARTS = {"account": "curves-chart", "zoom": "curves-chart", "slider": "playground-regret"}


def million(folder: Path) -> Path:
    """A sweep with 10⁶ recorded episodes."""
    names = ("vanilla-primal-dual", "regularized-primal-dual")
    specification = {
        "num_episodes": 100_000,
        "seeds": 5,
        "record": "all",
        "cmdps": [{"environment": "bandit"}],
        "algorithms": [{"name": name, "step_size": 0.05} for name in names],
    }
    cmdpax.sweep(specification, folder)
    return folder


def opened(browser: Any, page: Path) -> tuple[float, float, Any]:
    """Milliseconds to the first paint and until all is drawn, and the tab."""
    tab = browser.new_page()
    tab.add_init_script(
        """new MutationObserver(() => {
          if (document.documentElement.dataset.ready) window.readyAt ??= performance.now();
        }).observe(document, {attributes: true, subtree: true, attributeFilter: ["data-ready"]})"""
    )
    tab.goto(page.as_uri())
    tab.locator("html[data-ready]").wait_for(state="attached")
    painted = tab.evaluate("performance.getEntriesByType('paint')[0]?.startTime ?? 0")
    return painted, tab.evaluate("window.readyAt"), tab


def answered(tab: Any, name: str) -> float:
    """Milliseconds from an action to the chart that it changes."""
    return float(
        tab.evaluate(
            """async ([action, id]) => {
              const chart = document.getElementById(id), before = chart.dataset.drawn;
              const begun = performance.now();
              new Function(action)();
              while (chart.dataset.drawn === before) await new Promise(requestAnimationFrame);
              return performance.now() - begun;
            }""",
            [ANSWERS[name], CHARTS[name]],
        )
    )


def measure(browser: Any, page: Path, repeats: int) -> tuple[float, float]:
    """Medians of the first paint and of ready."""
    times = []
    for _ in range(repeats):
        painted, ready, tab = opened(browser, page)
        times.append((painted, ready))
        tab.close()
    painted, ready = (statistics.median(column) for column in zip(*times, strict=True))
    return painted, ready


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, nargs="*")
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    from playwright.sync_api import sync_playwright
    from plotly.offline import get_plotlyjs

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        work = Path(scratch)
        folders = chosen.folder or [million(work / "million")]
        empty = work / "empty.html"
        empty.write_text(EMPTY.format(plotly=get_plotlyjs()), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        print(f"{platform.machine()}, chromium {browser.version}")
        _, base = measure(browser, empty, chosen.repeats)
        print(f"{'folder':24} {'made s':>7} {'MB':>5} {'text':>6} {'ready':>6} {'× empty':>8}")
        for folder in folders:
            begun = time.perf_counter()
            page = cmdpax.report(folder, work / "report.html")
            made, size = time.perf_counter() - begun, page.stat().st_size / 1e6
            painted, ready = measure(browser, page, chosen.repeats)
            numbers = f"{made:7.1f} {size:5.2f} {painted:6.0f} {ready:6.0f} {ready / base:8.2f}"
            print(f"{folder.name:24} {numbers}")
            context = browser.new_context(bypass_csp=True)  # it forbids scripts that measure
            answers = {name: answered(opened(context, page)[2], name) for name in ANSWERS}
            print("  answers: " + ", ".join(f"{n} {ms:.0f} ms" for n, ms in answers.items()))
        browser.close()


if __name__ == "__main__":
    main()
