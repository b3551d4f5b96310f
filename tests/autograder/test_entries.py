"""A test loses its points when a forbidden function ran in its own calls; what only stands in the text is a note."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import _get_current_function_mode

from autograder.bridge.inside.entries import Entries
from autograder.bridge.inside.worker import Worker
from autograder.course.config import Course
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.records import Grade, SourceFile, Submission
from autograder.selfcheck.check import check_student
from tests.autograder.sampling import sampled

ROOT = Path(__file__).parents[2]
VECTORS, HEADS, BLOCK = "01_word_vectors", "03_masked_heads", "05_encoder_block"
COUNT, TRANSLATOR, TRAINING = "06_bert_param_count", "08_encoder_decoder", "15_train_it_well"
READY = "torch.nn.functional.scaled_dot_product_attention"
X = torch.ones(2, 3)
LARGE = torch.ones(2, 10)
NINE = "torch.Tensor[9]"  # X has fewer


# ------------------------------------------------------------------ the record


@pytest.fixture
def recording() -> Iterator[Callable[..., Entries]]:
    """Installs a record, which a test switches on; everything is put back at the end."""
    installed = []

    def install(*names: str, **options: object) -> Entries:
        entries = Entries(names, **options)  # type: ignore[arg-type]
        installed.append(entries.install())
        return entries

    yield install
    for undo in installed:
        undo.close()


NORMS = ["torch.nn.LayerNorm", "torch.nn.functional.layer_norm"]
NORMS += ["torch.layer_norm", "torch.native_layer_norm"]
ROADS = [
    "nn.LayerNorm(3)",
    "made_before(X)",
    "vars(nn)['Layer' + 'Norm'](3)",
    "sys.modules['torch.nn'].LayerNorm(3)",
    "[nn][0].LayerNorm(3)",
    "nn.LayerNorm.forward(made_before, X)",
    "type('Own', (nn.LayerNorm,), {})(3)",
    "nn.Sequential(made_before)(X)",
    "copy.deepcopy(made_before)(X)",
    "pickle.loads(pickle.dumps(made_before))(X)",
    "nn.TransformerEncoderLayer(4, 1, 4)",
    "taken_before(X, (3,))",
    "functools.partial(F.layer_norm, normalized_shape=(3,))(X)",
    "[*map(F.layer_norm, [X], [(3,)])]",
    "torch.vmap(lambda row: F.layer_norm(row, (3,)))(X)",
    "F.layer_norm.__closure__[0].cell_contents(X, (3,))",
    "next(c.cell_contents for c in F.layer_norm.__closure__ if c.cell_contents is taken_before)(X, (3,))",
    "torch.ops.aten.layer_norm(X, (3,))",
    "torch.ops.aten.layer_norm.default(X, (3,))",
    "torch.ops.aten.native_layer_norm(X, (3,), None, None, 1e-5)",
    "torch._C._VariableFunctions.layer_norm(X, (3,))",
    "torch._VF.layer_norm(X, (3,))",
    "exec('nn.Layer' + 'Norm(3)')",
]


@pytest.mark.parametrize("road", ROADS)
def test_every_road_is_recorded_with_its_line(road: str, recording) -> None:
    space = {"made_before": nn.LayerNorm(3), "taken_before": F.layer_norm}
    entries = recording(*NORMS)
    code = f"import copy, functools, pickle, sys, torch\nfrom torch import nn\nF = nn.functional\n{road}"
    with entries.active():
        exec(compile(code, "net.ipynb cell 7", "exec"), space | {"X": X})
    assert entries.found and set(entries.found) <= set(NORMS), road
    assert set(entries.found.values()) == {("net.ipynb cell 7", 4)}


@pytest.mark.parametrize(
    ("road", "forbids", "is_recorded"),
    [
        ("torch.ops.aten.layer_norm(X, (3,))", NORMS, True),
        ("torch.ops.aten.layer_norm(X, (3,))", (), False),
        ("nn.LayerNorm(3)(X)", (), True),  # for the notes about names that did not run
        ("torch.zeros(10)", [NINE], True),
        ("torch.zeros(10)", NORMS, False),
    ],
)
def test_operators_are_watched_as_closely_as_a_test_needs(
    road: str, forbids: list[str], is_recorded: bool, recording
) -> None:
    entries = recording(*NORMS, NINE)
    entries.begin(forbids)
    with entries.active():
        eval(road)
    assert bool(entries.found) == is_recorded


IN_A_TEXT = """
import copy, functools, operator, pickle, sys, torch
from torch import nn
from torch.nn.functional import layer_norm as taken_before

