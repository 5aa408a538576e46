"use strict";
// The table of configurations: sorted by any column, filtered by words.

(() => {
  const SHOWN_AT_ONCE = 200;
  let order = { column: "strong", descending: false };
  let everything = false;

  const valueOf = (row, name) =>
    (name === "algorithm" || name === "optimism" ? row[name] : row.parameters[name]) ?? null;

  /** A parameter's column is shown if those who have it differ; η and τ always, if any has them. */
  const parameterColumns = () => {
    const { configurations, parameters } = cmdpax.sweep();
    const known = [["algorithm", "algorithm"], ...parameters, ["optimism", "optimism"]];
    const values = (name) => configurations.map((one) => valueOf(one, name));
    const different = (name) => new Set(values(name).filter((value) => value !== null)).size;
    const always = new Set(["algorithm", "step_size", "regularization"]);
    return known.filter(([name]) => different(name) > (always.has(name) ? 0 : 1));
  };

  const measureColumns = () => {
    const all = cmdpax.byId("table-all").checked;
    const few = new Set([
      ...["strong", "strong_objective", "strong_constraints", "weak_objective", "weak_constraints"],
      ...["last_violation", "last_suboptimality", "violation_std", "plans"],
    ]);
    return cmdpax.sweep().measures.filter(({ name }) => all || few.has(name));
  };

  const rowsNow = () => {
    const { configurations, algorithms, measures } = cmdpax.sweep();
    return configurations
      .map((configuration, index) => {
        const runs = cmdpax.measured(index, "strong").length;
        const found = Object.fromEntries(
          measures.map(({ name }) => [name, cmdpax.summary(index, name)]),
        );
        const algorithm = algorithms[configuration.algorithm];
        return { ...configuration, index, algorithm, runs, found };
      })
      .filter((row) => row.runs);
  };

  const keyOf = (row, column) => {
    if (row.found[column]) return row.found[column].mean;
    if (column === "runs") return row.runs;
    const value = valueOf(row, column);
    if (value === null) return null;
    const number = parseFloat(value);
    return column === "algorithm" || Number.isNaN(number) ? String(value) : number;
  };

  /** Nothing comes last, whichever way one sorts. */
  const compare = (one, other) => {
    const [a, b] = [keyOf(one, order.column), keyOf(other, order.column)];
    if (a === null || b === null) return (a === null) - (b === null);
    const sign = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(b);
    return (order.descending ? -sign : sign) || one.index - other.index;
  };

  const matches = (row, words) => {
    const text = [row.algorithm, row.label, row.id].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };

  // ---------------------------------------------------------------------------------------- cells

  const header = (name, label) => {
    const arrow = order.column === name ? (order.descending ? " ↓" : " ↑") : "";
    const button = cmdpax.element("button", { type: "button" }, label + arrow);
    button.addEventListener("click", () => {
      order = { column: name, descending: order.column === name && !order.descending };
      draw().then(() => refocus(name));
    });
    const sorted = order.descending ? "descending" : "ascending";
    const state = order.column === name ? sorted : "none";
    const kind = name === "runs" || cmdpax.sweep().measures.some((one) => one.name === name);
    const attributes = { scope: "col", "aria-sort": state, "data-column": name };
    return cmdpax.element("th", { ...attributes, class: kind ? "number" : null }, button);
  };

  const refocus = (name) => {
    const heads = [...document.querySelectorAll("#table thead th")];
    heads.find((head) => head.dataset.column === name)?.querySelector("button").focus();
  };

  const bodyRow = (row, parameters, measures, best) => {
    const isBest = best.includes(row.index);
    const swatch = cmdpax.element("span", { class: "swatch", "data-algorithm": row.algorithm });
    const star = isBest ? cmdpax.element("abbr", { title: "best of its algorithm" }, "★") : "";
    const cells = parameters.map(([name]) =>
      name === "algorithm"
        ? cmdpax.element("th", { scope: "row" }, swatch, row.algorithm, " ", star)
        : cmdpax.element("td", {}, valueOf(row, name) ?? "–"),
    );
    const numbers = measures.map(({ name }) =>
      cmdpax.element("td", { class: "number" }, cmdpax.spread(row.found[name])),
    );
    const runs = cmdpax.element("td", { class: "number" }, cmdpax.count(row.runs));
    const attributes = { class: isBest ? "best" : null, "data-configuration": row.id };
    return cmdpax.element("tr", attributes, ...cells, runs, ...numbers);
  };

  const draw = async () => {
    const words = cmdpax.byId("table-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const [parameters, measures] = [parameterColumns(), measureColumns()];
    const best = cmdpax.best(cmdpax.byId("table-best").value);
    const all = rowsNow();
    const kept = all.filter((row) => matches(row, words)).sort(compare);
    const shown = everything ? kept : kept.slice(0, SHOWN_AT_ONCE);
    const heads = [
      ...parameters.map(([name, label]) => header(name, label)),
      header("runs", "runs"),
      ...measures.map(({ name, label }) => header(name, label)),
    ];
    document.querySelector("#table thead tr").replaceChildren(...heads);
    const body = shown.map((row) => bodyRow(row, parameters, measures, best));
    document.querySelector("#table tbody").replaceChildren(...body);
    const where = cmdpax.cmdpIndex() === null ? "over all CMDPs" : `on ${cmdpax.problem().name}`;
    const left = kept.length - shown.length;
    cmdpax.byId("table-more").hidden = !left;
    cmdpax.byId("table-status").textContent =
      `${cmdpax.count(shown.length)} of ${cmdpax.count(all.length)} configurations, means ${where}. ` +
      `★: the best of its algorithm in hindsight, by ${nameOfBest()}.`;
    cmdpax.paintSwatches();
  };

  const nameOfBest = () => cmdpax.byId("table-best").selectedOptions[0].textContent;

  const fillBest = () => {
    const select = cmdpax.byId("table-best");
    const before = select.value || "strong";
    select.replaceChildren(...cmdpax.measureOptions());
    select.value = cmdpax.sweep().measures.some(({ name }) => name === before) ? before : "strong";
  };

  cmdpax.startTable = () => {
    for (const [id, event] of Object.entries({ filter: "input", best: "change", all: "change" }))
      cmdpax.byId(`table-${id}`).addEventListener(event, draw);
    cmdpax.byId("table-more").addEventListener("click", () => {
      everything = true;
      draw();
    });
    cmdpax.onSelection(() => {
      fillBest();
      return draw();
    });
  };
})();
