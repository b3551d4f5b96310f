"""The fakes behave as documented, in this process and in a worker, and record their calls."""

from types import ModuleType

import pytest
import torch

from autograder.bridge.inside.server import Server
from autograder.bridge.outside.loopback import LoopbackConnection
from autograder.bridge.outside.remote import RemoteStudent
from autograder.fakes import Die, Reverser, Successor

BOS, EOS, PAD = 1, 2, 0

WRITER = """
import torch

@torch.no_grad()
def write(model, ids, n):
    was_training = model.training
    model.eval()
    for _ in range(n):
        logits, _ = model(ids[:, -model.block_size:])
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    model.train(was_training)
    return ids

def translate(model, src, n):
    padding = src == model.pad_id
    memory = model.encode(src, padding)
    y = torch.full((len(src), 1), model.bos_id)
    for _ in range(n):
        word = model.decode(y, memory, padding)[:, -1].argmax(-1, keepdim=True)
        y = torch.cat([y, word], dim=1)
    return y[:, 1:]
"""


@pytest.fixture(params=["here", "across"])
def writer(request):
    """The generating code of this module, called directly and as a student's module."""
    if request.param == "here":
        space = {}
        exec(WRITER, space)
        return type(
            "Here", (), {name: staticmethod(space[name]) for name in ("write", "translate")}
        )
    connection = LoopbackConnection(Server(ModuleType("writer")))
    connection.server.load(WRITER, "writer.py")
    return RemoteStudent(connection)


def test_successor_counts_and_wraps_around():
    logits, loss = Successor(vocab_size=5)(torch.tensor([[0, 3, 4]]))
    assert logits.shape == (1, 3, 5)
    assert logits.argmax(-1).tolist() == [[1, 4, 0]]
    assert loss is None


@pytest.mark.parametrize("margin", [0.0, 0.5, 50.0])
def test_successors_probability_depends_on_its_margin(margin):
    logits, _ = Successor(7, margin=margin)(torch.tensor([[2]]))
    best, second = logits[0, 0].topk(2).values.tolist()
    assert best - second == pytest.approx(margin)


def test_loss_is_the_mean_cross_entropy():
    ids = torch.tensor([[0, 1, 2], [2, 3, 4]])
    _, right = Successor(5)(ids, (ids + 1) % 5)
    _, wrong = Successor(5, margin=7.0)(ids, ids)
    assert right.item() == pytest.approx(0.0, abs=1e-6)
    assert wrong.item() == pytest.approx(
        torch.tensor([7.0, 0, 0, 0, 0]).logsumexp(0).item(), rel=1e-5
    )


@pytest.mark.parametrize("temperature", [0.25, 4.0, 100.0])
def test_token_with_probability_zero_is_never_drawn(temperature):
    logits, _ = Die([0.5, 0.0, 0.3, 0.2])(torch.tensor([[0]]))
    assert (logits / temperature).softmax(-1)[0, 0, 1] == 0.0
    assert logits.isfinite().all()


def test_calls_are_recorded(writer):
    fake = Successor(vocab_size=11, block_size=4)
    written = writer.write(fake, torch.tensor([[7, 8], [0, 1]]), 4)
    assert written.tolist() == [[7, 8, 9, 10, 0, 1], [0, 1, 2, 3, 4, 5]]
    assert fake.context_lengths == [2, 3, 4, 4]
    assert fake.calls[-1].ids.tolist() == [[8, 9, 10, 0], [1, 2, 3, 4]]
    assert fake.modes == [False] * 4
    assert fake.grads == [False] * 4
    assert fake.training


def test_recorded_ids_are_copies():
    fake, ids = Successor(5), torch.tensor([[0, 1]])
    fake(ids)
    ids.zero_()
    assert fake.calls[0].ids.tolist() == [[0, 1]]


def test_reverser_without_bos_outputs_bos():
    logits = Reverser(vocab_size=11)(torch.tensor([[5, 6, 7]]), torch.tensor([[7, 6]]))
    assert logits.argmax(-1).tolist() == [[BOS, BOS]]
