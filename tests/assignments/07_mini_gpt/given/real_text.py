"""A real text for your model of 07: the source code of Python's own library, which is on your computer already.

    python real_text.py                     # about 3,000 steps; shows samples on the way
    python real_text.py --steps 600         # a first impression
    python real_text.py --own               # with your own layers of 02 to 05 in place of PyTorch's
    python real_text.py --text FOLDER       # any folder with .py, .txt or .md files in English letters

One file in ten is *held out*: the model never sees it in training, and the loss on it says how well the model
predicts a text that is new to it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from my_transformer import Layers, my_gpt, own_layers

LETTERS = "\n" + "".join(map(chr, range(32, 127)))  # what an English keyboard can write: 96 characters
KINDS = (".py", ".txt", ".md")
NOT_READ = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__"}
MEGABYTES = 4.0
HELD_OUT = 10  # one file in so many
ROWS = 32  # pieces of text in a batch


def files_below(folder: Path) -> Iterator[Path]:
    """The files of a folder and then of its folders, in the order of their names."""
    for around, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - NOT_READ)  # os.walk goes on in these
        yield from (Path(around, name) for name in sorted(names))


def texts_below(folder: Path, megabytes: float = MEGABYTES) -> Iterator[str]:
    """The texts of a folder and its folders, until there are so many megabytes.

    Four spaces of an indentation, or a tab, become one space, so that a window holds code, not blanks. A file with
    other characters than LETTERS is left out.
    """
    left = int(megabytes * 1e6)
    for file in files_below(folder):
        if file.suffix not in KINDS or not file.is_file():
            continue
        text = file.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n").expandtabs(4)
        text = re.sub("^(    )+", lambda blanks: " " * (len(blanks[0]) // 4), text, flags=re.MULTILINE)
        if set(text) <= set(LETTERS) and text.strip():
            yield text[:left]
            left -= len(text)
        if left <= 0:
            return


def split(texts: list[str]) -> tuple[str, str]:
    """The text to learn, and the text held out: every tenth file as a whole, so that neither holds half of one."""
    learned = "".join(text for number, text in enumerate(texts) if number % HELD_OUT)
    return learned, "".join(texts[::HELD_OUT])


def encode(text: str) -> Tensor:
    """The ids of a text's characters: (L,)."""
    places = torch.zeros(128, dtype=torch.long)
    places[torch.tensor(list(LETTERS.encode()))] = torch.arange(len(LETTERS))
    return places[torch.tensor(list(text.encode("ascii")), dtype=torch.long)]


def decode(ids: Tensor) -> str:
    """The text of a row of ids."""
    return "".join(LETTERS[i] for i in ids.tolist())


def held_out_loss(model: nn.Module, data: Tensor, windows: int = 64) -> float:
    """The mean loss on windows at equal distances in a text that the model has not learned."""
    T = model.block_size
    starts = torch.linspace(0, len(data) - T - 1, windows).long()               # (windows,)
    places = starts[:, None] + torch.arange(T)                                  # (windows, T)
    model.eval()
    with torch.no_grad():
        return model(data[places], data[places + 1])[1].item()


def train(
    mini_gpt: Any, layers: Layers, texts: list[str], steps: int, every: int, embed_size: int = 128,
    block_size: int = 64, num_heads: int = 4, num_layers: int = 4,
) -> Iterator[tuple[int, float, float, str]]:
    """Train a model of your class with your own functions; every so many steps, show how it writes.

    mini_gpt: your module of 07. Yields the steps done, the mean loss of the batches since the last time (of no batch:
    nan), the loss on the text held out, and a sample. Raises ValueError if the text is too short.
    """
    learned, held_out = map(encode, split(texts))                               # (L,), (L,)
    if min(len(learned), len(held_out)) <= block_size + 1:
        raise ValueError(
            f"{len(learned)} characters to learn and {len(held_out)} held out are too few for windows of {block_size}."
        )
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(7)
    model = my_gpt(
        mini_gpt.TransformerLanguageModel, layers, len(LETTERS), embed_size, block_size, num_heads, num_layers
    )
    beginning = encode("def ")[None]                                            # (1, 4)
    losses, done = [float("nan")], 0
    while True:
        sample = mini_gpt.generate(model, beginning, 240, 0.8, None, generator)
        yield done, sum(losses) / len(losses), held_out_loss(model, held_out), decode(sample[0])
        if done >= steps:
            return
        now = min(every, steps - done)
        speed = 2e-3 * max(0.1, 1 - done / steps)                               # ever smaller steps
        losses = mini_gpt.train(model, learned, now, ROWS, speed, generator)
        done += now


def main() -> None:
    """Read the command's options, train, and print samples as they come."""
    from autograder import RefusedError
    from autograder.notebook import earlier_work

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=Path, default=Path(sysconfig.get_paths()["stdlib"]), help="a folder of texts")
    parser.add_argument("--megabytes", type=float, default=MEGABYTES)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--every", type=int, default=500, help="steps between two samples")
    parser.add_argument("--own", action="store_true", help="your own layers of 02 to 05 in place of PyTorch's")
    options = parser.parse_args()
    if not options.text.is_dir():
        sys.exit(f"There is no folder {options.text}.")
    began = time.perf_counter()
    try:
        mini_gpt, _ = earlier_work("07_mini_gpt")
        texts = list(texts_below(options.text, options.megabytes))
        print(f"{len(texts)} files with {sum(map(len, texts)):,} characters, one in {HELD_OUT} held out.")
        layers = own_layers() if options.own else {}
        for done, loss, new, sample in train(mini_gpt, layers, texts, options.steps, options.every):
            minutes = (time.perf_counter() - began) / 60
            learned = f"loss {loss:.3f}, " if done else ""
            print(f"\n{'─' * 20} {done} steps, {minutes:.1f} min: {learned}on new text {new:.3f}\n{sample}")
    except (RefusedError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
