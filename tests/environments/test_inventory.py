import numpy as np
import pytest

import cmdpax

DEMAND = (0.3, 0.2, 0.2, 0.2, 0.05, 0.05)


def shop(capacity: int, demand: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """p, expected revenue and cost, day by day as the shop works."""
    size = capacity + 1
    transitions = np.zeros((size, size, size))
    revenue, cost = np.zeros((size, size)), np.zeros((size, size))
    for stock in range(size):
        for wish in range(size):
            order = wish if stock + wish <= capacity else capacity - stock
            shelf = stock + order
            cost[stock, wish] = shelf + (4 + 2 * order if order > 0 else 0)
            for wanted, chance in enumerate(demand):
                left = shelf - wanted if wanted <= shelf else 0
                transitions[stock, wish, left] += chance
                if wanted <= shelf:
                    revenue[stock, wish] += chance * 0.08 * wanted
    return transitions, revenue, cost


def test_the_default_model() -> None:
    cmdp = cmdpax.environments.make("inventory")
    transitions, revenue, cost = shop(5, DEMAND)
    assert cmdp.sizes == (1, 7, 6, 6)
    np.testing.assert_allclose(cmdp.transitions[0], transitions, rtol=0, atol=1e-15)
    np.testing.assert_allclose(cmdp.rewards[0], revenue / 0.132, rtol=0, atol=1e-12)
    np.testing.assert_allclose(cmdp.constraint_rewards[0, 0], 1 - cost / 19, rtol=0, atol=1e-15)
    assert cmdp.thresholds == pytest.approx([7 - 3.5])
    assert cmdp.initial.tolist() == [1, 0, 0, 0, 0, 0]


def test_an_order_beyond_the_room_left_acts_as_the_largest_that_fits() -> None:
    cmdp = cmdpax.environments.make("inventory")
    for stock in range(6):
        for order in range(6 - stock, 6):
            fits = 5 - stock
            for array in (cmdp.transitions[0], cmdp.rewards[0], cmdp.constraint_rewards[0, 0]):
                np.testing.assert_array_equal(array[stock, order], array[stock, fits])


def test_revenue_follows_the_demand_not_the_next_stock() -> None:
    # Of an empty shelf nothing is sold; of one item, one with the chance of that demand.
    cmdp = cmdpax.environments.make("inventory")
    assert cmdp.rewards[0, 0, 0] == 0.0
    assert cmdp.rewards[0, 0, 1] == pytest.approx(0.2 * 0.08 / 0.132)


def test_other_parameters() -> None:
    demand = (0.5, 0.25, 0.25)
    cmdp = cmdpax.environments.make("inventory", capacity=2, horizon=3, demand=demand, budget=1.0)
    transitions, revenue, cost = shop(2, demand)
    np.testing.assert_allclose(cmdp.transitions[0], transitions, rtol=0, atol=1e-15)
    np.testing.assert_allclose(cmdp.rewards[0], revenue / revenue.max(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        cmdp.constraint_rewards[0, 0], 1 - cost / cost.max(), rtol=0, atol=1e-15
    )
    assert cmdp.thresholds.tolist() == [2.0]


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        ((0.5, 0.4), "demand sums to 0.9, not to 1"),
        ("often", "demand is 'often', it must be a list of probabilities"),
        ((), r"demand is \(\), it must be a list of probabilities, that of 0 first\.$"),
        ((1.5, -0.5), "demand is 1.5, it must be a number between 0 and 1"),
    ],
)
def test_the_demand_is_a_distribution(demand: object, message: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=message):
        cmdpax.environments.make("inventory", demand=demand)


def test_no_demand_earns_nothing() -> None:
    assert np.all(cmdpax.environments.make("inventory", demand=[1.0]).rewards == 0)
