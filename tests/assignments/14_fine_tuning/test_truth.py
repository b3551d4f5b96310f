"""Every number in the prose, computed once more, and found in the text as it is written there.

Not a part of the graded suite.
"""

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
SOLUTION = ROOT / "solutions" / "14_fine_tuning" / "fine_tuning.py"
TEXT = re.sub(r"\s*\n\s*#?\s*", " ", SOLUTION.read_text("utf-8"))


@pytest.fixture(scope="module")
def told():
    """The solution, as a module of its own."""
    spec = importlib.util.spec_from_file_location("solution_of_fine_tuning", SOLUTION)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def says(*sentences: str) -> None:
    """Each of them stands in the text, across the ends of lines as well."""
    for sentence in sentences:
        assert sentence in TEXT, f"the text no longer says: {sentence}"


def size(*modules: nn.Module) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def test_dishes_notes_and_cards(told):
    assert [len(dishes) for dishes in told.SERVED.values()] == [12, 12]
    says(f"serves {len(told.DISHES)} dishes, twelve of them hot and twelve cold")
    notes, cards = told.kitchen_notes(), told.cards(told.DISHES)
    assert len(set(notes)) == len(notes) and len(set(cards)) == len(cards)
    says(f"There are {len(notes):,} of them, and this is what the encoder reads first")
    count = Counter(label for _, label in cards)
    says(
        f"There are {len(cards):,} cards as well: {count[0]} praise, {count[1]} complain and {count[2]:,} ask"
    )
    assert [label for _, label in cards] == sorted(label for _, label in cards)
    assert not set(notes) & {sentence for sentence, _ in cards}, "a card was read before"
    assert told.encode(notes).shape[1] <= 16 and told.encode([text for text, _ in cards]).shape[1] <= 16


def test_examples_in_the_text_are_examples(told):
    notes, cards = told.kitchen_notes(), dict(told.cards(told.DISHES))
    for note in ("our soup is best when it is very hot", "how cool was my lemonade"):
        assert note in notes
        says(f"*{note}*")
    for card, label in (
        ("the soup was very hot", 0),
        ("my lemonade was cold", 0),
        ("the soup was cold", 1),
        ("my lemonade was quite warm when it came", 1),
        ("was the soup very hot", 2),
        ("was my lemonade quite warm when it came", 2),
    ):
        assert cards[card] == label
        says(f"*{card}*")
    assert "my soup was cold" in cards


def test_no_single_word_and_no_bag_of_words_gives_the_class_away(told):
    cards = told.cards(told.DISHES)
    for word in {word for sentence, _ in cards for word in sentence.split()}:
        count = Counter(label for sentence, label in cards if word in sentence.split())
        assert count[0] == count[1] and count[2] == count[0] + count[1], word
    says("one quarter praise, one quarter complain and one half ask")
    bags = {True: Counter(), False: Counter()}
    for sentence, label in cards:
        bags[label == told.QUESTION][tuple(sorted(sentence.split()))] += 1
    assert bags[True] == bags[False]
    says("every statement also exists as a question with the same words in another order")


def test_pooling_by_hand(told):
    hidden, padding = torch.tensor([[[2.0, 4], [4, 8], [90, 90]]]), torch.tensor([[False, False, True]])
    assert told.pool(hidden, padding, "mean").tolist() == [[3, 6]]
    assert hidden.mean(dim=1).tolist() == [[32, 34]]
    assert (hidden.masked_fill(padding[..., None], 0).sum(dim=1) / 3).tolist() == [[2, 4]]
    says("Its mean is $(3, 6)$", "you get $(32, 34)$", "you get $(2, 4)$")


def test_attention_may_leave_nan_at_a_row_of_padding():
    attention, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(1, 3, 8)
    assert attention(x, x, x, key_padding_mask=torch.ones(1, 3, dtype=torch.bool))[0].isnan().all()
    says("can return for a row without a single real word")


def test_numbers_of_the_head_and_of_bert(told):
    head = size(nn.Linear(768, 3))
    says(f"$768 \\cdot 3 + 3 = {head:,}$".replace(",", "{,}"))
    layer = size(nn.TransformerEncoderLayer(768, 12, 3072))
    embeddings = (30_522 + 512 + 2) * 768 + size(nn.LayerNorm(768))
    bert = embeddings + 12 * layer
    says(f"BERT-base without its pooler has {bert:,} numbers", f"trains {head:,} of {bert + head:,}")
    assert round((bert + head) / head, -2) == 47_200
    says("about one in 47,200")


def test_numbers_of_this_notebook(told):
    model = told.Classifier(told.Encoder(len(told.WORDS)), 64, 3)
    whole = told.trainable(model)
    told.freeze(model.encoder)
    says(f"In this notebook it is {told.trainable(model)} of {whole:,}")
    says(f"Classifier(Encoder({len(told.WORDS)}), d_model=64, num_classes=3) turns ids of shape (5, 7)")
    ids = torch.randint(len(told.WORDS), (5, 7))
    assert model(ids, torch.zeros(5, 7, dtype=torch.bool)).shape == (5, 3)
    assert told.trainable(nn.Linear(4, 3)) == told.freeze(nn.Linear(4, 3)) == 15
    says("An `nn.Linear(4, 3)` has 15")


