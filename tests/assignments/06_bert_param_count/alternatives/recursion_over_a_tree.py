"""A model is a nested dict of shapes; one recursive function counts any branch of it."""

from dataclasses import dataclass
from functools import reduce
from operator import mul


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


def weigh(branch):
    if isinstance(branch, dict):
        return weigh(list(branch.values()))
    if isinstance(branch, list):
        return weigh(branch[0]) + weigh(branch[1:]) if branch else 0
    return reduce(mul, branch, 1)


def linear(n, m):
    return {"matrix": (n, m), "bias": (m,)}


def norm(width):
    return {"gain": (width,), "shift": (width,)}


def bert(config):
    C, F = config.hidden_size, config.intermediate_size
    negative = {name: size for name, size in vars(config).items() if size < 0}
    if negative:
        raise ValueError(f"sizes below zero: {negative}")
    if not config.num_attention_heads or C % config.num_attention_heads:
        raise ValueError(f"hidden_size={C}, num_attention_heads={config.num_attention_heads}: not divisible")
    return {
        "embeddings": {
            "word_embeddings": (config.vocab_size, C),
            "position_embeddings": (config.max_position_embeddings, C),
            "token_type_embeddings": (config.type_vocab_size, C),
            "embedding_layer_norm": norm(C),
        },
        "layer": {
            "attention": {"qkvo": [linear(C, C)] * 4, "norm": norm(C)},
            "feed_forward": {"wide": linear(C, F), "narrow": linear(F, C), "norm": norm(C)},
        },
        "pooler": linear(C, C),
    }


def count_embeddings(config):
    return weigh(bert(config)["embeddings"])


def count_attention(config):
    return weigh(bert(config)["layer"]["attention"])


def count_feed_forward(config):
    return weigh(bert(config)["layer"]["feed_forward"])


def count_layer(config):
    return weigh(bert(config)["layer"])


def count_pooler(config):
    return weigh(bert(config)["pooler"])


def count_bert(config, pooler=True):
    tree = bert(config)
    encoder = [tree["layer"]] * config.num_hidden_layers
    top = tree["pooler"] if pooler else []
    return {
        **{name: weigh(branch) for name, branch in tree["embeddings"].items()},
        **{name: weigh(branch) for name, branch in tree["layer"].items()},
        "encoder": weigh(encoder),
        "pooler": weigh(top),
        "total": weigh([tree["embeddings"], encoder, top]),
    }


def count_gpt2(config):
    C = config.n_embd
    for name, size in vars(config).items():
        if size < 0:
            raise ValueError(f"{name} = {size}")
    if not config.n_head or C % config.n_head:
        raise ValueError(f"n_embd = {C} is no multiple of n_head = {config.n_head}")
    block = {
        "attention": [norm(C), linear(C, 3 * C), linear(C, C)],
        "feed_forward": [norm(C), linear(C, 4 * C), linear(4 * C, C)],
    }
    model = {
        "token_embeddings": (config.vocab_size, C),
        "position_embeddings": (config.n_positions, C),
        "blocks": [block] * config.n_layer,
        "final_layer_norm": norm(C),
    }
    counts = {name: weigh(branch) for name, branch in {**model, **block}.items()}
    counts["total"] = weigh(model)
    return counts
