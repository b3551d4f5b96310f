"""The reference encodes as Hugging Face's `tokenizers` does with the same merges. Not a part of the graded suite."""

import importlib.util
import random
from pathlib import Path

import pytest

SOLUTION = Path(__file__).resolve().parents[3] / "solutions/10_ready_made/ready_made.py"
TEXT = "the moon told the sea a story, and the sea told the moon: naïve 🙂 café, 東京, and\nno word came alone. "


@pytest.fixture(scope="module")
def byte_pairs():
    pytest.importorskip("tokenizers", reason="needs Hugging Face's tokenizers; install .[dev]")
    spec = importlib.util.spec_from_file_location("solution_of_ready_made", SOLUTION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def library_tokens(merges: list[tuple[bytes, bytes]], text: str) -> list[bytes]:
    """The tokens that the library makes with these merges; it writes each byte as a letter of its own alphabet."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    spelled = [tuple("".join(letters[byte] for byte in half) for half in pair) for pair in merges]
    tokens = [*letters.values(), *dict.fromkeys(first + second for first, second in spelled)]
    tokenizer = Tokenizer(models.BPE({token: place for place, token in enumerate(tokens)}, spelled))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(" ", "merged_with_next"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    byte_of = {letter: byte for byte, letter in letters.items()}
    return [bytes(byte_of[letter] for letter in token) for token in tokenizer.encode(text).tokens]


@pytest.mark.parametrize("seed", range(5))
def test_tokens_are_those_of_the_library(byte_pairs, seed):
    dice = random.Random(seed)
    words = TEXT.split(" ")
    training, other = (" ".join(dice.choices(words, k=60)) for _ in range(2))
    merges = byte_pairs.train_bpe(training, 45)
    assert len(merges) == 45
    for text in (training, other, "  two  spaces, and Ä new "):
        assert byte_pairs.encode(text, merges) == library_tokens(merges, text)
