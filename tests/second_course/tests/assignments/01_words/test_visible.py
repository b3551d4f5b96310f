"""Words of short texts."""

from autograder import checks, task


@task("count", 1)
def test_word_that_occurs_twice(student):
    """In "Stop. Do not stop!", the word stop occurs twice."""
    text = "Stop. Do not stop!"
    checks.equal(
        student.count_words(text), {"stop": 2, "do": 1, "not": 1}, f'count_words("{text}")'
    )


@task("index", 1)
def test_index_of_two_lines(student):
    """Of the lines "a b" and "b b", b stands in both."""
    checks.equal(
        student.make_index(["a b", "b b"]), {"a": [1], "b": [1, 2]}, 'make_index(["a b", "b b"])'
    )


@task("table", 1)
def test_table_of_two_words(student, capsys):
    """The word that occurs twice comes first."""
    student.print_table("yes no no")
    checks.equal(capsys.readouterr().out, "2 no\n1 yes\n", "the printed text")
