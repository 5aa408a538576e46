"use strict";
// Two algorithms, or two configurations, in pairs: the same CMDP, the same seed.

(() => {
  let chart = null;
  const control = (id) => cmdpax.byId(`compare-${id}`);

  const textOf = (select) => select.selectedOptions[0].textContent.trim();

  /** Measures of the runs by CMDP and seed. */
  const runsBy = (configuration, measure) => {
    const { runs } = cmdpax.sweep();
    const found = new Map();
    for (const place of cmdpax.runsOf(configuration)) {
      const key = `${runs.cmdp[place]}/${runs.seed[place]}`;
      found.set(key, { cmdp: runs.cmdp[place], seed: runs.seed[place], value: runs.measures[measure][place] });
    }
    return found;
  };

  const pairsOf = (first, second, measure) => {
    if (first === null || second === null) return [];
    const others = runsBy(second, measure);
    return [...runsBy(first, measure)].flatMap(([key, one]) => {
      const other = others.get(key);
      if (!other) return [];
      const known = one.value !== null && other.value !== null;
      const difference = known ? one.value - other.value : null;
      return [{ ...one, other: other.value, difference }];
    });
  };

  /** With several CMDPs the means of each: runs on one say little about others. */
  const unitsOf = (pairs) => {
    const byCmdp = new Map();
    for (const pair of pairs) byCmdp.set(pair.cmdp, [...(byCmdp.get(pair.cmdp) ?? []), pair]);
    if (byCmdp.size < 2) return { unit: "seeds", units: pairs, cmdps: byCmdp.size };
    const mean = (list, key) => cmdpax.interval(list.map((pair) => pair[key])).mean;
    const units = [...byCmdp].map(([cmdp, list]) => ({
      cmdp,
      seed: null,
      value: mean(list, "value"),
      other: mean(list, "other"),
      difference: mean(list, "difference"),
    }));
    return { unit: "CMDPs", units, cmdps: byCmdp.size };
  };

  /** What `cmdpax.compare` finds. */
  cmdpax.compareTwo = (firstValue, secondValue, measure) => {
    const [first, second] = [firstValue, secondValue].map((value) =>
      cmdpax.configurationOf(value, measure, null),
    );
    const pairs = pairsOf(first, second, measure);
    const { unit, units, cmdps } = unitsOf(pairs);
    const [firstMean, secondMean] = ["value", "other"].map(
      (key) => cmdpax.interval(units.map((one) => one[key])).mean,
    );
    return {
      ...{ first, second, unit, units, cmdps, pairs: pairs.length, firstMean, secondMean },
      difference: cmdpax.interval(units.map((one) => one.difference)),
      ratio: secondMean ? firstMean / secondMean : null,
      smaller: units.filter((one) => one.difference !== null && one.difference < 0).length,
    };
  };

  // ---------------------------------------------------------------------------------------- words

  const verdict = ({ difference, units, first: one, second: other }, first, second) => {
    const { mean, half } = difference;
    if (one === null || other === null) return "The measure is not defined for any of the runs.";
    if (!units.length) return "They share no CMDP with the same seed: nothing can be compared.";
    if (mean === null) return "The measure is not defined for all of these runs.";
    if (half === null) return "One pair says nothing about chance: run more seeds.";
    if (Math.abs(mean) <= half) return "The 95 % interval holds 0: no difference is established.";
    return `${mean < 0 ? first : second} is smaller, and 0 lies outside the 95 % interval.`;
  };

  const say = (found, first, second, measure) => {
    const { configurations } = cmdpax.sweep();
    const named = (text, index) => {
      const label = index === null ? "" : configurations[index].label;
      return text.includes(label) ? text : `${text} (${label})`;
    };
    const rows = [
      [`mean of ${named(first, found.first)}`, cmdpax.number(found.firstMean)],
      [`mean of ${named(second, found.second)}`, cmdpax.number(found.secondMean)],
      ["ratio of the means", cmdpax.number(found.ratio)],
      [`difference, 95 % interval over ${found.unit}`, cmdpax.spread(found.difference)],
      ["pairs (CMDP, seed)", cmdpax.count(found.pairs)],
      [`${found.unit} where the first is smaller`, `${found.smaller} of ${found.units.length}`],
    ];
    const body = rows.map(([name, value]) =>
      cmdpax.element(
        "tr",
        {},
        cmdpax.element("th", { scope: "row" }, name),
        cmdpax.element("td", { class: "number" }, value),
      ),
    );
    control("numbers").replaceChildren(...body);
    const sentence = verdict(found, first, second);
    cmdpax.describe("compare-chart", `${measure}: ${sentence} Less is better for regrets and violations.`);
  };

  // ---------------------------------------------------------------------------------------- chart

  const nameOf = ({ cmdp, seed }) => {
    const name = cmdpax.sweep().cmdps[cmdp].name;
    return cmdpax.plain(seed === null ? name : `${name}, seed ${seed}`);
  };

  const build = async (theme) => {
    const [first, second] = [control("first"), control("second")];
    const measure = control("measure");
    if (!first.value || !second.value) return null;
    const found = cmdpax.compareTwo(first.value, second.value, measure.value);
    say(found, textOf(first), textOf(second), textOf(measure));
    const { mean, half } = found.difference;
    const dots = {
      x: found.units.map((one) => one.difference),
      y: found.units.map((_, place) => ((place * 7) % 11) / 11 - 0.45), // apart, so that none hides another
      mode: "markers",
      name: `one of the ${found.unit}`,
      marker: { color: theme.accent, size: 8, opacity: 0.7 },
      text: found.units.map(nameOf),
      hovertemplate: "%{x:.5g}<extra>%{text}</extra>",
    };
    const middle = {
      x: [mean],
      y: [-1],
      error_x: { type: "data", array: [half ?? 0], color: theme.ink, thickness: 2.5, width: 8 },
      mode: "markers",
      name: "mean, 95 % interval",
      marker: { color: theme.ink, size: 12, symbol: "diamond" },
      hovertemplate: "%{x:.5g}<extra>mean</extra>",
    };
    const text = `${textOf(measure)}: first minus second`;
    const layout = {
      xaxis: { title: { text: cmdpax.plain(text) }, rangemode: "tozero", zerolinewidth: 2 },
      yaxis: { visible: false, range: [-1.6, 0.9], fixedrange: true },
      hovermode: "closest",
    };
    if (found.units.length && cmdpax.extent(dots.x).every((end) => end === 0))
      layout.xaxis.range = [-1, 1];
    return { traces: found.units.length && mean !== null ? [dots, middle] : [], layout };
  };

  const fill = () => {
    control("first").replaceChildren(...cmdpax.configurationOptions());
    control("second").replaceChildren(...cmdpax.configurationOptions());
    [control("second").value, control("first").value] = cmdpax.firstPair();
    control("measure").replaceChildren(...cmdpax.measureOptions());
  };

  cmdpax.startComparison = () => {
    chart = cmdpax.chart(cmdpax.byId("compare-chart"), build);
    for (const id of ["first", "second", "measure"])
      control(id).addEventListener("change", () => chart.redraw());
    let filled = null;
    cmdpax.onSelection(() => {
      if (filled !== cmdpax.sweep()) fill();
      filled = cmdpax.sweep();
      return chart.redraw();
    });
  };
})();
