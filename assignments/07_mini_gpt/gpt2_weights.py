"""GPT-2's weights in your own layers: the model that OpenAI published, running through code that you wrote.

Nothing is downloaded here. If GPT-2 is on your computer already (assignment 10 can fetch it: about 550 MB), its
folder holds `model.safetensors` or `pytorch_model.bin`, `config.json`, and its words in `tokenizer.json`, or in
`vocab.json` and `merges.txt`.

    python gpt2_weights.py [FOLDER] ["How the text begins"]

Without a folder, the program looks where Hugging Face's libraries keep their downloads.

Two things are in GPT-2 that your layers do not have. Both are solved without touching your code.

- *Biases of queries, keys and values.* A bias is a weight whose input is always 1. So each word's vector gets one
  more number, a 1, before it enters a head, and the head's matrices get one more column: the biases.
- *Another GELU.* GPT-2 was trained with the approximation that uses tanh. Yours is the exact one, and the small
  difference adds up over twelve blocks. So your two linear layers are called with that approximation between them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from my_transformer import Layers, OwnAttention, my_gpt, own_layers, try_out

NUMBER_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
FILES = ("model.safetensors", "pytorch_model.bin")
DOWNLOADS = "models--*gpt2/snapshots/*"  # below Hugging Face's folder


def read_safetensors(file: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file, by name.

    The format is as plain as can be. Eight bytes say how long the table of contents is; the table is JSON and says
    for each tensor its number type, its shape, and where its bytes begin and end; then come the bytes.
    """
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        contents = json.loads(opened.read(length))
        contents.pop("__metadata__", None)
        tensors = {}
        for name, about in contents.items():
            if about["dtype"] in NUMBER_TYPES:  # the others are masks, which your heads have already
                begin, end = about["data_offsets"]
                opened.seek(8 + length + begin)
                numbers = torch.frombuffer(bytearray(opened.read(end - begin)), dtype=NUMBER_TYPES[about["dtype"]])
                tensors[name] = numbers.reshape(about["shape"])
    return tensors


def read_weights(path: Path) -> dict[str, Tensor]:
    """GPT-2's tensors from a .safetensors file, a PyTorch state dict, or a folder that holds one of them.

    The names are those of Hugging Face without the leading `transformer.`: `wte.weight`, `h.0.attn.c_attn.bias`.
    Raises ValueError if there is no such file, or if it is not GPT-2.
    """
    if path.is_dir():
        path = next((path / name for name in FILES if (path / name).is_file()), path)
    try:
        if path.suffix == ".safetensors":
            tensors = read_safetensors(path)
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except Exception as error:  # each format has its own way to be broken
        raise ValueError(f"{path} is no file of weights ({type(error).__name__}).") from None
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    for name in ("wte.weight", "wpe.weight", "h.0.attn.c_attn.weight", "ln_f.bias"):
        if name not in tensors:
            raise ValueError(f"{path} has no tensor {name}: it does not hold GPT-2.")
    return tensors


def read_config(folder: Path, weights: dict[str, Tensor]) -> dict[str, Any]:
    """GPT-2's configuration. What no file says is as OpenAI published it: 64 numbers a head, the GELU with tanh."""
    config = {
        "n_head": weights["wte.weight"].shape[1] // 64, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
    }
    file = folder / "config.json"
    if file.is_file():
        config |= json.loads(file.read_text("utf-8"))
    if config["activation_function"] not in ("gelu_new", "gelu"):
        raise ValueError(f"config.json asks for the activation {config['activation_function']!r}, not a GELU.")
    for switch, usual in {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False}.items():
        if config.get(switch, usual) != usual:
            raise ValueError(f"config.json sets {switch} to {config[switch]}; your attention is scaled by 1/√D alone.")
    return config


class WithOne(nn.Module):
    """A head that gets one more number with every word, a 1, so that a column of its matrices is a bias."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head                                                        # (B, T, C + 1) -> (B, T, D)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, C) -> (B, T, D)"""
        return self.head(F.pad(x, (0, 1), value=1.0))


