"""The tests that students see: shapes, first rows and worked numbers. No solution is needed to read them."""

import math

import torch

from autograder import checks, task


@task("table", 0.25)
def test_table_has_a_row_for_each_position(student):
    """The table has one row for each position and one column for each feature."""
    checks.shape(student.positional_encoding(7, 4), (7, 4), "positional_encoding(7, 4)")
    checks.shape(student.positional_encoding(2, 10), (2, 10), "positional_encoding(2, 10)")


@task("table", 0.5, needs="test_table_has_a_row_for_each_position")
def test_first_row_alternates_zero_and_one(student):
    """The very first position gets the row 0, 1, 0, 1, …"""
    first = student.positional_encoding(3, 8)[0]
    checks.close(first, torch.tensor([0.0, 1.0] * 4), "the first row", axes=("column",))


@task("table", 1, needs="test_table_has_a_row_for_each_position")
def test_worked_example_of_the_table(student):
    """With d_model = 4 there are two hands: one turns by 1 at every step, the other by 0.01."""
    table = student.positional_encoding(3, 4)
    worked = torch.tensor(
        [
            [0.0, 1.0, 0.0, 1.0],
            [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
            [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
        ]
    )
    checks.close(table, worked, "positional_encoding(3, 4)", axes=("position", "column"), atol=1e-5)


@task("module", 0.25)
def test_module_keeps_the_shape(student):
    """What goes in as (B, T, C) comes out as (B, T, C), for sentences shorter than the table."""
    module = student.SinusoidalPositionalEncoding(6, 11)
    checks.shape(module(torch.randn(3, 5, 6)), (3, 5, 6), "the output for x of shape (3, 5, 6) and max_len=11")


@task("module", 0.75, needs="test_module_keeps_the_shape")
def test_every_sentence_gets_the_same_positions(student):
    """Every sentence of the batch gets the first T rows of your table, word t the row t."""
    module = student.SinusoidalPositionalEncoding(6, 11)
    x = torch.randn(3, 5, 6)
    added = module(x.clone()) - x
    rows = student.positional_encoding(11, 6)[:5]
    checks.close(added, rows.expand(3, 5, 6), "output minus input", atol=1e-5)
    spread = (added[0, 1:] - added[0, 0]).abs().max()
    checks.true(spread > 1e-3, "All positions get the same numbers, so the order is still lost.")


@task("module", 1)
def test_table_is_a_buffer_and_not_trained(student):
    """The table is kept as the buffer `pe`, and the optimiser has nothing to move."""
    module = student.SinusoidalPositionalEncoding(d_model=6, max_len=13)
    checks.no_parameters(module)
    pe = getattr(module, "pe", None)
    kept = "pe" in dict(module.named_buffers())
    checks.true(kept, "The module has no buffer called `pe`, so its table does not follow it.")
    checks.shape(
        pe[0] if pe.dim() == 3 and len(pe) == 1 else pe, (13, 6), "the buffer `pe` for d_model=6, max_len=13"
    )


@task("learned", 0.5)
def test_learned_tables_have_the_right_names_and_shapes(student):
    """There is one learned row for each token and one for each position, and nothing else is learned."""
    module = student.TokenAndPositionEmbedding(vocab_size=11, block_size=7, embed_size=5)
    checks.parameters(module, {"token_embedding.weight": (11, 5), "position_embedding.weight": (7, 5)})


@task("learned", 0.4)
def test_worked_example_of_learned_positions(student):
    """The same token at two positions gives the two vectors of the worked example: token plus position."""
    module = student.TokenAndPositionEmbedding(8, 3, 2)
    with torch.no_grad():
        module.token_embedding.weight.zero_()
        module.token_embedding.weight[7] = torch.tensor([5.0, 0.0])
        module.position_embedding.weight.copy_(torch.tensor([[0.1, 0.2], [0.3, 0.4], [9.0, 9.0]]))
    worked = torch.tensor([[[5.1, 0.2], [5.3, 0.4]]])
    checks.close(module(torch.tensor([[7, 7]])), worked, "the output for the sentence `7 7`", atol=1e-5)
