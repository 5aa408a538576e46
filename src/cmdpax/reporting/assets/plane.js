"use strict";
// The trade-off plane: the value of each policy against its constraint value, as a path in time.

(() => {
  const SIDES = [0, 1];
  const EARLY = 0.25; // of the episodes: learning begins far away, which would dwarf the rest
  const charts = [];
  const control = (id) => cmdpax.byId(`plane-${id}`);

  const constraint = () => Number(control("constraint").value || 0);

  /** The CMDP whose plane it is: means over CMDPs have no common frontier. */
  const cmdpOfPlane = () => cmdpax.cmdpIndex() ?? 0;

  const violationName = () => {
    const { num_constraints: count } = cmdpax.problem().sizes;
    return count > 1 ? `violation[${constraint()}]` : "violation";
  };

  const chosen = (side) => {
    const index = cmdpax.configurationOf(control(`choice-${side}`).value, "strong", cmdpOfPlane());
    if (index === null) return null;
    const { configurations, algorithms } = cmdpax.sweep();
    const { algorithm, label } = configurations[index];
    const name = algorithms[algorithm];
    return { index, algorithm: name, label: `${name}, ${label}` };
  };

  // --------------------------------------------------------------------------------------- paths

  /** Values of a run along the recorded episodes, and their average over all episodes. */
  const pathOf = async (configuration) => {
    const group = configuration && cmdpax.groupOf(configuration.index, cmdpOfPlane());
    if (!group) return null;
    const { episodes, series } = await cmdpax.curves(group);
    const { optimum, thresholds } = cmdpax.problem();
    const threshold = thresholds[constraint()];
    const row = (name) => {
      const found = series[name];
      if (!found) return null;
      return control("run").value === "mean" || !found.runs.length ? found.mean : found.runs[0];
    };
    const x = Array.from(row(violationName()), (violation) => threshold - violation);
    const y = Array.from(row("suboptimality"), (missing) => optimum - missing);
    return { episodes, x, y, average: averageOf(row, x, threshold, optimum) };
  };

  /** Weak regret is what the average of all episodes lacks, times their number. */
  const averageOf = (row, x, threshold, optimum) => {
    const last = cmdpax.sweep().num_episodes;
    const sums = row(violationName().replace("violation", "weak_constraints"));
    // Folders of older versions lack the sums of single constraints: the recorded episodes have to do.
    const recorded = x.reduce((sum, value) => sum + value, 0) / x.length;
    const safety = sums ? threshold - sums.at(-1) / last : recorded;
    return [safety, optimum - row("weak_objective").at(-1) / last];
  };

  const untilPlace = (episodes) => {
    const share = Number(control("until").value) / 1000;
    const last = episodes[0] + share * (episodes.at(-1) - episodes[0]);
    let place = cmdpax.within(episodes, last, last)[1] - 1;
    while (place > 0 && episodes[place] > last) place -= 1;
    return place;
  };

  const pathTraces = (path, configuration, theme) => {
    const until = untilPlace(path.episodes);
    const places = cmdpax.thin(0, until + 1, [path.x, path.y], (place) => place, 900);
    const [x, y] = [path.x, path.y].map((row) => places.map((place) => row[place]));
    const { color } = theme.algorithm(configuration.algorithm);
    const when = places.map((place) => path.episodes[place]);
    const values = "<br>constraint value %{x:.5g}<br>value %{y:.5g}<extra></extra>";
    const marker = (at, name, symbol, told) => ({
      ...{ x: [at[0]], y: [at[1]], mode: "markers", name },
      marker: { color, size: 14, symbol, line: { color: theme.surface, width: 1.5 } },
      hovertemplate: told + values,
    });
    const episode = `episode ${cmdpax.count(path.episodes[until])}`;
    return [
      {
        ...{ x, y, mode: "lines+markers", name: "path of the episodes", customdata: when },
        line: { color: cmdpax.faded(color, 0.4), width: 1 },
        marker: { color: when, colorscale: scaleOf(color), size: 5, cmin: 0, cmax: path.episodes.at(-1) },
        hovertemplate: `episode %{customdata:,}${values}`,
      },
      marker([path.x[until], path.y[until]], "latest", "circle", episode),
      marker(path.average, "average of all episodes", "x", "average of all episodes"),
    ];
  };

  /** Early episodes are faint. */
  const scaleOf = (color) => [
    [0, cmdpax.faded(color, 0.2)],
    [1, cmdpax.faded(color, 1)],
  ];

  // ---------------------------------------------------------------------------------- the problem

  const problemTraces = (problem, theme) => {
    const found = problem.frontier && problem.frontier[constraint()];
    const optimum = {
      x: [problem.thresholds[constraint()]],
      y: [problem.optimum],
      mode: "markers",
      name: "optimum",
      marker: { symbol: "star", size: 17, color: theme.optimum, line: { color: theme.surface, width: 1 } },
      hovertemplate: "threshold %{x:.5g}<br>V* %{y:.5g}<extra>optimum</extra>",
    };
    if (!found) return [optimum];
    const frontier = {
      x: found.thresholds,
      y: found.values,
      mode: "lines",
      name: "frontier",
      line: { color: theme.optimum, width: 2 },
      hovertemplate: "threshold %{x:.5g}<br>best value %{y:.5g}<extra>frontier</extra>",
    };
    return [frontier, optimum];
  };

  const unsafeSide = (problem, theme, low) => {
    const threshold = problem.thresholds[constraint()];
    const area = { type: "rect", yref: "paper", y0: 0, y1: 1, x0: low, x1: threshold };
    const dashed = { color: theme.unsafe, width: 1.5, dash: "dash" };
    return {
      shapes: [
        { ...area, layer: "below", line: { width: 0 }, fillcolor: cmdpax.faded(theme.unsafe, 0.1) },
        { ...area, x0: threshold, type: "line", line: dashed },
      ],
      annotations: [
        { text: "← unsafe", xanchor: "right", x: threshold, font: { color: theme.unsafe } },
        { text: "safe →", xanchor: "left", x: threshold, font: { color: theme.safe } },
      ].map((one) => ({ ...one, yref: "paper", y: 0.02, yanchor: "bottom", showarrow: false })),
    };
  };

  /** Both sides have the same scale: paths after their first episodes, and the optimum. */
  const rangesOf = (paths, problem) => {
    const points = { x: [problem.thresholds[constraint()]], y: [problem.optimum] };
    const frontier = problem.frontier && problem.frontier[constraint()];
    if (control("whole").checked && frontier) {
      points.x.push(...frontier.thresholds);
      points.y.push(...frontier.values);
    }
    const skipped = control("whole").checked ? 0 : EARLY;
    for (const path of paths.filter((one) => one))
      for (const axis of ["x", "y"])
        points[axis].push(...cmdpax.extent(path[axis].slice(Math.floor(skipped * path.x.length))));
    return Object.fromEntries(Object.entries(points).map(([axis, all]) => [axis, around(all)]));
  };

  const around = (values) => {
    const [low, high] = cmdpax.extent(values);
    const room = 0.08 * (high - low || 1);
    return [low - room, high + room];
  };

  const build = async (side, theme) => {
    const problem = cmdpax.problem();
    if (!problem.sizes.num_constraints) return { traces: [], layout: { xaxis: {}, yaxis: {} } };
    const paths = await Promise.all(SIDES.map((one) => pathOf(chosen(one))));
    const { x, y } = rangesOf(paths, problem);
    const configuration = chosen(side);
    const traces = problemTraces(problem, theme);
    if (paths[side]) traces.push(...pathTraces(paths[side], configuration, theme));
    describe(side, problem, configuration, paths[side]);
    const layout = {
      xaxis: { title: { text: "constraint value V<sub>u</sub>" }, range: x, zeroline: false },
      yaxis: { title: { text: "value V<sub>r</sub>" }, range: y, zeroline: false },
      hovermode: "closest",
      uirevision: [...x, ...y].join(), // a zoom stays until there is another view
      ...unsafeSide(problem, theme, x[0]),
    };
    return { traces, layout };
  };

  // ---------------------------------------------------------------------------------------- words

  const describe = (side, problem, configuration, path) => {
    if (!path) {
      cmdpax.describe(`plane-chart-${side}`, "There are no curves of this configuration on this CMDP.");
      return;
    }
    const threshold = problem.thresholds[constraint()];
    const late = path.x.slice(Math.floor(path.x.length / 2));
    const unsafe = late.filter((value) => value < threshold).length / late.length;
    const [low, high] = cmdpax.extent(late).map((end) => cmdpax.number(end, 3));
    cmdpax.describe(
      `plane-chart-${side}`,
      `${configuration.label}: in the second half the constraint value lies between ${low} and ${high} ` +
        `(threshold ${cmdpax.number(threshold)}), unsafe in ${Math.round(100 * unsafe)} % of the recorded ` +
        `episodes; the average of all episodes (×) is ${cmdpax.number(path.average[0], 3)}.`,
    );
  };

  const say = () => {
    const problem = cmdpax.problem();
    const first = cmdpax.cmdpIndex() === null ? `Shown for the first CMDP, ${problem.name}. ` : "";
    const known = problem.frontier && problem.frontier[constraint()];
    const others =
      problem.sizes.num_constraints > 1
        ? "The frontier is that of policies that meet the other constraints; others may lie beyond it."
        : "";
    control("note").textContent =
      first + (known ? others : "The frontier was not computed for this CMDP.");
  };

  const showUntil = () => {
    const last = cmdpax.sweep().num_episodes;
    const episode = Math.max(1, Math.round((Number(control("until").value) / 1000) * last));
    control("until-value").textContent = `episode ${cmdpax.count(episode)}`;
  };

  // ------------------------------------------------------------------------------------- controls

  const redraw = () => {
    showUntil();
    say();
    return Promise.all(charts.map((chart) => chart.redraw()));
  };

  const PLAYED = 12_000; // milliseconds from the first episode to the last
  let playing = null;

  const stop = () => {
    clearInterval(playing);
    playing = null;
    control("play").textContent = "Play";
  };

  const play = () => {
    if (playing) return stop();
    const slider = control("until");
    const from = Number(slider.value) >= 1000 ? 0 : Number(slider.value);
    const begun = performance.now();
    control("play").textContent = "Stop";
    playing = setInterval(() => {
      const value = from + (1000 * (performance.now() - begun)) / PLAYED;
      slider.value = Math.min(1000, value);
      redraw();
      if (value >= 1000) stop();
    }, 60);
  };

  const fill = () => {
    const { num_constraints: count } = cmdpax.problem().sizes;
    const before = control("constraint").value;
    const options = Array.from({ length: count }, (_, i) =>
      cmdpax.element("option", { value: i }, `constraint ${i}`),
    );
    control("constraint").replaceChildren(...options);
    if (count) control("constraint").value = Number(before) < count ? before || "0" : "0";
    control("constraint").closest("label").hidden = count < 2;
    for (const part of [cmdpax.byId("plane"), document.querySelector('nav a[href="#plane"]')])
      part.hidden = !count;
  };

  let filled = null;

  const fillChoices = () => {
    if (filled === cmdpax.sweep()) return;
    filled = cmdpax.sweep();
    for (const side of SIDES) {
      control(`choice-${side}`).replaceChildren(...cmdpax.configurationOptions());
      control(`choice-${side}`).value = cmdpax.firstPair()[side];
    }
  };

  cmdpax.startPlane = () => {
    for (const side of SIDES)
      charts.push(cmdpax.chart(cmdpax.byId(`plane-chart-${side}`), (theme) => build(side, theme)));
    for (const id of ["constraint", "run", "whole", "choice-0", "choice-1"])
      control(id).addEventListener("change", redraw);
    control("until").addEventListener("input", redraw);
    control("play").addEventListener("click", play);
    cmdpax.onSelection(() => {
      stop();
      fill();
      fillChoices();
      return redraw();
    });
  };
})();
