"use strict";
// The charts of the board: curves of a block, the trade-off, and performance profiles.

(() => {
  const { blocks, algorithms, cells, episodes } = cmdpax.payload;
  const LEAST = 1e-6; // per episode: what is less is drawn there
  const MOST = 100; // of a profile's ratios
  let drawn = [];

  const cellOf = (learner, block) => cells[cmdpax.byId("setting").value][learner][block];

  const pen = (theme, name, wide) => ({ ...theme.algorithm(name), width: wide ? 4 : 1.5 });

  const curves = (theme) => {
    const { learners } = cmdpax.chosen();
    const { block, algorithm } = cmdpax.open;
    const account = cmdpax.byId("curves-account").value;
    const shown = learners.filter((one) => cellOf(one, block).state === "done");
    const traces = shown.map((one) => {
      const { name } = algorithms[one];
      return {
        x: episodes[blocks[block].part],
        y: cellOf(one, block).curves[account],
        name: cmdpax.plain(name),
        mode: "lines",
        line: pen(theme, name, name === algorithm),
        opacity: algorithm === null || name === algorithm ? 1 : 0.55,
        hovertemplate: `${cmdpax.plain(name)}<br>episode %{x:,}: %{y:.4g}<extra></extra>`,
      };
    });
    const type = cmdpax.byId("curves-log").checked ? "log" : "linear";
    const { family, part } = blocks[block];
    const picked = algorithm === null ? null : learners.find((one) => algorithms[one].name === algorithm);
    const about = picked === null || picked === undefined ? "" : ` ${algorithm}: ${cmdpax.told(cellOf(picked, block))}.`;
    cmdpax.describe("curves-chart", `${shown.length} learners on ${family}, ${part}: means over all runs, in the models' units.${about}`);
    return {
      traces,
      layout: {
        xaxis: { type: "log", title: { text: "episode" } },
        yaxis: { type, title: { text: "regret" } },
        hovermode: "closest",
      },
    };
  };

  /** Mean strong regrets per episode over the blocks that all learners have. */
  cmdpax.tradeOff = () => {
    const chosen = cmdpax.chosen();
    const common = cmdpax.common(cmdpax.ratios(chosen, "strong")).map((place) => chosen.places[place]);
    const average = (learner, name) => {
      const numbers = common.map((block) => (cellOf(learner, block).means[name] ?? Infinity) / blocks[block].num_episodes);
      return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
    };
    const points = chosen.learners.map((learner) => ({
      name: algorithms[learner].name,
      x: average(learner, "strong_objective"),
      y: average(learner, "strong_constraints"),
    }));
    const better = (one, other) => one.x <= other.x && one.y <= other.y && (one.x < other.x || one.y < other.y);
    const found = points.map((one) => ({ ...one, front: !points.some((other) => better(other, one)) }));
    return { points: found.filter((one) => Number.isFinite(one.x + one.y)), count: common.length };
  };

  const tradeOff = (theme) => {
    const { points, count } = cmdpax.tradeOff();
    const traces = points.map((one) => ({
      x: [Math.max(one.x, LEAST)],
      y: [Math.max(one.y, LEAST)],
      name: cmdpax.plain(one.name),
      mode: "markers+text", // colours are shared: names stand at their points
      text: [cmdpax.plain(one.name)],
      textposition: "top center",
      textfont: { size: 11 },
      marker: { color: theme.algorithm(one.name).color, size: one.front ? 13 : 9, symbol: one.front ? "square" : "circle" },
      hovertemplate: `${cmdpax.plain(one.name)}<br>%{x:.3g}, %{y:.3g}<extra></extra>`,
    }));
    const names = points.filter((one) => one.front).map((one) => one.name);
    cmdpax.describe("tradeoff-chart", count
      ? `Over ${count} blocks. On the front: ${names.join(", ")}.`
      : "The shown learners have no block in common: leave some out.");
    return {
      traces,
      layout: {
        xaxis: { type: "log", title: { text: "strong regret of the objective, per episode" } },
        yaxis: { type: "log", title: { text: "strong violation, per episode" } },
        hovermode: "closest",
        showlegend: false,
      },
    };
  };

  const profiles = (theme) => {
    const chosen = cmdpax.chosen();
    const ratios = cmdpax.ratios(chosen);
    const traces = chosen.learners.map((learner, place) => {
      const { name } = algorithms[learner];
      const own = ratios.map((row) => row[place]).filter((one) => one !== null && one <= MOST).sort((a, b) => a - b);
      const share = own.map((_, index) => (index + 1) / ratios.length);
      return {
        x: [1, ...own, MOST],
        y: [0, ...share, share.length ? share[share.length - 1] : 0],
        name: cmdpax.plain(name),
        mode: "lines",
        line: { ...pen(theme, name, false), shape: "hv" },
        hovertemplate: `${cmdpax.plain(name)}<br>within %{x:.3g}: %{y:.0%}<extra></extra>`,
      };
    });
    cmdpax.describe("profiles-chart", `${traces.length} learners on ${ratios.length} blocks; further up and to the left is better.`);
    return {
      traces,
      layout: {
        xaxis: { type: "log", range: [0, Math.log10(MOST)], title: { text: "times the best" } },
        yaxis: { range: [0, 1.02], tickformat: ".0%", title: { text: "share of blocks" } },
        hovermode: "closest",
      },
    };
  };

  cmdpax.startBoardCharts = () => {
    const made = { curves, tradeoff: tradeOff, profiles };
    drawn = Object.entries(made).map(([name, build]) => cmdpax.chart(cmdpax.byId(`${name}-chart`), build));
  };

  cmdpax.drawBoardCharts = () => Promise.all(drawn.map((chart) => chart.redraw()));
})();