def test_numbers_of_lora(told):
    layer = told.LoRALinear(nn.Linear(768, 768), rank=8, alpha=16)
    assert told.trainable(layer) == 12_288 and size(layer) == 602_880
    assert (768 * 768 + 768, round(590_592 / 12_288)) == (590_592, 48)
    says("768 · 768 + 768 = 590,592 numbers", "8 · 768 + 768 · 8 = 12,288, one in 48", "trains 12,288 numbers")
    by_hand = told.LoRALinear(nn.Linear(2, 1), 1, 2.0)
    with torch.no_grad():
        by_hand.A.copy_(torch.tensor([[1.0, 2.0]]))
        by_hand.B.fill_(3.0)
    x = torch.tensor([10.0, 100.0])
    assert (x @ by_hand.A.T).item() == 210 and (x @ by_hand.A.T @ by_hand.B.T).item() == 630
    assert (by_hand(x) - by_hand.linear(x)).item() == pytest.approx(1260, abs=1e-3)
    says("A x is 210, B A x is 630, and 1,260 is added")
    encoder = told.Encoder(len(told.WORDS))
    assert told.add_lora(encoder, ["layers.0.linear1"], 4, 8.0) == 768
    names = ["layers.0.linear1", "layers.0.linear2", "layers.1.linear1", "layers.1.linear2"]
    assert told.add_lora(told.Encoder(len(told.WORDS)), names, 4, 8.0) == 3072
    says("4 · (64 + 128) = 768", "3,072 numbers beside four of the encoder's layers")


def test_lora_is_called_in_both_modes(told):
    """PyTorch's fast path of eval mode reads the weights of linear1 and linear2 without calling them."""
    encoder = told.Encoder(len(told.WORDS))
    told.add_lora(encoder, ["layers.0.linear1", "layers.1.linear2"], 4, 8.0)
    ids = torch.randint(3, len(told.WORDS), (3, 7))
    with torch.no_grad():
        before = encoder.eval()(ids, ids == 0)
        encoder.layers[1].linear2.B.fill_(1.0)
        assert not torch.allclose(encoder(ids, ids == 0), before)


def test_split_by_hand(told):
    first, second = told.split(list(range(10)), 0.8, 0)
    says(f"Ten items and a share of 0.8 make lists of {len(first)} and {len(second)}")
    says(f"Python computes `0.29 * 100` as {0.29 * 100!r}")
    says(f"A share of 0.29 of 100 items is {len(told.split(list(range(100)), 0.29, 0)[0])}")
    cards = told.cards(told.DISHES)
    assert {label for _, label in cards[-len(cards) // 5 :]} == {told.QUESTION}


def test_scores_by_hand(told):
    labels, guesses = torch.tensor([0, 0, 1, 1, 2, 2, 2, 2]), torch.tensor([0, 0, 0, 0, 2, 2, 2, 2])
    table = told.confusion(labels, guesses, 3)
    names = ("praise", "complaint", "question")
    for name, row in zip(names, table.tolist()):
        says(f"| **{name}** | {' | '.join(map(str, row))} |")
    assert (labels == guesses).double().mean().item() == 6 / 8
    says("Its accuracy is $6/8 = 75\\,\\%$", "Praise has $F_1 = 2 \\cdot 2/(2 + 4) = \\tfrac23$")
    each = 2 * table.diagonal() / (table.sum(0) + table.sum(1))
    assert torch.allclose(each, torch.tensor([2 / 3, 0, 1]))
    assert told.macro_f1(table) == pytest.approx(5 / 9) and round(5 / 9, 3) == 0.556
    says("complaint 0 and question 1", "macro F1 is $\\tfrac59 \\approx 0.556$", "gives 5/9")
    pairs = told.confusion(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 2)
    says(f"labels 0 0 1 with predictions 0 1 1 and two classes give {pairs.tolist()}")
    cards = told.cards(told.DISHES)
    spotted = sum(label == told.QUESTION for _, label in cards)
    assert (spotted + (len(cards) - spotted) / 2) / len(cards) == 0.75
    says("calls everything else praise has an accuracy of 75 %", "should end near 75 %")


def test_cards_of_the_training(told):
    taught, untaught = told.split(told.DISHES, 0.5, seed=1)
    labelled, _ = told.split(told.cards(taught), 0.2, seed=1)
    assert len(taught) == len(untaught) == 12
    says("taught, untaught = split(DISHES, 0.5, seed=1)", "split(cards(taught), 0.2, seed=1)")
    says(
        f"Of the {len(told.cards(taught)):,} cards about them, we label one in five: {len(labelled)} cards",
        f"learn from the same {len(labelled)} cards",
        f"on the {len(told.cards(untaught)):,} cards about the other twelve dishes",
        f"can learn its {len(labelled)} cards",
    )


def test_cards_of_the_picture(told):
    count = Counter(label for _, label in told.cards(told.DISHES[1::2])[::3])
    says(f"how often its class occurs: {count[0]}, {count[1]} and {count[2]}")
    assert (count[0], count[1], count[2]) == (96, 96, 192)
