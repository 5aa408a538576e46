"use strict";
// The problem: what a CMDP is in numbers, and its rewards against its constraint rewards.

(() => {
  const MOST_NAMED = 8; // constraints with a line of their own
  let chart = null;

  const facts = (problem) => {
    const { sizes, constraints, objective } = problem;
    const list = (values) => values.map((value) => cmdpax.number(value)).join(", ");
    const most = objective.named ? `, ${objective.label}` : "";
    const rows = [
      ["name", problem.name],
      ["states S", cmdpax.count(sizes.num_states)],
      ["actions A", cmdpax.count(sizes.num_actions)],
      ["steps per episode H", cmdpax.count(sizes.horizon)],
      ["constraints I", cmdpax.count(sizes.num_constraints)],
      [`optimal value V*${most}`, cmdpax.number(problem.optimum)],
    ];
    if (sizes.num_constraints) {
      for (const one of constraints.slice(0, MOST_NAMED))
        rows.push([one.label, `${one.sense} ${cmdpax.number(one.bound)}`]);
      if (constraints.length > MOST_NAMED) rows.push(["all bounds", list(problem.thresholds)]);
      rows.push(["optimal multipliers λ*", problem.multipliers.map(priceOf(constraints)).join(", ")]);
      rows.push(["Slater gap Ξ", cmdpax.number(problem.slater_gap)]);
    }
    rows.push(["fingerprint", problem.fingerprint.slice(0, 16)]);
    return rows;
  };

  /** A multiplier with its unit, such as "0.68 EUR per kWh". */
  const priceOf = (constraints) => (value, place) =>
    `${cmdpax.number(value)} ${constraints[place].price}`.trim();

  const showFacts = () => {
    const parts = facts(cmdpax.problem()).flatMap(([name, value]) => [
      cmdpax.element("dt", {}, name),
      cmdpax.element("dd", {}, value),
    ]);
    cmdpax.byId("problem-facts").replaceChildren(...parts);
    cmdpax.byId("problem-name").textContent =
      cmdpax.cmdpIndex() === null ? "The first of the CMDPs:" : "";
  };

  const tracesOf = ({ rewards, objective, constraints }, theme) => {
    const symbols = ["circle", "diamond", "square", "triangle-up"];
    const colours = [theme.accent, theme.unsafe, theme.safe, theme.muted];
    return rewards.u.map((u, i) => ({
      x: u,
      y: rewards.r,
      mode: "markers",
      name: cmdpax.plain(constraints[i].label),
      showlegend: rewards.u.length > 1,
      marker: { symbol: symbols[i % 4], color: colours[i % 4], size: 6, opacity: 0.65 },
      hovertemplate:
        `${objective.named ? cmdpax.plain(objective.label) : "reward"} %{y:.4g}` +
        `<br>${cmdpax.plain(signalName(constraints[i]))} %{x:.4g}<extra></extra>`,
    }));
  };

  /** What a step adds to a constraint. */
  const signalName = ({ named, label, sense }) =>
    named ? label : sense === "at most" ? "cost" : "constraint reward";

  const correlation = (xs, ys) => {
    const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const [mx, my] = [mean(xs), mean(ys)];
    const sum = (f) => xs.reduce((total, x, i) => total + f(x - mx, ys[i] - my), 0);
    const scale = Math.sqrt(sum((x) => x * x) * sum((_, y) => y * y));
    return scale ? sum((x, y) => x * y) / scale : null;
  };

  const describe = ({ rewards, constraints }) => {
    if (!rewards || !rewards.u.length) {
      cmdpax.describe("problem-chart", "There is no picture of rewards for this CMDP.");
      return;
    }
    const found = rewards.u.map((u, i) => [i, correlation(u, rewards.r)]);
    const single = found.length === 1;
    const parts = found.map(([i, value]) =>
      single ? cmdpax.number(value, 2) : `${cmdpax.number(value, 2)} (${constraints[i].name})`,
    );
    const apart = { "at least": "negative", "at most": "positive" };
    const senses = [...new Set(constraints.map(({ sense }) => sense))];
    const where = senses
      .map((sense) => (senses.length > 1 ? `${apart[sense]} with "${sense}"` : apart[sense]))
      .join(", or ");
    const drawn = rewards.r.length < rewards.total ? `${cmdpax.count(rewards.r.length)} of ` : "";
    cmdpax.describe(
      "problem-chart",
      `Each dot is one action in one state at one step: what it earns against what it does for the ` +
        `constraint (${drawn}${cmdpax.count(rewards.total)} dots). Their correlation is ${parts.join(", ")}. ` +
        `Where it is ${where}, earning and being safe pull apart.`,
    );
  };

  const build = async (theme) => {
    const problem = cmdpax.problem();
    describe(problem);
    if (!problem.rewards || !problem.rewards.u.length)
      return { traces: [], layout: { xaxis: { visible: false }, yaxis: { visible: false } } };
    const { constraints, objective } = problem;
    const single = constraints.length === 1 ? signalName(constraints[0]) : "constraints' signals";
    const earned = objective.named ? objective.label : "reward r";
    const layout = {
      xaxis: { title: { text: cmdpax.plain(`${single} per step`) } },
      yaxis: { title: { text: cmdpax.plain(`${earned} per step`) } },
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
