"""Writes every shape down and lets numpy multiply; a config refuses bad sizes when it is born."""

from dataclasses import dataclass, fields

import numpy as np


class Sizes:
    """What both configs have in common: they look at their own fields as soon as they are filled in."""

    width = heads = ""

    def __post_init__(self):
        for field in fields(self):
            if getattr(self, field.name) < 0:
                raise ValueError(f"{field.name} is {getattr(self, field.name)}, below zero")
        C, H = getattr(self, self.width), getattr(self, self.heads)
        if H == 0 or C % H:
            raise ValueError(f"cannot share {self.width} {C} among {self.heads} {H}")


@dataclass(frozen=True)
class BertConfig(Sizes):
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2

    width = "hidden_size"
    heads = "num_attention_heads"


@dataclass(frozen=True)
class GPT2Config(Sizes):
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12

    width = "n_embd"
    heads = "n_head"


def numbers(*shapes):
    return int(sum(np.prod(shape, dtype=np.int64) for shape in shapes))


def count_embeddings(config):
    C = config.hidden_size
    rows = config.vocab_size, config.max_position_embeddings, config.type_vocab_size
    return numbers(*[(n, C) for n in rows], (C,), (C,))


def count_attention(config):
    H = config.num_attention_heads
    C, D = config.hidden_size, config.hidden_size // H
    one_head = [(C, D), (D,)] * 3
    return numbers(*one_head * H, (C, C), (C,), (C,), (C,))


def count_feed_forward(config):
    C, F = config.hidden_size, config.intermediate_size
    return numbers((F, C), (F,), (C, F), (C,), (C,), (C,))


def count_layer(config):
    C, F = config.hidden_size, config.intermediate_size
    return numbers((4, C, C), (2, C, F), (9, C), (F,))


def count_pooler(config):
    return numbers((config.hidden_size + 1, config.hidden_size))


def count_bert(config, pooler=True):
    C = config.hidden_size
    counts = dict(
        word_embeddings=numbers((config.vocab_size, C)),
        position_embeddings=numbers((config.max_position_embeddings, C)),
        token_type_embeddings=numbers((config.type_vocab_size, C)),
        embedding_layer_norm=numbers((2, C)),
    )
    total = sum(counts.values())
    counts.update(attention=count_attention(config), feed_forward=count_feed_forward(config))
    counts["encoder"] = numbers((config.num_hidden_layers, count_layer(config)))
    counts["pooler"] = numbers((int(pooler), count_pooler(config)))
    return {**counts, "total": total + counts["encoder"] + counts["pooler"]}


def count_gpt2(config):
    C = config.n_embd
    counts = {
        "token_embeddings": numbers((config.vocab_size, C)),
        "position_embeddings": numbers((config.n_positions, C)),
        "attention": numbers((C, C), (C, C), (C, C), (C, C), (3, C), (C,), (2, C)),
        "feed_forward": numbers((C, 4, C), (4, C), (4, C, C), (C,), (2, C)),
        "final_layer_norm": numbers((C,), (C,)),
    }
    counts["blocks"] = numbers((config.n_layer, counts["attention"] + counts["feed_forward"]))
    counts["total"] = sum(
        counts[room] for room in ("token_embeddings", "position_embeddings", "blocks", "final_layer_norm")
    )
    return counts
