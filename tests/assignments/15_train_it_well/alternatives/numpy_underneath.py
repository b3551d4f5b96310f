"""NumPy does the arithmetic wherever no gradient has to flow."""

import itertools

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Every token attends to itself and to the tokens before it: (B, T, C) -> (B, T, C)."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(x).unflatten(-1, (3, self.n_heads, -1)).movedim(1, -2)             # (B, 3, H, T, D)
        attended = F.scaled_dot_product_attention(*parts.unbind(1), is_causal=True)         # (B, H, T, D)
        return self.proj(attended.movedim(1, 2).flatten(2))                                 # (B, T, C)


class Block(nn.Module):
    """A pre-norm block, (B, T, C) -> (B, T, C); `modern` builds it with RMSNorm and SwiGLU."""

    def __init__(self, d_model: int, n_heads: int, modern: bool) -> None:
        super().__init__()
        norm = RMSNorm if modern else nn.LayerNorm
        self.norm1, self.norm2 = norm(d_model), norm(d_model)
        self.attention = CausalAttention(d_model, n_heads)
        if modern:
            self.ff = SwiGLU(d_model, 8 * d_model // 3)
        else:
            inward, outward = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)
            self.ff = nn.Sequential(inward, nn.GELU(), outward)

    def forward(self, x: Tensor) -> Tensor:
        for norm, sublayer in ((self.norm1, self.attention), (self.norm2, self.ff)):
            x = x + sublayer(norm(x))
        return x


class LanguageModel(nn.Module):
    """ids (B, T), targets (B, T) or None -> logits (B, T, V) and the loss, or None without targets."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 96,
        n_heads: int = 4,
        n_layers: int = 3,
        block_size: int = 64,
        modern: bool = False,
    ) -> None:
        super().__init__()
        self.block_size = block_size
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.position_embed = nn.Embedding(block_size, d_model)
        self.blocks = nn.Sequential(*(Block(d_model, n_heads, modern) for _ in range(n_layers)))
        self.norm = (RMSNorm if modern else nn.LayerNorm)(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.head.weight = self.token_embed.weight                                          # tied

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.token_embed(ids) + self.position_embed.weight[: ids.shape[1]]              # (B, T, C)
        logits = self.head(self.norm(self.blocks(x)))                                       # (B, T, V)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Knobs(nn.Module):
    """Given: parameters that begin with these values, and gradients that you choose."""

    def __init__(self, *values: Tensor) -> None:
        super().__init__()
        self.knobs = nn.ParameterList(value.clone() for value in values)

    def set_gradients(self, *gradients: Tensor | None) -> None:
        """One gradient for each knob, as if `backward()` had been called; None for a knob without one."""
        for knob, gradient in zip(self.knobs, gradients):
            knob.grad = None if gradient is None else gradient.clone()

    def gradients(self) -> list[Tensor | None]:
        return [None if knob.grad is None else knob.grad.clone() for knob in self.knobs]

    def values(self) -> list[Tensor]:
        return [knob.detach().clone() for knob in self.knobs]

    def clip(self, max_norm: float) -> float:
        """`clip_gradients`, called as in a training loop: `parameters()` is a generator."""
        return clip_gradients(self.parameters(), max_norm)

    def adamw(self, **settings: object) -> "AdamW":
        """An `AdamW` for the knobs, made as for any module."""
        return AdamW(self.parameters(), **settings)


def init_weights(model, std=0.02):
    kinds = nn.Linear, nn.Embedding, nn.LayerNorm
    with torch.no_grad():
        for part in filter(lambda part: isinstance(part, kinds), model.modules()):
            if isinstance(part, nn.LayerNorm):
                part.weight.copy_(torch.ones_like(part.weight))
            else:
                part.weight.copy_(torch.randn(part.weight.shape) * std)
            bias = getattr(part, "bias", None)
            if bias is not None:
                bias.copy_(torch.zeros_like(bias))


def learning_rate(step, warmup, total, peak, floor=0.0):
    places = [0, warmup - 1] if warmup > 1 else [0]
    rates = [peak / warmup, peak] if warmup > 1 else [peak]
    if step <= places[-1]:
        return float(np.interp(step, places, rates))
    q = np.clip((step - places[-1]) / (total - 1 - places[-1]), 0, 1)
    return float(floor + (peak - floor) * np.cos(np.pi * q / 2) ** 2)


def clip_gradients(parameters, max_norm):
    first, second = itertools.tee(parameters)
    parts = [np.linalg.norm(p.grad.numpy().ravel()) for p in first if p.grad is not None]
    norm = float(np.linalg.norm(np.array(parts, dtype=np.float64)))
    factor = max_norm / norm if norm > max_norm else 1.0
    for p in second:
        if p.grad is not None and factor != 1.0:
            p.grad *= factor
    return norm


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        self.parameters = tuple(parameters)
        self.lr, self.betas, self.eps, self.weight_decay = lr, np.array(betas), eps, weight_decay
        self.moments = [np.zeros((2, *p.shape)) for p in self.parameters]
        self.times = np.zeros(len(self.parameters), dtype=int)

    def step(self):
        for i, (p, moments) in enumerate(zip(self.parameters, self.moments)):
            if p.grad is None:
                continue
            self.times[i] += 1
            g = p.grad.numpy().astype(np.float64)
            beta = self.betas.reshape(2, *[1] * g.ndim)
            moments[...] = beta * moments + (1 - beta) * np.stack([g, g**2])
            mean, square = moments / (1 - beta ** self.times[i])
            old = p.detach().numpy()
            new = old - self.lr * (self.weight_decay * old + mean / (np.sqrt(square) + self.eps))
            p.data.copy_(torch.as_tensor(new))

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None


def perplexity(loss):
    return float(np.exp(loss))


def top_p(logits, p):
    numbers = logits.detach().double().numpy()
    order = np.argsort(-numbers, kind="stable")
    weights = np.exp(numbers - numbers.max())
    sums = np.cumsum((weights / weights.sum())[order])
    size = len(numbers) if p >= 1 else min(len(numbers), 1 + np.searchsorted(sums, p))
    result = np.full_like(numbers, -np.inf)
    result[order[:size]] = numbers[order[:size]]
    return torch.from_numpy(result).to(logits.dtype)


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.full((d_model,), 1.0))
        self.eps = eps

    def forward(self, x):
        C = x.shape[-1]
        one_more = x.new_full((*x.shape[:-1], 1), (C * self.eps) ** 0.5)
        length = torch.linalg.vector_norm(torch.cat([x, one_more], -1), dim=-1, keepdim=True)
        return self.weight * x * C**0.5 / length


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        for name, sizes in {"gate": (d_model, d_ff), "up": (d_model, d_ff), "down": (d_ff, d_model)}.items():
            self.add_module(name, nn.Linear(*sizes, bias=False))

    def forward(self, x):
        gate = x @ self.gate.weight.T
        hidden = gate / (1 + torch.exp(-gate)) * (x @ self.up.weight.T)
        return hidden @ self.down.weight.T
