"use strict";
// The start of the page: controls first, then the charts.

(() => {
  const THEMES = ["system", "light", "dark"];

  const useThemes = () => {
    const button = cmdpax.byId("theme");
    const show = (theme) => {
      if (theme === "system") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = theme;
      button.textContent = `Colours: ${theme}`;
      button.dataset.theme = theme;
      return cmdpax.redrawAll();
    };
    button.addEventListener("click", () => {
      const next = (THEMES.indexOf(button.dataset.theme) + 1) % THEMES.length;
      show(THEMES[next]);
    });
  };

  const useCopies = () => {
    for (const button of document.querySelectorAll("button[data-copies]"))
      button.addEventListener("click", async () => {
        const text = cmdpax.byId(button.dataset.copies).textContent;
        try {
          await navigator.clipboard.writeText(text);
          button.textContent = "Copied";
        } catch {
          // A page opened from disk may be refused the clipboard: select the text instead.
          getSelection().selectAllChildren(cmdpax.byId(button.dataset.copies));
          button.textContent = "Selected: press Ctrl+C";
        }
      });
  };

  const start = async () => {
    useThemes();
    useCopies();
    await cmdpax.startParts();
    await cmdpax.loadPlotly();
    cmdpax.watchCharts();
    document.documentElement.dataset.ready = "true";
  };

  start().catch((error) => {
    cmdpax.byId("failure").hidden = false;
    cmdpax.byId("failure").textContent = `This page could not be drawn: ${error.message}`;
    throw error;
  });
})();
