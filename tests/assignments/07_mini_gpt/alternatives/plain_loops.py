"""Everything one after the other: loops over rows, places and words."""

import math

import torch
from torch import nn


def get_batch(data, block_size, batch_size, generator=None):
    if block_size + 1 > data.numel():
        raise ValueError("block_size=%d is too large for a text of %d words" % (block_size, data.numel()))
    xs, ys = [], []
    for _ in range(batch_size):
        start = int(torch.randint(0, data.numel() - block_size, (), generator=generator))
        xs.append(data[start : start + block_size])
        ys.append(data[start + 1 : start + 1 + block_size])
    return torch.stack(xs), torch.stack(ys)


def language_model_loss(logits, targets):
    total, count = 0.0, 0
    for said, right in zip(logits, targets):
        for place in range(len(right)):
            total = total + torch.logsumexp(said[place], 0) - said[place, right[place]]
            count += 1
    return total / count


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
        normed = self.ln1(x)
        outputs = []
        for t in range(x.size(1)):
            past = normed[:, : t + 1]
            outputs.append(self.attention(past[:, -1:], past, past)[0])
        x = x + torch.cat(outputs, 1)
        return x + self.ff(self.ln2(x))


class TransformerLanguageModel(nn.Module):
    def __init__(self, vocab_size, embed_size=64, block_size=8, num_heads=4, num_layers=1):
        super().__init__()
        self.block_size = block_size
        self.token_embed = nn.Embedding(vocab_size, embed_size)
        self.pos_embed = nn.Embedding(block_size, embed_size)
        self.blocks = nn.ModuleList()
        for _ in range(num_layers):
            self.blocks.append(Block(embed_size, num_heads))
        self.ln = nn.LayerNorm(embed_size)
        self.fc = nn.Linear(embed_size, vocab_size)

    def forward(self, ids, targets=None):
        if ids.size(1) > self.block_size:
            raise ValueError("%d words are more than block_size=%d" % (ids.size(1), self.block_size))
        columns = [self.token_embed(ids[:, t]) + self.pos_embed.weight[t] for t in range(ids.size(1))]
        x = torch.stack(columns, 1)
        for block in self.blocks:
            x = block(x)
        logits = self.fc(self.ln(x))
        if targets is None:
            return logits, None
        return logits, language_model_loss(logits, targets)


def train(model, data, steps, batch_size, lr, generator=None):
    model.train()
    optimizer = torch.optim.AdamW(list(model.parameters()), lr)
    losses = []
    while len(losses) < steps:
        x, y = get_batch(data, model.block_size, batch_size, generator)
        loss = model(x, y)[1]
        loss.backward()
        optimizer.step()
        model.zero_grad()
        losses.append(float(loss))
    return losses


@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    if not temperature > 0:
        raise ValueError("the temperature must be positive, not %s" % temperature)
    if top_k is not None and not top_k >= 1:
        raise ValueError("top_k must be 1 or more, not %s" % top_k)
    mode = model.training
    model.eval()
    for _ in range(max_new_tokens):
        start = max(0, ids.size(1) - model.block_size)
        logits = model(ids[:, start:])[0][:, -1]
        words = []
        for row in logits:
            weights = [math.exp((v - row.max().item()) / temperature) for v in row.tolist()]
            if top_k is not None:
                keep = sorted(range(len(weights)), key=lambda v: -weights[v])[:top_k]
                weights = [w if v in keep else 0.0 for v, w in enumerate(weights)]
            dart, word = torch.rand((), generator=generator, dtype=torch.float64).item() * sum(weights), 0
            while dart >= weights[word] and word < len(weights) - 1:
                dart -= weights[word]
                word += 1
            words.append(word)
        ids = torch.cat((ids, torch.tensor(words)[:, None]), 1)
    if mode:
        model.train()
    return ids