F = nn.functional
made_before = nn.LayerNorm(3)


def answer(X):
    {0}
"""
MORE_ROADS = [
    "by = lambda where: where.ops.aten; by(torch).layer_norm(X, (3,))",
    "operator.attrgetter('_'.join(['layer', 'norm']))(F)(X, (3,))",
    "getattr(F, '_'.join(['layer', 'norm']))(X, (3,))",
    "get_ipython().run_cell('import torch; torch.ops.aten.layer_norm(torch.ones(2, 3), (3,))')",
]


@pytest.mark.parametrize("road", [*(road for road in ROADS if "next(" not in road), *MORE_ROADS])
def test_every_road_in_a_text_is_recorded_by_a_worker(road: str) -> None:
    worker = Worker(types.ModuleType("net"))
    try:
        worker.load(IN_A_TEXT.format(road), "net.py", forbidden=NORMS)
        worker.seed(1, forbids=NORMS)
        with worker.entries.active():
            worker.module.answer(X)
    finally:
        recorded = worker.entries
        worker.load("", "net.py")  # puts everything back
    assert recorded.found, road


def test_a_text_that_leads_to_no_operator_is_not_watched() -> None:
    worker = Worker(types.ModuleType("net"))
    seen = []
    text = "import torch\n\n\ndef answer(x):\n    note()\n    return torch.softmax(x, -1)"
    for forbidden in (NORMS, [*NORMS, "torch.softmax"]):
        try:
            worker.load(text, "net.py", forbidden=forbidden)
            worker.module.note = lambda: seen.append(_get_current_function_mode())
            worker.seed(1, forbids=forbidden)
            with worker.entries.active():
                worker.module.answer(X)
        finally:
            worker.load("", "net.py")
    assert [mode is None for mode in seen] == [True, False]


INNOCENT = [
    "X + X", "X.add(X)", "nn.Linear(3, 2)(X)", "isinstance(X, nn.LayerNorm)", "nn.LayerNorm",
]  # fmt: skip


@pytest.mark.parametrize("innocent", INNOCENT)
def test_what_is_not_entered_is_not_recorded(innocent: str, recording) -> None:
    entries = recording(*NORMS, "torch.add")
    with entries.active():
        eval(innocent)
    assert entries.found == {}


SIZES = [
    ("torch.zeros(10)", True),
    ("X.new_zeros(3, 4)", True),
    ("(X.T @ torch.ones(len(X), 10)).sum()", True),
    ("torch.arange(10)", True),
    ("X.expand(9, 2, 3).topk(3)", True),
    ("X.repeat(9, 1)", True),
    ("torch.zeros(9)", False),
    ("X.sum() + X", False),
    ("torch.ones(1).expand(10)", False),
    ("torch.ones(3).topk(2)", False),
    ("X[:1].unsqueeze(0).expand(99, *X[:1].shape)", False),
    ("LARGE.T.contiguous()", True),
    ("torch.stack([LARGE[0, :6], LARGE[1, :6]])", True),
    ("LARGE.to(torch.float64)", True),
    ("LARGE.T", False),
    ("LARGE.unflatten(1, (2, 5)).split(1)", False),
    ("torch.meshgrid([LARGE[0], LARGE[1]], indexing='ij')", False),
    ("LARGE.add_(1)", False),
    ("LARGE[:, :3] + 1", False),
]


@pytest.mark.parametrize(("code", "is_large"), SIZES)
def test_a_tensor_that_is_too_large_is_recorded_with_its_line(
    code: str, is_large: bool, recording
) -> None:
    entries = recording(NINE)
    with entries.active():
        exec(compile(f"import torch\n{code}", "net.ipynb cell 7", "exec"), {"X": X, "LARGE": LARGE})
    assert entries.found == ({NINE: ("net.ipynb cell 7", 2)} if is_large else {})


def test_everything_is_put_back() -> None:
    before = nn.LayerNorm.__init__, nn.LayerNorm.forward, F.layer_norm, torch.layer_norm
    module = types.ModuleType("holds_it")
    module.norm = F.layer_norm
    with Entries(NORMS).install(module):
        assert nn.LayerNorm.__init__ is not before[0]
        assert module.norm is F.layer_norm is not before[2]
    assert (nn.LayerNorm.__init__, nn.LayerNorm.forward, F.layer_norm, torch.layer_norm) == before
    assert module.norm is F.layer_norm


@pytest.mark.parametrize(
    "code", ["statistics.mean([1, 2])", "s.NormalDist()", "[*map(statistics.median, [[1]])]"]
)
def test_a_package_that_is_forbidden_as_a_whole(code: str, recording) -> None:
    entries = recording("statistics")
    import statistics

    profiler = sys.getprofile()
    with entries.active():
        eval(code, {"statistics": statistics, "s": statistics})
    assert [*entries.found] == ["statistics"]
    assert sys.getprofile() is profiler
    entries.begin()
    with entries.active():
        sorted([3, 1])
    assert entries.found == {}


def test_in_one_process_what_the_test_itself_runs_does_not_count(recording) -> None:
    entries = recording(*NORMS, test_file=__file__)
    space: dict = {"F": F}
    own = "def own(x):\n    return F.layer_norm(x, (3,))\ndef ask(f):\n    return f()"
    exec(compile(own, "net.py", "exec"), space)
    with entries.active():
        F.layer_norm(X, (3,))
        space["ask"](lambda: F.layer_norm(X, (3,)))
        assert entries.found == {}
        space["own"](X)
    assert entries.found["torch.nn.functional.layer_norm"] == ("net.py", 2)


# ------------------------------------------------------------------ grading


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(ROOT)


@pytest.fixture(scope="module")
def graders(course: Course, sandbox) -> Iterator[Callable[[str], Grader]]:
    made: dict[str, Grader] = {}

    def grader(name: str) -> Grader:
        if name not in made:
            made[name] = open_grader(course, sandbox, 7, [name])
        return made[name]

    yield grader
    for each in made.values():
        each.session.close()


@pytest.fixture
def grade(course: Course, graders) -> Callable[..., Grade]:
    def graded(name: str, text: str, suffix: str = "py") -> Grade:
        file = SourceFile(f"{course.assignment(name).stem}.{suffix}", text)
        return graders(name).grade(Submission("ada", name, (file,)))

    return graded


def told(grade: Grade) -> str:
    return str([test.message for test in grade.tests])


def solution(course: Course, name: str) -> str:
    return course.read_solution(course.assignment(name))


COMPARISON = """

