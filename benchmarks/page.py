"""The page of a sweep: how long it takes to make, to open and to answer.

    python benchmarks/page.py [--folder DIR ...] [--repeats 5]

Needs `requirements/dev.txt` and chromium. Without folders a sweep with 10⁶ recorded episodes is run
first (two algorithms, five seeds, 100,000 episodes of the minimal example). Times are medians in
milliseconds: text is the first paint; open is when every chart that one sees is drawn, ready when
all are. The last column is open against a page that has nothing but Plotly and one chart of two
points, opened in the same run.
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


def opened(browser: Any, page: Path) -> tuple[tuple[float, float, float], Any]:
    """Milliseconds to the first paint, to the charts in sight and to all of them, and the tab."""
    tab = browser.new_page()
    tab.add_init_script(
        """new MutationObserver(() => {
          const { opened, ready } = document.documentElement.dataset;
          if (opened || ready) window.openedAt ??= performance.now();
          if (ready) window.readyAt ??= performance.now();
        }).observe(document, {attributes: true, subtree: true,
                              attributeFilter: ["data-ready", "data-opened"]})"""
    )
    tab.goto(page.as_uri())
    tab.locator("html[data-ready]").wait_for(state="attached")
    painted = tab.evaluate("performance.getEntriesByType('paint')[0]?.startTime ?? 0")
    return (painted, *tab.evaluate("[window.openedAt, window.readyAt]")), tab


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


def measure(browser: Any, page: Path, repeats: int) -> list[float]:
    """Medians of the three."""
    times = []
    for _ in range(repeats):
        found, tab = opened(browser, page)
        times.append(found)
        tab.close()
    return [statistics.median(column) for column in zip(*times, strict=True)]


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
        heads = ("made s", "MB", "text", "open", "ready", "× empty")
        print(f"{'folder':20}" + "".join(f"{head:>9}" for head in heads))
        for folder in folders:
            begun = time.perf_counter()
            page = cmdpax.report(folder, work / "report.html")
            made, size = time.perf_counter() - begun, page.stat().st_size / 1e6
            _, base, _ = measure(browser, empty, chosen.repeats)
            text, open_, ready = measure(browser, page, chosen.repeats)
            numbers = (
                f"{made:9.1f}{size:9.2f}{text:9.0f}{open_:9.0f}{ready:9.0f}{open_ / base:9.2f}"
            )
            print(f"{folder.name:20}{numbers}")
            context = browser.new_context(bypass_csp=True)  # it forbids scripts that measure
            answers = {name: answered(opened(context, page)[1], name) for name in ANSWERS}
            print("  answers: " + ", ".join(f"{n} {ms:.0f} ms" for n, ms in answers.items()))
        browser.close()


if __name__ == "__main__":
    main()
