"""Queues and accounts of any size."""

import random

from autograder import checks, task

NAMES = ("Ada", "Ben", "Cy", "Dee", "Eve", "Fay")


@task("queue", 2, needs="test_first_one_leaves_first", promise="Who comes first leaves first.")
def test_all_leave_in_the_order_in_which_they_came(student, seed):
    """Everybody leaves in the order in which they came, also when others join meanwhile."""
    names = random.sample(NAMES, len(NAMES))
    queue = student.Queue()
    left = []
    for number, name in enumerate(names):
        queue.put(name)
        if number % 2:
            left.append(queue.take())
    left += [queue.take() for _ in range(len(names) - len(left))]
    checks.equal(left, names, "the order")


@task(
    "queue",
    1,
    promise="A queue in which nobody waits raises an `EmptyQueue`.",
    fixed_inputs="There is one empty queue.",
)
def test_nobody_waits(student):
    """Taking from an empty queue raises an EmptyQueue."""
    checks.raises(student.EmptyQueue, student.Queue().take)


@task("account", 1, promise="all others raise a `ValueError`")
def test_only_positive_amounts_move(student, seed):
    """An amount that is not positive raises a ValueError."""
    account = student.Account(50)
    wrong = -random.randint(1, 40)
    checks.raises(ValueError, account.deposit, wrong)
    checks.raises(ValueError, account.withdraw, wrong)
    checks.raises(ValueError, account.deposit, 0)


@task(
    "account",
    3,
    needs="test_deposit_and_withdrawal",
    promise="A transfer happens as a whole or not at all.",
)
def test_transfer_as_a_whole_or_not_at_all(student, seed):
    """A transfer moves the amount, and one that is refused moves nothing."""
    mine, other = student.Account(random.randint(50, 60)), student.Account(5)
    before = mine.balance
    amount = random.randint(10, 40)
    mine.transfer(other, amount)
    checks.equal((mine.balance, other.balance), (before - amount, 5 + amount), "the two balances")
    left = mine.balance
    checks.raises(student.NotEnough, mine.transfer, other, left + 1)
    checks.equal(
        (mine.balance, other.balance), (left, 5 + amount), "the two balances after the refusal"
    )
