"""`autograder similar`: a renamed copy is listed, independent correct answers are not, and no verdict is given."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("rapidfuzz", reason="rapidfuzz is not installed: pip install '.[similar]'")

from made_up_class import write_class

from autograder.cli import app
from autograder.course.config import Assignment, Course
from autograder.course.document import load_document
from autograder.course.mistakes_file import load_alternatives
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course
from autograder.extras.similar import similar as finding
from autograder.extras.similar.similar import MOST_LETTERS, similar
from autograder.extras.similar.tokens import Stub, own_code
from tests.autograder.sampling import sampled
from tests.autograder.tiny_course import write_files, write_tiny_course

ROOT = Path(__file__).parents[4]
LEAST = 0.15  # what the command lists without being asked for more

ORIGINAL = """\
import math
import torch
from torch import nn


def causal_mask(T):
    # every word may look at itself and at whoever spoke before
    rows = [[speaker <= listener for speaker in range(T)] for listener in range(T)]
    return torch.tensor(rows, dtype=torch.bool).reshape(T, T)


def attention(q, k, v, mask=None):
    loudness = torch.matmul(q / math.sqrt(q.size(-1)), k.mT)
    if mask is not None:
        closed = mask.logical_not().expand_as(loudness)
        loudness = torch.where(closed, torch.full_like(loudness, -math.inf), loudness)
    highest = loudness.amax(-1, keepdim=True).clamp(min=-1e30)
    heard = (loudness - highest).exp()
    total = heard.sum(-1, keepdim=True)
    weights = heard / total.masked_fill(total == 0, 1.0)
    return weights.matmul(v), weights


class Head(nn.Module):
    def __init__(self, embed_size, head_size, block_size):
        super().__init__()
        for layer in ("key", "query", "value"):
            setattr(self, layer, nn.Linear(embed_size, head_size, bias=False))
        self.register_buffer("allowed", causal_mask(block_size))

    def forward(self, x):
        length = x.size(1)
        if length > self.allowed.size(0):
            raise ValueError("T is " + str(length))
        q, k, v = (layer(x) for layer in (self.query, self.key, self.value))
        return attention(q, k, v, self.allowed[:length, :length])[0]
"""


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(ROOT)


@pytest.fixture(scope="module")
def heads(course: Course) -> Assignment:
    return course.assignment("03_masked_heads")


class Renaming(ast.NodeTransformer):
    """Renames everything that the author of the code has named, as a student who copies does."""

    def __init__(self, names: set[str]) -> None:
        self.new = {name: f"my_{number}" for number, name in enumerate(sorted(names))}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.new.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.new.get(node.arg, node.arg)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = self.new.get(node.attr, node.attr)
        return node


BRACKETS_OF_3_10 = re.compile(
    r"(^ *|\bfor )\(([\w.*, ]+)\)(?= = | in )", re.MULTILINE
)  # `for (a, b) in pairs`


def renamed(text: str, keep: frozenset[str]) -> str:
    """Return a copy with other names and line breaks, without comments, and with its functions in another order."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names |= {n.arg for n in nodes if isinstance(n, ast.arg)} | {"allowed"}
    tree = Renaming(names - keep - {"self"}).visit(tree)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    others = [node for node in tree.body if node not in imports and node not in functions]
    tree.body = [*imports, *reversed(functions), *others]
    written = ast.unparse(ast.fix_missing_locations(tree)).replace("mask=None", "mask = None")
    return BRACKETS_OF_3_10.sub(r"\1\2", written) + "\n"


def stub_of(course: Course, assignment: Assignment) -> Stub:
    return Stub.of(load_document(course, assignment).stub)


def hand_in(folder: Path, student: str, text: str, name: str = "masked_heads.py") -> None:
    file = folder / student / "03_masked_heads" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


# ---------------------------------------------------------------------- tokens


def test_a_renamed_copy_has_the_same_tokens(course, heads):
    one = """\
def attention(q, k, v, mask=None):
    scores = (q @ k.mT) / math.sqrt(q.shape[-1])  # how loud
    self.allowed = "how loud"
    return helper(scores).masked_fill(
        self.allowed, 0.0)

def helper(x):
    return x.softmax(-1)
"""
    other = """\
def attention(a: Tensor, b: Tensor, c: Tensor, m: Tensor | None = None) -> tuple[Tensor, Tensor]:
    t = (a @ b.mT) / math.sqrt(a.shape[-1])


    self.open = '''something else'''
    return twin(t).masked_fill(self.open, 0.0)
def twin(z):
    return z.softmax(-1)
"""
    stub = stub_of(course, heads)
    assert own_code(one, stub).tokens == own_code(other, stub).tokens
    assert own_code(one, stub).words & own_code(other, stub).words == set()


