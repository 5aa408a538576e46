"""The schemes of the paper: the updates of policy and multipliers, and the model known."""
