"""Induction heads in a model of your own: it learns to copy before your eyes, in some seconds.

    python induction.py

Each text is a row of random words that begins anew after 6 to 16 words. No word can be guessed until the row begins for
the second time; from then on each one can be, by an induction head. The model has two layers of attention and nothing
else. When it is trained, your `induction_scores` of harder.py look for the heads that copy, and your `silenced` says what
each of them is worth: write these two functions first.
"""

import math

import torch
import torch.nn.functional as F
from harder import induction_scores, silenced
from torch import Tensor, nn

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
        scores = q @ k.mT / math.sqrt(q.shape[-1])                                  # (B, H, T, T)
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)            # (T, T)
        self.weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)        # (B, H, T, T)
        outputs = self.weights @ v                                                  # (B, H, T, D)
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


def train(model: Copier, steps: int, generator: torch.Generator) -> float:
    """So many steps, each with texts that the model has never seen; the loss of the last one."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99))
    for _ in range(steps):
        loss = loss_of(model, some_texts(32, generator))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return loss.item()


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


def main() -> None:
    """Train, measure, silence."""
    torch.set_num_threads(1)  # the tensors are so small that a second thread only waits
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Copier()
    ids = some_texts(64, torch.Generator().manual_seed(1))
    print(f"Knowing nothing costs ln {V} = {math.log(V):.3f}.")
    print(f"Before training, the loss is {loss_of(model, ids):.3f}.")
    train(model, 300, generator)
    print(f"After 300 steps it is {loss_of(model, ids):.3f}, on texts that the model has never seen.\n")
    print("layer, head   induction score   loss without it")
    for layer, scores in enumerate(scores_of(model, ids)):
        for head, score in enumerate(scores.tolist()):
            print(f"{layer:5d}, {head}         {score:.2f}              {loss_without(model, ids, layer, [head]):.3f}")
        print(f"{layer:5d}, all                         {loss_without(model, ids, layer, list(range(H))):.3f}")
    print(
        "\nThe heads of layer 1 copy. Those of layer 0 have a score of almost 0, and yet nothing works without them: what"
        "\ndo they tell the others? (Look at where they attend to.) And why does it cost so little to lose one head?"
    )


if __name__ == "__main__":
    main()
