"""Fewer random decisions: an equally good policy that randomises in at most I places.

A mixture of I + 1 deterministic policies, written as one Markov policy, is random wherever they
differ, which can be thousands of places (h, s) where actions tie. Any I + 1 random choices have a
direction that keeps all V_u, along which one of them becomes certain (Carathéodory's argument).
A single forward pass through the steps makes them certain one by one, and keeps at most I open.

Let x_e be the occupancy of an alternative e = (h, s, a) to the base action of its place, and y the
occupancy of the base action. With the decisions of later places as they are, all values and all
later occupancies are linear in the x of the places so far:

* V changes by g_e per unit of x_e, at first its Q minus that of the base action;
* the mass that arrives at a state t of the current step changes by R_e(t), at first the difference
  of the transition probabilities;
* y changes by what arrives, minus the x of its place.

When the pass meets a random place (h, s), it splits the decision there into a base action and
alternatives. From then on, what earlier choices bring there, R_e(s), goes to the base action, so
that g_e changes by R_e(s) (Q(s, base) - V(s)). If there are then more than I alternatives, their
occupancies move along a direction that keeps V_u and does not lower V_r, until an x or a y is 0. An
alternative without occupancy is dropped. A base action without occupancy is replaced by an
alternative b of its place: what e brings there then changes g_e and R_e by as much of g_b and R_b.
"""

import math

import numpy as np
from jaxtyping import Float

from cmdpax.model.cmdp import CMDP
from cmdpax.planning.stepping import ListFlows, MatrixFlows, Stepper, values_ahead

_DEPENDENT = 1e-12  # gains per unit of occupancy that count as linearly dependent
_ROUNDING = 1e-14  # probabilities and rates below this are 0 but for rounding
_SKEW = 0.01  # the sine of an angle from which a cross product is accurate


def derandomize(cmdp: CMDP, policy: Float[np.ndarray, "H S A"]) -> np.ndarray:
    """An equally good policy that randomises in at most I places.

    Expects signals of magnitude 1, as scaled models have them.
    """
    return Reduction(Stepper(cmdp), policy).run()


class Place:
    """A state at a step, and the occupancy of its base action."""

    def __init__(self, step: int, state: int, base: int) -> None:
        """Nothing arrives yet."""
        self.step, self.state, self.base, self.occupancy = step, state, base, 0.0
        self.arrivals: dict[Alternative, float] = {}  # per unit of earlier alternatives


class Alternative:
    """Another action than the base action of a place: its occupancy and what it changes."""

    def __init__(self, place: Place, action: int, occupancy: float, gains: list[float]) -> None:
        """Its reach is known once its step is over."""
        self.place, self.action, self.occupancy = place, action, occupancy
        self.gains = gains  # of V_r and V_u, per unit of occupancy
        self.reach: np.ndarray | None = None  # of the mass that arrives at the current step, `[S]`

    def add(self, factor: float, other: "Alternative") -> None:
        """Let each unit of this one bring `factor` units of another."""
        self.gains = [
            gain + factor * more for gain, more in zip(self.gains, other.gains, strict=True)
        ]
        if self.reach is not None and other.reach is not None:
            self.reach = self.reach + factor * other.reach


