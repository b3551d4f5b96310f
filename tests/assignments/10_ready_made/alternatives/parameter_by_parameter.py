"""Parameters are walked through in pairs and filled in place."""

from collections import Counter

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


def pour(source, target):
    target.data[...] = source.data


def settled(new, old):
    new.train(old.training)
    if next(old.parameters()).dtype == torch.float64:
        new.double()
    return new


def to_torch_attention(fused):
    new = settled(
        nn.MultiheadAttention(fused.W_out.out_features, fused.n_heads, 0.0, False, batch_first=True), fused
    )
    for source, target in zip(fused.parameters(), new.parameters()):
        pour(source, target)
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


def to_torch_encoder_layer(block):
    keywords = {"batch_first": True, "layer_norm_eps": block.norm2.eps, "dropout": block.dropout.p}
    if isinstance(block, PreNormBlock):
        keywords["norm_first"] = True
    if block.ff.activation == "gelu":
        keywords["activation"] = nn.GELU()
    hidden, C = block.ff.linear1.weight.shape
    new = settled(nn.TransformerEncoderLayer(C, block.attention.num_heads, hidden, **keywords), block)
    # attention, the two linear layers, the two norms: both register their parameters in this order
    ours, theirs = list(block.parameters()), list(new.parameters())
    assert [p.shape for p in ours] == [p.shape for p in theirs]
    for source, target in zip(ours, theirs):
        pour(source, target)
    return new


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
    hidden, C = block.ff[0].weight.shape
    heads = block.self_attention.num_heads
    new = settled(
        nn.TransformerDecoderLayer(C, heads, hidden, dropout=block.dropout.p, batch_first=True), block
    )
    for source, target in zip(block.self_attention.parameters(), new.self_attn.parameters()):
        pour(source, target)
    pairs = [(block.ff[0], new.linear1), (block.ff[2], new.linear2), (block.norm1, new.norm1)]
    pairs += [(block.norm2, new.norm2), (block.norm3, new.norm3)]
    pairs += [(block.cross_attention.proj, new.multihead_attn.out_proj)]
    for source, target in pairs:
        pour(source.weight, target.weight)
        pour(source.bias, target.bias)
    for third, name in enumerate(("query", "key", "value")):
        layer, rows = getattr(block.cross_attention, name), slice(third * C, (third + 1) * C)
        new.multihead_attn.in_proj_weight.data[rows] = layer.weight.data
        new.multihead_attn.in_proj_bias.data[rows] = layer.bias.data
    return new


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
    import transformers

    config = transformers.GPT2Config(
        vocab_size=model.fc.out_features,
        n_positions=model.pos_embed.num_embeddings,
        n_embd=model.fc.in_features,
        n_layer=len(model.blocks),
        n_head=model.blocks[0].attention.n_heads,
        n_inner=model.blocks[0].ff[0].out_features,
        activation_function="gelu",
        layer_norm_epsilon=model.blocks[0].ln1.eps,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
        attn_implementation="eager",
    )
    new = settled(transformers.GPT2LMHeadModel(config), model)
    pour(model.token_embed.weight, new.transformer.wte.weight)
    pour(model.pos_embed.weight, new.transformer.wpe.weight)
    pour(model.ln.weight, new.transformer.ln_f.weight)
    pour(model.ln.bias, new.transformer.ln_f.bias)
    for n, block in enumerate(model.blocks):
        there = new.transformer.h[n]
        plan = [("ln_1", block.ln1), ("ln_2", block.ln2), ("attn.c_attn", block.attention.W_qkv)]
        plan += [
            ("attn.c_proj", block.attention.W_out),
            ("mlp.c_fc", block.ff[0]),
            ("mlp.c_proj", block.ff[2]),
        ]
        for name, layer in plan:
            place = there.get_submodule(name)
            pour(layer.weight.t() if isinstance(layer, nn.Linear) else layer.weight, place.weight)
            if layer.bias is not None:
                pour(layer.bias, place.bias)
    return new


def pieces_of(text):
    first, *others = text.split(" ")
    return [piece.encode() for piece in [first, *(" " + other for other in others)] if piece]


def put_together(tokens, left, right):
    """By recursion: the first place, and then what stands behind it."""
    for i in range(len(tokens) - 1):
        if tokens[i] == left and tokens[i + 1] == right:
            return tokens[:i] + (left + right,) + put_together(tokens[i + 2 :], left, right)
    return tokens


def train_bpe(text, n_merges):
    if n_merges <= -1:
        raise ValueError(f"a negative n_merges ({n_merges})")
    often = Counter(tuple(piece[i : i + 1] for i in range(len(piece))) for piece in pieces_of(text))
    merges = []
    while len(merges) < n_merges:
        pairs = Counter()
        for word, times in often.items():  # each different word once, with how often it stands there
            for i in range(len(word) - 1):
                pairs[word[i], word[i + 1]] += times
        if not pairs:
            break
        pair, _ = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[0]
        merges += [pair]
        again = Counter()
        for word, times in often.items():
            again[put_together(word, *pair)] += times
        often = again
    return merges


def encode(text, merges):
    tokens = []
    for piece in pieces_of(text):
        word = tuple(bytes([byte]) for byte in piece)
        for left, right in merges:
            word = put_together(word, left, right)
        tokens += word
    return tokens


def decode(tokens):
    return b"".join(tokens).decode("utf-8", "replace")
