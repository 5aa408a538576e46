"use strict";
// The problem: what a CMDP is in numbers, and its rewards against its constraint rewards.

(() => {
  let chart = null;

  const facts = (problem) => {
    const { sizes } = problem;
    const list = (values) => values.map((value) => cmdpax.number(value)).join(", ");
    const rows = [
      ["name", problem.name],
      ["states S", cmdpax.count(sizes.num_states)],
      ["actions A", cmdpax.count(sizes.num_actions)],
      ["steps per episode H", cmdpax.count(sizes.horizon)],
      ["constraints I", cmdpax.count(sizes.num_constraints)],
      ["optimal value V*", cmdpax.number(problem.optimum)],
    ];
    if (sizes.num_constraints) {
      rows.push(["thresholds c", list(problem.thresholds)]);
      rows.push(["optimal multipliers λ*", list(problem.multipliers)]);
      rows.push(["Slater gap Ξ", cmdpax.number(problem.slater_gap)]);
    }
    rows.push(["fingerprint", problem.fingerprint.slice(0, 16)]);
    return rows;
  };

  const showFacts = () => {
    const parts = facts(cmdpax.problem()).flatMap(([name, value]) => [
      cmdpax.element("dt", {}, name),
      cmdpax.element("dd", {}, value),
    ]);
    cmdpax.byId("problem-facts").replaceChildren(...parts);
    cmdpax.byId("problem-name").textContent =
      cmdpax.cmdpIndex() === null ? "The first of the CMDPs:" : "";
  };

  const tracesOf = ({ rewards }, theme) => {
    const symbols = ["circle", "diamond", "square", "triangle-up"];
    const colours = [theme.accent, theme.unsafe, theme.safe, theme.muted];
    return rewards.u.map((u, i) => ({
      x: u,
      y: rewards.r,
      mode: "markers",
      name: `constraint ${i}`,
      showlegend: rewards.u.length > 1,
      marker: { symbol: symbols[i % 4], color: colours[i % 4], size: 6, opacity: 0.65 },
      hovertemplate: "reward %{y:.4g}<br>constraint reward %{x:.4g}<extra></extra>",
    }));
  };

  const correlation = (xs, ys) => {
    const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const [mx, my] = [mean(xs), mean(ys)];
    const sum = (f) => xs.reduce((total, x, i) => total + f(x - mx, ys[i] - my), 0);
    const scale = Math.sqrt(sum((x) => x * x) * sum((_, y) => y * y));
    return scale ? sum((x, y) => x * y) / scale : null;
  };

  const describe = ({ rewards }) => {
    if (!rewards || !rewards.u.length) {
      cmdpax.describe("problem-chart", "There is no picture of rewards for this CMDP.");
      return;
    }
    const found = rewards.u.map((u, i) => [i, correlation(u, rewards.r)]);
    const single = found.length === 1;
    const parts = found.map(([i, value]) =>
      single ? cmdpax.number(value, 2) : `${cmdpax.number(value, 2)} (constraint ${i})`,
    );
    const drawn = rewards.r.length < rewards.total ? `${cmdpax.count(rewards.r.length)} of ` : "";
    cmdpax.describe(
      "problem-chart",
      `Each dot is one action in one state at one step: what it earns against what it does for the ` +
        `constraint (${drawn}${cmdpax.count(rewards.total)} dots). Their correlation is ${parts.join(", ")}. ` +
        "Where it is negative, earning and being safe pull apart.",
    );
  };

  const build = async (theme) => {
    const problem = cmdpax.problem();
    describe(problem);
    if (!problem.rewards || !problem.rewards.u.length)
      return { traces: [], layout: { xaxis: { visible: false }, yaxis: { visible: false } } };
    const layout = {
      xaxis: { title: { text: "constraint reward u per step" } },
      yaxis: { title: { text: "reward r per step" } },
      hovermode: "closest",
    };
    return { traces: tracesOf(problem, theme), layout };
  };

  cmdpax.startProblem = () => {
    chart = cmdpax.chart(cmdpax.byId("problem-chart"), build);
    cmdpax.onSelection(() => {
      showFacts();
      return chart.redraw();
    });
  };
})();
