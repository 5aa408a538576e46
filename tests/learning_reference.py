"""The schemes and algorithms in slow, obvious NumPy, straight from the paper's pseudo-code.

Loops over h, s and a; nothing shared with the library. `Optimism`'s numbers are computed here again.
"""

import math

import numpy as np


def schedule_value(value, k):
    """A number, or (initial, exponent, offset)."""
    if isinstance(value, tuple):
        initial, exponent, offset = value
        return initial * (k + offset) ** -exponent
    return value


def bonus_constants(profile, sizes):
    """(c_r, c_p) with b^r = c_r/√(n∨1) and b^p = c_p/√(n∨1)."""
    num_constraints, horizon, num_states, num_actions = sizes
    if profile["bonus"] == "count":
        return 0.0, profile["scale"]
    delta = profile["failure_probability"] / 3
    pairs = num_states * num_actions * horizon * profile["num_episodes"]
    reward = math.sqrt(0.5 * math.log(2 * pairs * (num_constraints + 1) / delta))
    transition = horizon * math.sqrt(2 * num_states + 2 * math.log(pairs / delta))
    return profile["scale"] * reward, profile["scale"] * transition


class Memory:
    """Counts and sums of the episodes so far."""

    def __init__(self, model, profile):
        self.model, self.profile = model, profile
        H, S, A = model["rewards"].shape
        I = len(model["thresholds"])
        self.n = np.zeros((H, S, A), int)
        self.to = np.zeros((H, S, A, S), int)
        self.r = np.zeros((H, S, A))
        self.u = np.zeros((I, H, S, A))

    def count(self, states, actions, rewards, constraint_rewards):
        for h, action in enumerate(actions):
            s = states[h]
            self.n[h, s, action] += 1
            self.to[h, s, action, states[h + 1]] += 1
            self.r[h, s, action] += rewards[h]
            for i in range(len(self.u)):
                self.u[i, h, s, action] += constraint_rewards[i][h]

    def optimistic_model(self):
        """r̂, û, p̂ and b^p."""
        H, S, A = self.n.shape
        sizes = (len(self.u), H, S, A)
        c_r, c_p = bonus_constants(self.profile, sizes)
        r_hat, u_hat = np.zeros((H, S, A)), np.zeros_like(self.u)
        p_hat, b_p = np.zeros((H, S, A, S)), np.zeros((H, S, A))
        for h in range(H):
            for s in range(S):
                for a in range(A):
                    n = max(self.n[h, s, a], 1)
                    b_p[h, s, a] = c_p / math.sqrt(n)
                    b = (c_r + c_p) / math.sqrt(n)
                    unvisited = self.n[h, s, a] == 0
                    if unvisited and self.profile["unvisited_rows"] == "uniform":
                        p_hat[h, s, a] = 1 / S
                    else:
                        p_hat[h, s, a] = self.to[h, s, a] / n
                    if self.profile["rewards"] == "known":
                        r_hat[h, s, a] = self.model["rewards"][h, s, a] + b
                        u_hat[:, h, s, a] = self.model["constraint_rewards"][:, h, s, a] + b
                    elif unvisited and self.profile["unvisited_rewards"] is not None:
                        r_hat[h, s, a] = self.profile["unvisited_rewards"]
                        u_hat[:, h, s, a] = self.profile["unvisited_rewards"]
                    else:
                        r_hat[h, s, a] = self.r[h, s, a] / n + b
                        u_hat[:, h, s, a] = self.u[:, h, s, a] / n + b
        return r_hat, u_hat, p_hat, b_p


