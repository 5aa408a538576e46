"""Exact planning by column generation (Dantzig and Wolfe, 1960).

The values (V_r, V_u) that policies reach form a polytope whose vertices are deterministic
policies. So the CMDP is a linear program over mixtures of deterministic policies, with I + 1 rows
and far too many columns, which are generated as needed:

1. *master*: the best mixture of the columns so far; its duals are multipliers λ;
2. *pricing*: the best policy for r + λᵀu, by one backward induction, is the column that promises
   most, and its value bounds the optimum from above for any λ ≥ 0 (weak duality):

       V_r^{π*} ≤ D(λ) = max_π V_{r + λᵀu}^π - λᵀc;

3. stop when the smallest bound so far meets the master's value: the difference is the certified
   gap. It never grows, and it holds wherever the loop stops.

The master's duals jump while it has few columns. Each round therefore prices a batch of points on
the segment from the λ of the best bound to the master's λ (in-out separation: Wentges, 1997), in
one batched backward induction; the master's own λ is always among them, which keeps the method
finite. The largest slack max_π min_i (V_{u_i}^π - c_i) / e_i, in any units e, is found likewise,
with λ on the simplex eᵀλ = 1. This comes first, until some mixture is feasible.

Columns and the maxima of step 2 do not depend on c: with other thresholds the loop continues from
what it has. All quantities are in scaled units (`scaling`).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors
from cmdpax.planning.certificate import Rounding, sharper_bound
from cmdpax.planning.dynamic_program import greedy_plans, place
from cmdpax.planning.master import Master, Outcome
from cmdpax.planning.scaling import Scaled

Progress = Callable[[int, float], None]
"""Called with the number of columns and the gap (infinite while nothing is feasible)."""

# Points that a round prices, from the best λ (0) to the master's (1). Matrices are read once for
# a whole batch, so four points cost little more than one; lists are read once for each point.
_DENSE_SEGMENT = np.array([1.0, 0.6, 0.3, 0.1])
_LIST_SEGMENT = np.array([1.0, 0.5])
_PATIENCE = 100  # rounds without progress before giving up
_NOISE = 2.0**-53  # rounding of a value, per unit of horizon
_MOST_KEPT = 2**26  # bytes of policies


class Column(NamedTuple):
    """A deterministic policy: its values, the pricing call that made it, its share in a mixture.

    Large policies are not kept: the same call makes them again, bit for bit.
    """

    signal_values: np.ndarray  # (V_r, V_u), scaled
    batch: np.ndarray  # weights of the pricing call, [B, 1 + I]
    row: int  # its place in that batch
    kept: jax.Array | None  # the actions of that batch, [B, H, S]
    weight: float = 1.0

    def actions(self, device_cmdp: CMDP) -> np.ndarray:
        """The policy, `[H, S]`."""
        batch = self.kept
        if batch is None:
            _, batch = greedy_plans(device_cmdp, self.batch)
        return np.asarray(batch)[self.row]


class Generator:
    """The columns of one CMDP and the loop that adds to them."""

    def __init__(self, cmdp: CMDP, progress: Progress | None, max_columns: int) -> None:
        """Start with the policies that maximise the reward and each constraint."""
        self.scaled = Scaled(cmdp)
        self.device_cmdp = place(self.scaled.cmdp)
        self.rounding = Rounding(self.scaled.cmdp)
        self.columns: list[Column] = []
        self._known: set[bytes] = set()
        # Multipliers λ priced so far, each with max_π V_{z + λᵀu}: rows `[I + 1]`, one array for
        # each z that is maximised (by its signal; None: the smallest slack, z = 0).
        self._priced: dict[int | None, np.ndarray] = {}
        self._num_kept = 0
        self._max_columns = max_columns
        self._segment = segment_of(cmdp)
        self._progress = progress or (lambda num_columns, gap: None)
        self._master = Master(cmdp.num_constraints, float(cmdp.horizon), _NOISE * cmdp.horizon)
        self._price(np.eye(1 + cmdp.num_constraints))

    def maximise_slack(
        self, thresholds: np.ndarray, units: np.ndarray, tolerance: float, goal: float
    ) -> Outcome:
        """Raise the smallest slack, in the units, to its maximum or until it reaches the goal."""
        self._master.maximise_slack(thresholds, units)
        first = np.append(np.full(len(units), 1.0 / units.sum()), np.inf)[None]
        old = self._priced.get(None, first)
        # max_π V_{λᵀu} is homogeneous in λ: what was priced serves in any units.
        length = old[:, :-1] @ units
        self._priced[None] = old / length[:, None]
        single = self._master.stay()
        if single.value >= goal:
            return self._outcome(single, None)
        return self._generate(None, tolerance, goal)

    def maximise_signal(self, tolerance: float, relaxation: float, signal: int = 0) -> Outcome:
        """Solve the CMDP, given columns of which some mixture is feasible.

        Signal 1 + i maximises V_{u_i} instead of V_r. Slacks, in the units in which they were
        maximised, may be as low as `-relaxation`: value and bound are those of the relaxed problem,
        and the bound also holds for the original one.
        """
        master = self._master
        master.maximise_signal(signal, master.thresholds - relaxation * master.units)
        first = np.append(np.zeros(self.scaled.cmdp.num_constraints), np.inf)[None]
        self._priced.setdefault(signal, first)
        return self.sharpen(self._generate(signal, tolerance, np.inf), signal, tolerance)

    def sharpen(self, found: Outcome, signal: int | None = None, tolerance: float = 0.0) -> Outcome:
        """Improve the bound by extended precision, where rounding exceeds the tolerance."""
        # A bound more precise than the value would gain nothing.
        worth = max(tolerance, 0.0 if signal is None else 4 * self.rounding.of_values[signal])
        if found.gap <= tolerance and found.error <= worth:
            return found
        priced, thresholds = self._priced[signal], self._master.thresholds
        lowest = np.argmin(priced[:, -1] - priced[:, :-1] @ thresholds)
        points = np.array([found.multipliers, priced[lowest, :-1], found.duals])
        for point in np.unique(points, axis=0):
            sharper = sharper_bound(
                self.scaled.cmdp, self.rounding, point, signal, thresholds, worth
            )
            if sharper is not None and sum(sharper) < found.bound + found.error:
                found = found._replace(bound=sharper[0], error=sharper[1], multipliers=point)
        return found

    def is_open(self, found: Outcome, tolerance: float) -> bool:
        """Whether the gap exceeds both the tolerance and what the rounding of values explains."""
        errors = self.rounding.of_values
        rounding = errors[0] + found.multipliers @ errors[1:]
        return bool(found.gap > max(tolerance * self.scaled.magnitudes[0], rounding))

    def _generate(self, signal: int | None, tolerance: float, goal: float) -> Outcome:
        """Alternate master and pricing until the bound meets the value."""
        best_gap, idle = np.inf, 0
        while True:
            master = self._master.solve()
            found = self._outcome(master, signal)
            idle = 0 if found.gap < best_gap - 1e-3 * tolerance else idle + 1
            best_gap = min(found.gap, best_gap)
            shown = np.inf if signal is None else self.scaled.number(found.gap)
            self._progress(len(self.columns), shown)
            if master.value >= goal or found.gap <= tolerance or idle > _PATIENCE:
                return found
            way = master.duals - found.multipliers
            points = found.multipliers + self._segment[:, None] * way
            num_new = self._price_multipliers(signal, points)
            # Only V_r respects the limit: without a feasible mixture there is nothing to return.
            full = signal == 0 and len(self.columns) >= self._max_columns
            if not num_new and not full and self._outcome(master, signal).gap > tolerance:
                num_new = self._price_others(signal)
            if not num_new or full:
                return self._outcome(master, signal)

    def _outcome(self, master: Outcome, signal: int | None) -> Outcome:
        """The mixture with the best bound from the multipliers priced so far.

        The best is the lowest when rounding errors, which grow with λ, are added.
        """
        points, maxima = self._priced[signal][:, :-1], self._priced[signal][:, -1]
        bounds = maxima - points @ self._master.thresholds
        errors = self.rounding.of_bound(points, signal, self._master.thresholds)
        best = int((bounds + errors).argmin())
        return master._replace(
            bound=float(bounds[best]), error=float(errors[best]), multipliers=points[best]
        )

    def _price_multipliers(self, signal: int | None, points: np.ndarray) -> int:
        """Plan for z + λᵀu at each λ; returns how many columns were new."""
        weights = np.column_stack([np.zeros(len(points)), points])
        if signal is not None:
            weights[:, signal] += 1.0
        values, num_new = self._price(weights)
        maxima = np.sum(weights * values, axis=1)
        priced = np.column_stack([points, maxima])
        self._priced[signal] = np.concatenate([self._priced[signal], priced])
        return num_new

    def _price_others(self, signal: int | None) -> int:
        """Plan for multipliers by another solver of the master; not while maximising slack."""
        if signal is None or not self.scaled.cmdp.num_constraints:
            return 0
        others = self._master.other_multipliers()
        return 0 if others is None else self._price_multipliers(signal, others[None])

    def _price(self, weights: np.ndarray) -> tuple[np.ndarray, int]:
        """Plan for each row of weights; returns their values and how many were new."""
        size, num_before, values = len(self._segment), len(self.columns), []
        for start in range(0, len(weights), size):
            batch = np.resize(weights[start : start + size], (size, weights.shape[1]))
            signal_values, actions = greedy_plans(self.device_cmdp, batch)
            values.append(np.asarray(signal_values))
            kept = actions if self._num_kept + actions.nbytes <= _MOST_KEPT else None
            self._num_kept += 0 if kept is None else kept.nbytes
            for row, column in enumerate(values[-1]):
                if column.tobytes() not in self._known:
                    self._known.add(column.tobytes())
                    self.columns.append(Column(column, batch, row, kept))
        new = [column.signal_values for column in self.columns[num_before:]]
        if new:
            self._master.add(np.array(new))
        return np.concatenate(values)[: len(weights)], len(new)


def segment_of(cmdp: CMDP) -> np.ndarray:
    """The points that a round prices: as many rows as its compiled program has."""
    return _LIST_SEGMENT if isinstance(cmdp.transitions, Successors) else _DENSE_SEGMENT
