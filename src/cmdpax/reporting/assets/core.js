"use strict";
// What every part of the page uses: the data, elements, numbers for people, and blocks of numbers.
window.cmdpax = {};

(() => {
  const source = document.getElementById("payload");
  cmdpax.payload = source ? JSON.parse(source.textContent) : null;
  cmdpax.byId = (id) => document.getElementById(id);

  /** An element; children are nodes, or text that stays text. */
  cmdpax.element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined)
        made.setAttribute(name, value);
    }
    made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
    return made;
  };

  /** A number for people: four significant digits, a true minus sign, a dash for nothing. */
  cmdpax.number = (value, digits = 4) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    const size = Math.abs(value);
    let text;
    if (size !== 0 && (size < 1e-4 || size >= 1e7)) text = value.toExponential(2);
    else if (size >= 10 ** digits) text = Math.round(value).toLocaleString("en");
    else if (size === 0) text = "0";
    else {
      const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
      text = String(Number(value.toFixed(decimals)));
    }
    return text.replace(/-/g, "−");
  };

  /** A whole number with separators. */
  cmdpax.count = (value) => Number(value).toLocaleString("en");

  /** Text for Plotly's labels, which would read some of it as HTML. */
  cmdpax.plain = (text) =>
    String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  /** The bytes of a compressed text in the page. */
  cmdpax.inflate = async (id) => {
    const text = atob(cmdpax.byId(id).textContent);
    const bytes = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };

  /** Rows of whole numbers: byte planes, zigzag, differences along each row. */
  const decodeRows = (bytes, length) => {
    const total = bytes.length / 4;
    const rows = new Int32Array(total);
    let sum = 0;
    for (let place = 0; place < total; place += 1) {
      if (place % length === 0) sum = 0;
      const coded =
        bytes[place] |
        (bytes[total + place] << 8) |
        (bytes[2 * total + place] << 16) |
        (bytes[3 * total + place] << 24);
      sum = (sum + ((coded >>> 1) ^ -(coded & 1))) | 0;
      rows[place] = sum;
    }
    return rows;
  };

  /** Whole numbers are the upper 25 bits of single-precision ones. */
  const asNumbers = (rows) => {
    const bits = rows.map((row) => row << 7);
    return new Float32Array(bits.buffer);
  };

  const known = new Map();

  /** The curves of a group: episodes, and per series its mean, half width and single runs. */
  cmdpax.curves = (group) => {
    if (!known.has(group.block)) known.set(group.block, decodeGroup(group));
    return known.get(group.block);
  };

  const decodeGroup = async (group) => {
    const length = group.kept;
    const rows = decodeRows(await cmdpax.inflate(`block-${group.block}`), length);
    const numbers = asNumbers(rows.subarray(length));
    const each = group.units > 1 ? 2 + group.shown.length : 1;
    const series = {};
    group.series.forEach((name, index) => {
      const row = (place) => {
        const start = (index * each + place) * length;
        return numbers.subarray(start, start + length);
      };
      const runs = group.shown.map((_, run) => (group.units > 1 ? row(2 + run) : row(0)));
      series[name] = { mean: row(0), half: group.units > 1 ? row(1) : null, runs };
    });
    return { group, episodes: group.episodes ?? rows.slice(0, length), series };
  };

  /** Places of a sorted row that lie in a window, with a neighbour on either side. */
  cmdpax.within = (sorted, low, high) => {
    const first = (limit, orEqual) => {
      let [left, right] = [0, sorted.length];
      while (left < right) {
        const middle = (left + right) >> 1;
        if (sorted[middle] < limit || (orEqual && sorted[middle] === limit)) left = middle + 1;
        else right = middle;
      }
      return left;
    };
    const start = Math.max(0, first(low, false) - 1);
    return [start, Math.min(sorted.length, first(high, true) + 1)];
  };

  /**
   * Places to draw: all of a window, or, where there are too many for the screen, of each bucket its
   * ends and the extremes of every row, so that no peak is lost.
   */
  cmdpax.thin = (start, stop, rows, position, most = 1200) => {
    if (stop - start <= most) return Array.from({ length: stop - start }, (_, i) => start + i);
    const buckets = Math.max(1, Math.floor(most / (2 + 2 * rows.length)));
    const low = position(start);
    const width = (position(stop - 1) - low) / buckets || 1;
    const kept = new Set();
    let from = start;
    for (let bucket = 0; bucket < buckets && from < stop; bucket += 1) {
      const end = low + (bucket + 1) * width;
      let to = from;
      while (to < stop && (bucket === buckets - 1 || position(to) < end)) to += 1;
      keepExtremes(kept, rows, from, to);
      from = to;
    }
    return [...kept].sort((one, other) => one - other);
  };

  const keepExtremes = (kept, rows, from, to) => {
    if (to === from) return;
    kept.add(from).add(to - 1);
    for (const row of rows) {
      let [least, largest] = [from, from];
      for (let place = from; place < to; place += 1) {
        if (row[place] < row[least]) least = place;
        if (row[place] > row[largest]) largest = place;
      }
      kept.add(least).add(largest);
    }
  };

  /** Student's 97.5 % quantile for the mean of `count` numbers. */
  cmdpax.student = (count) => {
    const table = cmdpax.payload.student;
    if (count < table.length) return table[count];
    // Cornish and Fisher's expansion around the normal distribution: 1e-7 exact from 60 on.
    const [z, free] = [1.959963984540054, count - 1];
    const first = (z ** 3 + z) / 4;
    const second = (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96;
    const third = (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384;
    return z + first / free + second / free ** 2 + third / free ** 3;
  };

  /** The smallest and the largest of many numbers: too many for `Math.min(...)`. */
  cmdpax.extent = (values) => {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return [low, high];
  };

  /** Mean and half of its interval; null where there is none. */
  cmdpax.interval = (values) => {
    const numbers = values.filter((value) => value !== null && !Number.isNaN(value));
    if (numbers.length < values.length || !numbers.length) return { mean: null, half: null };
    const mean = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
    if (numbers.length < 2) return { mean, half: null };
    const squares = numbers.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const error = Math.sqrt(squares / (numbers.length - 1) / numbers.length);
    return { mean, half: cmdpax.student(numbers.length) * error };
  };

  /** "12.3 ± 0.4" */
  cmdpax.spread = ({ mean, half }) =>
    half === null || half === undefined || mean === null
      ? cmdpax.number(mean)
      : `${cmdpax.number(mean)}\u00a0±\u00a0${cmdpax.number(half, 2)}`; // never broken across lines
})();