class TanhFeedForward(nn.Module):
    """The two linear layers of a feed-forward layer, with the GELU that GPT-2 was trained with."""

    def __init__(self, linear1: nn.Linear, linear2: nn.Linear) -> None:
        super().__init__()
        self.linear1, self.linear2 = linear1, linear2

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, C) -> (B, T, C)"""
        return self.linear2(F.gelu(self.linear1(x), approximate="tanh"))


def load_gpt2(path: Path, model_class: type[nn.Module], layers: Layers, context: int | None = None) -> nn.Module:
    """A model of your class from 07, made of your own `layers` as far as you have them, with GPT-2's weights.

    path: a folder or file with GPT-2. context: how many words the model can take at once; None: as many as GPT-2.
    Raises ValueError if there is no GPT-2 in that place, or if your layers do not work together.
    """
    weights = read_weights(path)
    config = read_config(path if path.is_dir() else path.parent, weights)
    (V, C), H = weights["wte.weight"].shape, config["n_head"]
    T = min(context or len(weights["wpe.weight"]), len(weights["wpe.weight"]))
    N = len({name.split(".")[1] for name in weights if name.startswith("h.")})
    model = my_gpt(model_class, layers, V, C, T, H, N)
    with torch.no_grad():
        model.token_embed.weight.copy_(weights["wte.weight"])                   # (V, C)
        model.pos_embed.weight.copy_(weights["wpe.weight"][:T])                 # (T, C)
        model.ln = filled_norm(model.ln, weights, "ln_f", config)
        model.fc.weight.copy_(weights.get("lm_head.weight", weights["wte.weight"]))     # (V, C)
        model.fc.bias.zero_()                                                   # GPT-2 has none there
        for n, block in enumerate(model.blocks.children()):
            fill_block(block, weights, f"h.{n}", config, layers, T)
    try_out(model, layers)
    return model.eval()


def fill_block(
    block: nn.Module, weights: dict[str, Tensor], name: str, config: dict[str, Any], layers: Layers, T: int
) -> None:
    """Give a block GPT-2's norms, attention and feed-forward layer of that name, such as `h.0`."""
    inner = getattr(block, "block", block)                                      # 05's, in its frame, or 07's own
    first, second = ("norm1", "norm2") if hasattr(inner, "norm1") else ("ln1", "ln2")
    setattr(inner, first, filled_norm(getattr(inner, first), weights, f"{name}.ln_1", config))
    setattr(inner, second, filled_norm(getattr(inner, second), weights, f"{name}.ln_2", config))
    fill_attention(inner.attention, weights, f"{name}.attn", config["n_head"], layers, T)
    expand, project = (inner.ff[0], inner.ff[2]) if hasattr(inner.ff, "0") else (inner.ff.linear1, inner.ff.linear2)
    fill_linear(expand, weights, f"{name}.mlp.c_fc")
    fill_linear(project, weights, f"{name}.mlp.c_proj")
    if config["activation_function"] == "gelu_new":
        inner.ff = TanhFeedForward(expand, project)


def filled_norm(norm: nn.Module, weights: dict[str, Tensor], name: str, config: dict[str, Any]) -> nn.Module:
    """A norm of the same kind as this one, PyTorch's or yours, with GPT-2's eps and weights."""
    weight = weights[f"{name}.weight"]
    new = type(norm)(len(weight), config["layer_norm_epsilon"])
    scale, shift = (new.gamma, new.beta) if hasattr(new, "gamma") else (new.weight, new.bias)
    scale.copy_(weight)                                                         # (C,)
    shift.copy_(weights[f"{name}.bias"])                                        # (C,)
    return new


def fill_linear(linear: nn.Linear, weights: dict[str, Tensor], name: str) -> None:
    """GPT-2 keeps its matrices as (in, out), nn.Linear as (out, in)."""
    linear.weight.copy_(weights[f"{name}.weight"].T)                            # (out, in)
    linear.bias.copy_(weights[f"{name}.bias"])                                  # (out,)


