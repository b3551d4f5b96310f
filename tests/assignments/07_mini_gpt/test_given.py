"""What stands beside the stub of 07: the student's own layers in one model, GPT-2's weights, a real text."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from autograder.bridge.outside.local import load
from autograder.course.reading import load_course

HERE = Path(__file__).resolve().parent
COURSE = load_course(HERE)
TAUGHT = ("02_positional_encoding", "03_masked_heads", "04_multi_head_concat", "05_encoder_block")

# They do not call the heads, or the attention, but read the matrices inside.
NEED_PYTORCH_S_ATTENTION = ("stacked_weights", "einsum_and_own_parameters")


def module_of(file: Path) -> ModuleType:
    return load(file.read_text("utf-8"), file.name).module


def solution(name: str) -> ModuleType:
    return module_of(COURSE.solution_file(COURSE.assignment(name)))


def ways() -> list[tuple[str, Path]]:
    """The solution and every alternative of 03, 04, 05 and 07, each with its assignment."""
    names = (*TAUGHT, "07_mini_gpt")
    return [(name, file) for name in names for file in COURSE.alternatives(COURSE.assignment(name))]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch):
    """The modules of `given/`, imported as a student's file in the same folder imports them."""
    monkeypatch.syspath_prepend(str(HERE / "given"))
    names = [file.stem for file in (HERE / "given").glob("*.py")]
    yield lambda name: importlib.import_module(name)
    for name in names:
        sys.modules.pop(name, None)


def layers_of(my_transformer: ModuleType, modules: dict[str, ModuleType]) -> dict[str, type]:
    return {name: getattr(modules[where], name) for (where, _), name in my_transformer.TAUGHT.items()}


@pytest.fixture(scope="module")
def modules() -> dict[str, ModuleType]:
    return {name: solution(name) for name in (*TAUGHT, "07_mini_gpt")}


