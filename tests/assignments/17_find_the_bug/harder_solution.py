"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

from collections.abc import Callable


def shrunk(items: list, fails: Callable[[list], bool]) -> list:
    n = 2
    while len(items) > 1:
        edges = [len(items) * part // n for part in range(n + 1)]
        for part in range(n):
            rest = items[: edges[part]] + items[edges[part + 1] :]
            if fails(rest):
                items, n = rest, max(n - 1, 2)
                break
        else:
            if n == len(items):
                break
            n = min(2 * n, len(items))
    return list(items)
