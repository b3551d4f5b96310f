"""How a worker is shut in, and its clocks and budgets."""