@pytest.fixture(scope="module", params=["gelu_new", "gelu"])
def gpt2(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Hugging Face's GPT-2 with random weights, biases and norms included, and the folder where it is saved."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(3)
    config = GPT2Config(
        vocab_size=61, n_positions=24, n_embd=48, n_layer=3, n_head=3, activation_function=request.param,
        layer_norm_epsilon=1e-3, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None,
    )
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    folder = tmp_path_factory.mktemp("gpt2")
    model.save_pretrained(folder)
    return model, folder


def apart(own, theirs) -> float:
    """The largest difference between the logits of both models, for a text as long as they can take."""
    torch.manual_seed(5)
    ids = torch.randint(61, (2, 24))
    with torch.no_grad():
        return (own(ids)[0] - theirs(ids).logits).abs().max().item()


@pytest.mark.slow
def test_own_layers_give_hugging_face_s_logits(given, gpt2, modules):
    weights = given("gpt2_weights")
    layers = layers_of(given("my_transformer"), modules)
    own = weights.load_gpt2(gpt2[1], modules["07_mini_gpt"].TransformerLanguageModel, layers)
    assert apart(own, gpt2[0]) < 1e-4
    kinds = {type(module).__module__ for module in own.modules() if not type(module).__module__.startswith("torch")}
    assert kinds >= {"masked_heads", "multi_head_concat", "encoder_block", "mini_gpt"}


@pytest.mark.slow
@pytest.mark.parametrize("taken", [(), ("MultiHeadAttention",), ("LayerNorm",), ("FeedForward",), ("PreNormBlock",),
                                   ("TokenAndPositionEmbedding",), ("MultiHeadAttention", "Head", "LayerNorm")])
def test_what_has_not_passed_stays_pytorch_s(given, gpt2, modules, taken):
    weights, model_class = given("gpt2_weights"), modules["07_mini_gpt"].TransformerLanguageModel
    layers = layers_of(given("my_transformer"), modules)
    own = weights.load_gpt2(gpt2[1], model_class, {name: layers[name] for name in taken})
    assert apart(own, gpt2[0]) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name, file", ways(), ids=lambda value: getattr(value, "stem", value))
def test_other_right_answers_take_the_weights_too(given, gpt2, modules, name, file):
    weights, changed = given("gpt2_weights"), {**modules, name: module_of(file)}
    layers, model_class = layers_of(given("my_transformer"), changed), changed["07_mini_gpt"].TransformerLanguageModel
    if file.stem in NEED_PYTORCH_S_ATTENTION:
        with pytest.raises(ValueError, match="leave out `MultiHeadAttention`"):
            weights.load_gpt2(gpt2[1], model_class, layers)
        for left_out in ("MultiHeadAttention", *(("FeedForward", "PreNormBlock") if name == "05_encoder_block" else ())):
            del layers[left_out]
    assert apart(weights.load_gpt2(gpt2[1], model_class, layers), gpt2[0]) < 1e-4


def test_names_without_a_prefix_and_a_state_dict_of_pytorch_s_load_too(given, gpt2, modules, tmp_path):
    weights, model_class = given("gpt2_weights"), modules["07_mini_gpt"].TransformerLanguageModel
    bare = {name.removeprefix("transformer."): tensor for name, tensor in gpt2[0].state_dict().items()}
    torch.save(bare, tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text((gpt2[1] / "config.json").read_text("utf-8"), "utf-8")
    assert apart(weights.load_gpt2(tmp_path, model_class, {}), gpt2[0]) < 1e-4


def test_a_shorter_context_window_gives_the_same_logits(given, gpt2, modules):
    own = given("gpt2_weights").load_gpt2(gpt2[1], modules["07_mini_gpt"].TransformerLanguageModel, {}, context=7)
    ids = torch.arange(7)[None]
    with torch.no_grad():
        assert (own(ids)[0] - gpt2[0](ids).logits).abs().max() < 1e-4
    assert own.block_size == 7


@pytest.mark.parametrize(
    "name, content, sentence",
    [
        ("model.safetensors", b"\x00", "is no file of weights"),
        ("model.safetensors", (2).to_bytes(8, "little") + b"{}", "has no tensor wte.weight"),
        ("pytorch_model.bin", b"nothing", "is no file of weights"),
        ("other.txt", b"", "cannot be read"),
    ],
)
def test_a_wrong_file_is_a_sentence(given, tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        given("gpt2_weights").read_weights(tmp_path)


def test_scores_that_are_scaled_otherwise_are_refused(given, gpt2, modules, tmp_path):
    weights = given("gpt2_weights").read_weights(gpt2[1])
    (tmp_path / "config.json").write_text(json.dumps({"scale_attn_weights": False}), "utf-8")
    with pytest.raises(ValueError, match="scale_attn_weights"):
        given("gpt2_weights").read_config(tmp_path, weights)


@pytest.mark.slow
def test_without_gpt2_the_small_model_writes(given, modules, monkeypatch):
    own = modules["07_mini_gpt"]
    learn = own.train
    monkeypatch.setattr(own, "train", lambda model, data, steps, *others: learn(model, data, 2, *others))
    layers = layers_of(given("my_transformer"), modules)
    text = given("gpt2_weights").write_english(own, None, "The Word", layers, words=2)
    assert text.startswith("the word") and len(text) == len("the word") + 8


def test_only_parts_that_pass_are_taken(given, modules, tmp_path, monkeypatch, capsys):
    for name in ("03_masked_heads", "05_encoder_block", "07_mini_gpt"):
        assignment = COURSE.assignment(name)
        folder = tmp_path / name
        folder.mkdir()
        text = COURSE.solution_file(assignment).read_text("utf-8")
        if name == "05_encoder_block":
            assert "torch.sqrt(variance + eps)" in text
            text = text.replace("torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps + 1)")
        (folder / f"{assignment.stem}.py").write_text(text, "utf-8")
        tests = COURSE.visible_test_file(assignment).read_text("utf-8")
        (folder / f"test_{assignment.stem}.py").write_text(tests, "utf-8")
    monkeypatch.chdir(tmp_path / "07_mini_gpt")
    layers = given("my_transformer").own_layers()
    assert set(layers) == {"Head", "FeedForward"}
    told = capsys.readouterr().out
    assert "your own   03_masked_heads" in told
    assert "PyTorch’s  05_encoder_block        layer_norm" in told
    assert "There is no" in told and "PyTorch’s  04_multi_head_concat" in told


def run_alone(program: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "given" / program), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_my_transformer_run_alone_says_which_layers_are_yours(tmp_path):
    done = run_alone("my_transformer.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0 of the 6 layers are your own." in done.stdout and "python gpt2_weights.py" in done.stdout


@pytest.mark.slow
def test_gpt2_weights_explains_its_arguments(tmp_path):
    done = run_alone("gpt2_weights.py", "--help", folder=tmp_path)
    assert done.returncode == 0 and "FOLDER" in done.stdout and "how the text begins" in done.stdout
    unknown = run_alone("gpt2_weights.py", "--words", folder=tmp_path)
    assert unknown.returncode == 2 and "--words" in unknown.stderr and "Traceback" not in unknown.stderr


def some_texts() -> list[str]:
    return [f"def f{n}(x):\n    return x + {n}\n" * 4 for n in range(20)]


def test_a_real_text_is_split_by_whole_files(given, tmp_path):
    real = given("real_text")
    for n, text in enumerate(some_texts()):
        (tmp_path / f"{n:02}.py").write_text(text, "utf-8")
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "other.py").write_text("x = 1\n", "utf-8")
    (tmp_path / "03a.py").write_text("é = 1\n", "utf-8")
    texts = list(real.texts_below(tmp_path))
    assert texts == [text.replace("    ", " ") for text in some_texts()]
    learned, held_out = real.split(texts)
    assert held_out == texts[0] + texts[10] and len(learned) + len(held_out) == sum(map(len, texts))
    assert real.decode(real.encode(learned)) == learned
    assert sum(map(len, real.texts_below(tmp_path, 100e-6))) == 100


def test_an_indentation_of_four_spaces_becomes_one(given, tmp_path):
    (tmp_path / "a.py").write_text("def f():\n    if x:\n\treturn 1  # two    three\n   three\n", "utf-8")
    assert list(given("real_text").texts_below(tmp_path)) == ["def f():\n if x:\n return 1  # two    three\n   three\n"]


def test_the_library_of_python_is_a_text_of_some_megabytes(given):
    import sysconfig

    real = given("real_text")
    texts = list(real.texts_below(Path(sysconfig.get_paths()["stdlib"]), 1.0))
    assert sum(map(len, texts)) == 1_000_000
    assert set("".join(texts)) <= set(real.LETTERS)


@pytest.mark.slow
def test_training_on_a_text_shows_samples_and_the_loss_on_new_text(given, modules):
    layers = layers_of(given("my_transformer"), modules)
    own = modules["07_mini_gpt"]
    shown = list(given("real_text").train(own, layers, some_texts(), 5, 2, 16, 12, num_heads=2, num_layers=1))
    assert [done for done, *_ in shown] == [0, 2, 4, 5]
    assert all(sample.startswith("def ") and len(sample) == 244 for *_, sample in shown)
    first, last = shown[0][2], shown[-1][2]
    assert 3 < last < first < 8
    with pytest.raises(ValueError, match="too few for windows of 64"):
        next(given("real_text").train(own, {}, ["short"], 1, 1))


def test_gpt2_writes_with_its_own_tokenizer(given, modules, tmp_path):
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(["the word bank and the word light"], vocab_size=262, show_progress=False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    config = GPT2Config(vocab_size=262, n_positions=16, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    weights, layers = given("gpt2_weights"), layers_of(given("my_transformer"), modules)
    text = weights.write_english(modules["07_mini_gpt"], tmp_path, "the word bank", layers, words=5)
    assert text.startswith("the word bank") and len(text) > len("the word bank")
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="GPT-2's words are missing"):
        weights.write_english(modules["07_mini_gpt"], tmp_path, "the word bank", layers)


def test_gpt2_is_found_where_downloads_are_kept(given, tmp_path, monkeypatch):
    weights = given("gpt2_weights")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert weights.find_gpt2() is None
    folder = tmp_path / ".cache/huggingface/hub/models--openai-community--gpt2/snapshots/607a30d"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"")
    assert weights.find_gpt2() == folder
