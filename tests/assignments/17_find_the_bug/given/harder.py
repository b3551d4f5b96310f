"""Harder, and not graded: let the computer shrink it (about 35 minutes, ●●○).

Something fails on an input of a thousand lines, and most of them have nothing to do with it. *Delta debugging* (Andreas
Zeller and Ralf Hildebrandt, 2002) throws parts away as long as the rest still fails:

    n = 2
    when one item is left: done
    cut the items into n parts, as equally long as possible, in their order
    if the items without one of the parts still fail: go on with these, and with n - 1 parts, at least 2
    otherwise, if the parts are single items: done
    otherwise: go on with 2 · n parts, at most as many as there are items

What is left in the end is *1-minimal*: it fails, and it no longer fails if any single item is taken away. That need not
be the smallest input of all, but it is mostly small enough to be understood.

**One number by hand.** The items are 1 to 8, and it fails when 3 and 6 are both there. Two parts: without 1 2 3 4 it does
not fail, without 5 6 7 8 neither. Four parts, 1 2 | 3 4 | 5 6 | 7 8: without the first it fails, so 3 4 5 6 7 8 are left,
in three parts. Without 3 4 or 5 6 it does not fail; without 7 8 it does: 3 4 5 6. Two parts, then four: without 4 and
without 5 it fails. What is left is 3 6.

Write `shrunk`, and run `python harder.py`.
Each check stops after a minute of work.
"""

from collections.abc import Callable

from autograder import checks


def shrunk(items: list, fails: Callable[[list], bool]) -> list:
    """A 1-minimal part of items, in their order, for which fails(part) is still True. items keeps its entries.

    fails(items) is True. fails is called with lists, at most about n² times for n items, and mostly far less often.
    """
    # TODO: cut into parts; leave one of them out; go on with what still fails, or with smaller parts
    raise NotImplementedError("shrunk is not written yet.")


def by_hand() -> None:
    """Of 1 to 8, where 3 and 6 fail together, 3 and 6 are left."""
    checks.equal(shrunk(list(range(1, 9)), lambda part: 3 in part and 6 in part), [3, 6], "What is left")


def order_is_kept() -> None:
    """What is left stands in its old order, and the list that came in is as it was."""
    items = [5, 1, 4, 2, 9]
    left = shrunk(items, lambda part: [item for item in part if item in (4, 9, 1)] == [1, 4, 9])
    checks.equal(left, [1, 4, 9], "What is left of 5, 1, 4, 2, 9")
    checks.equal(items, [5, 1, 4, 2, 9], "The list that came in")


def nothing_too_much() -> None:
    """No single item of what is left can be taken away."""
    for fails in (lambda part: sum(part) >= 100, lambda part: len(part) >= 7, lambda part: len(part) % 2 == 1):
        left = shrunk(list(range(1, 32)), fails)
        assert fails(left), f"{left} does not fail any more."
        for place in range(len(left)):
            rest = left[:place] + left[place + 1 :]
            assert not fails(rest), f"{left} is left, and it still fails without {left[place]}."


def few_questions() -> None:
    """One item of a thousand is found with less than a hundred questions."""
    asked = []

    def fails(part: list) -> bool:
        asked.append(part)
        return 777 in part

    checks.equal(shrunk(list(range(1000)), fails), [777], "What is left")
    assert len(asked) < 100, f"{len(asked)} questions were asked."


CHECKS = [by_hand, order_is_kept, nothing_too_much, few_questions]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
