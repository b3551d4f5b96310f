"""Many small functions, a recursive writer, and an inverse-temperature power of the shares."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Style:
    temperature: float = 1.0
    top_k: "int | None" = None

    def __post_init__(self):
        if self.temperature <= 0:
            raise ValueError(f"temperature {self.temperature} <= 0")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k {self.top_k} < 1")


def get_batch(data, block_size, batch_size, generator=None):
    count = len(data) - block_size
    if count <= 0:
        raise ValueError(f"no window of block_size {block_size} and its answer in {len(data)} words")
    starts = torch.randint(high=count, size=[batch_size], generator=generator).numpy()
    windows = np.lib.stride_tricks.sliding_window_view(data.numpy(), block_size + 1)[starts]
    windows = torch.from_numpy(windows.copy())
    return windows[:, :-1], windows[:, 1:]


def surprise(logits, targets):
    return torch.logsumexp(logits, dim=-1) - torch.take_along_dim(logits, targets[..., None], dim=-1)[..., 0]


def language_model_loss(logits, targets):
    return surprise(logits, targets).mean()


class Block(nn.Module):
    def __init__(self, embed_size, num_heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(embed_size)
        self.attention = nn.MultiheadAttention(embed_size, num_heads, batch_first=True)
        self.ln2 = nn.LayerNorm(embed_size)
        self.ff = nn.Sequential(
            nn.Linear(embed_size, 4 * embed_size), nn.GELU(), nn.Linear(4 * embed_size, embed_size)
        )

    def forward(self, x):
        return self.think(self.hear(x))

    def hear(self, x):
        h = self.ln1(x)
        allowed = torch.tril(torch.ones(x.shape[1], x.shape[1])) == 1
        return torch.add(x, self.attention(h, h, h, attn_mask=torch.logical_not(allowed))[0])

    def think(self, x):
        return torch.add(x, self.ff(self.ln2(x)))


class TransformerLanguageModel(nn.Module):
    def __init__(self, vocab_size, embed_size=64, block_size=8, num_heads=4, num_layers=1):
        super().__init__()
        self.block_size = block_size
        self.token_embed, self.pos_embed = (
            nn.Embedding(vocab_size, embed_size),
            nn.Embedding(block_size, embed_size),
        )
        self.blocks = nn.ModuleList(map(lambda _: Block(embed_size, num_heads), range(num_layers)))
        self.ln, self.fc = nn.LayerNorm(embed_size), nn.Linear(embed_size, vocab_size)

    def embed(self, ids):
        if ids.shape[-1] > self.block_size:
            raise ValueError(f"block_size {self.block_size} < T {ids.shape[-1]}")
        return self.token_embed(ids) + self.pos_embed(torch.ones_like(ids).cumsum(-1) - 1)

    def forward(self, ids, targets=None):
        stream = self.embed(ids)
        for block in self.blocks:
            stream = block(stream)
        logits = self.fc(self.ln(stream))
        return logits, (language_model_loss(logits, targets) if targets is not None else None)


def train(model, data, steps, batch_size, lr, generator=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    model.train(True)

    def closure():
        optimizer.zero_grad()
        x, y = get_batch(data, model.block_size, batch_size, generator)
        loss = language_model_loss(model(x)[0], y)
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(steps)]


def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    style, mode = Style(temperature, top_k), model.training
    model.eval()
    with torch.no_grad():
        written = write(model, ids, max_new_tokens, style, generator)
    model.train(mode)
    return written


def write(model, ids, left, style, generator):
    if left == 0:
        return ids
    said = model(ids[:, -model.block_size :])[0][:, -1]
    word = torch.multinomial(shares(said, style), num_samples=1, replacement=True, generator=generator)
    return write(model, torch.hstack([ids, word]), left - 1, style, generator)


def shares(logits, style):
    p = torch.log_softmax(logits.double(), dim=-1)
    if style.top_k is not None:
        rank = p.argsort(descending=True).argsort()
        p = torch.where(rank < style.top_k, p, torch.tensor(-torch.inf, dtype=p.dtype))
    p = p.exp() ** (1 / style.temperature)
    return p / p.sum(-1, keepdim=True)
