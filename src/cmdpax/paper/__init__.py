"""The paper itself: its statements audited, its experiment reproduced."""