class Reduction:
    """The pass: its position, the mass that arrives there, and the open alternatives."""

    def __init__(self, stepper: Stepper, policy: Float[np.ndarray, "H S A"]) -> None:
        """Find the random places, their base actions and what each alternative would change."""
        self._stepper, self._shape = stepper, policy.shape
        self._actions = policy.argmax(axis=2)
        self._mass = stepper.initial
        self._open: list[Alternative] = []
        self._replaced: dict[int, int] = {}  # former base actions at this step, by state
        self._num_constraints = stepper.num_signals - 1
        steps, states = np.nonzero(np.count_nonzero(policy, axis=2) > 1)
        bases = self._actions[steps, states]
        decisions = policy[steps, states]
        owner, actions = np.nonzero(
            (decisions > 0) & (np.arange(policy.shape[2]) != bases[:, None])
        )
        ahead = values_ahead(stepper, policy)
        base_values = stepper.q_values(steps, states, bases, ahead)
        values = stepper.q_values(steps[owner], states[owner], actions, ahead)
        # Plain lists, since the pass reads them one by one.
        self._steps, self._states, self._bases = steps.tolist(), states.tolist(), bases.tolist()
        self._base_shares = decisions[np.arange(len(steps)), bases].tolist()
        self._shifts = (base_values - ahead[steps, states]).tolist()
        alternatives = zip(
            actions.tolist(),
            decisions[owner, actions].tolist(),
            (values - base_values[owner]).tolist(),
            strict=True,
        )
        self._others: list[list[tuple[int, float, list[float]]]] = [[] for _ in self._steps]
        for place, alternative in zip(owner.tolist(), alternatives, strict=True):
            self._others[place].append(alternative)

    def run(self) -> np.ndarray:
        """Go through the steps, and return the policy that is left."""
        certain = self._actions[:, :, None] == np.arange(self._shape[2])
        flows, done = self._stepper.flows(certain), 0
        for index, step in enumerate(self._steps):
            for earlier in range(done, step):
                self._advance(earlier, flows)
            done = step
            self._meet(index)
        while (direction := self._direction(self._open)) is not None:
            self._move(self._open, direction)
        return self._written()

    def _meet(self, index: int) -> None:
        """Open a random place, and close alternatives until at most I are left."""
        state = self._states[index]
        place = Place(self._steps[index], state, self._bases[index])
        for one in self._open:
            if one.reach is not None and (arriving := float(one.reach[state])):
                place.arrivals[one] = arriving
                shifts = zip(one.gains, self._shifts[index], strict=True)
                one.gains = [gain + arriving * shift for gain, shift in shifts]
        mass = float(self._mass[state])
        if mass <= 0:
            return
        place.occupancy = mass * self._base_shares[index]
        for action, share, gains in self._others[index]:
            self._open.append(Alternative(place, action, mass * share, gains))
        while len(self._open) > self._num_constraints:
            active = self._open[-self._num_constraints - 1 :]
            direction = self._direction(active)
            assert direction is not None  # there are more of them than constraints
            self._move(active, direction)

    def _direction(self, active: list[Alternative]) -> list[float] | None:
        """How to move occupancies so that V_u stays and V_r does not fall."""
        move = _idle_direction([one.gains[1:] for one in active])
        if move is None:
            return None
        rise = sum(rate * one.gains[0] for rate, one in zip(move, active, strict=True))
        return move if rise >= 0 else [-rate for rate in move]

    def _move(self, active: list[Alternative], direction: list[float]) -> None:
        """Move as far as occupancies allow, and close the alternative that stops it."""
        places = list(dict.fromkeys(one.place for one in self._open))
        changes = dict.fromkeys(places, 0.0)
        for one, rate in zip(active, direction, strict=True):
            changes[one.place] -= rate
            for place in places:
                if one in place.arrivals:
                    changes[place] += place.arrivals[one] * rate
        moved: list[tuple[Alternative | Place, float]] = [
            *zip(active, direction, strict=True),
            *changes.items(),
        ]
        # Rates that are rounding would allow moves of any length.
        ends = [(thing.occupancy / -rate, thing) for thing, rate in moved if rate < -_ROUNDING]
        length, end = min(ends, key=lambda pair: pair[0])
        for thing, rate in moved:
            thing.occupancy = max(thing.occupancy + length * rate, 0.0)
            if isinstance(thing, Alternative) and thing.reach is not None:
                self._mass = self._mass + (length * rate) * thing.reach
        closed = self._rebase(end, places) if isinstance(end, Place) else end
        self._open.remove(closed)
        for place in places:
            place.arrivals.pop(closed, None)

    def _rebase(self, place: Place, places: list[Place]) -> Alternative:
        """Make the likeliest alternative the base action of a place; returns it."""
        mine = [one for one in self._open if one.place is place]
        heir = max(mine, key=lambda one: one.occupancy)
        factors = dict.fromkeys(mine, -1.0) | place.arrivals
        for one, factor in factors.items():
            if one is heir:
                continue
            one.add(factor, heir)
            for later in places:
                if heir in later.arrivals:
                    before = later.arrivals.get(one, 0.0)
                    later.arrivals[one] = before + factor * later.arrivals[heir]
        if heir.reach is None:
            self._replaced.setdefault(place.state, place.base)
        place.base, place.occupancy = heir.action, heir.occupancy
        self._actions[place.step, place.state] = heir.action
        return heir

    def _advance(self, step: int, flows: MatrixFlows | ListFlows) -> None:
        """Go to the next step: mass and reaches follow the base actions."""
        earlier = [one for one in self._open if one.reach is not None]
        vectors = np.array([self._mass, *[one.reach for one in earlier]])
        pushed = flows.push(step, vectors)
        for state, old in self._replaced.items():
            new = int(self._actions[step, state])
            pushed += vectors[:, state, None] * self._difference(step, state, new, old)
        self._replaced.clear()
        self._mass = pushed[0]
        for one, reach in zip(earlier, pushed[1:], strict=True):
            one.reach = reach
        for one in self._open[len(earlier) :]:  # the alternatives of this step come last
            one.reach = self._difference(step, one.place.state, one.action, one.place.base)
            self._mass = self._mass + one.occupancy * one.reach

    def _difference(self, step: int, state: int, action: int, other: int) -> np.ndarray:
        """Where one action leads, minus where the other does."""
        row = self._stepper.row(step, state, action)
        return row - self._stepper.row(step, state, other)

    def _written(self) -> np.ndarray:
        """The policy: base actions, and probabilities where alternatives are open."""
        result = np.zeros(self._shape)
        np.put_along_axis(result, self._actions[:, :, None], 1.0, axis=2)
        for place in {one.place for one in self._open}:
            row = result[place.step, place.state]
            row[place.base] = place.occupancy
            for one in self._open:
                if one.place is place:
                    row[one.action] = one.occupancy
            row[row < _ROUNDING * row.sum()] = 0.0
            if row.any():
                row /= row.sum()
            else:
                row[place.base] = 1.0
        return result


def _idle_direction(gains: list[list[float]]) -> list[float] | None:
    """A unit vector x with xᵀG = 0 for E rows G of I gains; None if the rows are independent.

    It is needed at every random place, hence written out for one and two constraints.
    """
    match gains:
        case [[one], [other]]:
            length = math.hypot(one, other)
            return [other / length, -one / length] if length > 0 else [1.0, 0.0]
        case [[a, d], [b, e], [c, f]]:
            normal = [b * f - c * e, c * d - a * f, a * e - b * d]
            length = math.hypot(*normal)
            if length > _SKEW * max(abs(a), abs(b), abs(c)) * max(abs(d), abs(e), abs(f)):
                return [number / length for number in normal]  # else cancellation would spoil it
        case []:
            return None
    _, singular, right = np.linalg.svd(np.array(gains).T)
    independent = singular.min(initial=np.inf) > _DEPENDENT
    found: list[float] = right[-1].tolist()
    return None if len(gains) <= len(gains[0]) and independent else found
