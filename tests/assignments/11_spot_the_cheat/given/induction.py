"""Induction heads in a model of your own: it learns to copy before your eyes, in some seconds.

    python induction.py

Each text is a row of random words that begins anew after 6 to 16 words. No word can be guessed until the row begins for
the second time; from then on each one can be, by an induction head. The model has two layers of attention and nothing
else. While it is trained, your `induction_scores` of harder.py look for heads that copy; afterwards, your `silenced` says
what each head is worth: write these two functions first. The picture `induction.png` shows the step in the loss curve at
which the heads appear, and two heads at work.
"""

import math
import sys
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor, nn

from harder import induction_scores, silenced

V, T, C, H, LAYERS = 32, 32, 64, 4, 2


class Attention(nn.Module):
    """A pre-norm layer of causal attention, (B, T, C) -> (B, T, C), which remembers its weights (B, H, T, T)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(C)
        self.qkv = nn.Linear(C, 3 * C, bias=False)
        self.proj = nn.Linear(C, C, bias=False)
        self.silent: list[int] = []  # heads

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, H, -1)).movedim(1, -2).unbind(1)     # (B, H, T, D) each
        units = torch.eye(T).expand(*q.shape[:2], T, T)  # the weighted sum of unit vectors is the weights themselves
        self.weights = F.scaled_dot_product_attention(q, k, units, is_causal=True)             # (B, H, T, T)
        outputs = F.scaled_dot_product_attention(q, k, v, is_causal=True)                       # (B, H, T, D)
        for head in self.silent:
            outputs = torch.stack([silenced(each, head) for each in outputs])
        return x + self.proj(outputs.movedim(1, 2).flatten(2))                      # (B, T, C)


class Copier(nn.Module):
    """ids (B, T) -> logits (B, T, V)."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(V, C), nn.Embedding(T, C)
        self.layers = nn.Sequential(*(Attention() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(C), nn.Linear(C, V, bias=False)
        for matrix in self.parameters():
            if matrix.dim() == 2:
                nn.init.normal_(matrix, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(self.words(ids) + self.positions.weight)))


def some_texts(number: int, generator: torch.Generator) -> Tensor:
    """Rows of different random words, each repeated until the text is full: (number, T)."""
    texts = []
    for length in torch.randint(6, T // 2 + 1, (number,), generator=generator).tolist():
        texts.append(torch.randperm(V, generator=generator)[:length].repeat(T // length + 1)[:T])
    return torch.stack(texts)


def loss_of(model: Copier, ids: Tensor) -> Tensor:
    """The loss on the second half of each text, where every word can be known."""
    return F.cross_entropy(model(ids)[:, T // 2 - 1 : -1].flatten(0, 1), ids[:, T // 2 :].flatten())


def train(model: Copier, steps: int, every: int, generator: torch.Generator) -> Iterator[int]:
    """So many steps, each with texts that the model has never seen; yields the number of steps every now and then."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99))
    for step in range(steps + 1):
        if step % every == 0:
            yield step
        loss = loss_of(model, some_texts(32, generator))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


@torch.no_grad()
def scores_of(model: Copier, ids: Tensor) -> Tensor:
    """The mean induction score of each head over some texts: (LAYERS, H)."""
    model(ids)
    return torch.stack([
        torch.stack([induction_scores(weights, text) for weights, text in zip(layer.weights, ids)]).mean(dim=0)
        for layer in model.layers
    ])


@torch.no_grad()
def loss_without(model: Copier, ids: Tensor, layer: int, heads: list[int]) -> float:
    """The loss when these heads of a layer say nothing."""
    model.layers[layer].silent = heads
    loss = loss_of(model, ids).item()
    model.layers[layer].silent = []
    return loss


def draw(curve: list[tuple[int, float, float]], model: Copier, ids: Tensor) -> Figure:
    """The loss and the best score over the steps; a head of each layer at work on the first text."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    axes, before, after = figure.subplots(1, 3, width_ratios=(1.5, 1, 1))
    steps, losses, scores = zip(*curve)
    axes.plot(steps, losses, color="#0072b2", label="loss")
    axes.axhline(math.log(V), color="#d55e00", ls="--", label=f"ln {V}: knows nothing")
    axes.plot(steps, scores, color="#009e73", label="best induction score")
    axes.set_xlabel("step of training")
    axes.legend(frameon=False)
    model(ids)
    best = int(scores_of(model, ids)[1].argmax())
    first, second = (layer.weights[0].detach() for layer in model.layers)
    back = int(first.diagonal(-1, dim1=-2, dim2=-1).mean(dim=-1).argmax())
    for part, weights, title in (
        (before, first[back], f"layer 0, head {back}: one word back"),
        (after, second[best], f"layer 1, head {best}: after the same word"),
    ):
        part.imshow(weights, cmap="Blues", vmin=0, vmax=1)
        part.set_title(title, loc="left", fontsize=10)
    return figure


def main() -> None:
    """Train, measure, silence, draw."""
    torch.set_num_threads(1)  # the tensors are so small that a second thread only waits
    torch.manual_seed(0)
    model, ids = Copier(), some_texts(64, torch.Generator().manual_seed(1))
    scores_of(model, ids)  # before the training, in case that one of the two is not written
    silenced(torch.zeros(H, T, C // H), 0)
    print(f"Knowing nothing costs ln {V} = {math.log(V):.3f}.\n\nstep   loss on new texts   best induction score")
    curve = []
    for step in train(model, 300, 25, torch.Generator().manual_seed(0)):
        curve.append((step, loss_of(model, ids).item(), scores_of(model, ids).max().item()))
        print("{:4d}         {:.3f}                 {:.2f}".format(*curve[-1]))
    print("\nlayer, head   induction score   loss without it")
    for layer, scores in enumerate(scores_of(model, ids)):
        for head, score in enumerate(scores.tolist()):
            print(f"{layer:5d}, {head}         {score:.2f}              {loss_without(model, ids, layer, [head]):.3f}")
        print(f"{layer:5d}, all                         {loss_without(model, ids, layer, list(range(H))):.3f}")
    print(
        "\nThe heads of layer 1 copy. (Their score is below 1 because a word may stand at several earlier places, and"
        "\nonly the latest counts.) The heads of layer 0 have a score of almost 0, and yet nothing works without them:"
        "\nwhat do they tell the others? And why does it cost so little to lose a single head?"
    )
    draw(curve, model, ids).savefig("induction.png", dpi=120)
    print("The picture is in induction.png.")


if __name__ == "__main__":
    try:
        main()
    except NotImplementedError as error:
        sys.exit(f"{error} Write `induction_scores` and `silenced` in harder.py first: `python harder.py` checks them.")
