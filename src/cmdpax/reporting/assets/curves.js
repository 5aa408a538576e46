"use strict";
// The curves: regrets, episodes and multipliers of the chosen configurations.

(() => {
  const ACCOUNTS = {
    strong: { objective: "strong_objective", constraint: "strong_constraints" },
    weak: { objective: "weak_objective", constraint: "weak_constraints" },
    episode: { objective: "suboptimality", constraint: "violation" },
  };
  const MOST_LINES = 24;
  const MOST_TOLD = 6;
  let chart = null;
  let window_ = null; // the zoom, in episodes
  let shown = null; // the sweep that it belongs to

  const control = (id) => cmdpax.byId(`curves-${id}`);
  const isLog = (axis) => control(`${axis}-log`).checked;
  const account = () => document.querySelector("input[name=account]:checked").value;

  /** The series that the controls ask for. */
  const seriesName = () => {
    const about = control("about").value;
    if (account() === "multipliers") return `multipliers[${about}]`;
    if (about === "objective") return ACCOUNTS[account()].objective;
    const name = ACCOUNTS[account()].constraint;
    return about === "largest" || numConstraints() < 2 ? name : `${name}[${about}]`;
  };

  const numConstraints = () => cmdpax.problem().sizes.num_constraints;

  const title = () => {
    const about = control("about").selectedOptions[0]?.textContent ?? "";
    const chosen = control("about").value;
    const objective = cmdpax.wordOf(null, "named") ? `suboptimality, ${about}` : "suboptimality";
    const bound = cmdpax.wordOf(chosen, "named") ? cmdpax.wordOf(chosen, "text", about) : about;
    const price = cmdpax.wordOf(chosen, "price", "");
    const name = cmdpax.wordOf(chosen, "name", about);
    return {
      strong: `strong regret, ${about} (cumulative)`,
      weak: `weak regret, ${about} (cumulative)`,
      episode: chosen === "objective" ? objective : `violation, ${bound}`,
      multipliers: `multiplier λ, ${name}${price ? ` [${price}]` : ""}`,
    }[account()];
  };

  /** What can be asked of: the objective, the constraints; multipliers have no objective. */
  const fillAbout = () => {
    const select = control("about");
    const before = select.value;
    const { count, mixed } = constraintsHere();
    const multipliers = document.querySelector("input[name=account][value=multipliers]");
    multipliers.disabled = !count || mixed;
    if (multipliers.disabled && multipliers.checked)
      document.querySelector("input[name=account][value=strong]").checked = true;
    const options = [];
    if (account() !== "multipliers") options.push(["objective", cmdpax.wordOf(null, "label", "objective")]);
    if (account() !== "multipliers" && (count > 1 || (mixed && count)))
      options.push(["largest", "largest constraint"]);
    for (let i = 0; i < count && !mixed; i += 1)
      options.push([i, cmdpax.wordOf(i, "label", count > 1 ? `constraint ${i}` : "constraint")]);
    control("mixed").hidden = !mixed;
    select.replaceChildren(
      ...options.map(([value, text]) => cmdpax.element("option", { value }, text)),
    );
    const wanted = before || (count && !mixed ? "0" : "objective");
    const known = options.some(([value]) => String(value) === wanted);
    const first = options.find(([value]) => value !== "objective") ?? options[0];
    select.value = known ? wanted : String(first[0]);
  };

  /** How many constraints all chosen CMDPs have; mixed, where not all have the same number. */
  const constraintsHere = () => {
    const [least, most] = cmdpax.extent(cmdpax.problems().map(({ sizes }) => sizes.num_constraints));
    return { count: least, mixed: least !== most };
  };

  /** With more lines their bands cover each other. */
  const chosenFew = () => cmdpax.chosenConfigurations().length <= 6;

  // --------------------------------------------------------------------------------------- lines

  /** The rows to draw for one configuration: a mean with its band, or single runs. */
  const rowsOf = (series, lines) => {
    if (lines === "mean") return [{ row: series.mean, half: series.half }];
    const runs = series.runs.length ? series.runs : [series.mean];
    return (lines === "first" ? runs.slice(0, 1) : runs).map((row) => ({ row, half: null }));
  };

  const tracesOf = async (configuration, theme) => {
    const group = cmdpax.groupOf(configuration.index);
    if (!group) return [];
    const { episodes, series } = await cmdpax.curves(group);
    const wanted = series[seriesName()];
    if (!wanted) return [];
    const lines = control("lines").value;
    return rowsOf(wanted, lines).flatMap((row, place) =>
      lineOf(configuration, theme, episodes, row, place, lines, group),
    );
  };

  /** The interval of two numbers says next to nothing: 12.7 standard errors on either side. */
  const FEWEST = 3;
  const hasBand = (half, group) =>
    half && group.units >= FEWEST && control("bands").checked && chosenFew();

  /** Intervals of these end at 0: below it there is no possible mean. */
  const neverNegative = () => ["strong", "multipliers"].includes(account());

  const lineOf = (configuration, theme, episodes, { row, half }, place, lines, group) => {
    const bands = hasBand(half, group);
    const least = neverNegative() ? 0 : -Infinity;
    const around = bands
      ? [row.map((v, i) => Math.max(least, v - half[i])), row.map((v, i) => v + half[i])]
      : [];
    const position = isLog("x") ? (i) => Math.log(episodes[i]) : (i) => episodes[i];
    const [start, stop] = window_ ? cmdpax.within(episodes, ...window_) : [0, episodes.length];
    const places = cmdpax.thin(start, stop, [row, ...around], position);
    const pick = (values) => places.map((index) => drawable(values[index]));
    const x = places.map((index) => episodes[index]);
    const { place: shade, count } = configuration.shade;
    const color = cmdpax.shade(theme.algorithm(configuration.algorithm).color, shade, count);
    const name = cmdpax.plain(configuration.label);
    const run = lines === "mean" ? "" : `, ${cmdpax.plain(group.shown[place] ?? "run")}`;
    const line = {
      x,
      y: pick(row),
      name,
      legendgroup: configuration.index,
      showlegend: place === 0,
      mode: places.length === 1 ? "markers" : "lines",
      line: { color, dash: configuration.dash, width: lines === "mean" ? 2 : 1.3, shape: shapeOf(configuration) },
      opacity: lines === "each" ? 0.75 : 1,
      hovertemplate: `%{y:.5g}<extra>${name}${run}</extra>`,
      meta: { kept: places.length, of: stop - start, thinned: group.kept < group.recorded },
    };
    return bands ? [...bandOf(x, around, pick, color, line), line] : [line];
  };

  /** A plan is played until the next one; sums grow in between. */
  const shapeOf = ({ steps }) =>
    steps && ["episode", "multipliers"].includes(account()) ? "hv" : "linear";

  /** On a logarithmic axis nothing is shown for what is not positive. */
  const drawable = (value) => (isLog("y") && value <= 0 ? null : value);

  const bandOf = (x, [low, high], pick, color, line) => {
    const edge = { x, mode: "lines", line: { width: 0, color, shape: line.line.shape }, hoverinfo: "skip" };
    const shared = { ...edge, showlegend: false, legendgroup: line.legendgroup };
    const bottom = isLog("y") ? (values) => floorOf(pick(values), line.y) : pick;
    return [
      { ...shared, y: bottom(low), name: "lower" },
      { ...shared, y: pick(high), name: "upper", fill: "tonexty", fillcolor: cmdpax.faded(color, 0.18) },
    ];
  };

  /** A band that would reach 0 ends at a thousandth of its line instead. */
  const floorOf = (values, line) =>
    values.map((value, index) => (value === null && line[index] !== null ? line[index] / 1000 : value));

  // --------------------------------------------------------------------------------------- chart

  const optimalMultiplier = (theme) => {
    if (account() !== "multipliers") return [];
    const place = Number(control("about").value);
    const values = cmdpax.problems().map((problem) => problem.multipliers[place]);
    if (values.some((value) => value === undefined)) return [];
    const value = values.reduce((sum, one) => sum + one, 0) / values.length;
    const end = cmdpax.sweep().num_episodes;
    return [
      {
        x: [1, end],
        y: [value, value],
        mode: "lines",
        name: "λ* (optimal)",
        line: { color: theme.optimum, dash: "dot", width: 1.5 },
        hovertemplate: "%{y:.5g}<extra>λ* (optimal)</extra>",
      },
    ];
  };

  const build = async (theme) => {
    const configurations = cmdpax.chosenConfigurations().slice(0, MOST_LINES);
    const lists = await Promise.all(configurations.map((one) => tracesOf(one, theme)));
    const traces = [...lists.flat(), ...optimalMultiplier(theme)];
    await describe(configurations);
    const few = configurations.length <= 6 && control("lines").value !== "each";
    const narrow = chart && chart.host.clientWidth < 700;
    const many = configurations.length > 8;
    const last = cmdpax.sweep().num_episodes;
    const layout = {
      xaxis: {
        title: { text: "episode" },
        type: isLog("x") ? "log" : "linear",
        whole: isLog("x") ? [0, Math.log10(last) || 1] : [0, last],
        uirevision: [cmdpax.sweep().name, isLog("x")].join(), // a zoom stays for the next account
      },
      yaxis: {
        title: { text: cmdpax.plain(title()) },
        type: isLog("y") ? "log" : "linear",
        rangemode: neverNegative() ? "nonnegative" : "normal",
        uirevision: [cmdpax.sweep().name, isLog("y"), seriesName()].join(),
      },
      hovermode: few && !narrow ? "x unified" : "closest",
      showlegend: !many || !narrow,
    };
    if (many) layout.legend = { x: 1.01, y: 1, font: { size: 10 } };
    return { traces, layout };
  };

  /** The text alternative: where every line ends. */
  const describe = async (configurations) => {
    const name = seriesName();
    const ends = [];
    let [missing, group] = [false, null];
    for (const configuration of configurations) {
      group = cmdpax.groupOf(configuration.index);
      const found = group && (await cmdpax.curves(group)).series[name];
      if (!found) missing = true;
      else ends.push(`${configuration.label}: ${lastOf(found, control("lines").value)}`);
    }
    const said = `${capital(title())} at episode ${cmdpax.count(cmdpax.sweep().num_episodes)}`;
    const several = group && group.units > 1;
    const { over, band } = told(several, control("lines").value, group);
    const nothing = missing ? " Some configurations have no such curve in this folder." : "";
    const log = isLog("y") ? " A logarithmic axis shows positive values only." : "";
    const many = cmdpax.chosenConfigurations().length > MOST_LINES;
    const cut = many ? ` Only the first ${MOST_LINES} of the configurations are drawn.` : "";
    const listed = ends.slice(0, MOST_TOLD).join("; ");
    const others = ends.length - MOST_TOLD;
    const left = others > 0 ? `; ${others} more in the numbers below` : "";
    const none = configurations.length ? "There is nothing to draw." : "Nothing is chosen.";
    const text = ends.length ? `${said}${over}${band}. ${listed}${left}.` : none;
    cmdpax.describe("curves-chart", text + nothing + log + cut);
  };

  const told = (several, lines, group) => {
    if (!several) return { over: "", band: "" };
    if (lines === "first") return { over: `, one run (${group.shown[0]})`, band: "" };
    if (lines === "each") return { over: `, ${group.shown.length} single runs`, band: "" };
    const few = group.units < FEWEST ? `; bands need ${FEWEST} ${group.unit}` : "";
    return { over: `, means of ${group.units} ${group.unit}`, band: ` with 95 % intervals${few}` };
  };

  const lastOf = ({ mean, half, runs }, lines) => {
    const last = mean.length - 1;
    const ends = cmdpax.extent(runs.map((row) => row[last])).map((end) => cmdpax.number(end));
    if (lines === "first" && runs.length) return cmdpax.number(runs[0][last]);
    if (lines === "each" && runs.length > 1) return `${ends[0]} to ${ends[1]}`;
    return cmdpax.spread({ mean: mean[last], half: half ? half[last] : null });
  };

  const capital = (text) => text[0].toUpperCase() + text.slice(1);

  /** Zooming shows what the overview had no room for. */
  const followZoom = (host) => {
    host.on("plotly_relayout", (change) => {
      const range = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (change["xaxis.autorange"]) window_ = null;
      else if (range[0] === undefined) return;
      else window_ = isLog("x") ? range.map((end) => 10 ** end) : range;
      chart.redraw().then(sayResolution);
    });
  };

  const sayResolution = () => {
    const drawn = (chart.host.data ?? []).filter((trace) => trace.meta);
    const whole = drawn.every((trace) => trace.meta.kept === trace.meta.of);
    const thinned = drawn.some((trace) => trace.meta.thinned);
    control("resolution").textContent = !drawn.length
      ? ""
      : whole && !thinned
        ? "Every recorded episode is drawn."
        : whole
          ? "Every episode that this page holds is drawn; it keeps all extremes."
          : "Drawn with the extremes of every stretch; zoom in for every episode.";
  };

  const redraw = () => chart.redraw().then(sayResolution).then(cmdpax.fillNumbers);

  // ------------------------------------------------------------------------------------- numbers

  /** The curves as a table, at a few episodes. */
  cmdpax.fillNumbers = async () => {
    const details = control("numbers");
    if (!details.open) return;
    const body = [];
    for (const configuration of cmdpax.chosenConfigurations().slice(0, MOST_LINES)) {
      const group = cmdpax.groupOf(configuration.index);
      const found = group && (await cmdpax.curves(group));
      if (!found || !found.series[seriesName()]) continue;
      body.push([configuration.label, found]);
    }
    if (!body.length) return details.querySelector("table").replaceChildren();
    const { episodes } = body[0][1];
    const wanted = [0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1].map((share) => share * episodes.at(-1));
    const rows = body.map(([label, { episodes: own, series }]) => {
      const { mean, half } = series[seriesName()];
      const places = wanted.map((episode) => nearest(own, episode));
      const cells = places.map((p) => cmdpax.spread({ mean: mean[p], half: half ? half[p] : null }));
      return row("td", label, cells);
    });
    const heads = wanted.map((episode) => cmdpax.count(episodes[nearest(episodes, episode)]));
    const caption = cmdpax.element("caption", {}, `${capital(title())} at episodes`);
    details.querySelector("table").replaceChildren(caption, row("th", "configuration", heads), ...rows);
  };

  const nearest = (sorted, wanted) => {
    const [start, stop] = cmdpax.within(sorted, wanted, wanted);
    let best = start;
    for (let place = start; place < stop; place += 1)
      if (Math.abs(sorted[place] - wanted) < Math.abs(sorted[best] - wanted)) best = place;
    return best;
  };

  const row = (tag, first, cells) =>
    cmdpax.element(
      "tr",
      {},
      cmdpax.element("th", { scope: tag === "th" ? "col" : "row" }, first),
      ...cells.map((cell) => cmdpax.element(tag, tag === "th" ? { scope: "col" } : {}, cell)),
    );

  /** Where records are dense at the beginning, so is what is to be seen. */
  const fitScale = () => {
    if (shown === cmdpax.sweep()) return;
    const untouched = isLog("x") === (shown?.log_episodes ?? false);
    shown = cmdpax.sweep();
    if (untouched) control("x-log").checked = shown.log_episodes;
    window_ = null; // another sweep has other episodes
  };

  cmdpax.startCurves = () => {
    const host = cmdpax.byId("curves-chart");
    chart = cmdpax.chart(host, build);
    cmdpax.whenReady(() => {
      followZoom(host);
      sayResolution();
    });
    for (const input of document.querySelectorAll("#curves input[name=account]"))
      input.addEventListener("change", () => {
        fillAbout();
        redraw();
      });
    for (const id of ["about", "lines", "bands", "x-log", "y-log"])
      control(id).addEventListener("change", () => {
        if (id === "x-log") window_ = null;
        redraw();
      });
    control("reset").addEventListener("click", () => cmdpax.showAll(host));
    for (const button of document.querySelectorAll("#curves button[data-key]"))
      button.addEventListener("click", () => cmdpax.zoom(host, button.dataset.key));
    control("numbers").addEventListener("toggle", cmdpax.fillNumbers);
    cmdpax.onSelection(() => {
      fitScale();
      fillAbout();
      return redraw();
    });
  };
})();
