"""One table of (room, how often, inputs, outputs, has a bias); everything is read off it."""

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


# A LayerNorm is a row as well: "one input", C outputs and a bias for each.
BERT_ROWS = [
    ("word_embeddings", 1, "vocab_size", "hidden_size", False),
    ("position_embeddings", 1, "max_position_embeddings", "hidden_size", False),
    ("token_type_embeddings", 1, "type_vocab_size", "hidden_size", False),
    ("embedding_layer_norm", 1, 1, "hidden_size", True),
    ("attention", 4, "hidden_size", "hidden_size", True),
    ("attention", 1, 1, "hidden_size", True),
    ("feed_forward", 1, "hidden_size", "intermediate_size", True),
    ("feed_forward", 1, "intermediate_size", "hidden_size", True),
    ("feed_forward", 1, 1, "hidden_size", True),
    ("pooler", 1, "hidden_size", "hidden_size", True),
]
BERT_ROOMS = ("word_embeddings", "position_embeddings", "token_type_embeddings", "embedding_layer_norm")


def look_up(config, size):
    return size if isinstance(size, int) else getattr(config, size)


def rooms_of(config, rows):
    rooms = {}
    for room, times, inputs, outputs, bias in rows:
        n, m = look_up(config, inputs), look_up(config, outputs)
        rooms[room] = rooms.get(room, 0) + times * (n * m + m * bias)
    return rooms


def valid(config, width, heads):
    wrong = [f"{name}={size}" for name, size in config.__dict__.items() if size < 0]
    if wrong:
        raise ValueError("negative sizes: " + ", ".join(wrong))
    C, H = getattr(config, width), getattr(config, heads)
    if H < 1 or C % H:
        raise ValueError(f"{width}={C} is not divisible by {heads}={H}")
    return config


def bert_rooms(config):
    return rooms_of(valid(config, "hidden_size", "num_attention_heads"), BERT_ROWS)


def count_embeddings(config):
    rooms = bert_rooms(config)
    return sum(rooms[room] for room in BERT_ROOMS)


def count_attention(config):
    return bert_rooms(config)["attention"]


def count_feed_forward(config):
    return bert_rooms(config)["feed_forward"]


def count_layer(config):
    rooms = bert_rooms(config)
    return rooms["attention"] + rooms["feed_forward"]


def count_pooler(config):
    return bert_rooms(config)["pooler"]


def count_bert(config, pooler=True):
    rooms = bert_rooms(config)
    rooms["encoder"] = config.num_hidden_layers * count_layer(config)
    if not pooler:
        rooms["pooler"] = 0
    rooms["total"] = count_embeddings(config) + rooms["encoder"] + rooms["pooler"]
    return rooms


def count_gpt2(config):
    valid(config, "n_embd", "n_head")
    C = config.n_embd
    rows = [
        ("token_embeddings", 1, "vocab_size", C, False),
        ("position_embeddings", 1, "n_positions", C, False),
        ("attention", 1, 1, C, True),
        ("attention", 1, C, 3 * C, True),
        ("attention", 1, C, C, True),
        ("feed_forward", 1, 1, C, True),
        ("feed_forward", 1, C, 4 * C, True),
        ("feed_forward", 1, 4 * C, C, True),
        ("final_layer_norm", 1, 1, C, True),
    ]
    rooms = rooms_of(config, rows)
    rooms["blocks"] = config.n_layer * (rooms["attention"] + rooms["feed_forward"])
    inside_a_block = ("attention", "feed_forward")
    rooms["total"] = sum(number for room, number in rooms.items() if room not in inside_a_block)
    return rooms
