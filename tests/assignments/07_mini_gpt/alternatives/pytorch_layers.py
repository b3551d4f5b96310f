"""Leans on PyTorch's own parts: its ready-made mask, its loss module, Categorical for the draw."""

import torch
from torch import nn
from torch.distributions import Categorical


def get_batch(data, block_size, batch_size, generator=None):
    last_start = len(data) - block_size - 1
    if last_start < 0:
        raise ValueError(f"the text has {len(data)} words, too few for block_size {block_size}")
    starts = torch.multinomial(torch.ones(last_start + 1), batch_size, replacement=True, generator=generator)
    x = torch.stack([data.narrow(0, start, block_size) for start in starts.tolist()])
    y = torch.stack([data.narrow(0, start + 1, block_size) for start in starts.tolist()])
    return x, y


def language_model_loss(logits, targets):
    return nn.CrossEntropyLoss()(logits.transpose(1, 2), targets)


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
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device, dtype=x.dtype)
        h = self.ln1(x)
        x = self.attention(h, h, h, attn_mask=mask, is_causal=True, need_weights=False)[0] + x
        return self.ff(self.ln2(x)) + x


class TransformerLanguageModel(nn.Module):
    def __init__(self, vocab_size, embed_size=64, block_size=8, num_heads=4, num_layers=1):
        super().__init__()
        self.block_size = block_size
        self.token_embed = nn.Embedding(vocab_size, embed_size)
        self.pos_embed = nn.Embedding(block_size, embed_size)
        self.register_buffer("seats", torch.arange(block_size))
        self.blocks = nn.Sequential(*[Block(embed_size, num_heads) for _ in range(num_layers)])
        self.ln = nn.LayerNorm(embed_size)
        self.fc = nn.Linear(embed_size, vocab_size)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids, targets=None):
        _, T = ids.shape
        if T > self.block_size:
            raise ValueError(f"T={T} is larger than block_size={self.block_size}")
        x = self.blocks(self.token_embed(ids) + self.pos_embed(self.seats[:T]))
        logits = self.fc(self.ln(x))
        return logits, (None if targets is None else language_model_loss(logits, targets))


def train(model, data, steps, batch_size, lr, generator=None):
    model.train()
    optimizer = torch.optim.AdamW([{"params": model.parameters()}], lr=lr)
    losses = torch.zeros(steps, dtype=torch.float64)
    for step in range(steps):
        optimizer.zero_grad()
        logits, loss = model(*get_batch(data, model.block_size, batch_size, generator))
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach()
    return losses.tolist()


def next_word(logits, temperature, top_k, generator):
    shares = torch.softmax(logits / temperature, dim=-1)
    if top_k is not None:
        values, words = torch.topk(shares, k=min(top_k, shares.size(-1)), dim=-1)
        shares = torch.zeros_like(shares).scatter_(-1, words, values)
    if generator is None:
        return Categorical(probs=shares).sample()
    return torch.multinomial(shares, 1, generator=generator).squeeze(1)


def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    if temperature <= 0.0:
        raise ValueError(f"temperature has to be greater than zero: {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k has to be one or more: {top_k}")
    was_training, length = model.training, ids.shape[1]
    text = torch.cat([ids, ids.new_zeros(ids.shape[0], max_new_tokens)], dim=1)
    model.eval()
    with torch.no_grad():
        for end in range(length, length + max_new_tokens):
            logits, _ = model(text[:, max(0, end - model.block_size) : end])
            text[:, end] = next_word(logits[:, -1], temperature, top_k, generator)
    model.train(was_training)
    return text
