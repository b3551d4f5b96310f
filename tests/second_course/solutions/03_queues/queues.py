# %% [markdown]
# # Queues and accounts
#
# Some things must not happen: nobody is served twice, and no account falls below zero. An object keeps such a
# promise itself, and raises an exception where it would have to break it.

# %%
from __future__ import annotations


class EmptyQueue(Exception):
    """Nobody is waiting."""


class NotEnough(Exception):
    """The money is not there."""


# %% [markdown]
# ## Part 1 · First come first served
#
# Who comes first leaves first. A queue in which nobody waits raises an `EmptyQueue`.


# %%
class Queue:
    """People who wait: `put` lets one join, `take` lets the first one go, and `len` counts them."""

    def __init__(self) -> None:
        self._waiting: list[str] = []

    def put(self, name: str) -> None:
        """Someone joins at the end."""
        # TODO: add the name at the end
        ### BEGIN SOLUTION
        self._waiting.append(name)
        ### END SOLUTION

    def take(self) -> str:
        """The first one leaves, and is returned; an empty queue raises an EmptyQueue."""
        # TODO: raise EmptyQueue if nobody waits; otherwise remove the first name and return it
        ### BEGIN SOLUTION
        if not self._waiting:
            raise EmptyQueue("nobody is waiting.")
        return self._waiting.pop(0)
        ### END SOLUTION

    def __len__(self) -> int:
        return len(self._waiting)


# %% part="queue"

# %% [markdown]
# ## Part 2 · An account that is never overdrawn
#
# Amounts are whole cents, and only positive ones can be moved: all others raise a `ValueError`. If an account
# has too little, `withdraw` raises a `NotEnough` that says how much is missing, and the balance stays. A
# transfer happens as a whole or not at all.


# %%
class Account:
    """Money of one person."""

    def __init__(self, balance: int = 0) -> None:
        self.balance = balance

    def deposit(self, amount: int) -> None:
        """The balance grows by the amount; one that is not positive raises a ValueError."""
        # TODO: refuse an amount that is not positive, then add it to the balance
        ### BEGIN SOLUTION
        if amount <= 0:
            raise ValueError(f"amount must be positive, but it is {amount}.")
        self.balance += amount
        ### END SOLUTION

    def withdraw(self, amount: int) -> None:
        """The balance falls by the amount; NotEnough says how much is missing."""
        # TODO: refuse an amount that is not positive, or that is not there, then subtract it from the balance
        ### BEGIN SOLUTION
        if amount <= 0:
            raise ValueError(f"amount must be positive, but it is {amount}.")
        if amount > self.balance:
            missing = amount - self.balance
            raise NotEnough(f"{missing} cents are missing.")
        self.balance -= amount
        ### END SOLUTION

    def transfer(self, other: Account, amount: int) -> None:
        """The amount moves to the other account, as a whole or not at all."""
        # TODO: withdraw here, and deposit there
        ### BEGIN SOLUTION
        self.withdraw(amount)
        other.deposit(amount)
        ### END SOLUTION


# %% part="account"
