"""A queue of two, and an account with ten cents."""

from autograder import checks, task


@task("queue", 1)
def test_first_one_leaves_first(student):
    """Of Ada and Ben, who came after her, Ada leaves first."""
    queue = student.Queue()
    queue.put("Ada")
    queue.put("Ben")
    checks.equal(queue.take(), "Ada", "the first one")
    checks.equal(len(queue), 1, "the length of the queue")


@task("account", 1)
def test_deposit_and_withdrawal(student):
    """An account with 10 cents has 12 after 5 more came and 3 left."""
    account = student.Account(10)
    account.deposit(5)
    account.withdraw(3)
    checks.equal(account.balance, 12, "the balance")


@task("account", 1)
def test_what_is_not_there_cannot_be_withdrawn(student):
    """From 10 cents, 14 cannot be withdrawn: 4 are missing."""
    checks.raises(student.NotEnough, student.Account(10).withdraw, 14, naming=4)
