"""Dataclasses for the bricks (Table, Linear, LayerNorm), each of which knows its size."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True)
class BertConfig:
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2


@dataclass(frozen=True)
class GPT2Config:
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12


@dataclass
class Table:
    rows: int
    columns: int

    def __int__(self):
        return self.rows * self.columns


@dataclass
class Linear:
    inputs: int
    outputs: int

    def __int__(self):
        return (self.inputs + 1) * self.outputs


@dataclass
class LayerNorm:
    width: int

    def __int__(self):
        return self.width + self.width


@dataclass
class Room:
    bricks: list

    def __int__(self):
        return sum(map(int, self.bricks))


def checked(name: str, size: int) -> int:
    if size < 0:
        raise ValueError(f"there cannot be {size} of {name}")
    return size


def checked_width(config: BertConfig) -> int:
    C = checked("hidden_size", config.hidden_size)
    H = checked("num_attention_heads", config.num_attention_heads)
    if H < 1 or C // H * H != C:
        raise ValueError(f"hidden_size {C} does not go evenly into {H} heads")
    return C


def tables(config: BertConfig) -> list[Table]:
    C = checked_width(config)
    names = "vocab_size", "max_position_embeddings", "type_vocab_size"
    return [Table(checked(name, getattr(config, name)), C) for name in names]


def attention(C: int) -> Room:
    return Room([Linear(C, C), Linear(C, C), Linear(C, C), Linear(C, C), LayerNorm(C)])


def feed_forward(C: int, F: int) -> Room:
    return Room([Linear(C, F), Linear(F, C), LayerNorm(C)])


def count_embeddings(config: BertConfig) -> int:
    return int(Room([*tables(config), LayerNorm(config.hidden_size)]))


def count_attention(config: BertConfig) -> int:
    return int(attention(checked_width(config)))


def count_feed_forward(config: BertConfig) -> int:
    return int(feed_forward(checked_width(config), checked("intermediate_size", config.intermediate_size)))


def count_layer(config: BertConfig) -> int:
    return count_feed_forward(config) + count_attention(config)


def count_pooler(config: BertConfig) -> int:
    C = checked_width(config)
    return int(Linear(C, C))


def count_bert(config: BertConfig, pooler: bool = True) -> dict[str, int]:
    words, positions, segments = map(int, tables(config))
    counts = OrderedDict(word_embeddings=words, position_embeddings=positions, token_type_embeddings=segments)
    counts["embedding_layer_norm"] = int(LayerNorm(config.hidden_size))
    counts["attention"] = count_attention(config)
    counts["feed_forward"] = count_feed_forward(config)
    counts["encoder"] = checked("num_hidden_layers", config.num_hidden_layers) * count_layer(config)
    counts["pooler"] = 0
    if pooler:
        counts["pooler"] += count_pooler(config)
    counts["total"] = count_embeddings(config) + counts["encoder"] + counts["pooler"]
    return counts


def count_gpt2(config: GPT2Config) -> dict[str, int]:
    C, H = checked("n_embd", config.n_embd), checked("n_head", config.n_head)
    if H < 1 or C % H:
        raise ValueError(f"n_embd {C} cannot be cut into {H} heads")
    words = Table(checked("vocab_size", config.vocab_size), C)
    positions = Table(checked("n_positions", config.n_positions), C)
    block = Room([attention(C), feed_forward(C, 4 * C)])
    blocks = Room([block] * checked("n_layer", config.n_layer))
    return {
        "total": int(Room([words, positions, blocks, LayerNorm(C)])),
        "blocks": int(blocks),
        "attention": int(attention(C)),
        "feed_forward": int(feed_forward(C, 4 * C)),
        "final_layer_norm": int(LayerNorm(C)),
        "token_embeddings": int(words),
        "position_embeddings": int(positions),
    }
