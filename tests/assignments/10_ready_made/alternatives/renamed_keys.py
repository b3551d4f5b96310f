"""Every weight travels as an entry of one dict whose keys are renamed."""

import re
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def furnish_like(new: nn.Module, old: nn.Module) -> nn.Module:
    """Given: the new module in the number type, on the device and in the mode of the old one."""
    weight = next(old.parameters())
    return new.to(device=weight.device, dtype=weight.dtype).train(old.training)


class FusedMultiHeadAttention(nn.Module):
    """Given: (B, T, C) -> (B, T, C). mask (T, T), True where row t may hear column s; None: all may."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.W_qkv = nn.Linear(d_model, d_model * 3, bias=False)
        self.W_out = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        cut = self.W_qkv(x).unflatten(-1, (3, self.n_heads, -1))  # (B, T, 3, H, C / H)
        questions, keys, answers = cut.permute(2, 0, 3, 1, 4)  # 3 times (B, H, T, C / H)
        heard = F.scaled_dot_product_attention(questions, keys, answers, attn_mask=mask)
        return self.W_out(heard.transpose(1, 2).flatten(2))  # (B, T, C)


def to_torch_attention(fused):
    torch_names = {"W_qkv.weight": "in_proj_weight", "W_out.weight": "out_proj.weight"}
    size = fused.W_qkv.in_features
    new = nn.MultiheadAttention(embed_dim=size, num_heads=fused.n_heads, bias=False, batch_first=True).to(
        fused.W_qkv.weight
    )
    new.load_state_dict({torch_names[name]: value for name, value in fused.state_dict().items()})
    new.training = fused.training
    new.out_proj.training = fused.training
    return new


class LayerNorm(nn.Module):
    """Given: shifts and squeezes each vector, then stretches by `gamma` and moves by `beta`."""

    def __init__(self, d_model: int, eps: float) -> None:
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.gamma.shape, self.gamma, self.beta, self.eps)


class FeedForward(nn.Module):
    """Given: two linear layers with an activation between them, "relu" or "gelu"."""

    def __init__(self, d_model: int, d_ff: int, activation: str) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(getattr(F, self.activation)(self.linear1(x)))


class TransformerEncoderBlock(nn.Module):
    """Given: post-norm, (B, T, C) -> (B, T, C). padding_mask (B, T), True marks padding, which nobody hears."""

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        activation: str = "relu",
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = FeedForward(d_model, d_ff, activation)
        self.norm1, self.norm2 = LayerNorm(d_model, eps), LayerNorm(d_model, eps)
        self.dropout = nn.Dropout(dropout)

    def listen(self, x: Tensor, padding_mask: Tensor | None) -> Tensor:
        return self.dropout(self.attention(x, x, x, key_padding_mask=padding_mask, need_weights=False)[0])

    def think(self, x: Tensor) -> Tensor:
        return self.dropout(self.ff(x))

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x + self.listen(x, padding_mask))
        return self.norm2(x + self.think(x))


class PreNormBlock(TransformerEncoderBlock):
    """Given: the same parts under the same names, in the other wiring."""

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        x = x + self.listen(self.norm1(x), padding_mask)
        return x + self.think(self.norm2(x))


def renamed(weights, *rules):
    found = {}
    for name, value in weights.items():
        for pattern, replacement in rules:
            name = re.sub(pattern, replacement, name)
        found[name] = value
    return found


def to_torch_encoder_layer(block):
    new = nn.TransformerEncoderLayer(
        d_model=block.norm1.gamma.numel(),
        nhead=block.attention.num_heads,
        dim_feedforward=block.ff.linear1.out_features,
        dropout=block.dropout.p,
        activation={"relu": F.relu, "gelu": F.gelu}[block.ff.activation],
        layer_norm_eps=block.norm1.eps,
        batch_first=True,
        norm_first=type(block) is PreNormBlock,
        dtype=block.norm1.gamma.dtype,
    )
    rules = (r"^attention\.", "self_attn."), (r"^ff\.", ""), (r"gamma$", "weight"), (r"beta$", "bias")
    new.load_state_dict(renamed(block.state_dict(), *rules))
    return new.train() if block.training else new.eval()


class CrossAttention(nn.Module):
    """Given: the written words (B, T, C) ask, the memory (B, S, C) answers -> (B, T, C)."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value, self.proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, y: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None) -> Tensor:
        notes = self.query(y), self.key(memory), self.value(memory)
        cut = [note.unflatten(2, (self.n_heads, -1)).movedim(2, 1) for note in notes]  # (B, H, …, C / H)
        allowed = None if memory_padding_mask is None else ~memory_padding_mask[:, None, None]
        heard = F.scaled_dot_product_attention(*cut, attn_mask=allowed)  # (B, H, T, C / H)
        return self.proj(heard.movedim(1, 2).flatten(2))  # (B, T, C)


class DecoderBlock(nn.Module):
    """Given: post-norm, y (B, T, C) and memory (B, S, C) -> (B, T, C); hides the future by itself."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.self_attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.cross_attention = CrossAttention(d_model, n_heads=n_heads)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, y: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None) -> Tensor:
        def look_back(y: Tensor) -> Tensor:
            return self.self_attention(y, y, y, attn_mask=future(y.shape[1]))[0]

        def look_across(y: Tensor) -> Tensor:
            return self.cross_attention(y, memory, memory_padding_mask)

        steps = look_back, look_across, self.ff
        for step, norm in zip(steps, (self.norm1, self.norm2, self.norm3)):
            y = norm(y + self.dropout(step(y)))  # (B, T, C)
        return y


def future(T: int) -> Tensor:
    """Given: (T, T), True where column s comes after row t; PyTorch's way round, True means blocked."""
    places = torch.arange(T)
    return places[None, :] > places[:, None]


