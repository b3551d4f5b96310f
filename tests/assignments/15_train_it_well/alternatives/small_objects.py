"""A small object for every idea: one for each moving average, one for each parameter, a schedule as a class."""

import math
from dataclasses import dataclass

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


BEGINNINGS = {}


def begins(kind):
    def register(function):
        BEGINNINGS[kind] = function
        return function

    return register


@begins(nn.Linear)
def _linear(layer, std):
    nn.init.normal_(layer.weight, 0.0, std)
    if layer.bias is not None:
        nn.init.constant_(layer.bias, 0.0)


@begins(nn.Embedding)
def _embedding(table, std):
    nn.init.normal_(table.weight, 0.0, std)


@begins(nn.LayerNorm)
def _layer_norm(norm, std):
    nn.init.constant_(norm.weight, 1.0)
    nn.init.constant_(norm.bias, 0.0)


def init_weights(model, std=0.02):
    for kind, begin in BEGINNINGS.items():
        if isinstance(model, kind):
            begin(model, std)
    for child in model.children():
        init_weights(child, std)


@dataclass(frozen=True)
class Schedule:
    warmup: int
    total: int
    peak: float
    floor: float

    def __call__(self, step):
        top = max(self.warmup, 1) - 1
        if step < top:
            return self.peak / self.warmup * (step + 1)
        q = min(1.0, (step - top) / (self.total - 1 - top))
        return self.peak + (self.floor - self.peak) * (1 - math.cos(q * math.pi)) * 0.5


def learning_rate(step: int, warmup: int, total: int, peak: float, floor: float = 0.0) -> float:
    return Schedule(warmup, total, peak, floor)(step)


def clip_gradients(parameters, max_norm):
    owners = tuple(p for p in parameters if p.grad is not None)
    flat = torch.cat([p.grad.reshape(-1) for p in owners]) if owners else torch.zeros(1)
    norm = float(torch.linalg.norm(flat))
    if max_norm < norm:
        for p in owners:
            p.grad.div_(norm).mul_(max_norm)
    return norm


class Average:
    def __init__(self, beta, like):
        self.beta, self.value, self.weight = beta, torch.zeros_like(like), 0.0

    def take(self, new):
        self.value.mul_(self.beta).add_(new, alpha=1 - self.beta)
        self.weight = self.beta * self.weight + (1 - self.beta)
        return self.value / self.weight


class Dial:
    def __init__(self, parameter, betas):
        self.parameter = parameter
        self.mean, self.square = (Average(beta, parameter.detach()) for beta in betas)

    def turn(self, lr, eps, decay):
        gradient = self.parameter.grad
        mean, square = self.mean.take(gradient), self.square.take(gradient * gradient)
        ratio = mean / (eps + square**0.5)
        with torch.no_grad():
            self.parameter.copy_(self.parameter - lr * decay * self.parameter - lr * ratio)


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        self.dials = [Dial(parameter, betas) for parameter in parameters]
        self._lr, self.eps, self.decay = lr, eps, weight_decay

    @property
    def lr(self):
        return self._lr

    @lr.setter
    def lr(self, rate):
        self._lr = rate

    def step(self):
        for dial in self.dials:
            if dial.parameter.grad is not None:
                dial.turn(self.lr, self.eps, self.decay)

    def zero_grad(self):
        for dial in self.dials:
            del dial.parameter.grad


def perplexity(loss: float) -> float:
    return math.pow(math.e, loss)


def top_p(logits, p):
    if p >= 1.0:
        return logits.clone().detach()
    order = torch.argsort(logits, descending=True, stable=True)
    sums = torch.softmax(logits.double(), -1)[order].cumsum(0)
    size = 1 + int((sums < p).sum())
    chosen = torch.zeros(len(logits), dtype=torch.bool)
    chosen[order[:size]] = True
    return torch.where(chosen, logits, torch.tensor(-math.inf, dtype=logits.dtype))


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.register_parameter("weight", nn.Parameter(torch.ones((d_model,))))
        self.epsilon = eps

    def forward(self, x):
        root = torch.einsum("...c,...c->...", x, x).div(x.shape[-1]).add(self.epsilon).sqrt()
        return x / root.unsqueeze(-1) * self.weight


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)
        self.activation = nn.SiLU()

    def forward(self, x):
        return self.down(self.activation(self.gate(x)).mul_(self.up(x)))
