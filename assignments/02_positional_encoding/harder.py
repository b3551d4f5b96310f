"""Harder, and not graded: a step is a matrix (about 30 minutes, ●●○).

Why sines? Section 3.5 of *Attention Is All You Need* gives a reason in one sentence: for any fixed offset k, the row of
position p + k is a *linear function* of the row of position p. So one matrix M takes each position k places further,
wherever it is:

    M @ PE[p] = PE[p + k]        for every p

An attention head can learn such a matrix, and then it can look "three words back" from everywhere. You find M with the
two addition formulas sin(a + b) = sin a cos b + cos a sin b and cos(a + b) = cos a cos b - sin a sin b.

**By hand.** For d = 2 there is one hand, it turns by 1 radian a position, and the row of p is (sin p, cos p). For k = 1,
M has the rows (0.5403, 0.8415) and (-0.8415, 0.5403), which are cos 1 and sin 1 with their signs.

**And learned positions?** Nobody gives them this property, but perhaps training finds it. For any table, the best matrix
is a question of least squares: choose M so that M @ table[p] comes as near to table[p + k] as possible, for all p
together. The root mean square of all differences that are left says how far the table is from having the property. With
`TokenAndPositionEmbedding`, trained in a model of 07, you can ask it.

Write `step_matrix` and `best_step`, and run `python harder.py`.
Each check stops after a minute of work.
"""

import torch
from torch import Tensor

from autograder import checks


def step_matrix(k: int, d_model: int) -> Tensor:
    """The matrix that takes each row of the sinusoidal table k positions further: float64, (d_model, d_model).

    d_model is even; k may be negative.
    """
    # TODO: a block of 2 × 2 numbers on the diagonal for each hand                # (d_model, d_model)
    raise NotImplementedError("step_matrix is not written yet.")


def best_step(table: Tensor, k: int) -> tuple[Tensor, float]:
    """The matrix (d, d) that takes the rows of any table (P, d) k positions further as well as a matrix can.

    k >= 1, and the table has many more rows than columns. The second result is the root mean square of the
    (P - k) · d differences that are left.
    """
    # TODO: least squares (torch.linalg.lstsq) over all pairs of rows that are k apart; mind on which side M stands
    raise NotImplementedError("best_step is not written yet.")


def numbers(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def by_hand() -> None:
    """For d = 2 and k = 1 it is the matrix of cos 1 and sin 1."""
    checks.close(step_matrix(1, 2), numbers([0.5403, 0.8415], [-0.8415, 0.5403]), "The matrix", atol=5e-5)


def along_the_table() -> None:
    """For d = 4 it leads from each row of the worked table in Part 1 to the next one."""
    rows = numbers([0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 1.0000], [0.9093, -0.4161, 0.0200, 0.9998])
    for p, k in ((0, 1), (1, 1), (0, 2), (2, -1)):
        checks.close(step_matrix(k, 4) @ rows[p], rows[p + k], f"The matrix of {k}, times row {p},", atol=3e-4)


def steps_add_up() -> None:
    """Three steps and two more are five; a step back undoes a step; no step turns a vector longer or shorter."""
    checks.close(step_matrix(3, 8) @ step_matrix(2, 8), step_matrix(5, 8), "Three steps and two more")
    checks.close(step_matrix(7, 6) @ step_matrix(-7, 6), torch.eye(6, dtype=torch.float64), "Seven steps and back")
    lengths = (step_matrix(9, 10) @ torch.eye(10, dtype=torch.float64)).norm(dim=0)
    checks.close(lengths, torch.ones(10, dtype=torch.float64), "The length of each column")


def found_again() -> None:
    """In a table whose rows follow from one another by a matrix, that matrix is found, and nothing is left over."""
    dice = torch.Generator().manual_seed(2)
    crooked = torch.randn(6, 6, generator=dice, dtype=torch.float64)
    turn = torch.linalg.matrix_exp(crooked - crooked.T)                         # keeps lengths
    rows = [torch.randn(6, generator=dice, dtype=torch.float64)]
    for _ in range(60):
        rows.append(turn @ rows[-1])
    for k in (1, 3):
        matrix, left = checks.unpack(best_step(torch.stack(rows), k), ["the matrix", "what is left"])
        checks.close(matrix, torch.linalg.matrix_power(turn, k), f"The best matrix for k = {k}", atol=1e-6)
        checks.true(abs(left) < 1e-6, f"What is left should be almost 0, but it is {left}.")


def nothing_to_find() -> None:
    """In a table of random numbers, almost everything is left over."""
    table = torch.randn(2000, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    _, left = checks.unpack(best_step(table, 1), ["the matrix", "what is left"])
    checks.true(0.95 < left < 1.05, f"The numbers have a root mean square of 1; of that, {left} is left.")


CHECKS = [by_hand, along_the_table, steps_add_up, found_again, nothing_to_find]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