def compare(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v), torch.nn.MultiheadAttention(4, 1)
"""
DEMONSTRATION = """
rows = torch.randn(1, 3, 4)
print(torch.allclose(attention(rows, rows, rows)[0], nn.functional.scaled_dot_product_attention(rows, rows, rows)))
"""
BESIDE = {
    "an uncalled comparison": COMPARISON,
    "a demonstration": DEMONSTRATION,
    "a comparison that is called": COMPARISON + "compare(*torch.randn(3, 1, 3, 4))\n",
    "a literal getattr": COMPARISON + "\nbias = getattr(nn.Linear(1, 1), 'bias', None)\n",
    "a computed getattr": COMPARISON + "\nbias = getattr(nn.Linear(1, 1), 'bi' + 'as')\n",
    "vars": COMPARISON + "\nprint(vars(nn.Linear(1, 1)))\n",
    "timeit": "\nimport timeit\n" + COMPARISON + "\nprint(timeit.timeit(lambda: 1, number=3))\n",
    "a script": f"\n@torch.jit.script{COMPARISON[1:]}",
    "an earlier answer": "\ndef earlier_answer(q, k, v):\n    return nn.MultiheadAttention(4, 1)(q, k, v)\n",
}


SAMPLE = ("an uncalled comparison", "a demonstration", "a computed getattr", "a script")


@pytest.mark.parametrize("beside", sampled(BESIDE, SAMPLE.__contains__))
def test_what_stands_beside_the_answer_costs_nothing(grade, course, beside: str) -> None:
    graded = grade(HEADS, solution(course, HEADS) + BESIDE[beside])
    assert (graded.score, graded.problem) == (graded.max_score, None), told(graded)


def test_a_comparison_cell_of_a_notebook_costs_nothing(grade, course) -> None:
    notebook = to_notebook(course.assignment(HEADS), solution(course, HEADS))
    notebook.cells.append(nbformat.v4.new_code_cell(DEMONSTRATION))
    graded = grade(HEADS, nbformat.writes(notebook), "ipynb")
    assert graded.score == graded.max_score and graded.flags
    assert all("did not run in any of them" in flag for flag in graded.flags)


HELPERS = {
    COUNT: """

