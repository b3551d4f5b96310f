"""An optimiser of PyTorch's kind: `torch.optim.Optimizer` keeps the parameters and forgets their gradients."""

import math

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
    @torch.no_grad()
    def begin(module):
        if isinstance(module, nn.Linear):
            module.weight.normal_(0, std)
            if module.bias is not None:
                module.bias.fill_(0)
        if isinstance(module, nn.Embedding):
            module.weight.normal_(0, std)
        if isinstance(module, nn.LayerNorm):
            module.weight.fill_(1)
            module.bias.fill_(0)

    model.apply(begin)


def learning_rate(step, warmup, total, peak, floor=0.0):
    peak_at = max(warmup - 1, 0)
    if step <= peak_at:
        return peak * (step + 1) / (peak_at + 1)
    if step > total - 1:
        return floor
    angle = math.pi * (step - peak_at) / (total - 1 - peak_at)
    share = math.cos(angle / 2) ** 2
    return share * peak + (1 - share) * floor


def clip_gradients(parameters, max_norm):
    kept, squares = [], 0.0
    for parameter in parameters:
        if parameter.grad is None:
            continue
        kept.append(parameter)
        squares += float((parameter.grad**2).sum())
    norm = squares**0.5
    if norm > max_norm:
        for parameter in kept:
            parameter.grad = parameter.grad * (max_norm / norm)
    return norm


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @property
    def lr(self):
        return self.param_groups[0]["lr"]

    @lr.setter
    def lr(self, rate):
        for group in self.param_groups:
            group["lr"] = rate

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["t"] = 0
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                state["t"] += 1
                state["m"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                state["v"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                m_hat = state["m"] / (1 - beta1 ** state["t"])
                v_hat = state["v"] / (1 - beta2 ** state["t"])
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.addcdiv_(m_hat, v_hat.sqrt().add_(group["eps"]), value=-group["lr"])


def perplexity(loss):
    return math.e**loss


def top_p(logits, p):
    if p >= 1.0:
        return logits.clone()
    ordered, indices = torch.sort(logits.double(), descending=True, stable=True)
    probs = torch.softmax(ordered, dim=-1)
    drop = probs.cumsum(dim=-1) - probs >= p
    drop[0] = False
    return logits.masked_fill(torch.zeros_like(drop).scatter(0, indices, drop), -torch.inf)


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        return x * (x.pow(2).sum(-1, keepdim=True) / x.size(-1) + self.eps).pow(-0.5) * self.weight


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.down = nn.Linear(d_ff, d_model, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.gate = nn.Linear(d_model, d_ff, bias=False)

    def forward(self, x):
        gate = self.gate(x)
        return self.down(gate * torch.sigmoid(gate) * self.up(x))