# ---------------------------------------------------------------------- classes


@pytest.fixture(scope="module", params=sampled([3, 8], (3).__eq__))
def classroom(request, course, heads, tmp_path_factory) -> Path:
    """A made-up class of thirty and two more students: one with an own answer, one with a renamed copy of it."""
    folder = tmp_path_factory.mktemp("class") / "submitted"
    write_class(course, folder, students=30, seed=request.param, assignments=[heads.name])
    hand_in(folder, "xenia", ORIGINAL)
    hand_in(folder, "xaver", renamed(ORIGINAL, stub_of(course, heads).names))
    return folder


def test_renamed_copy_is_listed_first(classroom, course, heads):
    found = similar(course, heads, classroom, most=20, least=LEAST)
    first, *rest = found.pairs
    assert {first.one, first.other} == {"xenia", "xaver"}
    assert first.likeness > 0.5 > max((pair.likeness for pair in rest), default=0)
    assert first.common > 0.9


@pytest.mark.parametrize(
    "name",
    sampled(["02_positional_encoding", "03_masked_heads", "06_bert_param_count"],
            "06_bert_param_count".__eq__),
)  # fmt: skip
def test_independent_right_answers_are_not_listed(course, tmp_path, name):
    assignment = course.assignment(name)
    document = load_document(course, assignment)
    texts = dict(load_alternatives(course, assignment))
    texts |= {f"usual{number}": document.text for number in range(8)}
    for student, text in texts.items():
        (tmp_path / f"{Path(student).stem}.py").write_text(text, "utf-8")
    found = similar(course, assignment, tmp_path, most=20, least=LEAST)
    assert len(found.codes) == len(texts)
    assert found.pairs == []


def test_renamed_copy_of_an_alternative_is_listed(course, heads, tmp_path):
    texts = dict(load_alternatives(course, heads))
    copied = next(text for label, text in texts.items() if "einsum" in label)
    texts |= {f"usual{number}": load_document(course, heads).text for number in range(8)}
    texts["copy"] = renamed(copied, stub_of(course, heads).names)
    for student, text in texts.items():
        (tmp_path / f"{Path(student).stem}.py").write_text(text, "utf-8")
    (pair,) = similar(course, heads, tmp_path, most=20, least=LEAST).pairs
    assert {pair.one, pair.other} == {"copy", "einsum"}


def test_a_copy_in_a_notebook_is_found(course, heads, tmp_path):
    notebook = to_notebook(heads, "# %%\n" + renamed(ORIGINAL, stub_of(course, heads).names))
    hand_in(tmp_path, "ada", ORIGINAL)
    hand_in(tmp_path, "ben", json.dumps(notebook), "masked_heads.ipynb")
    for number in range(4):
        hand_in(tmp_path, f"usual{number}", load_document(course, heads).text)
    (pair,) = similar(course, heads, tmp_path, most=20, least=LEAST).pairs
    assert (pair.one, pair.other) == ("ada", "ben")


def test_unusual_words_shared_by_two_are_listed(course, heads, tmp_path):
    usual = load_document(course, heads).text
    odd = usual.replace("### BEGIN SOLUTION", "# ask grandma about teh mask", 1)
    for student, text in {"ada": odd, "ben": odd, "cy": usual, "dan": usual, "eve": usual}.items():
        hand_in(tmp_path, student, text)
    (pair,) = similar(course, heads, tmp_path, most=1, least=0.0).pairs
    assert (pair.one, pair.other, pair.words) == ("ada", "ben", ("ask grandma about teh mask",))


# ---------------------------------------------------------------------- the course's own answers


USUAL = """\
import math
import torch
from torch import nn


def causal_mask(T):
    return torch.tril(torch.ones(T, T, dtype=torch.bool))


def attention(q, k, v, mask=None):
    d_k = q.size(-1)
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = torch.softmax(scores, dim=-1).nan_to_num()
    return torch.matmul(weights, v), weights


class Head(nn.Module):
    def __init__(self, embed_size, head_size, block_size):
        super().__init__()
        self.key = nn.Linear(embed_size, head_size, bias=False)
        self.query = nn.Linear(embed_size, head_size, bias=False)
        self.value = nn.Linear(embed_size, head_size, bias=False)
        self.register_buffer("mask", causal_mask(block_size))

    def forward(self, x):
        B, T, C = x.shape
        if T > self.mask.size(0):
            raise ValueError(f"T={T} is longer than {self.mask.size(0)}")
        k, q, v = self.key(x), self.query(x), self.value(x)
        out, _ = attention(q, k, v, self.mask[:T, :T])
        return out
"""


