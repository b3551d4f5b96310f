"""With a deque, and a transfer that looks before it moves."""

from collections import deque


class EmptyQueue(Exception):
    pass


class NotEnough(Exception):
    pass


class Queue(deque):
    def put(self, name):
        self.append(name)

    def take(self):
        try:
            return self.popleft()
        except IndexError:
            raise EmptyQueue from None


def positive(amount):
    if not amount > 0:
        raise ValueError(amount)
    return amount


class Account:
    def __init__(self, balance=0):
        self.balance = balance

    def deposit(self, amount):
        self.balance += positive(amount)

    def withdraw(self, amount):
        if self.balance < positive(amount):
            raise NotEnough(f"there are {self.balance}, so {amount - self.balance} more are needed")
        self.balance -= amount

    def transfer(self, other, amount):
        self.withdraw(amount)
        other.balance += amount
