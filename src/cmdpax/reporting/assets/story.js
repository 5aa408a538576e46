"use strict";
// In a minute: one run of two algorithms, what each episode did, and what the two accounts say.

(() => {
  /** Above 0 and below it, each its own colour; where the line crosses, a point of its own. */
  cmdpax.signedAreas = (x, y, theme, shape = "linear") => {
    const [xs, ys] = [[], []];
    y.forEach((value, place) => {
      const before = y[place - 1];
      if (place && before * value < 0 && shape === "linear") {
        xs.push(x[place - 1] + ((x[place] - x[place - 1]) * before) / (before - value));
        ys.push(0);
      }
      xs.push(x[place]);
      ys.push(value);
    });
    const area = (name, keep, colour) => ({
      x: xs,
      y: ys.map(keep),
      name,
      mode: "lines",
      fill: "tozeroy",
      line: { width: 0.8, color: colour, shape },
      fillcolor: cmdpax.faded(colour, 0.8),
      hoverinfo: "skip",
    });
    return [
      area("unsafe", (value) => Math.max(0, value), theme.unsafe),
      area("safer than needed", (value) => Math.min(0, value), theme.safe),
      { x, y, mode: x.length > 1 ? "lines" : "markers", showlegend: false, line: { color: theme.muted, width: 0.6, shape }, hovertemplate: "episode %{x:,}<br>violation %{y:.4g}<extra></extra>" },
    ];
  };

  const start = async (side, place, range) => {
    const sweep = cmdpax.payload.sweeps[0];
    const group = sweep.groups[side.group];
    const build = async (theme) => {
      const { episodes, series } = await cmdpax.curves(group);
      const row = rowOf(series, side);
      const places = cmdpax.thin(0, row.length, [row], (index) => index, 900);
      const x = places.map((index) => episodes[index]);
      const y = places.map((index) => row[index]);
      const layout = {
        xaxis: { title: { text: "episode" }, type: sweep.log_episodes ? "log" : "linear" },
        yaxis: { title: { text: cmdpax.plain(titleOf(side)) }, range: await range() },
        hovermode: "closest",
      };
      return { traces: cmdpax.signedAreas(x, y, theme, side.steps ? "hv" : "linear"), layout };
    };
    cmdpax.chart(cmdpax.byId(`story-chart-${place}`), build);
  };

  const titleOf = ({ signal }) => (signal ? `violation, ${signal}` : "violation of this episode");

  const rowOf = (series, side) => {
    const { mean, runs } = series[side.series];
    return runs.length ? runs[0] : mean;
  };

  /** Both charts have the same scale: else nothing could be compared. */
  const commonRange = (sides) => async () => {
    let [low, high] = [0, 0];
    for (const side of sides) {
      const { series } = await cmdpax.curves(cmdpax.payload.sweeps[0].groups[side.group]);
      const row = rowOf(series, side);
      for (const value of row) [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
    const room = 0.08 * (high - low || 1);
    return [low - room, high + room];
  };

  cmdpax.startStory = () => {
    const { story } = cmdpax.payload;
    if (!story) return;
    story.forEach((side, place) => start(side, place, commonRange(story)));
  };
})();
