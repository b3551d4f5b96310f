"""Whole parts are copied and put in the places of the new ones."""

import itertools
from collections import Counter
from copy import deepcopy

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
    C = fused.W_qkv.in_features
    new = nn.MultiheadAttention(C, fused.n_heads, batch_first=True)  # its biases begin at zero
    new.in_proj_weight = nn.Parameter(fused.W_qkv.weight.detach().clone())
    new.out_proj.weight = nn.Parameter(fused.W_out.weight.detach().clone())
    new.to(fused.W_out.weight.dtype)
    new.train(fused.training)
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


def torch_norm(norm):
    new = nn.LayerNorm(norm.gamma.shape, eps=norm.eps)
    new.weight, new.bias = nn.Parameter(norm.gamma.detach().clone()), nn.Parameter(norm.beta.detach().clone())
    return new


def to_torch_encoder_layer(block):
    inside = block.ff.linear1
    new = nn.TransformerEncoderLayer(
        inside.in_features,
        block.attention.num_heads,
        inside.out_features,
        block.dropout.p,
        block.ff.activation,
        batch_first=True,
        norm_first=isinstance(block, PreNormBlock),
    )
    new.self_attn = deepcopy(block.attention)
    new.linear1, new.linear2 = deepcopy(block.ff.linear1), deepcopy(block.ff.linear2)
    new.norm1, new.norm2 = torch_norm(block.norm1), torch_norm(block.norm2)
    return new.train(block.training)


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
    C = block.norm1.weight.shape[0]
    new = nn.TransformerDecoderLayer(C, block.cross_attention.n_heads, 1, block.dropout.p, batch_first=True)
    block = deepcopy(block)
    new.linear1, _, new.linear2 = block.ff
    new.self_attn = block.self_attention
    new.norm1, new.norm2, new.norm3 = block.norm1, block.norm2, block.norm3
    across = block.cross_attention
    one = nn.MultiheadAttention(C, across.n_heads, dropout=block.dropout.p, batch_first=True)
    one.in_proj_weight = nn.Parameter(
        torch.cat((across.query.weight, across.key.weight, across.value.weight)).detach()
    )
    one.in_proj_bias = nn.Parameter(
        torch.cat((across.query.bias, across.key.bias, across.value.bias)).detach()
    )
    one.out_proj.weight, one.out_proj.bias = across.proj.weight, across.proj.bias
    new.multihead_attn = one
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


def turned(conv, linear):
    conv.weight = nn.Parameter(linear.weight.detach().T.clone())
    zeros = torch.zeros(linear.out_features, dtype=linear.weight.dtype)
    conv.bias = nn.Parameter(zeros if linear.bias is None else linear.bias.detach().clone())


def to_hugging_face_gpt2(model):
    from transformers import AutoModelForCausalLM, GPT2Config

    config = GPT2Config(attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, activation_function="gelu")
    config.vocab_size, config.n_embd = model.token_embed.weight.shape
    config.n_positions, config.n_layer = model.block_size, len(model.blocks)
    config.n_head, config.layer_norm_epsilon = model.blocks[0].attention.n_heads, model.ln.eps
    new = AutoModelForCausalLM.from_config(config)
    body = new.transformer
    body.wte, body.wpe, body.ln_f = deepcopy(model.token_embed), deepcopy(model.pos_embed), deepcopy(model.ln)
    new.lm_head.weight = body.wte.weight
    for there, here in zip(body.h, model.blocks):
        there.ln_1, there.ln_2 = deepcopy(here.ln1), deepcopy(here.ln2)
        turned(there.attn.c_attn, here.attention.W_qkv)
        turned(there.attn.c_proj, here.attention.W_out)
        turned(there.mlp.c_fc, here.ff[0])
        turned(there.mlp.c_proj, here.ff[2])
    return new.train(model.training)


def cut(text):
    pieces = []
    for letter in text:
        if letter == " " or not pieces:
            pieces.append("")
        pieces[-1] += letter
    return [[bytes([byte]) for byte in piece.encode("utf-8")] for piece in pieces]


def merge(word, first, second):
    new = []
    i = 0
    while i < len(word):
        if i < len(word) - 1 and word[i] == first and word[i + 1] == second:
            new.append(first + second)
            i += 2
        else:
            new.append(word[i])
            i += 1
    return new


def train_bpe(text, n_merges):
    if n_merges < 0:
        raise ValueError("n_merges must not be negative, but it is %d" % n_merges)
    pieces, merges = cut(text), []
    for _ in range(n_merges):
        stats = Counter(itertools.chain.from_iterable(zip(piece, piece[1:]) for piece in pieces))
        if len(stats) == 0:
            break
        most = max(stats.values())
        pair = sorted(pair for pair, count in stats.items() if count == most)[0]
        merges.append(pair)
        pieces = [merge(piece, *pair) for piece in pieces]
    return merges


def encode(text, merges):
    """The pair that was learned first, wherever it is, as long as there is one."""
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    tokens = []
    for piece in cut(text):
        while True:
            ready = [pair for pair in zip(piece, piece[1:]) if pair in ranks]
            if not ready:
                break
            piece = merge(piece, *min(ready, key=ranks.get))
        tokens.extend(piece)
    return tokens


def decode(tokens):
    return str(b"".join(tokens), "utf-8", "replace")
