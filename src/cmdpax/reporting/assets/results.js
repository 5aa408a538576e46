"use strict";
// The parts of a page about a sweep or a reproduction.

(() => {
  cmdpax.startParts = () => {
    cmdpax.startStory();
    cmdpax.playground?.start?.();
    cmdpax.startProblem();
    cmdpax.startCurves();
    cmdpax.startPlane();
    cmdpax.startTable();
    cmdpax.startComparison();
    return cmdpax.startSelection();
  };
})();
