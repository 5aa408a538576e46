"use strict";
// Returns of a live system: its episodes, a moving mean with its interval, and the threshold.

(() => {
  /** What lies between two rows, where both have numbers. */
  const between = (x, low, high, fillcolor, name) => {
    const places = x.map((_, place) => place).filter((place) => low[place] !== null && high[place] !== null);
    const back = [...places].reverse();
    return {
      x: [...places, ...back].map((place) => x[place]),
      y: [...places.map((place) => high[place]), ...back.map((place) => low[place])],
      name,
      mode: "lines",
      fill: "toself",
      line: { width: 0 },
      fillcolor,
      hoverinfo: "skip",
    };
  };

  const single = (signal, theme) => ({
    x: cmdpax.payload.last,
    y: signal.low,
    name: "episodes",
    mode: "markers",
    marker: { color: cmdpax.faded(theme.safe, 0.4), size: 4 },
    hovertemplate: "episode %{x:,}<br>%{y:.4g}<extra></extra>",
  });

  const extremes = (signal, theme) => {
    const { first, last } = cmdpax.payload;
    const x = first.map((start, place) => (start + last[place]) / 2);
    return between(x, signal.low, signal.high, cmdpax.faded(theme.safe, 0.15), "least to largest");
  };

  const means = (signal, theme) => {
    const { episodes, window } = cmdpax.payload;
    const moved = (sign) => signal.mean.map((mean, place) => {
      const half = signal.half[place];
      return mean === null || half === null ? null : mean + sign * half;
    });
    const line = {
      x: episodes,
      y: signal.mean,
      name: `mean of ${cmdpax.count(window)}`,
      mode: episodes.length > 1 ? "lines" : "markers",
      line: { color: theme.safe, width: 2 },
      hovertemplate: "mean up to episode %{x:,}<br>%{y:.4g}<extra></extra>",
    };
    return [between(episodes, moved(-1), moved(1), cmdpax.faded(theme.safe, 0.35), "95 % interval"), line];
  };

  const threshold = ({ sense, threshold: y }, [first, last], theme) => ({
    x: [first, last],
    y: [y, y],
    name: `${sense} ${cmdpax.number(y, 6)}`,
    mode: "lines",
    line: { color: theme.unsafe, width: 1.5, dash: "dash" },
    hoverinfo: "skip",
  });

  /** The wrong side of the threshold. */
  const shade = ({ sense, threshold: y }, [low, high], theme) => ({
    type: "rect",
    xref: "paper",
    x0: 0,
    x1: 1,
    y0: y,
    y1: sense === "at most" ? high : low,
    fillcolor: cmdpax.faded(theme.unsafe, 0.1),
    line: { width: 0 },
    layer: "below",
  });

  const rangeOf = (signal) => {
    const shown = [...signal.low, ...signal.high, signal.threshold].filter((value) => value !== null);
    const [low, high] = cmdpax.extent(shown);
    const room = 0.08 * (high - low || Math.abs(high) || 1);
    return [low - room, high + room];
  };

  const build = (signal, theme) => {
    const { first, last, length } = cmdpax.payload;
    const range = rangeOf(signal);
    const ends = [first[0], Math.max(first[0] + 1, last[last.length - 1])];
    const traces = [length > 1 ? extremes(signal, theme) : single(signal, theme), ...means(signal, theme)];
    const layout = {
      xaxis: { title: { text: "episode" }, range: ends },
      yaxis: { range },
      hovermode: "closest",
    };
    if (signal.threshold !== null) {
      traces.push(threshold(signal, ends, theme));
      layout.shapes = [shade(signal, range, theme)];
    }
    return { traces, layout };
  };

  cmdpax.startParts = () => {
    cmdpax.payload.signals.forEach((signal, place) => {
      cmdpax.chart(cmdpax.byId(`returns-chart-${place}`), (theme) => build(signal, theme));
    });
  };
})();
