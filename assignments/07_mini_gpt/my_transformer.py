"""My Transformer: your own layers of assignments 02 to 05, inside your own language model of 07.

Assignment 07 gives you PyTorch's layers, so that nobody needs the earlier assignments to go on. Here they go out
again. For each part that passes its visible tests, your own code takes the place of PyTorch's:

    02  learned        TokenAndPositionEmbedding  for the two tables of vectors
    03  head           Head                       inside the attention of 04
    04  heads          MultiHeadAttention         for nn.MultiheadAttention
    05  layer_norm     LayerNorm                  for nn.LayerNorm
    05  feed_forward   FeedForward                for the two linear layers with GELU between them
    05  pre_norm       PreNormBlock               for the block itself

Nothing here is graded, and grading never looks at it: your file is graded with PyTorch's layers.

    from my_transformer import my_gpt, own_layers

    layers = own_layers()
    model = my_gpt(TransformerLanguageModel, layers, vocab_size=31, block_size=32)

    python my_transformer.py                # shows which layers are yours
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autograder import RefusedError
from autograder.notebook import earlier_work

# (assignment, part): the class that it teaches
TAUGHT = {
    ("02_positional_encoding", "learned"): "TokenAndPositionEmbedding",
    ("03_masked_heads", "head"): "Head",
    ("04_multi_head_concat", "heads"): "MultiHeadAttention",
    ("05_encoder_block", "layer_norm"): "LayerNorm",
    ("05_encoder_block", "feed_forward"): "FeedForward",
    ("05_encoder_block", "pre_norm"): "PreNormBlock",
}
MADE_OF = {"PreNormBlock": ("LayerNorm", "FeedForward")}  # taken only if these are right, too
Layers = Mapping[str, type[nn.Module]]


def own_layers() -> dict[str, type[nn.Module]]:
    """Your classes of 02 to 05 whose parts pass their visible tests, by name. Prints which are yours."""
    found: dict[str, type[nn.Module]] = {}
    for assignment in dict.fromkeys(name for name, _ in TAUGHT):
        try:
            module, passed = earlier_work(assignment)
        except RefusedError as error:
            print(error)
            module, passed = None, frozenset()
        for (where, part), name in TAUGHT.items():
            if where == assignment:
                taken = part in passed and found.keys() >= set(MADE_OF.get(name, ()))
                if taken:
                    found[name] = getattr(module, name)
                print(f"{'your own ' if taken else 'PyTorch’s'}  {assignment:24}{part:14}{name}")
    return found


class OwnAttention(nn.Module):
    """Your attention of 04 where nn.MultiheadAttention stood. It takes the same call and returns a pair, too.

    Yours hides the future by itself, so the mask that the block brings along says nothing new.
    """

    def __init__(self, attention: nn.Module, num_heads: int) -> None:
        super().__init__()
        self.attention = attention
        self.num_heads = num_heads

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, *_: Any, **others: Any
    ) -> tuple[Tensor, None]:
        """query, key and value: the same (B, T, C) three times. Returns (B, T, C) and None for the weights."""
        if key.shape != query.shape or value.shape != query.shape:
            raise ValueError(
                f"The attention of 04 is self-attention: query {tuple(query.shape)}, key {tuple(key.shape)} and value "
                f"{tuple(value.shape)} must be the same."
            )
        if key_padding_mask is not None:
            raise ValueError("The attention of 04 knows no padding, but key_padding_mask is given.")
        return self.attention(query), None                                      # (B, T, C)


class CausalBlock(nn.Module):
    """Your block of 05 where that of 07 stood: it is told on every call that the future is hidden."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, C) -> (B, T, C)"""
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        hidden = mask.isinf()                                                   # (T, T)
        return self.block(x, attn_mask=hidden)                                  # (B, T, C)


def my_gpt(
    model_class: type[nn.Module],
    layers: Layers,
    vocab_size: int,
    embed_size: int = 64,
    block_size: int = 8,
    num_heads: int = 4,
    num_layers: int = 1,
) -> nn.Module:
    """A model of your class from 07, with `layers` of 02 to 05 in place of PyTorch's.

    model_class: your TransformerLanguageModel. layers: what `own_layers` returns, or some of it; {} changes nothing.
    Raises ValueError if your layers do not work together.
    """
    model = model_class(vocab_size, embed_size, block_size, num_heads, num_layers)
    if "TokenAndPositionEmbedding" in layers:
        tables = layers["TokenAndPositionEmbedding"](vocab_size, block_size, embed_size)
        model.token_embed, model.pos_embed = tables.token_embedding, tables.position_embedding
    if "LayerNorm" in layers:
        model.ln = layers["LayerNorm"](embed_size)
    for number, old in enumerate(list(model.blocks.children())):
        block = own_block(old, layers, embed_size, num_heads, block_size)
        setattr(model.blocks, str(number), block)                               # blocks.0, blocks.1, …
    try_out(model, layers)
    return model


def try_out(model: nn.Module, layers: Layers) -> None:
    """Raise ValueError if one of your layers needs something that another of yours does not have.

    A block may read the matrices inside nn.MultiheadAttention, for example, in place of calling it.
    """
    try:
        with torch.no_grad():
            model(torch.zeros(1, min(2, model.block_size), dtype=torch.long))
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"These layers of yours do not work together ({', '.join(layers)}): {error}. Each of them may be right; "
            "leave out `MultiHeadAttention`, or `FeedForward` and `PreNormBlock`, and PyTorch's layers stay there."
        ) from None


def own_block(old: nn.Module, layers: Layers, embed_size: int, num_heads: int, block_size: int) -> nn.Module:
    """Your block of 05, or the block of 07 with your own norms and feed-forward layer; attention is yours, too."""
    attention = own_attention(layers, embed_size, num_heads, block_size)
    if "PreNormBlock" in layers:
        block = layers["PreNormBlock"](embed_size, num_heads, 4 * embed_size, 0.0, "gelu")
        if attention is not None:
            block.attention = attention
        return CausalBlock(block)
    if attention is not None:
        old.attention = attention
    if "LayerNorm" in layers:
        old.ln1, old.ln2 = layers["LayerNorm"](embed_size), layers["LayerNorm"](embed_size)
    if "FeedForward" in layers:
        old.ff = layers["FeedForward"](embed_size, 4 * embed_size, "gelu")
    return old


def own_attention(layers: Layers, embed_size: int, num_heads: int, block_size: int) -> OwnAttention | None:
    """Your attention of 04, with your heads of 03 if they are among the layers."""
    if "MultiHeadAttention" not in layers:
        return None
    attention = layers["MultiHeadAttention"](embed_size, num_heads, block_size)
    if "Head" in layers:
        for number in range(num_heads):
            head = layers["Head"](embed_size, embed_size // num_heads, block_size)
            setattr(attention.heads, str(number), head)                         # heads.0, heads.1, …
    return OwnAttention(attention, num_heads)


if __name__ == "__main__":
    print("Running the visible tests of your assignments 02 to 05 …")
    own = own_layers()
    print(f"{len(own)} of the {len(TAUGHT)} layers are your own. To see them at work: python gpt2_weights.py")