def evaluate(p, z, policy, ceiling=None):
    """Q and V of one signal, truncated at a ceiling [H, S, A] if there is one."""
    H, S, A = z.shape
    q, v = np.zeros((H, S, A)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                q[h, s, a] = z[h, s, a] + p[h, s, a] @ v[h + 1]
                if ceiling is not None:
                    q[h, s, a] = min(q[h, s, a], ceiling[h, s, a])
            v[h, s] = policy[h, s] @ q[h, s]
    return q, v[0]


def softmax_policy(log_weights):
    shifted = log_weights - log_weights.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def plan(p, z, tau):
    """log π: soft for τ > 0, else the lowest action within 1e-10 of the best."""
    H, S, A = z.shape
    log_policy, v = np.full((H, S, A), -np.inf), np.zeros(S)
    for h in reversed(range(H)):
        q = z[h] + p[h] @ v
        v = np.zeros(S)
        for s in range(S):
            if tau > 0:
                top = q[s].max()
                v[s] = top + tau * np.log(np.exp((q[s] - top) / tau).sum())
                log_policy[h, s] = (q[s] - v[s]) / tau
            else:
                v[s] = q[s].max()
                log_policy[h, s, np.flatnonzero(q[s] >= v[s] - 1e-10)[0]] = 0.0
    return log_policy


def clip(x, top):
    return np.minimum(np.maximum(x, 0.0), top)


def primal_dual_learner(model, profile, log, *, step_size, regularization, max_multiplier, margin):
    """Algorithm 1 fed with a log; yields (λ_k, V̂_u, log π_k, Q̂_z) for k = 1, 2, …"""
    H, S, A = model["rewards"].shape
    c, mu = model["thresholds"], model["initial"]
    memory = Memory(model, profile)
    log_policy, lam = np.full((H, S, A), -math.log(A)), np.zeros(len(c))
    left = np.broadcast_to(np.arange(H, 0, -1.0)[:, None, None], (H, S, A))  # H - h + 1
    for k, episode in enumerate(zip(*log, strict=True), start=1):
        eta, tau = schedule_value(step_size, k), schedule_value(regularization, k)
        r_hat, u_hat, p_hat, b_p = memory.optimistic_model()
        policy, psi = np.exp(log_policy), -log_policy
        q_r, _ = evaluate(p_hat, r_hat, policy, left)
        q_z, v_u = q_r.copy(), np.zeros(len(c))
        for i in range(len(c)):
            q_u, v = evaluate(p_hat, u_hat[i], policy, left)
            q_z = q_z + lam[i] * q_u
            v_u[i] = mu @ v
        if tau > 0:
            ceiling = psi + left * math.log(A)
            q_z = q_z + tau * evaluate(p_hat, psi + b_p * math.log(A), policy, ceiling)[0]
        yield lam.copy(), v_u, log_policy.copy(), q_z
        log_policy = softmax_policy(log_policy + eta * q_z)
        shift = schedule_value(margin, k)
        lam = clip((1 - eta * tau) * lam - eta * (v_u - (c + shift)), max_multiplier)
        memory.count(*episode)


def dual_learner(model, profile, log, *, step_size, regularization, max_multiplier, margin):
    """Algorithm 3 fed with a log; yields (λ_k, V̂_u, log π_k, None)."""
    A = model["rewards"].shape[-1]
    c, mu = model["thresholds"], model["initial"]
    memory, lam = Memory(model, profile), np.zeros(len(c))
    for k, episode in enumerate(zip(*log, strict=True), start=1):
        eta, tau = schedule_value(step_size, k), schedule_value(regularization, k)
        r_hat, u_hat, p_hat, b_p = memory.optimistic_model()
        z = r_hat + np.tensordot(lam, u_hat, axes=1) + tau * b_p * math.log(A)
        log_policy = plan(p_hat, z, tau)
        v_u = np.array([mu @ evaluate(p_hat, u, np.exp(log_policy))[1] for u in u_hat])
        yield lam.copy(), v_u, log_policy, None
        shift = schedule_value(margin, k)
        lam = clip((1 - eta * tau) * lam - eta * (v_u - (c + shift)), max_multiplier)
        memory.count(*episode)


def scheme(model, name, num_iterations, *, step_size, regularization, max_multiplier):
    """The scheme with the model known; yields (λ_k, V_r, V_u, π_k)."""
    H, S, A = model["rewards"].shape
    c, mu, p = model["thresholds"], model["initial"], model["transitions"]
    r, u = model["rewards"], model["constraint_rewards"]
    log_policy, lam = np.full((H, S, A), -math.log(A)), np.zeros(len(c))
    for k in range(1, num_iterations + 1):
        eta, tau = schedule_value(step_size, k), schedule_value(regularization, k)
        z = r + np.tensordot(lam, u, axes=1)
        if name == "dual":
            log_policy = plan(p, z, tau)
        policy = np.exp(log_policy)
        v_r = mu @ evaluate(p, r, policy)[1]
        v_u = np.array([mu @ evaluate(p, signal, policy)[1] for signal in u])
        yield lam.copy(), v_r, v_u, policy
        if name == "primal-dual":
            signal = z - tau * log_policy if tau > 0 else z
            log_policy = softmax_policy(log_policy + eta * evaluate(p, signal, policy)[0])
        lam = clip((1 - eta * tau) * lam - eta * (v_u - c), max_multiplier)
