"""One-hot products for the loss, a dart on cumulated shares for the draw, AdamW written out by hand."""

import math

import torch
from torch import nn
from torch.nn.functional import one_hot


class TooShort(ValueError):
    pass


def get_batch(data, block_size, batch_size, generator=None):
    L = data.size(0)
    if not L > block_size:
        raise TooShort(f"L = {L} <= block_size = {block_size}")
    offsets = torch.empty(batch_size, 1, dtype=torch.long).random_(0, L - block_size, generator=generator)
    rows = torch.gather(data.expand(batch_size, L), 1, offsets + torch.arange(block_size + 1))
    return rows[:, :block_size], rows[:, 1:]


def language_model_loss(logits, targets):
    shifted = logits - logits.amax(dim=-1, keepdim=True)
    log_shares = shifted - shifted.exp().sum(dim=-1, keepdim=True).log()
    picked = torch.where(one_hot(targets, logits.shape[-1]).bool(), log_shares, 0.0)
    return -picked.sum() / targets.numel()


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
        places = torch.arange(x.shape[1])
        mask = torch.zeros(len(places), len(places), dtype=x.dtype)
        mask[places[:, None] < places[None, :]] = -math.inf
        stream = x.clone()
        quiet = self.ln1(stream)
        stream = stream + self.attention(quiet, quiet, quiet, attn_mask=mask)[0]
        return stream + self.ff(self.ln2(stream))


class TransformerLanguageModel(nn.Module):
    def __init__(self, vocab_size, embed_size=64, block_size=8, num_heads=4, num_layers=1):
        super().__init__()
        self.block_size = block_size
        self.token_embed = nn.Embedding(vocab_size, embed_size)
        self.pos_embed = nn.Embedding(block_size, embed_size)
        self.blocks = nn.ModuleDict({str(i): Block(embed_size, num_heads) for i in range(num_layers)})
        self.ln = nn.LayerNorm(embed_size)
        self.fc = nn.Linear(embed_size, vocab_size, bias=True)

    def forward(self, ids, targets=None):
        B, T = ids.shape
        if self.block_size < T:
            raise ValueError(f"a text of {T} words; block_size is {self.block_size}")
        x = self.token_embed.weight[ids] + self.pos_embed(torch.arange(T).repeat(B, 1))
        for block in self.blocks.values():
            x = block(x)
        logits = self.fc(self.ln(x))
        return [logits, None if targets is None else language_model_loss(logits, targets)]


def train(model, data, steps, batch_size, lr, generator=None):
    model.train()
    parameters = list(model.parameters())
    means = [torch.zeros_like(p) for p in parameters]
    squares = [torch.zeros_like(p) for p in parameters]
    losses = []
    for step in range(1, steps + 1):
        _, loss = model(*get_batch(data, model.block_size, batch_size, generator))
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, g, m, s in zip(parameters, gradients, means, squares):
                p.mul_(1 - lr * 0.01)
                m.mul_(0.9).add_(g, alpha=0.1)
                s.mul_(0.999).addcmul_(g, g, value=0.001)
                size = (s / (1 - 0.999**step)).sqrt() + 1e-8
                p.sub_(lr * m / (1 - 0.9**step) / size)
        losses.append(loss.item())
    return losses


def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    if temperature <= 0:
        raise ValueError(f"temperature must be > 0 (it is {temperature})")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be >= 1 (it is {top_k})")
    before = bool(model.training)
    model.eval()
    torch_grad = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    out = ids.clone()
    for _ in range(max_new_tokens):
        logits, _ = model(out[:, -model.block_size :])
        last = logits[:, -1].double()
        ranked, words = last.sort(dim=-1, descending=True)
        shares = ((ranked - ranked[:, :1]) / temperature).exp()
        if top_k is not None:
            shares[:, top_k:] = 0.0
        reached = shares.cumsum(-1)
        dart = torch.rand(len(out), 1, generator=generator, dtype=torch.float64) * reached[:, -1:]
        place = (reached <= dart).sum(-1, keepdim=True).clamp(max=reached.shape[-1] - 1)
        out = torch.cat([out, words.gather(1, place)], dim=1)
    torch.set_grad_enabled(torch_grad)
    model.train(before)
    return out