def compare(config):
    from transformers import BertConfig, BertModel
    return sum(p.numel() for p in BertModel(BertConfig(**vars(config))).parameters()), torch.zeros(3)
""",
    TRANSLATOR: """

def compare(y, memory):
    return nn.TransformerDecoderLayer(24, 4)(y, memory), F.multi_head_attention_forward
""",
    TRAINING: """

def compare(parameters):
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    return torch.optim.AdamW(parameters), nn.RMSNorm(3), getattr(nn.RMSNorm(3), "weight", None)
""",
    VECTORS: """

def compare(table, ids):
    return F.embedding(ids, table), F.one_hot(ids), getattr(table, "grad", None)
""",
    BLOCK: """

@torch.jit.script
def compare(x: Tensor):
    return F.layer_norm(x, (3,))
""",
}


@pytest.mark.parametrize(
    "name",
    [
        COUNT,
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (TRANSLATOR, VECTORS, TRAINING, BLOCK)
        ),
    ],
)
def test_an_uncalled_helper_costs_nothing(grade, course, name: str) -> None:
    plain = grade(name, solution(course, name))
    assert (plain.score, plain.flags) == (plain.max_score, ())
    helped = grade(name, solution(course, name) + HELPERS[name])
    assert helped.score == helped.max_score and helped.flags, told(helped)
    sentence = "which some tests forbid; it did not run in any of them."
    assert all(sentence in flag for flag in helped.flags)


def test_what_another_part_allows_is_used_there(grade, course) -> None:
    """`F.embedding` in the loss costs nothing in the part that asks for a look-up by hand, and everything in it."""
    text = solution(course, VECTORS)
    elsewhere = f"""{text}
own_loss = cbow_loss


def cbow_loss(*args):
    F.embedding(torch.tensor([0]), torch.ones(1, 2))
    return own_loss(*args)
"""
    graded = grade(VECTORS, elsewhere)
    assert graded.score == graded.max_score
    assert graded.flags == (), "a test saw it running"
    lost = grade(VECTORS, text + "\n\ndef embed(ids, table):\n    return F.embedding(ids, table)\n")
    parts = {test.part for test in lost.tests if test.outcome != "passed"}
    assert lost.score < lost.max_score and len(parts) == 1
    assert "ran `torch.nn.functional.embedding` in this test" in told(lost)


INSIDE = """
own_attention = attention


def attention(q, k, v, mask=None):
    {0}
    return own_attention(q, k, v, mask)
