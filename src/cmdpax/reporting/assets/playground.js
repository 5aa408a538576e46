"use strict";
// The playground: the paper's minimal example, iterated here by the rules of the library.

(() => {
  const EPISODES = 800;
  const LATE = 200; // "in the end" is about that many episodes
  const NOTHING = 1e-9; // a violation below that is rounding
  const OPTIONS = ["risky", "cautious", "balanced"];
  const SETTINGS = { stepSize: "step-size", regularization: "regularization", margin: "margin" };
  const PRESETS = {
    vanilla: { stepSize: 0.2, regularization: 0, margin: 0 },
    regularized: { stepSize: 0.2, regularization: 0.05, margin: 0 },
    margin: { stepSize: 0.2, regularization: 0.05, margin: 0.07 },
  };

  // ------------------------------------------------------------------------------------ iteration

  const dot = (one, other) => one.reduce((sum, number, place) => sum + number * other[place], 0);

  const logSoftmax = (numbers) => {
    const largest = Math.max(...numbers);
    const total = numbers.reduce((sum, number) => sum + Math.exp(number - largest), 0);
    return numbers.map((number) => number - largest - Math.log(total));
  };

  /** π_{k+1} ∝ π_k exp(η (r + λ_k u − τ log π_k)), as log π. */
  const mirrorAscent = (problem, settings, logPolicy, multiplier) => {
    const { stepSize, regularization } = settings;
    const ascended = logPolicy.map((number, option) => {
      const plain = problem.rewards[option] + multiplier * problem.constraint_rewards[option];
      return number + stepSize * (plain - regularization * number);
    });
    return logSoftmax(ascended);
  };

  /** λ_{k+1} = clip((1 − ητ) λ_k − η (V_u − (c + margin))). */
  const dualDescent = (problem, settings, multiplier, constraintValue) => {
    const { stepSize, regularization, margin } = settings;
    const slack = constraintValue - (problem.threshold + margin);
    const moved = (1 - stepSize * regularization) * multiplier - stepSize * slack;
    return Math.min(Math.max(moved, 0), problem.max_multiplier);
  };

  const runningSum = (numbers) => {
    let sum = 0;
    return numbers.map((number) => (sum += number));
  };

  const positive = (numbers) => numbers.map((number) => Math.max(number, 0));
  const negative = (numbers) => numbers.map((number) => Math.min(number, 0));

  /** Losses against the true threshold and optimum, whatever margin the learner keeps. */
  const accounts = (problem, value, constraintValue) => {
    const violation = constraintValue.map((number) => problem.threshold - number);
    const suboptimality = value.map((number) => problem.optimum - number);
    return {
      violation,
      suboptimality,
      strongConstraint: runningSum(positive(violation)),
      weakConstraint: runningSum(violation),
      strongObjective: runningSum(positive(suboptimality)),
      weakObjective: runningSum(suboptimality),
    };
  };

  /** The primal-dual scheme from the uniform policy and λ_1 = 0; both lines use π_k and λ_k. */
  const simulate = (problem, settings) => {
    const numbers = () => new Float64Array(settings.iterations);
    const [value, constraintValue, multipliers] = [numbers(), numbers(), numbers()];
    let logPolicy = problem.rewards.map(() => -Math.log(problem.rewards.length));
    let multiplier = 0;
    for (let k = 0; k < settings.iterations; k += 1) {
      const policy = logPolicy.map(Math.exp);
      value[k] = dot(policy, problem.rewards);
      constraintValue[k] = dot(policy, problem.constraint_rewards);
      multipliers[k] = multiplier;
      logPolicy = mirrorAscent(problem, settings, logPolicy, multiplier);
      multiplier = dualDescent(problem, settings, multiplier, constraintValue[k]);
    }
    const losses = accounts(problem, value, constraintValue);
    return { value, constraintValue, multiplier: multipliers, ...losses };
  };

  // ---------------------------------------------------------------------------------------- words

  const last = (numbers) => numbers[numbers.length - 1];
  const total = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
  const average = (numbers) => total(numbers) / numbers.length;
  const extremes = (numbers) => [Math.min(...numbers), Math.max(...numbers)];

  /** Rounded first, so that nothing is written as "−0". */
  const written = (number, decimals) =>
    number.toFixed(decimals).replace(/^-(?=[0.]*$)/, "").replace("-", "−");

  const inAll = (number) => written(number, 1);
  const small = (number) => written(number, 3);

  /** What a run comes to: the two sides of the account, and how it ends. */
  const outcome = (run) => {
    const late = run.violation.subarray(-LATE);
    const [low, high] = extremes(late);
    let lastUnsafe = run.violation.length;
    while (lastUnsafe > 0 && run.violation[lastUnsafe - 1] <= NOTHING) lastUnsafe -= 1;
    return {
      episodes: run.violation.length,
      numUnsafe: run.violation.filter((number) => number > NOTHING).length,
      unsafe: last(run.strongConstraint),
      overSafe: -total(negative(run.violation)),
      weak: last(run.weakConstraint),
      lastUnsafe,
      settled: high - low < 0.02,
      end: average(late),
      loss: average(run.suboptimality.subarray(-LATE)),
    };
  };

  /** The account in words; the weak regret deceives where its two sides are alike. */
  const summary = (found) => {
    const hidden = found.weak < found.unsafe / 4;
    return (
      `In ${found.episodes} episodes ${found.numUnsafe} were unsafe, by ${inAll(found.unsafe)} ` +
      "in all (strong regret). The others were safer than needed, by " +
      `${inAll(found.overSafe)} in all. Added up with signs that leaves ` +
      `${inAll(found.weak)} (weak regret)` +
      (hidden ? ": the errors cancel, and the account hides the unsafe episodes." : ".")
    );
  };

  /** What there is to learn from a run. */
  const lesson = (found, { regularization, margin }) => {
    if (regularization === 0)
      return margin === 0
        ? "Nothing damps the swing: choice and price keep chasing each other."
        : "The margin moves the swing towards the safe side, but nothing damps it.";
    if (!found.settled)
      return "Regularization damps the swing, slowly here: a larger τ or η settles it sooner.";
    const needed = margin > 0 ? "A larger margin makes up for that." : "A margin of about τ makes up for that.";
    if (found.end > 0.001)
      return (
        `Regularization damps the swing: it settles, but ${small(found.end)} on the unsafe side, ` +
        `and the strong regret keeps growing. ${needed}`
      );
    if (found.lastUnsafe > found.episodes - LATE)
      return (
        "Regularization damps the swing, and it settles almost on the threshold: single episodes " +
        `are still unsafe, by a little. ${needed}`
      );
    const stop = found.lastUnsafe < found.episodes ? ` after episode ${found.lastUnsafe}` : "";
    return (
      "Regularization damps the swing, the margin makes up for its bias: the strong regret stops " +
      `growing${stop}. The price: ${small(Math.max(0, found.loss))} of reward per episode.`
    );
  };

  /** The text alternatives of the charts. */
  const captions = (run, found, problem, account) => {
    const late = (numbers) => extremes(numbers.subarray(-LATE));
    const [strong, weak] = [run[`strong${account}`], run[`weak${account}`]];
    const [low, high] = late(run.multiplier).map((number) => written(number, 2));
    const [least, most] = extremes(run.constraintValue).map((number) => written(number, 2));
    const subject = account === "Constraint" ? "unsafe" : "suboptimal";
    return {
      violation:
        `Striped, above 0: unsafe by ${inAll(found.unsafe)} in all. ` +
        `Plain, below 0: safer than needed by ${inAll(found.overSafe)} in all.`,
      regret:
        `After ${found.episodes} episodes: strong regret ${inAll(last(strong))}, of the ` +
        `${subject} episodes alone; weak regret ${inAll(last(weak))}, with signs.`,
      multiplier:
        `In the last ${LATE} episodes λ is between ${low} and ${high}; ` +
        `at the optimum it is ${written(problem.multiplier, 2)}.`,
      plane:
        `Single episodes have constraint values from ${least} to ${most}, the average of all is ` +
        `${written(average(run.constraintValue), 2)} (needed: ${written(problem.threshold, 2)}).`,
    };
  };

  // --------------------------------------------------------------------------------------- charts

  /** Nothing to drag: on a phone a finger on the chart scrolls the page. */
  const layout = (xaxis, yaxis, more = {}) => ({
    xaxis: { fixedrange: true, ...xaxis, title: { text: xaxis.title } },
    yaxis: { fixedrange: true, ...yaxis, title: { text: yaxis.title } },
    dragmode: false,
    hovermode: "x",
    showlegend: false,
    ...more,
  });

  const episodeAxis = (run) => ({ title: "episode", range: [0, run.violation.length] });

  const curve = (y, name, line, more = {}) => ({
    y,
    x0: 1,
    name,
    mode: "lines",
    line,
    hovertemplate: "%{y:.3f}",
    ...more,
  });

  const violationChart = (run, theme) => {
    const { ink, unsafe, safe } = theme;
    const quiet = { fill: "tozeroy", hoverinfo: "skip", hovertemplate: null };
    const stripes = { shape: "/", size: 6, solidity: 0.45, fgcolor: unsafe };
    return {
      traces: [
        curve(positive(run.violation), "unsafe", { width: 0, color: unsafe }, {
          ...quiet,
          fillpattern: { ...stripes, bgcolor: cmdpax.faded(unsafe, 0.25) },
        }),
        curve(negative(run.violation), "safer than needed", { width: 0, color: safe }, {
          ...quiet,
          fillcolor: cmdpax.faded(safe, 0.45),
        }),
        curve(run.violation, "violation", { width: 1, color: ink }),
      ],
      layout: layout(episodeAxis(run), {
        title: "violation per episode",
        range: [-0.4, 0.4],
        zerolinecolor: ink,
      }),
    };
  };

  const regretChart = (run, theme, account) => {
    const [strong, weak] = [run[`strong${account}`], run[`weak${account}`]];
    return {
      traces: [
        curve(strong, "strong", { width: 2.5, color: theme.unsafe }),
        curve(weak, "weak", { width: 2.5, color: theme.ink, dash: "dash" }),
      ],
      // The three presets on one scale; settings beyond it widen it.
      layout: layout(episodeAxis(run), {
        title: "regret, cumulative",
        range: [Math.min(-15, 1.1 * extremes(weak)[0]), Math.max(90, 1.1 * last(strong))],
      }),
    };
  };

  const multiplierChart = (run, theme, problem) => {
    const best = run.multiplier.map(() => problem.multiplier);
    return {
      traces: [
        curve(run.multiplier, "λ", { width: 2, color: theme.accent }),
        curve(best, "λ*", { width: 2.5, color: theme.optimum, dash: "dot" }),
      ],
      layout: layout(episodeAxis(run), { title: "multiplier λ", range: [0, 2.4] }),
    };
  };

  /** A path that fades into the past: pieces, since a line has one colour. */
  const pathTraces = (x, y, color, width, pieces = 6) => {
    const edge = (piece) => Math.floor((piece * (x.length - 1)) / pieces);
    return Array.from({ length: pieces }, (_, piece) => {
      const [from, to] = [edge(piece), edge(piece + 1) + 1];
      const faded = cmdpax.faded(color, 0.25 + (0.75 * piece) / (pieces - 1));
      const quiet = { x: x.subarray(from, to), hoverinfo: "skip", hovertemplate: null };
      return curve(y.subarray(from, to), "path", { width, color: faded }, quiet);
    });
  };

  /** Optimum, average and last episode. */
  const pointsTrace = (run, theme, problem, against, best) => ({
    x: [problem.threshold, average(run.constraintValue), last(run.constraintValue)],
    y: [best, average(run[against]), last(run[against])],
    text: ["optimum", "average of all episodes", "last episode"],
    mode: "markers",
    marker: {
      symbol: ["star", "diamond-open", "circle"],
      color: [theme.optimum, theme.ink, theme.accent],
      size: [13, 13, 10],
      opacity: 1,
      line: { width: [0, 2, 0] },
    },
    hovertemplate: "%{text}<br>(%{x:.3f}, %{y:.3f})<extra></extra>",
  });

  /** The options, and between them everything that a policy can reach. */
  const optionsTrace = (problem, theme) => ({
    x: [...problem.constraint_rewards, problem.constraint_rewards[0]],
    y: [...problem.rewards, problem.rewards[0]],
    text: OPTIONS,
    mode: "lines+markers+text",
    textposition: ["top right", "bottom center", "top right"],
    line: { width: 1, color: theme.muted },
    marker: { size: 7, color: theme.muted },
    hoverinfo: "skip",
  });

  /** The unsafe side of the threshold, in colour and in words. */
  const sides = ({ threshold }, theme) => {
    const word = (text, xanchor, xshift) => {
      const place = { x: threshold, xanchor, xshift, yref: "paper", y: 1, yanchor: "top" };
      return { text, ...place, showarrow: false, font: { color: theme.muted } };
    };
    const side = { type: "rect", yref: "paper", x0: 0, x1: threshold, y0: 0, y1: 1 };
    const fillcolor = cmdpax.faded(theme.unsafe, 0.12);
    return {
      shapes: [{ ...side, fillcolor, line: { width: 0 }, layer: "below" }],
      annotations: [word("unsafe", "right", -4), word("safe", "left", 4)],
    };
  };

  const planeChart = (run, theme, problem, against) => {
    const isValue = against === "value";
    const vertical = isValue
      ? { title: "reward", range: [0, 1.15] }
      : { title: "multiplier λ", range: [-0.1, 2.5] };
    const best = isValue ? problem.optimum : problem.multiplier;
    return {
      traces: [
        ...(isValue ? [optionsTrace(problem, theme)] : []),
        ...pathTraces(run.constraintValue, run[against], theme.accent, isValue ? 6 : 1.6),
        pointsTrace(run, theme, problem, against, best),
      ],
      layout: layout({ title: "constraint value", range: [0, 1] }, vertical, {
        hovermode: "closest",
        ...sides(problem, theme),
      }),
    };
  };

  // ------------------------------------------------------------------------------------- controls

  const control = (id) => cmdpax.byId(`playground-${id}`);
  const account = () => (control("account").value === "objective" ? "Objective" : "Constraint");

  const chosen = () => {
    const entries = Object.entries(SETTINGS).map(([name, id]) => [name, Number(control(id).value)]);
    return { ...Object.fromEntries(entries), iterations: EPISODES };
  };

  const buttons = () => document.querySelectorAll("#playground [data-preset]");

  /** Values beside their sliders, and which button they belong to. */
  const showSettings = (settings) => {
    for (const [name, id] of Object.entries(SETTINGS))
      control(`${id}-value`).textContent = settings[name].toFixed(name === "stepSize" ? 2 : 3);
    for (const button of buttons()) {
      const preset = PRESETS[button.dataset.preset];
      const same = Object.keys(SETTINGS).every((name) => preset[name] === settings[name]);
      button.setAttribute("aria-pressed", same);
    }
  };

  const showWords = (run, settings, problem) => {
    const found = outcome(run);
    control("unsafe").textContent = inAll(found.unsafe);
    control("safe").textContent = inAll(found.overSafe);
    control("left").textContent = inAll(found.weak);
    control("lesson").textContent = lesson(found, settings);
    control("summary").textContent = summary(found);
    for (const [name, sentence] of Object.entries(captions(run, found, problem, account())))
      cmdpax.describe(`playground-${name}`, sentence);
  };

  /** At most once per frame, however fast a slider moves. */
  const oncePerFrame = (action) => {
    let asked = false;
    return () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        action();
      });
    };
  };

  const setPreset = (name) => {
    for (const [setting, id] of Object.entries(SETTINGS))
      control(id).value = PRESETS[name][setting];
  };

  const start = () => {
    const problem = cmdpax.payload.playground;
    let run = null;
    const charts = [
      ["violation", (theme) => violationChart(run, theme)],
      ["regret", (theme) => regretChart(run, theme, account())],
      ["multiplier", (theme) => multiplierChart(run, theme, problem)],
      ["plane", (theme) => planeChart(run, theme, problem, control("against").value)],
    ].map(([id, build]) => cmdpax.chart(control(id), build));
    const update = () => {
      const settings = chosen();
      run = simulate(problem, settings);
      showSettings(settings);
      showWords(run, settings, problem);
      return Promise.all(charts.map((chart) => chart.redraw()));
    };
    const updateSoon = oncePerFrame(update);
    for (const button of buttons())
      button.addEventListener("click", () => {
        setPreset(button.dataset.preset);
        updateSoon();
      });
    cmdpax.byId("playground").addEventListener("input", updateSoon);
    update();
  };

  cmdpax.playground = { simulate, start };
})();
