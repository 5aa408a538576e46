"""Exact planning by column generation (Dantzig and Wolfe, 1960).

The values (V_r, V_u) that policies reach form a polytope whose vertices are deterministic
policies. So the CMDP is a linear program over mixtures of deterministic policies, with I + 1 rows
and far too many columns, and columns are made when they are needed:

1. *master*: the best mixture of the columns so far; its duals are multipliers λ;
2. *pricing*: the best policy for r + λᵀu, by one backward induction, is the column that promises
   most, and its value bounds the optimum from above for any λ ≥ 0 (weak duality):

       V_r^{π*} ≤ D(λ) = max_π V_{r + λᵀu}^π - λᵀc;

3. stop when the smallest bound seen meets the master's value: the difference is the certified
   gap. It never rises, and it is the truth whenever the loop stops.

The master's duals jump while it has few columns. Each round therefore prices a batch of points on
the segment from the λ of the best bound to the master's λ (in-out separation: Wentges, 1997), in
one batched backward induction; the master's own λ is always among them, which keeps the method
finite. The Slater gap Ξ = max_π min_i (V_{u_i}^π - c_i) is the same with the smallest slack as the
objective and λ on the simplex; it comes first, until some mixture is feasible.

Columns, and the maxima of step 2, do not depend on c: with other thresholds the loop goes on from
what it has (`Generator.require`).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from cmdpax.errors import SolverError
from cmdpax.model import CMDP
from cmdpax.planning.dynamic_program import greedy_plans, place
from cmdpax.planning.master import MasterSolution, make_master
from cmdpax.transitions import Successors

Progress = Callable[[int, float], None]
"""Called with the number of columns and the gap (infinite while nothing is feasible)."""

FEASIBILITY_TOLERANCE = 1e-9
"""A CMDP is infeasible when its Slater gap is below minus this."""

# Points that a round prices, from the best λ (0) to the master's (1). Matrices are read once for
# a whole batch, so four points cost little more than one; gathers cost their number.
_DENSE_SEGMENT = np.array([1.0, 0.6, 0.3, 0.1])
_LIST_SEGMENT = np.array([1.0, 0.5])
_PATIENCE = 100  # rounds without progress before giving up


class Column(NamedTuple):
    """A deterministic policy: its values, and the pricing call that made it.

    The policy itself, `[H, S]`, is not stored: the same call makes it again, bit for bit.
    """

    signal_values: np.ndarray  # (V_r, V_u)
    batch: np.ndarray  # weights of the pricing call, [B, 1 + I]
    row: int  # its place in that batch


class Outcome(NamedTuple):
    """Where column generation stopped."""

    master: MasterSolution
    bound: float  # the best dual bound
    multipliers: np.ndarray  # the λ of that bound


class Generator:
    """The columns of one CMDP and the loop that adds to them."""

    def __init__(self, cmdp: CMDP, progress: Progress | None, max_columns: int) -> None:
        """Start with the policies that maximise the reward and each constraint."""
        self.cmdp = cmdp
        self.device_cmdp = place(cmdp)
        self.columns: list[Column] = []
        self._known: set[bytes] = set()
        # Multipliers λ priced so far, each with max_π V_{z + λᵀu}: rows `[I + 1]`, one array for
        # each z that is maximised (by its signal; None: the smallest slack, z = 0).
        self._priced: dict[int | None, np.ndarray] = {}
        self._max_columns = max_columns
        lists = isinstance(cmdp.transitions, Successors)
        self._segment = _LIST_SEGMENT if lists else _DENSE_SEGMENT
        self._progress = progress or (lambda num_columns, gap: None)
        self.scales = signal_scales(cmdp)
        self._master = make_master(self.scales)
        self.require(cmdp.thresholds)
        self._price(np.eye(1 + cmdp.num_constraints))

    def require(self, thresholds: np.ndarray) -> None:
        """Change the thresholds c; columns, and multipliers priced so far, serve all of them."""
        self.thresholds = thresholds
        self._master.require(thresholds)

    def maximise_slack(self, tolerance: float, goal: float) -> Outcome:
        """Raise the smallest slack to its maximum Ξ, or until it reaches the goal."""
        self._master.maximise_slack()
        num_constraints = self.cmdp.num_constraints
        centre = np.full(num_constraints, 1.0 / num_constraints)
        return self._generate(None, centre, tolerance, goal)

    def maximise_reward(self, tolerance: float, relaxation: float, signal: int = 0) -> Outcome:
        """Solve the CMDP, given columns of which some mixture is feasible.

        Signal 1 + i maximises V_{u_i} in place of V_r.
        """
        self._master.maximise_reward(relaxation, signal)
        centre = np.zeros(self.cmdp.num_constraints)
        return self._generate(signal, centre, tolerance, np.inf)

    def _generate(
        self, signal: int | None, centre: np.ndarray, tolerance: float, goal: float
    ) -> Outcome:
        """Alternate master and pricing until the bound meets the value."""
        self._priced.setdefault(signal, np.append(centre, np.inf)[None])
        bound, centre = self._best_bound(signal)
        best_gap, idle = np.inf, 0
        while True:
            master = self._solve_master()
            gap = bound - master.value
            idle = 0 if gap < best_gap - 1e-3 * tolerance else idle + 1
            best_gap = min(gap, best_gap)
            self._progress(len(self.columns), np.inf if signal is None else gap)
            if master.value >= goal or gap <= tolerance or idle > _PATIENCE:
                return Outcome(master, bound, centre)
            points = centre + self._segment[:, None] * (master.multipliers - centre)
            num_new = self._price_multipliers(signal, points)
            bound, centre = self._best_bound(signal)
            # Without a feasible mixture there is nothing to return: no limit while looking for one,
            # or for what is feasible.
            full = signal == 0 and len(self.columns) >= self._max_columns
            if num_new == 0 or full:
                return Outcome(master, bound, centre)

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

    def _best_bound(self, signal: int | None) -> tuple[float, np.ndarray]:
        """The best bound that multipliers priced so far give at the thresholds, and its λ."""
        points, maxima = self._priced[signal][:, :-1], self._priced[signal][:, -1]
        bounds = maxima - points @ self.thresholds
        best = bounds.argmin()
        return float(bounds[best]), points[best]

    def _solve_master(self) -> MasterSolution:
        master = self._master.solve()
        if master is None:
            raise SolverError("the master problem of column generation")
        return master

    def _price(self, weights: np.ndarray) -> tuple[np.ndarray, int]:
        """Plan for each row of weights; returns their values and how many were new."""
        size, num_before, values = len(self._segment), len(self.columns), []
        for start in range(0, len(weights), size):
            batch = np.resize(weights[start : start + size], (size, weights.shape[1]))
            plan = greedy_plans(self.device_cmdp, jnp.asarray(batch))
            values.append(np.asarray(plan.signal_values))
            for row, column in enumerate(values[-1]):
                if column.tobytes() not in self._known:
                    self._known.add(column.tobytes())
                    self.columns.append(Column(column, batch, row))
                    self._master.add(column)
        every_value = np.concatenate(values)[: len(weights)]
        return every_value, len(self.columns) - num_before


def signal_scales(cmdp: CMDP) -> np.ndarray:
    """The magnitude of a step's reward and of each constraint reward, `[1 + I]`."""
    magnitudes = np.abs(cmdp.constraint_rewards).max(axis=(1, 2, 3), initial=0.0)
    scales = np.concatenate([[np.abs(cmdp.rewards).max()], magnitudes])
    return np.where(scales > 0, scales, 1.0)


def limiting_constraint(
    slack: MasterSolution, columns: list[Column], thresholds: np.ndarray
) -> int:
    """The constraint that limits Ξ: of the smallest slacks, the largest multiplier."""
    values = np.array([column.signal_values[1:] for column in columns])
    slacks = slack.weights @ values[: len(slack.weights)] - thresholds
    binding = slacks <= slacks.min() + FEASIBILITY_TOLERANCE
    return int(np.argmax(np.where(binding, slack.multipliers, -1.0)))
