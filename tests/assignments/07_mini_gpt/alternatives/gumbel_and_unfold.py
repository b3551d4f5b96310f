"""Windows by unfold, chance by Gumbel noise, attention by the fused function on the layer's own weights."""

import torch
import torch.nn.functional as F
from torch import nn


def get_batch(data, block_size, batch_size, generator=None):
    if data.shape[0] - block_size < 1:
        raise ValueError(f"block_size={block_size}, but the text has only {data.shape[0]} words")
    windows = data.unfold(0, block_size + 1, 1)
    chance = torch.rand(batch_size, generator=generator, dtype=torch.float64)
    chosen = windows[(chance * len(windows)).long()]
    return chosen[:, :-1].contiguous(), chosen[:, 1:].contiguous()


def language_model_loss(logits, targets):
    return F.cross_entropy(logits.movedim(-1, 1), targets)


class Block(nn.Module):
    def __init__(self, embed_size, num_heads):
        super().__init__()
        self.heads = num_heads
        self.ln1 = nn.LayerNorm(embed_size)
        self.attention = nn.MultiheadAttention(embed_size, num_heads, batch_first=True)
        self.ln2 = nn.LayerNorm(embed_size)
        self.ff = nn.Sequential(
            nn.Linear(embed_size, 4 * embed_size), nn.GELU(), nn.Linear(4 * embed_size, embed_size)
        )

    def listen(self, x):
        packed = F.linear(x, self.attention.in_proj_weight, self.attention.in_proj_bias)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in packed.chunk(3, -1))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.attention.out_proj(out.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.listen(self.ln1(x))
        return x + self.ff(self.ln2(x))


class TransformerLanguageModel(nn.Module):
    def __init__(self, vocab_size, embed_size=64, block_size=8, num_heads=4, num_layers=1):
        super().__init__()
        self.fc = nn.Linear(embed_size, vocab_size)
        self.ln = nn.LayerNorm(embed_size)
        self.blocks = nn.Sequential(*(Block(embed_size, num_heads) for _ in range(num_layers)))
        self.pos_embed = nn.Embedding(block_size, embed_size)
        self.token_embed = nn.Embedding(vocab_size, embed_size)

    @property
    def block_size(self):
        return self.pos_embed.num_embeddings

    def forward(self, ids, targets=None):
        length = ids.shape[1]
        if length > self.block_size:
            raise ValueError(f"block_size is {self.block_size}, the text has {length} words")
        stream = self.token_embed(ids) + self.pos_embed.weight[:length]
        logits = self.fc(self.ln(self.blocks(stream)))
        loss = language_model_loss(logits, targets) if targets is not None else None
        return logits, loss


def train(model, data, steps, batch_size, lr, generator=None):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, foreach=False)

    def one_step():
        x, y = get_batch(data, model.block_size, batch_size, generator)
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        return loss.detach().cpu().item()

    return [one_step() for _ in range(steps)]


def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} is not positive")
    if top_k is not None and top_k <= 0:
        raise ValueError(f"top_k={top_k} leaves no word")
    training = model.training
    model.train(False)
    try:
        with torch.inference_mode():
            text = list(ids.unbind(1))
            for _ in range(max_new_tokens):
                context = torch.stack(text[-model.block_size :], dim=1)
                logits, _ = model(context)
                logits = logits[:, -1, :].double() / temperature
                if top_k is not None and top_k < logits.shape[-1]:
                    order = logits.argsort(dim=-1, descending=True)
                    logits = logits.scatter(1, order[:, top_k:], float("-inf"))
                noise = torch.rand(logits.shape, generator=generator, dtype=torch.float64)
                text.append((logits - (-noise.log()).log()).argmax(dim=-1))
        return torch.stack([column.clone() for column in text], dim=1)
    finally:
        model.train(training)
