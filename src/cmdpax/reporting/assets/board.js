"use strict";
// The board: what is chosen, the numbers that follow, the leaderboard and its cells.

(() => {
  const { blocks, algorithms, cells, measures } = cmdpax.payload;
  const PER_EPISODE = new Set(["unsafe", "last"]);
  const ALL = "all";
  let order = { column: "ratio", descending: false };
  cmdpax.open = { block: 0, algorithm: null };

  const value = (id) => cmdpax.byId(id).value;
  const cellOf = (algorithm, block) => cells[value("setting")][algorithm][block];

  /** Places of the learners and blocks that are chosen now. */
  cmdpax.chosen = () => {
    const words = value("words").toLowerCase().split(/\s+/).filter(Boolean);
    const without = [...document.querySelectorAll("[data-trait]:checked")].map((box) => box.dataset.trait);
    const learners = algorithms.flatMap((one, place) =>
      (!words.length || words.some((word) => one.name.toLowerCase().includes(word))) &&
      !without.some((trait) => one[trait])
        ? [place]
        : [],
    );
    const places = blocks.flatMap((one, place) =>
      [ALL, one.part].includes(value("part")) && [ALL, one.family].includes(value("family")) ? [place] : [],
    );
    return { learners, places };
  };

  /** An account in a cell: null where there is none, infinite for a failure. */
  const account = (cell, by) =>
    cell.state === "failed" ? Infinity : cell.state === "done" ? (cell.means[by] ?? null) : null;

  /** Accounts over the best of each block, by block and learner. */
  cmdpax.ratios = ({ learners, places }, by = value("by")) =>
    places.map((block) => {
      const floor = PER_EPISODE.has(by) ? 1 : blocks[block].num_episodes;
      const least = by === "seconds" ? 0 : cmdpax.payload.least * floor;
      const found = learners.map((one) => {
        const number = account(cellOf(one, block), by);
        return number === null ? null : Math.max(number, 0) + least;
      });
      const best = Math.min(...found.filter((one) => one !== null));
      return found.map((one) => (one === null || one === Infinity ? one : one === best ? 1 : one / best));
    });

  /** Ranks in a row from 1 on; equal numbers share the mean of their ranks. */
  cmdpax.ranks = (row) =>
    row.map((one) => {
      const below = row.filter((other) => other < one).length;
      return below + (row.filter((other) => other === one).length + 1) / 2;
    });

  const mean = (numbers) =>
    numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : null;

  /** The blocks that all chosen learners have. */
  cmdpax.common = (ratios) => ratios.flatMap((row, place) => (row.includes(null) ? [] : [place]));

  const summarise = (chosen, ratios) => {
    const common = cmdpax.common(ratios).map((place) => cmdpax.ranks(ratios[place]));
    return chosen.learners.map((learner, place) => {
      const own = ratios.map((row) => row[place]).filter((one) => one !== null);
      const found = chosen.places.map((block) => [cellOf(learner, block), blocks[block]]);
      const average = (name, perEpisode) =>
        mean(
          found.flatMap(([cell, block]) =>
            name in cell.means ? [cell.means[name] / (perEpisode ? block.num_episodes : 1)] : [],
          ),
        );
      const count = (state) => found.filter(([cell]) => cell.state === state).length;
      return {
        learner,
        name: algorithms[learner].name,
        ratio: own.length ? Math.exp(mean(own.map(Math.log))) : null,
        worst: own.length ? Math.max(...own) : null,
        rank: mean(common.map((row) => row[place])),
        unsafe: average("unsafe"),
        objective: average("strong_objective", true),
        constraints: average("strong_constraints", true),
        weak: average("weak", true),
        last: average("last"),
        seconds: average("seconds"),
        done: count("done"),
        failed: count("failed"),
        skipped: count("skipped"),
        missing: count("missing"),
      };
    });
  };

  // ---------------------------------------------------------------------------------- leaderboard

  const COLUMNS = {
    name: "learner",
    ratio: "over the best",
    worst: "worst block",
    rank: "mean rank",
    unsafe: "unsafe episodes",
    objective: "strong objective /K",
    constraints: "strong violation /K",
    weak: "weak, sum /K",
    last: "last policy",
    seconds: "seconds per episode",
    done: "blocks",
  };

  const compare = (one, other) => {
    const [a, b] = [one[order.column], other[order.column]];
    if (a === null || b === null) return (a === null) - (b === null) || one.learner - other.learner;
    const sign = typeof a === "number" ? (a === b ? 0 : a - b) : a.localeCompare(b);
    return (order.descending ? -sign : sign) || one.learner - other.learner;
  };

  const head = (name) => {
    const arrow = order.column === name ? (order.descending ? " ↓" : " ↑") : "";
    const button = cmdpax.element("button", { type: "button" }, COLUMNS[name] + arrow);
    button.addEventListener("click", () => {
      order = { column: name, descending: order.column === name && !order.descending };
      drawLeaderboard();
      document.querySelector(`#leaderboard th[data-column=${name}] button`).focus();
    });
    const state = order.column === name ? (order.descending ? "descending" : "ascending") : "none";
    return cmdpax.element("th", { scope: "col", "data-column": name, "aria-sort": state }, button);
  };

  const counted = (row) =>
    [
      String(row.done),
      ...[["failed", "failed"], ["skipped", "cannot"], ["missing", "not run"]]
        .filter(([state]) => row[state])
        .map(([state, word]) => `${row[state]} ${word}`),
    ].join(", ");

  const written = (row, name) => {
    if (name === "done") return counted(row);
    if (name === "unsafe" && row.unsafe !== null) return `${cmdpax.number(100 * row.unsafe, 2)} %`;
    return cmdpax.number(row[name], 3);
  };

  const line = (row) => {
    const swatch = cmdpax.element("span", { class: "swatch", "data-algorithm": row.name });
    const numbers = Object.keys(COLUMNS).slice(1).map((name) =>
      cmdpax.element("td", { class: "number", "data-column": name }, written(row, name)),
    );
    const attributes = { "data-learner": row.name, class: row.ratio === 1 ? "first" : null };
    return cmdpax.element("tr", attributes, cmdpax.element("th", { scope: "row" }, swatch, row.name), ...numbers);
  };

  const drawLeaderboard = () => {
    const chosen = cmdpax.chosen();
    const ratios = cmdpax.ratios(chosen);
    const rows = summarise(chosen, ratios).sort(compare);
    const common = cmdpax.common(ratios).length;
    const [count, q] = [rows.length, cmdpax.payload.critical[rows.length]];
    const difference = q && common > 1 ? q * Math.sqrt((count * (count + 1)) / (6 * common)) : null;
    document.querySelector("#leaderboard thead tr").replaceChildren(...Object.keys(COLUMNS).map(head));
    document.querySelector("#leaderboard tbody").replaceChildren(...rows.map(line));
    const ranked = difference === null
      ? `Ranks are over ${common} of these blocks, those that all have: too few for a test.`
      : `Ranks are over ${common} of these blocks, those that all have; the critical difference is ${cmdpax.number(difference, 3)}.`;
    const status = cmdpax.byId("leaderboard-status");
    status.textContent = `${count} learners, ${chosen.places.length} blocks, by ${measures[value("by")]}. ${ranked}`;
    cmdpax.paintSwatches();
  };

  // ---------------------------------------------------------------------------------------- cells

  const face = (ratio, cell) =>
    ({ failed: "✗", skipped: "–", missing: "" })[cell.state] ?? cmdpax.number(ratio, 3);

  /** The mean of a cell with its interval, or why there is none. */
  const told = (cell, by = value("by")) => {
    if (cell.state !== "done") return cell.reason || "not run";
    const spread = cmdpax.spread({ mean: cell.means[by] ?? null, half: cell.halves[by] ?? null });
    return `${spread}, ${cell.runs} runs, ${cell.configuration}`;
  };

  cmdpax.told = told;

  const drawCells = () => {
    const chosen = cmdpax.chosen();
    const ratios = cmdpax.ratios(chosen);
    const heads = chosen.places.map((block) =>
      cmdpax.element("th", { scope: "col" }, `${blocks[block].family}, ${blocks[block].part}`),
    );
    const first = cmdpax.element("th", { scope: "col" }, "learner");
    document.querySelector("#cells thead").replaceChildren(cmdpax.element("tr", {}, first, ...heads));
    const body = chosen.learners.map((learner, place) => {
      const { name } = algorithms[learner];
      const found = chosen.places.map((block, row) => {
        const cell = cellOf(learner, block);
        const button = cmdpax.element("button", { type: "button", title: told(cell) }, face(ratios[row][place], cell));
        button.disabled = cell.state !== "done";
        button.addEventListener("click", () => openCell(block, name));
        const selected = cmdpax.open.block === block && cmdpax.open.algorithm === name;
        const attributes = {
          "data-block": block,
          "data-best": String(ratios[row][place] === 1),
          "aria-selected": String(selected),
        };
        return cmdpax.element("td", attributes, button);
      });
      const row = cmdpax.element("th", { scope: "row" }, name);
      return cmdpax.element("tr", { "data-learner": name }, row, ...found);
    });
    document.querySelector("#cells tbody").replaceChildren(...body);
  };

  const openCell = (block, algorithm) => {
    cmdpax.open = { block, algorithm };
    cmdpax.byId("curves-block").value = block;
    drawCells();
    cmdpax.byId("curves").scrollIntoView();
    cmdpax.drawBoardCharts();
  };

  // ---------------------------------------------------------------------------------------- start

  cmdpax.paintSwatches = () => {
    const theme = cmdpax.theme();
    for (const swatch of document.querySelectorAll("#leaderboard .swatch"))
      swatch.style.background = theme.algorithm(swatch.dataset.algorithm).color;
  };

  const draw = () => {
    drawLeaderboard();
    drawCells();
    return cmdpax.drawBoardCharts();
  };

  const options = (names, all) => [
    ...(all ? [cmdpax.element("option", { value: ALL }, all)] : []),
    ...names.map(([key, text]) => cmdpax.element("option", { value: key }, text)),
  ];

  cmdpax.startParts = () => {
    const names = (key) => [...new Set(blocks.map((block) => block[key]))].map((name) => [name, name]);
    cmdpax.byId("part").replaceChildren(...options(names("part"), "all"));
    cmdpax.byId("family").replaceChildren(...options(names("family"), "all"));
    const listed = blocks.map((block, place) => [place, `${block.family}, ${block.part}`]);
    cmdpax.byId("curves-block").replaceChildren(...options(listed));
    for (const id of ["by", "setting", "part", "family"]) cmdpax.byId(id).addEventListener("change", draw);
    for (const box of document.querySelectorAll("[data-trait]")) box.addEventListener("change", draw);
    cmdpax.byId("words").addEventListener("input", draw);
    cmdpax.byId("curves-block").addEventListener("change", () => {
      cmdpax.open = { block: Number(value("curves-block")), algorithm: null };
      drawCells();
      cmdpax.drawBoardCharts();
    });
    for (const id of ["curves-account", "curves-log"])
      cmdpax.byId(id).addEventListener("change", () => cmdpax.drawBoardCharts());
    cmdpax.startBoardCharts();
    return draw();
  };
})();
