"""Everything multiplied out on paper first; each function is one formula."""

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


def letters(config):
    """V, P, S, C, F, N of a BERT, after a look at all of them."""
    V, C, N, H, F, P, S = (
        config.vocab_size,
        config.hidden_size,
        config.num_hidden_layers,
        config.num_attention_heads,
        config.intermediate_size,
        config.max_position_embeddings,
        config.type_vocab_size,
    )
    if min(V, C, N, H, F, P, S) < 0:
        raise ValueError(f"no size may be negative: {config}")
    if H == 0 or C % H:
        raise ValueError(f"hidden_size {C} must be divisible by num_attention_heads {H}")
    return V, P, S, C, F, N


def count_embeddings(config):
    V, P, S, C, _, _ = letters(config)
    return (V + P + S + 2) * C


def count_attention(config):
    *_, C, _, _ = letters(config)
    return 2 * C * (2 * C + 3)


def count_feed_forward(config):
    *_, C, F, _ = letters(config)
    return F * (2 * C + 1) + 3 * C


def count_layer(config):
    *_, C, F, _ = letters(config)
    return 4 * C**2 + 2 * C * F + F + 9 * C


def count_pooler(config):
    *_, C, _, _ = letters(config)
    return C * (C + 1)


def count_bert(config, pooler=True):
    V, P, S, C, F, N = letters(config)
    top = C * (C + 1) if pooler else 0
    encoder = N * (4 * C**2 + 2 * C * F + F + 9 * C)
    counts = {
        "word_embeddings": V * C,
        "position_embeddings": P * C,
        "token_type_embeddings": S * C,
        "embedding_layer_norm": C + C,
        "attention": count_attention(config),
        "feed_forward": count_feed_forward(config),
        "encoder": encoder,
        "pooler": top,
        "total": (V + P + S + 2) * C + encoder + top,
    }
    return counts


def count_gpt2(config):
    V, P, C, N, H = config.vocab_size, config.n_positions, config.n_embd, config.n_layer, config.n_head
    if any(size < 0 for size in (V, P, C, N, H)):
        raise ValueError(f"no size may be negative: {config}")
    if not H or C % H:
        raise ValueError(f"n_embd {C} must be divisible by n_head {H}")
    return {
        "token_embeddings": V * C,
        "position_embeddings": P * C,
        "attention": 4 * C * C + 6 * C,
        "feed_forward": 8 * C * C + 7 * C,
        "blocks": N * (12 * C * C + 13 * C),
        "final_layer_norm": 2 * C,
        "total": C * (V + P + N * (12 * C + 13) + 2),
    }
