"""Lists every parameter of the model as (name, shape), as a state_dict would, and adds up by prefix."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass


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


Named = tuple[str, tuple[int, ...]]


def refuse(config: object, width: str, heads: str) -> None:
    sizes = asdict(config)
    for name in sizes:
        if sizes[name] < 0:
            raise ValueError(f"{name}: {sizes[name]} is less than nothing")
    if sizes[heads] < 1:
        raise ValueError(f"{heads} is {sizes[heads]}")
    if divmod(sizes[width], sizes[heads])[1]:
        raise ValueError(f"{width} = {sizes[width]} leaves a remainder among {sizes[heads]} heads")


def linear(name: str, n: int, m: int) -> Iterator[Named]:
    yield f"{name}.weight", (m, n)
    yield f"{name}.bias", (m,)


def norm(name: str, width: int) -> Iterator[Named]:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)


def bert(config: BertConfig) -> Iterator[Named]:
    refuse(config, "hidden_size", "num_attention_heads")
    C, F = config.hidden_size, config.intermediate_size
    yield "embeddings.word", (config.vocab_size, C)
    yield "embeddings.position", (config.max_position_embeddings, C)
    yield "embeddings.token_type", (config.type_vocab_size, C)
    yield from norm("embeddings.norm", C)
    for layer in range(config.num_hidden_layers):
        yield from bert_layer(f"encoder.{layer}", C, F)
    yield from linear("pooler", C, C)


def bert_layer(name: str, C: int, F: int) -> Iterator[Named]:
    for part in ("query", "key", "value", "output"):
        yield from linear(f"{name}.attention.{part}", C, C)
    yield from norm(f"{name}.attention.norm", C)
    yield from linear(f"{name}.feed_forward.wide", C, F)
    yield from linear(f"{name}.feed_forward.narrow", F, C)
    yield from norm(f"{name}.feed_forward.norm", C)


def gpt2(config: GPT2Config) -> Iterator[Named]:
    refuse(config, "n_embd", "n_head")
    C = config.n_embd
    yield "token_embeddings", (config.vocab_size, C)
    yield "position_embeddings", (config.n_positions, C)
    for layer in range(config.n_layer):
        yield from gpt2_block(f"blocks.{layer}", C)
    yield from norm("final_layer_norm", C)


def gpt2_block(name: str, C: int) -> Iterator[Named]:
    yield from norm(f"{name}.attention.norm", C)
    yield from linear(f"{name}.attention.wide", C, 3 * C)
    yield from linear(f"{name}.attention.output", C, C)
    yield from norm(f"{name}.feed_forward.norm", C)
    yield from linear(f"{name}.feed_forward.wide", C, 4 * C)
    yield from linear(f"{name}.feed_forward.narrow", 4 * C, C)


def total(parameters, prefix: str = "") -> int:
    return sum(math.prod(shape) for name, shape in parameters if name.startswith(prefix))


def layer_of(config: BertConfig) -> list[Named]:
    refuse(config, "hidden_size", "num_attention_heads")
    return list(bert_layer("layer", config.hidden_size, config.intermediate_size))


def count_embeddings(config: BertConfig) -> int:
    return total(bert(config), "embeddings.")


def count_attention(config: BertConfig) -> int:
    return total(layer_of(config), "layer.attention.")


def count_feed_forward(config: BertConfig) -> int:
    return total(layer_of(config), "layer.feed_forward.")


def count_layer(config: BertConfig) -> int:
    return total(layer_of(config))


def count_pooler(config: BertConfig) -> int:
    return total(bert(config), "pooler")


def count_bert(config: BertConfig, pooler: bool = True) -> dict[str, int]:
    parameters = [(name, shape) for name, shape in bert(config) if pooler or not name.startswith("pooler")]
    return {
        "word_embeddings": total(parameters, "embeddings.word"),
        "position_embeddings": total(parameters, "embeddings.position"),
        "token_type_embeddings": total(parameters, "embeddings.token_type"),
        "embedding_layer_norm": total(parameters, "embeddings.norm"),
        "attention": count_attention(config),
        "feed_forward": count_feed_forward(config),
        "encoder": total(parameters, "encoder."),
        "pooler": total(parameters, "pooler"),
        "total": total(parameters),
    }


def count_gpt2(config: GPT2Config) -> dict[str, int]:
    parameters = list(gpt2(config))
    block = list(gpt2_block("block", config.n_embd))
    return {
        "token_embeddings": total(parameters, "token_embeddings"),
        "position_embeddings": total(parameters, "position_embeddings"),
        "attention": total(block, "block.attention."),
        "feed_forward": total(block, "block.feed_forward."),
        "blocks": total(parameters, "blocks."),
        "final_layer_norm": total(parameters, "final_layer_norm"),
        "total": total(parameters),
    }