def to_torch_decoder_layer(block):
    weights = renamed(
        block.state_dict(),
        (r"^self_attention\.", "self_attn."),
        (r"^ff\.0\.", "linear1."),
        (r"^ff\.2\.", "linear2."),
        (r"^cross_attention\.proj\.", "multihead_attn.out_proj."),
    )
    for kind in ("weight", "bias"):
        stack = [weights.pop(f"cross_attention.{name}.{kind}") for name in ("query", "key", "value")]
        weights[f"multihead_attn.in_proj_{kind}"] = (
            torch.vstack(stack) if kind == "weight" else torch.hstack(stack)
        )
    new = nn.TransformerDecoderLayer(
        d_model=block.norm1.normalized_shape[0],
        nhead=block.self_attention.num_heads,
        dim_feedforward=block.ff[0].out_features,
        dropout=block.dropout.p,
        batch_first=True,
        dtype=block.norm1.weight.dtype,
    )
    new.load_state_dict(weights)
    return new.train(block.training)


class Block(nn.Module):
    """Given: pre-norm with causal attention, (B, T, C) -> (B, T, C)."""

    def __init__(self, embed_size: int, num_heads: int, eps: float) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(embed_size, eps), nn.LayerNorm(embed_size, eps)
        self.attention = FusedMultiHeadAttention(embed_size, num_heads)
        thoughts = nn.Linear(embed_size, 4 * embed_size), nn.GELU(), nn.Linear(4 * embed_size, embed_size)
        self.ff = nn.Sequential(*thoughts)

    def forward(self, x: Tensor) -> Tensor:
        for norm, step in ((self.ln1, self.look_back), (self.ln2, self.ff)):
            x = x + step(norm(x))
        return x

    def look_back(self, x: Tensor) -> Tensor:
        return self.attention(x, ~future(x.shape[1]))


class TransformerLanguageModel(nn.Module):
    """Given: ids (B, T) -> logits (B, T, V). No dropout anywhere; `fc` is tied to `token_embed`."""

    def __init__(
        self,
        vocab_size: int,
        embed_size: int = 64,
        block_size: int = 8,
        num_heads: int = 4,
        num_layers: int = 1,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.block_size = block_size
        tables = (nn.Embedding(rows, embed_size) for rows in (vocab_size, block_size))
        self.token_embed, self.pos_embed = tables
        self.blocks = nn.ModuleList(Block(embed_size, num_heads, eps) for _ in range(num_layers))
        self.ln = nn.LayerNorm(embed_size, eps)
        self.fc = nn.Linear(embed_size, vocab_size, bias=False)
        self.fc.weight = self.token_embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        seats = self.pos_embed.weight[: ids.shape[1]]  # (T, C)
        road = nn.Sequential(*self.blocks, self.ln, self.fc)
        return road(self.token_embed(ids) + seats)  # (B, T, V)


def to_hugging_face_gpt2(model):
    from transformers import GPT2Config, GPT2LMHeadModel

    V, C = model.token_embed.weight.shape
    sizes = {"vocab_size": V, "n_embd": C, "n_positions": model.block_size, "n_layer": len(model.blocks)}
    quiet = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0)
    heads = model.blocks[0].attention.n_heads
    config = GPT2Config(
        **sizes, **quiet, n_head=heads, activation_function="gelu", layer_norm_epsilon=model.ln.eps
    )
    new = GPT2LMHeadModel(config).to(model.ln.weight.dtype)
    weights = renamed(
        model.state_dict(),
        (r"^token_embed", "transformer.wte"),
        (r"^pos_embed", "transformer.wpe"),
        (r"^ln\.", "transformer.ln_f."),
        (r"^fc\.", "lm_head."),
        (r"^blocks\.", "transformer.h."),
        (r"\.ln([12])\.", r".ln_\1."),
        (r"\.attention\.W_qkv", ".attn.c_attn"),
        (r"\.attention\.W_out", ".attn.c_proj"),
        (r"\.ff\.0\.", ".mlp.c_fc."),
        (r"\.ff\.2\.", ".mlp.c_proj."),
    )
    weights = {
        name: value.T if ".c_" in name and value.ndim == 2 else value for name, value in weights.items()
    }
    lacking = set(new.state_dict()) - set(weights)
    weights |= {name: torch.zeros_like(new.state_dict()[name]) for name in lacking if name.endswith("bias")}
    new.load_state_dict(weights, strict=False)
    return new.train(model.training)


def by_words(text):
    return [[bytes([b]) for b in word.encode()] for word in re.findall(r" [^ ]*|[^ ]+", text)]


def glue(word, pair):
    out = []
    skip = False
    for i, token in enumerate(word):
        if skip:
            skip = False
        elif (token, *word[i + 1 : i + 2]) == tuple(pair):
            out.append(token + word[i + 1])
            skip = True
        else:
            out.append(token)
    return out


def train_bpe(text, n_merges):
    if n_merges < 0:
        raise ValueError("n_merges=" + str(n_merges))
    text, merges = by_words(text), []
    for _ in range(n_merges):
        pairs = sorted(pair for word in text for pair in pairwise(word))
        if not pairs:
            break
        runs = {}
        for pair in pairs:
            runs[pair] = runs.get(pair, 0) + 1
        merges.append(max(runs, key=runs.get))  # the keys are sorted, and max takes the first
        text = [glue(word, merges[-1]) for word in text]
    return merges


def encode(text, merges):
    return [token for word in by_words(text) for token in encoded(word, merges)]


def encoded(word, merges):
    for pair in merges:
        word = glue(word, pair)
    return word


def decode(tokens):
    return b"".join(tokens).decode("utf-8", errors="replace")
