"""New modules are built without any numbers, and clones are moved in."""

from collections import defaultdict

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


def built_empty(kind, *sizes, **switches):
    with torch.device("meta"):
        return kind(*sizes, **switches)


def clones(weights):
    return {name: value.detach().clone() for name, value in weights.items()}


def to_torch_attention(fused):
    width = fused.W_out.in_features
    empty = built_empty(nn.MultiheadAttention, width, fused.n_heads, bias=False, batch_first=True)
    weights = {"in_proj_weight": fused.W_qkv.weight, "out_proj.weight": fused.W_out.weight}
    empty.load_state_dict(clones(weights), assign=True)
    return empty.requires_grad_().train(fused.training)


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


def to_torch_encoder_layer(block):
    empty = built_empty(
        nn.TransformerEncoderLayer,
        *(block.ff.linear1.in_features, block.attention.num_heads, block.ff.linear1.out_features),
        **{"dropout": block.dropout.p, "activation": block.ff.activation, "layer_norm_eps": block.norm1.eps},
        **{"batch_first": True, "norm_first": isinstance(block, PreNormBlock)},
    )
    ours, weights = block.state_dict(), {}
    for name in empty.state_dict():
        old = name.replace("self_attn", "attention").replace("linear", "ff.linear")
        if name.startswith("norm"):
            old = old.replace("weight", "gamma").replace("bias", "beta")
        weights[name] = ours[old]
    empty.load_state_dict(clones(weights), assign=True)
    return empty.train(block.training)


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
    sizes = block.ff[0].in_features, block.cross_attention.n_heads, block.ff[0].out_features
    empty = built_empty(nn.TransformerDecoderLayer, *sizes, dropout=block.dropout.p, batch_first=True)
    ours = block.state_dict()

    def find(name):
        part, _, kind = name.rpartition(".")
        if part == "multihead_attn":
            kind = kind.removeprefix("in_proj_")
            return torch.cat([ours[f"cross_attention.{one}.{kind}"] for one in ("query", "key", "value")])
        places = {"linear1": "ff.0", "linear2": "ff.2", "multihead_attn.out_proj": "cross_attention.proj"}
        part = places.get(part, part.replace("self_attn", "self_attention"))
        return ours[f"{part}.{kind}"]

    empty.load_state_dict(clones({name: find(name) for name in empty.state_dict()}), assign=True)
    return empty.train(block.training)


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

    class Small(GPT2Config):
        def __init__(self):
            V, C = model.token_embed.weight.shape
            sizes = {
                "vocab_size": V,
                "n_embd": C,
                "n_positions": model.block_size,
                "n_layer": len(model.blocks),
            }
            super().__init__(**sizes, n_head=model.blocks[0].attention.n_heads)

    config = Small()
    config.update({"activation_function": "gelu", "layer_norm_epsilon": model.ln.eps})
    config.update({"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0})
    new = GPT2LMHeadModel(config).to(model.pos_embed.weight.dtype)
    ours = model.state_dict()
    nowhere = {"attn.c_attn.bias", "attn.c_proj.bias"}
    inside = {
        "attn.c_attn": "attention.W_qkv",
        "attn.c_proj": "attention.W_out",
        "ln_1": "ln1",
        "ln_2": "ln2",
    }
    inside |= {"mlp.c_fc": "ff.0", "mlp.c_proj": "ff.2"}
    outside = {"wte": "token_embed", "wpe": "pos_embed", "ln_f": "ln"}
    with torch.no_grad():
        for name, parameter in new.transformer.named_parameters():
            place, _, kind = name.rpartition(".")
            if place in outside:
                parameter.copy_(ours[f"{outside[place]}.{kind}"])
                continue
            _, n, place = place.split(".", 2)
            if f"{place}.{kind}" in nowhere:
                parameter.fill_(0)
                continue
            weight = ours[f"blocks.{n}.{inside[place]}.{kind}"]
            parameter.copy_(weight.mT if weight.dim() == 2 else weight)
    return new.train(model.training)


def with_gaps(text):
    """All bytes of the text in one list, and None before each space."""
    row = []
    for byte in text.encode():
        if byte == 32:
            row.append(None)
        row.append(bytes([byte]))
    return row


def paired(row, pair):
    left, right = pair
    new = []
    for token in row:
        if new and (new[-1], token) == (left, right):
            new[-1] = left + right  # longer than left, so it begins no second pair
        else:
            new.append(token)
    return new


def train_bpe(text, n_merges):
    if n_merges < 0:
        raise ValueError(f"{n_merges=} is below 0")
    row, merges = with_gaps(text), []
    for _ in range(n_merges):
        counts = defaultdict(int)
        for pair in zip(row, row[1:]):
            if None not in pair:
                counts[pair] += 1
        if not counts:
            return merges
        best = None
        for pair, count in counts.items():
            if best is None or count > counts[best] or (count == counts[best] and pair < best):
                best = pair
        merges.append(best)
        row = paired(row, best)
    return merges


def encode(text, merges):
    row = with_gaps(text)
    for merge in merges:
        row = paired(row, merge)
    return [token for token in row if token is not None]


def decode(tokens):
    together = bytearray()
    for token in tokens:
        together += token
    return together.decode("utf-8", errors="replace")
