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

  /** The constraint as the reader knows it: name, sense, bound; the sign is −1 for "at most". */
  const chosenConstraint = () => cmdpax.problem().constraints[constraint()];

  const valueLabel = () => {
    const { named, text } = chosenConstraint();
    return named ? cmdpax.plain(text) : "constraint value V<sub>u</sub>";
  };

  const objectiveLabel = () => {
    const { named, label } = cmdpax.problem().objective;
    return named ? cmdpax.plain(label) : "value V<sub>r</sub>";
  };

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
    const { optimum } = cmdpax.problem();
    const { bound, sign } = chosenConstraint();
    const row = (name) => {
      const found = series[name];
      if (!found) return null;
      return control("run").value === "mean" || !found.runs.length ? found.mean : found.runs[0];
    };
    const x = Array.from(row(violationName()), (violation) => bound - sign * violation);
    const y = Array.from(row("suboptimality"), (missing) => optimum - missing);
    return { episodes, x, y, average: averageOf(row, x, optimum) };
  };

  /** Weak regret is what the average of all episodes lacks, times their number. */
  const averageOf = (row, x, optimum) => {
    const { bound, sign } = chosenConstraint();
    const last = cmdpax.sweep().num_episodes;
    const sums = row(violationName().replace("violation", "weak_constraints"));
    // Folders of older versions lack the sums of single constraints: the recorded episodes have to do.
    const recorded = x.reduce((sum, value) => sum + value, 0) / x.length;
    const safety = sums ? bound - (sign * sums.at(-1)) / last : recorded;
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
    const names = [chosenConstraint(), cmdpax.problem().objective].map(({ named, label }, place) =>
      named ? cmdpax.plain(label) : ["constraint value", "value"][place],
    );
    const values = `<br>${names[0]} %{x:.5g}<br>${names[1]} %{y:.5g}<extra></extra>`;
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
      x: [chosenConstraint().bound],
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

  /** The wrong side of the bound: below it, or above it for "at most". */
  const unsafeSide = (theme, [low, high]) => {
    const { bound, sign } = chosenConstraint();
    const [start, end] = sign > 0 ? [low, bound] : [bound, high];
    const area = { type: "rect", yref: "paper", y0: 0, y1: 1, x0: start, x1: end };
    const dashed = { color: theme.unsafe, width: 1.5, dash: "dash" };
    const words = sign > 0 ? ["← unsafe", "safe →"] : ["← safe", "unsafe →"];
    const colours = sign > 0 ? [theme.unsafe, theme.safe] : [theme.safe, theme.unsafe];
    return {
      shapes: [
        { ...area, layer: "below", line: { width: 0 }, fillcolor: cmdpax.faded(theme.unsafe, 0.1) },
        { ...area, x0: bound, x1: bound, type: "line", line: dashed },
      ],
      annotations: words.map((text, place) => ({
        ...{ text, x: bound, xanchor: place ? "left" : "right", font: { color: colours[place] } },
        ...{ yref: "paper", y: 0.02, yanchor: "bottom", showarrow: false },
      })),
    };
  };

  /** Both sides have the same scale: paths after their first episodes, and the optimum. */
  const rangesOf = (paths, problem) => {
    const points = { x: [chosenConstraint().bound], y: [problem.optimum] };
    const frontier = problem.frontier && problem.frontier[constraint()];
    if (control("whole").checked && frontier) {
      points.x.push(...frontier.thresholds);
      points.y.push(...frontier.values);
    }
    const skipped = control("whole").checked ? 0 : EARLY;
    for (const path of paths.filter((one) => one))
      for (const axis of ["x", "y"])
        points[axis].push(...cmdpax.extent(path[axis].slice(Math.floor(skipped * path.x.length))));
    return { x: withRoom(around(points.x)), y: around(points.y) };
  };

  /** The wrong side of the bound has room for its name. */
  const withRoom = ([low, high]) => {
    const { bound, sign } = chosenConstraint();
    const room = 0.16 * (high - low);
    return sign > 0 ? [Math.min(low, bound - room), high] : [low, Math.max(high, bound + room)];
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
    describe(side, configuration, paths[side]);
    const layout = {
      xaxis: { title: { text: valueLabel() }, range: x, zeroline: false },
      yaxis: { title: { text: objectiveLabel() }, range: y, zeroline: false },
      hovermode: "closest",
      uirevision: [...x, ...y].join(), // a zoom stays until there is another view
      ...unsafeSide(theme, x),
    };
    return { traces, layout };
  };

  // ---------------------------------------------------------------------------------------- words

  const describe = (side, configuration, path) => {
    if (!path) {
      cmdpax.describe(`plane-chart-${side}`, "There are no curves of this configuration on this CMDP.");
      return;
    }
    const { bound, sign, sense, named, label } = chosenConstraint();
    const late = path.x.slice(Math.floor(path.x.length / 2));
    const unsafe = late.filter((value) => sign * (value - bound) < 0).length / late.length;
    const name = named ? label : "the constraint value";
    const [low, high] = cmdpax.extent(late).map((end) => cmdpax.number(end, 3));
    cmdpax.describe(
      `plane-chart-${side}`,
      `${configuration.label}: in the second half ${name} lies between ${low} and ${high} ` +
        `(${sense} ${cmdpax.number(bound)}), unsafe in ${Math.round(100 * unsafe)} % of the recorded ` +
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
    const options = cmdpax
      .problem()
      .constraints.map(({ text, named, name }, i) =>
        cmdpax.element("option", { value: i }, named ? text : name),
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