"""
ASSERTED = "assert nn.functional.scaled_dot_product_attention(q, k, v).shape == (*q.shape[:-1], v.shape[-1])"


def test_a_comparison_inside_of_the_answer_runs_in_its_tests(grade, course) -> None:
    text = solution(course, HEADS) + INSIDE.format(ASSERTED)
    graded = grade(HEADS, text)
    line = text[: text.index(ASSERTED)].count("\n") + 1
    failed = [
        test for test in graded.tests if test.outcome == "failed" and test.part == "attention"
    ]
    assert failed and {test.message for test in failed} == {
        f"Line {line} ran `{READY}` in this test, and this exercise asks you to do it by hand. "
        "Compare with it in a cell or function of its own, which your answer does not call."
    }
    assert not [flag for flag in graded.flags if "did not run" in flag]


UNDONE = {
    "by taking the mode away": (
        "with torch._C.DisableTorchFunction(): torch.ops.aten.scaled_dot_product_attention(q, k, v)"
    ),
    "in a script": "script.f(q, k, v)",
    "by clearing the record": (
        "import gc\n    nn.functional.scaled_dot_product_attention(q, k, v)\n"
        "    for each in gc.get_objects():\n"
        "        if type(each).__name__ == 'Entries': each.found.clear()"
    ),
    "in a thread": (
        "import threading\n    ready = torch.ops.aten.scaled_dot_product_attention\n"
        "    mine = threading.Thread(target=ready, args=(q, k, v))\n    mine.start(), mine.join()"
    ),
}
SCRIPT = """
script = torch.jit.CompilationUnit('''
def f(q, k, v):
    return torch.ops.aten.scaled_dot_product_attention(q, k, v)
''')
"""


@pytest.mark.parametrize("undone", sampled(UNDONE, "by clearing the record".__eq__))
def test_undoing_the_record_is_flagged(grade, course, undone: str) -> None:
    """The limit of the record that `docs/security.md` states: hostile code can undo it, and a person sees the text."""
    script = SCRIPT if "script" in undone else ""
    graded = grade(HEADS, solution(course, HEADS) + script + INSIDE.format(UNDONE[undone]))
    assert graded.score == graded.max_score, told(graded)
    notes = " ".join(graded.flags)
    assert "looks names up" in notes or "did not run in any of them" in notes


# ------------------------------------------------------------------ a student's own machine


OWN = """
import torch
from torch.nn.utils import clip_grad_norm_
from torch.nn.functional import embedding


def add(a, b):
    {0}
    return a + b
"""
TESTS = """
import pytest
import torch
from autograder import checks


@pytest.mark.part("sum")
@pytest.mark.points(1)
@pytest.mark.forbids("torch.nn.utils.clip_grad_norm_", "torch.nn.functional.embedding", "torch.Tensor[9]")
def test_sum(student):
    \"\"\"Two and three are five.\"\"\"
    torch.nn.utils.clip_grad_norm_([], 1.0)
    torch.zeros(10)
    checks.equal(student.add(2, 3), 5, "add(2, 3)")
"""


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("pass", ""),
        ("clip_grad_norm_([], 1.0)", "ran `torch.nn.utils.clip_grad_norm_`"),
        ("embedding(torch.tensor([0]), torch.ones(1, 1))", "ran `torch.nn.functional.embedding`"),
        ("torch.zeros(2, 5)", "made a tensor of more than 9 numbers"),
    ],
)
def test_check_says_the_same_on_a_students_own_machine(
    tmp_path: Path, code: str, told: str
) -> None:
    """Although the names were imported before the check began, and the test itself uses one of them."""
    test_file = tmp_path / "test_adding.py"
    test_file.write_text(TESTS, "utf-8")
    module = types.ModuleType("adding")
    exec(compile(OWN.format(code), "adding.py", "exec"), vars(module))
    before = torch.nn.utils.clip_grad_norm_
    (finding,) = check_student(module, test_file, lambda step: step.f_globals is vars(module))
    assert finding.passed == (not told)
    assert not told or (finding.result.message or "").startswith(f"Line 8 {told} in this test")
    assert torch.nn.utils.clip_grad_norm_ is before is module.clip_grad_norm_
