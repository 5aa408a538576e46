"use strict";
// Charts: Plotly with one look, light and dark, redrawn when that or the width changes.

(() => {
  const charts = [];
  const waiting = [];
  let ready = false;

  /** Call a function once Plotly is there. */
  cmdpax.whenReady = (action) => {
    if (ready) action();
    else waiting.push(action);
  };

  /** Plotly is large: it comes compressed, and runs when the text of the page is there. */
  cmdpax.loadPlotly = async () => {
    const text = new TextDecoder().decode(await cmdpax.inflate("plotly"));
    document.head.append(cmdpax.element("script", {}, text));
    ready = true;
    for (const action of waiting) {
      await cmdpax.attempt(action);
      sayOpened();
      await new Promise((resume) => setTimeout(resume)); // the reader may scroll in between
    }
  };

  /** The page is open when what one sees of it is drawn; the rest follows. */
  const sayOpened = () => {
    const seen = charts.filter(({ host }) => host.getBoundingClientRect().top < innerHeight);
    if (seen.every(({ host }) => host.dataset.drawn))
      document.documentElement.dataset.opened = "true";
  };

  /** Do something; if it fails, say so at the top of the page, and let the rest go on. */
  cmdpax.attempt = async (action) => {
    try {
      return await action();
    } catch (error) {
      const place = cmdpax.byId("failure");
      place.hidden = false;
      place.textContent = `A part of this page could not be drawn: ${error.message}`;
      console.error(error);
      return null;
    }
  };

  // ------------------------------------------------------------------------------------- colours

  const probe = () => {
    const made = cmdpax.element("span", { class: "probe", "aria-hidden": "true" });
    document.body.append(made);
    return made;
  };

  /** Colours as they are now: of the reader's choice, or of the system. */
  cmdpax.theme = () => (known ??= readTheme());
  let known = null;

  const readTheme = () => {
    const measuring = probe();
    const colour = (name) => {
      measuring.style.color = `var(--${name})`;
      return getComputedStyle(measuring).color;
    };
    const names = ["ink", "muted", "grid", "surface", "unsafe", "safe", "optimum", "accent"];
    const theme = Object.fromEntries(names.map((name) => [name, colour(name)]));
    theme.dark = colour("is-dark") === "rgb(0, 0, 0)";
    theme.algorithm = (name) => algorithmPen(name, theme.dark);
    measuring.remove();
    return theme;
  };

  /** The colour and dash of an algorithm: those of its pictures, and no other's on this page. */
  const algorithmPen = (name, dark) => {
    const { light, dark: onDark, dashes } = cmdpax.payload.palette;
    return { color: (dark ? onDark : light)[name], dash: dashes[name] };
  };

  /** One of several shades of a colour: darker or lighter than it, the first is the colour itself. */
  cmdpax.shade = (colour, place, count) => {
    if (!place) return colour;
    const parts = channels(colour);
    const share = 0.25 + (0.5 * Math.ceil(place / 2)) / Math.ceil(count / 2);
    const end = place % 2 ? 255 : 0;
    return `rgb(${parts.map((part) => Math.round(part + (end - part) * share * 0.75)).join(", ")})`;
  };

  const channels = (colour) => {
    const hex = /^#(..)(..)(..)$/.exec(colour);
    const parts = hex ? hex.slice(1).map((part) => parseInt(part, 16)) : colour.match(/[\d.]+/g);
    return parts.slice(0, 3).map(Number);
  };

  /** The same colour, to be seen through. */
  cmdpax.faded = (colour, opacity) => {
    return `rgba(${channels(colour).join(", ")}, ${opacity})`;
  };

  // --------------------------------------------------------------------------------------- layout

  const axis = (theme, given = {}) => ({
    gridcolor: theme.grid,
    zerolinecolor: theme.muted,
    linecolor: theme.muted,
    automargin: true,
    exponentformat: "power",
    separatethousands: true,
    ...given,
    title: { standoff: 8, font: { size: 13 }, ...given.title },
  });

  const layoutOf = (theme, given) => {
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: theme.ink },
      margin: { l: 56, r: 12, t: 12, b: 44 },
      hoverlabel: { bgcolor: theme.surface, font: { color: theme.ink } },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      // With a finger one wants to scroll past a chart: there are buttons to zoom.
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      ...given,
    };
    for (const name of Object.keys(given).filter((key) => /^[xy]axis\d*$/.test(key)))
      layout[name] = axis(theme, given[name]);
    return layout;
  };

  const CONFIGURATION = {
    displaylogo: false,
    responsive: false,
    displayModeBar: false,
    doubleClick: "reset",
    scrollZoom: false,
  };

  const PRINTED_WIDTH = 660;
  const PRINTED_COLUMN = 310;

  /**
   * A chart: `build(theme)` gives `{traces, layout}`, now and whenever colours or width change.
   * Returns `{redraw}`.
   */
  cmdpax.chart = (host, build) => {
    const redraw = async () => {
      if (!host.isConnected) return;
      const theme = cmdpax.theme();
      const built = await build(theme);
      if (!built) return;
      const size = { width: host.clientWidth, height: host.clientHeight };
      const layout = { ...layoutOf(theme, built.layout), ...size };
      host.built = built.layout;
      await Plotly.react(host, built.traces, layout, CONFIGURATION);
      preparePrint(host, theme);
      host.dataset.drawn = Number(host.dataset.drawn || 0) + 1;
    };
    const chart = { host, redraw: latestOnly(redraw), width: host.clientWidth };
    charts.push(chart);
    useKeys(host);
    cmdpax.whenReady(chart.redraw);
    return chart;
  };

  /** A printer does not wait for a new drawing: the style sheet shrinks this one, and inverts it. */
  const preparePrint = (host, theme) => {
    const width = host.closest(".columns") ? PRINTED_COLUMN : PRINTED_WIDTH;
    host.style.setProperty("--print-zoom", Math.min(1, width / host.clientWidth));
    host.dataset.dark = theme.dark;
  };

  /** Calls that come while one is at work become one call after it. */
  const latestOnly = (work) => {
    let running = null;
    let again = false;
    const run = async () => {
      do {
        again = false;
        await cmdpax.attempt(work);
      } while (again);
      running = null;
    };
    return () => {
      if (!ready) return Promise.resolve();
      if (running) again = true;
      else running = run();
      return running || Promise.resolve();
    };
  };

  /** The text alternative of a chart, below it. */
  cmdpax.describe = (id, sentence) => {
    const caption = cmdpax.byId(`${id}-text`);
    if (caption.textContent !== sentence) caption.textContent = sentence;
  };

  // ------------------------------------------------------------------------------------- keyboard

  const KEYS = {
    "+": (range) => scaled(range, 0.5),
    "=": (range) => scaled(range, 0.5),
    "-": (range) => scaled(range, 2),
    ArrowLeft: (range) => moved(range, -0.2),
    ArrowRight: (range) => moved(range, 0.2),
  };

  const scaled = ([low, high], factor) => {
    const [middle, half] = [(low + high) / 2, ((high - low) / 2) * factor];
    return [middle - half, middle + half];
  };

  const moved = ([low, high], share) => [low + share * (high - low), high + share * (high - low)];

  /** Not beyond what there is to see. */
  const clamped = ([low, high], [first, last]) => {
    if (high - low >= last - first) return [first, last];
    const shift = Math.max(0, first - low) - Math.max(0, high - last);
    return [low + shift, high + shift];
  };

  /** + and − zoom along the episodes, arrows move, 0 shows all. */
  const useKeys = (host) => {
    host.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !host.layout) return;
      if (event.key === "0") {
        event.preventDefault();
        cmdpax.showAll(host);
      } else if (KEYS[event.key] && host.layout.xaxis) {
        event.preventDefault();
        cmdpax.zoom(host, event.key);
      }
    });
  };

  /** What a key does, for buttons too. */
  cmdpax.zoom = (host, key) => {
    const wanted = KEYS[key](host.layout.xaxis.range);
    const whole = host.built.xaxis.range ?? host.built.xaxis.whole;
    return Plotly.relayout(host, { "xaxis.range": whole ? clamped(wanted, whole) : wanted });
  };

  /** Undo every zoom. */
  cmdpax.showAll = (host) => {
    const axes = Object.keys(host.built).filter((key) => /^[xy]axis\d*$/.test(key));
    const ranges = axes.map((axis) => {
      const { range } = host.built[axis];
      return range ? [`${axis}.range`, range] : [`${axis}.autorange`, true];
    });
    return Plotly.relayout(host, Object.fromEntries(ranges));
  };

  // -------------------------------------------------------------------------------------- changes

  /** Draw every chart again, in the colours of now. */
  cmdpax.redrawAll = () => {
    known = null;
    cmdpax.paintSwatches?.();
    return Promise.all(charts.map((chart) => chart.redraw()));
  };

  const watchWidths = () => {
    const observer = new ResizeObserver(() => {
      for (const chart of charts) {
        if (chart.host.clientWidth === chart.width || !chart.host.clientWidth) continue;
        chart.width = chart.host.clientWidth;
        chart.redraw();
      }
    });
    observer.observe(document.body);
  };

  cmdpax.watchCharts = () => {
    watchWidths();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", cmdpax.redrawAll);
  };
})();
