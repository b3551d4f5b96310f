"""Many tensors at a time: PyTorch's operations on lists, stacked norms, a mask that is scattered back."""

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


def init_weights(model: nn.Module, std: float = 0.02) -> None:
    for part in model.modules():
        match part:
            case nn.Linear():
                part.weight.data.normal_(mean=0.0, std=std)
                if part.bias is not None:
                    part.bias.data.zero_()
            case nn.Embedding():
                part.weight.data.normal_(mean=0.0, std=std)
            case nn.LayerNorm():
                part.reset_parameters()


def learning_rate(step, warmup, total, peak, floor=0.0):
    rise = torch.linspace(0, peak, warmup + 1, dtype=torch.float64)[1:] if warmup else torch.tensor([peak])
    turn = torch.linspace(0, math.pi, total - len(rise) + 1, dtype=torch.float64)[1:]
    rates = [*rise.tolist(), *(floor + (peak - floor) * (0.5 + 0.5 * turn.cos())).tolist()]
    return rates[step] if step < total else floor


@torch.no_grad()
def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return 0.0
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients]))
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(gradients, scale.item())
    return norm.item()


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        self.lr, (self.b1, self.b2), self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.params = [*parameters]
        self.state = {}

    @torch.no_grad()
    def step(self):
        alive = [p for p in self.params if p.grad is not None]
        if not alive:
            return
        for p in alive:
            self.state.setdefault(p, [torch.zeros_like(p), torch.zeros_like(p), 0])[2] += 1
        m, v, t = zip(*(self.state[p] for p in alive))
        g = [p.grad for p in alive]
        torch._foreach_mul_(alive, 1 - self.lr * self.weight_decay)
        torch._foreach_lerp_(m, g, 1 - self.b1)
        torch._foreach_mul_(v, self.b2)
        torch._foreach_addcmul_(v, g, g, 1 - self.b2)
        size = torch._foreach_sqrt(v)
        torch._foreach_div_(size, [(1 - self.b2**n) ** 0.5 for n in t])
        torch._foreach_add_(size, self.eps)
        torch._foreach_addcdiv_(alive, m, size, [-self.lr / (1 - self.b1**n) for n in t])

    def zero_grad(self, set_to_none=True):
        for p in self.params:
            p.grad = None if set_to_none else torch.zeros_like(p)


def perplexity(loss):
    return torch.tensor(loss, dtype=torch.float64).exp().item()


def top_p(logits, p):
    if p == 1:
        return logits + 0
    ranked, ids = torch.sort(logits, descending=True, stable=True)
    reached = F.softmax(ranked.double(), dim=-1).cumsum(-1)
    out = torch.cat([torch.tensor([False]), reached[:-1] >= p])
    return logits.masked_fill(torch.zeros_like(out).scatter(0, ids, out), -torch.inf)


class RMSNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(d_model).fill_(1.0))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.double()).type_as(x) * self.weight


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate, self.up = (nn.Linear(d_model, d_ff, False) for _ in "gu")
        self.down = nn.Linear(d_ff, d_model, False)

    def forward(self, x):
        both = F.linear(x, torch.cat([self.gate.weight, self.up.weight]))
        gate, up = both.chunk(2, dim=-1)
        return self.down(F.silu(gate).mul(up))