@pytest.fixture
def copied(course, heads, tmp_path) -> Path:
    """A class in which the solution was copied as it is, copied with other names, and written independently."""
    solution = load_document(course, heads).text
    helper = "\n\ndef unused(numbers):\n    return [number * number for number in numbers]\n"
    hand_in(tmp_path, "ada", solution + helper)
    hand_in(tmp_path, "ben", renamed(solution, stub_of(course, heads).names))
    hand_in(tmp_path, "cy", USUAL)
    hand_in(tmp_path, "dan", ORIGINAL)
    hand_in(tmp_path, "eve", load_document(course, heads).stub)
    return tmp_path


def test_copies_of_the_solution_are_listed_and_usual_answers_are_not(course, heads, copied):
    found = similar(course, heads, copied, most=20, least=LEAST)
    ada, ben = found.course_answers
    assert (ada.student, ada.answer, ada.share) == ("ada", "the solution", 1.0)
    assert (ben.student, ben.answer) == ("ben", "the solution")
    assert ben.share > 0.95
    assert len(ada.words) > 0.8 * ada.of_words > len(ben.words)
    assert "a row without a single True was 0/0" in ada.words


def test_a_copied_alternative_is_named(course, heads, tmp_path):
    texts = dict(load_alternatives(course, heads))
    hand_in(tmp_path, "ada", texts["einsum"])
    (match,) = similar(course, heads, tmp_path, most=20, least=LEAST).course_answers
    assert (match.student, match.answer, match.share) == ("ada", "alternative einsum", 1.0)


# ---------------------------------------------------------------------- the command


@pytest.fixture
def adders(tmp_path) -> Path:
    """The tiny course's root, with a class of three, of whom two wrote the same unusual answer with other names."""
    root = write_tiny_course(tmp_path / "course")
    odd = "def add(a, b):\n    {0} = [a, b]\n    while len({0}) > 1:\n        {0}.append({0}.pop() + {0}.pop(0))\n"
    texts = {
        "ada": odd.format("pile") + "    return pile[0]  # </script><b>\n",
        "ben": odd.format("heap") + "    return heap[0]\n",
        "cy": "def add(a, b):\n    return a + b\n",
    }
    class_files = {f"{student}/01_adding/adding.py": text for student, text in texts.items()}
    write_files(root / "class", class_files)
    return root


def run(root: Path, *words: object):
    command = ["similar", str(root / "class"), "--assignment", "01_adding", "--course", str(root)]
    return CliRunner().invoke(app, [*command, *map(str, words)], env={"COLUMNS": "120"})


def test_similar_command_lists_pairs_without_a_verdict(adders):
    done = run(adders)
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert "ada, ben" in said and "cy" not in said
    assert "2–5 = 2–5" in said
    assert "not a verdict" in said


def test_similar_command_prints_json(adders):
    found = json.loads(run(adders, "--json", "--output", adders / "alike.html").stdout)
    assert (found["compared"], found["empty"], found["too_long"]) == (2, ["cy"], [])
    assert found["page"] == str(adders / "alike.html")
    (pair,) = found["pairs"]
    assert pair["students"] == ["ada", "ben"]
    assert pair["passages"][0]["lines"] == [[2, 5], [2, 5]]


def test_a_text_of_megabytes_is_not_read_at_all(adders, monkeypatch):
    tiny = load_course(adders)
    comment = "# word\n" * (MOST_LETTERS // 7 + 1)
    (adders / "class" / "ada" / "01_adding" / "adding.py").write_text(comment, "utf-8")
    read = []
    monkeypatch.setattr(
        finding, "own_code", lambda text, stub: read.append(text) or own_code(text, stub)
    )
    found = similar(tiny, tiny.assignments[0], adders / "class", most=20, least=0.0)
    assert found.too_long == ["ada"] and sorted(found.codes) == ["ben"]
    assert comment not in read


def test_page_shows_both_sides_escaped(adders, tmp_path):
    page = tmp_path / "pages" / "alike.html"
    assert run(adders, "--output", page).exit_code == 0
    html = page.read_text("utf-8")
    assert "not a verdict" in html
    assert len(re.findall(r'<span class="both">', html)) == 8
    assert "</script><b>" not in html and "&lt;/script&gt;&lt;b&gt;" in html
