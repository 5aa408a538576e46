"use strict";
// What is looked at: a sweep, one CMDP or all, and the configurations that are drawn.

(() => {
  const listeners = [];

  /** Call a function now and after every change of sweep, CMDP or configurations. */
  cmdpax.onSelection = (listener) => listeners.push(listener);

  const tell = async () => {
    for (const listener of listeners) await cmdpax.attempt(listener);
  };

  const chosen = { sweep: 0, cmdp: null, configurations: new Set() };

  cmdpax.sweep = () => cmdpax.payload.sweeps[chosen.sweep];
  cmdpax.cmdpIndex = () => chosen.cmdp;

  /** The CMDP that single-CMDP pictures show: the chosen one, or the first of all. */
  cmdpax.problem = () => cmdpax.sweep().cmdps[chosen.cmdp ?? 0];

  /** The CMDPs that curves are of: the chosen one, or all. */
  cmdpax.problems = () => (chosen.cmdp === null ? cmdpax.sweep().cmdps : [cmdpax.problem()]);

  /** A word about a constraint or, for null, the objective, if all these CMDPs say the same. */
  cmdpax.wordOf = (place, key, otherwise) => {
    const words = cmdpax
      .problems()
      .map(({ objective, constraints }) => (place === null ? objective : constraints[place])?.[key]);
    return words.every((word) => word && word === words[0]) ? words[0] : otherwise;
  };

  /** The group of a configuration, on the chosen CMDP or on one by its place. */
  cmdpax.groupOf = (configuration, cmdp = chosen.cmdp) =>
    cmdpax.sweep().groups.find((g) => g.configuration === configuration && g.cmdp === cmdp);

  /** The drawn configurations, algorithm by algorithm, with a dash for each of an algorithm. */
  cmdpax.chosenConfigurations = () => {
    const { configurations, algorithms } = cmdpax.sweep();
    const dashes = ["solid", "dash", "dot", "dashdot", "longdash"];
    const seen = algorithms.map(() => 0);
    const counts = algorithms.map(() => 0);
    for (const index of chosen.configurations) counts[configurations[index].algorithm] += 1;
    return [...chosen.configurations]
      .sort((a, b) => configurations[a].algorithm - configurations[b].algorithm || a - b)
      .map((index) => {
        const { algorithm, label } = configurations[index];
        const shade = { place: seen[algorithm]++, count: counts[algorithm] };
        const name = algorithms[algorithm];
        const first = dashes.indexOf(cmdpax.payload.palette.dashes[name]);
        const dash = dashes[(first + shade.place) % dashes.length];
        const steps = cmdpax.sweep().planning.includes(algorithm);
        return { index, algorithm: name, label: `${name}, ${label}`, dash, shade, steps };
      });
  };

  /** Options for a choice of one: every algorithm with its best configuration, or any one. */
  cmdpax.configurationOptions = () => {
    const { algorithms, configurations } = cmdpax.sweep();
    const option = (value, text) => cmdpax.element("option", { value }, text);
    return [
      cmdpax.element(
        "optgroup",
        { label: "algorithms, each with its best configuration" },
        ...algorithms.map((name, index) => option(`algorithm:${index}`, name)),
      ),
      cmdpax.element(
        "optgroup",
        { label: "configurations" },
        ...configurations.map(({ algorithm, label }, index) =>
          option(`configuration:${index}`, `${algorithms[algorithm]}, ${label}`),
        ),
      ),
    ];
  };

  /** The configuration of an option: of an algorithm the best one by a measure. */
  cmdpax.configurationOf = (value, measure = "strong", cmdp = chosen.cmdp) => {
    const [kind, index] = value.split(":");
    return kind === "algorithm" ? cmdpax.best(measure, cmdp)[Number(index)] : Number(index);
  };

  /** A vanilla algorithm and its regularized counterpart, or the first two: options to begin with. */
  cmdpax.firstPair = () => {
    const { algorithms, configurations } = cmdpax.sweep();
    const vanilla = algorithms.findIndex(
      (name) =>
        name.startsWith("vanilla-") && algorithms.includes(name.replace("vanilla-", "regularized-")),
    );
    if (vanilla >= 0) {
      const other = algorithms.indexOf(algorithms[vanilla].replace("vanilla-", "regularized-"));
      return [`algorithm:${vanilla}`, `algorithm:${other}`];
    }
    const second = algorithms.length > 1 ? "algorithm:1" : `configuration:${configurations.length - 1}`;
    return ["algorithm:0", second];
  };

  // ----------------------------------------------------------------------------------- hindsight

  /** The runs of a configuration on the chosen CMDP, or on all: a measure of each. */
  cmdpax.measured = (configuration, measure, cmdp = chosen.cmdp) => {
    const { runs } = cmdpax.sweep();
    return runsOf(runs, configuration)
      .filter((place) => cmdp === null || runs.cmdp[place] === cmdp)
      .map((place) => runs.measures[measure][place]);
  };

  /** Mean and interval of a measure: over the runs on one CMDP, or over the means of the CMDPs. */
  cmdpax.summary = (configuration, measure) => {
    const { runs } = cmdpax.sweep();
    const places = runsOf(runs, configuration);
    const cmdps = new Set(places.map((place) => runs.cmdp[place]));
    if (chosen.cmdp !== null || cmdps.size < 2)
      return cmdpax.interval(cmdpax.measured(configuration, measure));
    const means = [...cmdps].map((cmdp) => {
      const values = cmdpax.measured(configuration, measure, cmdp);
      return cmdpax.interval(values).mean;
    });
    return cmdpax.interval(means);
  };

  const listed = new WeakMap();

  /** Where the runs of a configuration stand. */
  const runsOf = (runs, configuration) => {
    if (!listed.has(runs)) {
      const places = cmdpax.sweep().configurations.map(() => []);
      runs.configuration.forEach((index, place) => places[index].push(place));
      listed.set(runs, places);
    }
    return listed.get(runs)[configuration];
  };
  cmdpax.runsOf = (configuration) => runsOf(cmdpax.sweep().runs, configuration);

  /** Per algorithm the configuration with the smallest mean of a measure; of equals the first id. */
  cmdpax.best = (measure = "strong", cmdp = chosen.cmdp) => {
    const { configurations, algorithms } = cmdpax.sweep();
    const best = algorithms.map(() => ({ index: null, mean: Infinity }));
    configurations.forEach(({ algorithm, id }, index) => {
      const values = cmdpax.measured(index, measure, cmdp);
      const mean = values.length ? cmdpax.interval(values).mean : null;
      const before = best[algorithm];
      const first = mean === before.mean && id < configurations[before.index]?.id;
      if (mean !== null && (mean < before.mean || first)) best[algorithm] = { index, mean };
    });
    return best.map(({ index }) => index);
  };

  /** The same without algorithms for which there is none. */
  const bestOfEach = () => new Set(cmdpax.best().filter((best) => best !== null));

  /** Options for a choice of a measure. */
  cmdpax.measureOptions = () =>
    cmdpax
      .sweep()
      .measures.map(({ name, label }) => cmdpax.element("option", { value: name }, label));

  // ------------------------------------------------------------------------------------ controls

  const fillSweeps = () => {
    const select = cmdpax.byId("sweep");
    cmdpax.payload.sweeps.forEach(({ label }, index) =>
      select.append(cmdpax.element("option", { value: index }, label)),
    );
    select.closest("label").hidden = cmdpax.payload.sweeps.length < 2;
    select.addEventListener("change", () => chooseSweep(Number(select.value)));
  };

  const fillCmdps = () => {
    const select = cmdpax.byId("cmdp");
    const { cmdps, with_curves: listed } = cmdpax.sweep();
    const options = cmdps
      .slice(0, listed)
      .map(({ name }, index) => cmdpax.element("option", { value: index }, name));
    if (cmdps.length > 1) options.unshift(cmdpax.element("option", { value: "" }, allOf(cmdps)));
    select.replaceChildren(...options);
    select.closest("label").hidden = options.length < 2;
    const left = cmdps.length - listed;
    cmdpax.byId("cmdps-left").textContent = left
      ? `${cmdpax.count(left)} more CMDPs are in the means and the table, without curves of their own.`
      : "";
  };

  const allOf = (cmdps) => `all ${cmdps.length} CMDPs (means)`;

  const chooseSweep = async (index) => {
    chosen.sweep = index;
    chosen.cmdp = cmdpax.sweep().with_curves ? 0 : null;
    fillCmdps();
    cmdpax.byId("cmdp").value = chosen.cmdp ?? "";
    chosen.configurations = bestOfEach();
    fillConfigurations();
    await tell();
  };

  const chooseCmdp = async (value) => {
    const before = new Set(cmdpax.best());
    const unchanged = sameMembers(before, chosen.configurations);
    chosen.cmdp = value === "" ? null : Number(value);
    if (unchanged) chosen.configurations = bestOfEach();
    fillConfigurations();
    await tell();
  };

  const sameMembers = (one, other) =>
    one.size === other.size && [...one].every((member) => other.has(member));

  /** A box of check marks per algorithm. */
  const fillConfigurations = () => {
    const best = cmdpax.best();
    const boxes = cmdpax.sweep().algorithms.map((name, algorithm) => {
      const marks = cmdpax
        .sweep()
        .configurations.map(({ algorithm: owner, label }, index) =>
          owner === algorithm ? checkMark(index, label, best[algorithm] === index) : null,
        );
      const swatch = cmdpax.element("span", { class: "swatch", "data-algorithm": name });
      const legend = cmdpax.element("legend", {}, swatch, name);
      return cmdpax.element("fieldset", {}, legend, ...marks.filter((mark) => mark));
    });
    cmdpax.byId("configurations").replaceChildren(...boxes);
    cmdpax.paintSwatches();
  };

  const checkMark = (index, label, isBest) => {
    const box = cmdpax.element("input", { type: "checkbox", value: index });
    box.checked = chosen.configurations.has(index);
    box.addEventListener("change", () => {
      if (box.checked) chosen.configurations.add(index);
      else chosen.configurations.delete(index);
      tell();
    });
    const star = isBest ? cmdpax.element("abbr", { title: "best in hindsight" }, " ★") : "";
    return cmdpax.element("label", {}, box, ` ${label}`, star);
  };

  /** The colours of the algorithms beside their names. */
  cmdpax.paintSwatches = () => {
    const theme = cmdpax.theme();
    for (const swatch of document.querySelectorAll(".swatch"))
      swatch.style.background = theme.algorithm(swatch.dataset.algorithm).color;
  };

  const setAll = (indices) => {
    chosen.configurations = new Set(indices);
    fillConfigurations();
    tell();
  };

  cmdpax.startSelection = () => {
    fillSweeps();
    cmdpax.byId("cmdp").addEventListener("change", (event) => chooseCmdp(event.target.value));
    cmdpax.byId("choose-best").addEventListener("click", () => setAll(bestOfEach()));
    cmdpax.byId("choose-none").addEventListener("click", () => setAll([]));
    return chooseSweep(0);
  };
})();