def fill_attention(
    attention: nn.Module, weights: dict[str, Tensor], name: str, H: int, layers: Layers, T: int
) -> None:
    """Queries, keys and values of all heads are one matrix in GPT-2; each of your heads gets its own slices."""
    together = weights[f"{name}.c_attn.weight"].T                               # (3C, C)
    biases = weights[f"{name}.c_attn.bias"]                                     # (3C,)
    if not isinstance(attention, OwnAttention):
        attention.in_proj_weight.copy_(together)
        attention.in_proj_bias.copy_(biases)
        fill_linear(attention.out_proj, weights, f"{name}.c_proj")
        return
    own = attention.attention
    fill_linear(own.proj, weights, f"{name}.c_proj")
    C = together.shape[1]
    slices = torch.cat([together, biases[:, None]], dim=1).view(3, H, C // H, C + 1)    # (3, H, D, C + 1)
    for number, old in enumerate(list(own.heads.children())):
        head = type(old)(C + 1, C // H, T)
        for layer, numbers in zip((head.query, head.key, head.value), slices[:, number]):
            layer.weight.copy_(numbers)                                         # (D, C + 1)
        setattr(own.heads, str(number), WithOne(head))


def find_gpt2() -> Path | None:
    """The folder with GPT-2: `gpt2` beside this file, or where Hugging Face's libraries keep their downloads."""
    here = Path(__file__).parent / "gpt2"
    cached = sorted((Path.home() / ".cache/huggingface/hub").glob(DOWNLOADS))
    return next((folder for folder in (here, *cached) for name in FILES if (folder / name).is_file()), None)


def read_tokenizer(folder: Path) -> Any:
    """GPT-2's tokenizer from its files, with Hugging Face's library `tokenizers`."""
    from tokenizers import ByteLevelBPETokenizer, Tokenizer

    if (folder / "tokenizer.json").is_file():
        return Tokenizer.from_file(str(folder / "tokenizer.json"))
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    raise ValueError(f"{folder} has no tokenizer.json, and no vocab.json with merges.txt: GPT-2's words are missing.")


def write_english(mini_gpt: Any, folder: Path | None, beginning: str, layers: Layers, words: int = 40) -> str:
    """The text that GPT-2, in your own layers, writes after this beginning; `mini_gpt` is your module of 07.

    Without GPT-2 (folder None), your own small model learns the text of 07 for a moment and writes instead.
    """
    generator = torch.Generator().manual_seed(7)
    if folder is None:
        torch.manual_seed(7)
        model = my_gpt(mini_gpt.TransformerLanguageModel, layers, len(mini_gpt.ALPHABET), 64, 32, 4, 2)
        mini_gpt.train(model, mini_gpt.encode(mini_gpt.TEXT), 300, 16, 3e-3, generator)
        known = "".join(letter for letter in beginning.lower() if letter in mini_gpt.ALPHABET) or "the word "
        ids = mini_gpt.encode(known)[None]                                      # (1, T)
        return mini_gpt.decode(mini_gpt.generate(model, ids, 4 * words, 0.8, None, generator)[0])
    tokenizer = read_tokenizer(folder)
    model = load_gpt2(folder, mini_gpt.TransformerLanguageModel, layers, context=256)
    ids = torch.tensor([tokenizer.encode(beginning).ids])                       # (1, T)
    return tokenizer.decode(mini_gpt.generate(model, ids, words, 0.8, 40, generator)[0].tolist())


if __name__ == "__main__":
    from autograder import RefusedError
    from autograder.notebook import earlier_work

    parser = argparse.ArgumentParser(
        usage='%(prog)s [FOLDER] ["How the text begins"]',
        description="Your own layers of 02 to 05 with the weights of GPT-2 write English. Nothing is downloaded.",
        epilog="Without a folder, the program looks where Hugging Face's libraries keep their downloads. Without GPT-2, "
        "your small model of 07 learns for a moment and writes instead.",
    )
    parser.add_argument("words", nargs="*", metavar="FOLDER or TEXT", help="where GPT-2 is, or how the text begins")
    words = parser.parse_args().words
    given = [Path(word) for word in words if Path(word).exists()]
    started = [word for word in words if not Path(word).exists()]
    place = given[0] if given else find_gpt2()
    print(f"GPT-2: {place}" if place else "There is no GPT-2 on this computer; your small model of 07 writes instead.")
    try:
        own, _ = earlier_work("07_mini_gpt")
        print(write_english(own, place, " ".join(started) or "The word bank looked around the room", own_layers()))
    except (RefusedError, ValueError) as error:
        sys.exit(str(error))
