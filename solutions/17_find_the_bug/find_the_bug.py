# %% [markdown]
# # 17 · Find the bug
#
# ```
#  the next word         07 trained, and writing
#        ↑               18 what it costs
#        ↑               16 taught what people prefer
#        ↑               14 fine-tuned
#        ↑               15 trained well
# ┌──────────────┐       06 all of it, counted
# │              │       05 the whole block
# │ feed-forward │       08 one that reads a second text
# │      ↑       │       09 the same, with gaps to fill
# │      ↑       │       10 ready-made
# │  attention   │ × N   03 one head
# │              │       04 many heads
# │              │       11 tested
# └──────────────┘       13 with a cache
#        ↑               01 vectors
#    vectors +           02 positions
#    positions           12 positions that turn
#        ↑             ▶ 17 the code around it, debugged
# words of a text        00 why not one word after the other
#
# ▶ you are here
# ```
#
# Most of the code that you will ever run was written by somebody else: a colleague, a forum, an assistant, yourself a
# year ago. It comes with a sentence that says what it does, it runs, and it looks reasonable. Is the sentence true?
#
# Below are ten short functions, in the style of many training scripts. Each has a docstring that **promises** something.
# Eight of them break their promise, each because of one line that people really write. Two keep it, although they may
# look odd. None of the eight crashes, and most of them are right nearly always: that is how such lines survive. We ask
# three things about each:
#
# | part | the question | your answer |
# |---|---|---|
# | 1 · Evidence | does it break its promise? | an input that proves it |
# | 2 · The verdict | what kind of bug is it? | one word of eight |
# | 3 · The repair | what would keep the promise? | a function |
#
# **How does one read code that one did not write?** Not from the first line to the last. Four habits help:
#
# - **Read the promise first, and slowly.** Each word of it that the code does not mention is a place to look: *any*,
#   *whole*, *exactly*, *the last may be shorter*.
# - **Take the smallest input** that is not trivial, and compute the answer by hand before you run anything. Two words,
#   three numbers. A large random input hides a wrong number among a thousand right ones.
# - **Change one thing.** One size, one entry, one flag; and say beforehand what should move.
# - **Assert what you believe.** *Here all rows are equally long.* Write it down as an `assert`; the belief that fails is
#   often the bug itself.
#
# Letters for shapes: `B` sentences, `T` words or rows, `S` columns, `C` numbers in a vector, `N` examples, `K` classes,
# `L` words in the whole text.
#
# **Not here.** No model is trained, and nothing is slow or ugly in a way that matters: only promises count.
#
# The names of functions, classes, attributes and arguments are part of the contract: the tests use them.

# %%
from collections.abc import Callable

import torch
from torch import Tensor

# %% [markdown]
# ## The suspects
#
# These ten functions are given. Do not edit them: the tests bring their own copies. Tensors of decimal numbers may be
# float32 or float64, and all their numbers are finite. In every answer, numbers that are less than 0.001 apart count as
# equal.

# %%
SUSPECTS: dict[str, Callable] = {}


def suspect(function: Callable) -> Callable:
    """Add a function to SUSPECTS under its own name."""
    SUSPECTS[function.__name__] = function
    return function


@suspect
def cut_windows(ids: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """Cut a text (L,) into pairs (x, y) of `size` words each; y holds the word that follows each word of x.

    The first window begins at word 0, the next at word `size`, and so on, as long as each word of x has a word after it
    in the text. What is left at the end is left out. L >= 1, size >= 1.
    """
    targets = ids.roll(-1)                                                              # (L,)
    pairs = []
    for begin in range(0, len(ids) - size + 1, size):
        pairs.append((ids[begin : begin + size], targets[begin : begin + size]))
    return pairs


@suspect
def smooth_targets(targets: Tensor, num_classes: int, amount: float) -> Tensor:
    """Soft targets (N, K) for the right classes (N,): `amount` of each row is spread evenly over all K classes.

    The right class is one of the K, and gets the rest as well. Each row adds up to 1. 0 <= amount <= 1.
    """
    soft = torch.full((len(targets), num_classes), amount / num_classes)                # (N, K)
    soft[torch.arange(len(targets)), targets] += 1 - amount
    return soft


@suspect
def row_weights(scores: Tensor) -> Tensor:
    """The softmax of each row of scores (T, S), however large or small the scores are. T >= 1, S >= 1."""
    heights = torch.exp(scores - scores.max())                                          # (T, S)
    return heights / heights.sum(dim=-1, keepdim=True)                                  # (T, S)


@suspect
def mean_in_pieces(losses: Tensor, size: int) -> Tensor:
    """The mean of all losses (N,), computed from pieces of `size`; the last may be shorter. N >= 1, size >= 1."""
    pieces = losses.split(size)
    total = torch.zeros((), dtype=losses.dtype)                                         # ()
    for piece in pieces:
        total = total + piece.mean() / len(pieces)
    return total


@suspect
def without_padding(scores: Tensor, real: Tensor) -> Tensor:
    """The softmax of each row of scores (T, S) over the real columns alone; all others get the weight 0.

    real: booleans (S,), at least one of which is True. Whatever stands at the other columns has no influence.
    """
    penalty = (~real).to(scores.dtype) * -10_000.0                                      # (S,)
    return (scores + penalty).softmax(dim=-1)                                           # (T, S)


@suspect
def drop_some(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout for x of any shape. 0 <= p < 1.

    In training each number becomes 0 with probability p, and is divided by 1 - p otherwise. Outside of training the
    answer is x.
    """
    kept = torch.rand(x.shape) >= p
    if training:
        return x * kept / (1 - p)
    return x * kept


@suspect
def last_words(hidden: Tensor, lengths: Tensor) -> Tensor:
    """The vector of the last word of each sentence: hidden (B, T, C), lengths (B,) -> (B, C).

    Sentence b has the words 0 to lengths[b] - 1, and padding behind them. lengths are whole numbers from 1 to T.
    """
    words = hidden.flatten(0, 1)                                                        # (B·T, C)
    begins = torch.arange(len(lengths)) * lengths.max()                                 # (B,)
    return words[begins + lengths - 1]                                                  # (B, C)


@suspect
def running_loss(losses: list[float], decay: float) -> float:
    """A weighted mean of the losses: the last one has the weight 1, the one before it `decay`, then decay², and so on.

    There is at least one loss. 0 <= decay < 1.
    """
    average = 0.0
    for loss in losses:
        average = decay * average + (1 - decay) * loss
    return average / (1 - decay ** len(losses))


@suspect
def hold_out(items: list[int], every: int) -> tuple[list[int], list[int]]:
    """Divide items into two lists, for training and for the test. every >= 2.

    The different items are numbered 0, 1, 2, … in the order in which they first appear; equal items have the same number.
    Items whose number is a multiple of `every` are for the test, all others for training. So no item of the test is known
    from training. Each list holds its items in their order, as often as they appear.
    """
    training, test = [], []
    for number, item in enumerate(items):
        if number % every == 0:
            test.append(item)
        else:
            training.append(item)
    return training, test


@suspect
def newest_file(steps: list[int]) -> str:
    """The name of the file with the most steps, such as "step-300.pt". steps: at least one number, each 0 or more."""
    names = [f"step-{step}.pt" for step in steps]
    return sorted(names)[-1]


# %% [markdown]
# ## Part 1 · Evidence
#
# About 12 minutes, ●●●
#
# *I think there is something wrong with the padding* is an opinion. An **input** for which the answer is not the
# promised one is evidence: nobody can argue with it, everybody can run it, and after the repair it is a test. The
# smaller it is, the more it explains; so you may use at most 30 numbers.
#
# **One number by hand.** Not one of the ten, but of the same kind. A function promises *the middle one of the numbers,
# in ascending order; there is an odd number of them*, and returns `sorted(set(numbers))[len(set(numbers)) // 2]`. Is
# `[3, 1, 2]` evidence? The promise says 2, the function says 2: no. With `[1, 1, 2]` the promise says 1. The set is
# `{1, 2}`, its length 2, so the function takes number 1 of `[1, 2]`, which is 2: evidence, with three numbers. Where
# did it come from? From the line: *when does a set differ from its list?* Only when something occurs twice.
#
# That is the method: find the line that you do not believe, and ask **when it would matter**. Random numbers are not
# enough. Of our eight, random inputs of one ordinary size, one ordinary scale and without repetition find two often, and
# the others seldom or never. Random inputs whose **sizes, scales and repetitions** vary find all eight at once: they hit
# the cases in which it matters. The picture of Part 3 compares both. Good tools for random tests do just that.
#
# Evidence has to be a *fair* input. The docstring says what the arguments may be; if you give a function
# something else, you have been promised nothing.
#
# **To think about.** You have tried a thousand random inputs, and the function kept its promise on all of them. What do
# you know now, and what not?


# %%
def evidence(name: str) -> tuple:
    """Arguments for which the suspect of this name breaks its promise.

    The tuple holds all arguments of the suspect in their order, as its docstring allows them: tensors, lists, whole
    numbers, decimal numbers and booleans. There are at most 30 numbers in all, and True and False count, too.
    For `drop_some` the promise is broken if its answer is wrong in some of twenty calls.
    Raises ValueError that names the suspect if it keeps its promise.
    Example, for the function with the set above: ([1, 1, 2],) would be evidence.
    """
    # TODO: for each suspect that breaks its promise, arguments that prove it; a ValueError for the others
    ### BEGIN SOLUTION
    proofs = {
        "cut_windows": (torch.tensor([3, 1, 4, 5]), 2),
        "row_weights": (torch.tensor([[0.0, 0.0], [1000.0, 1000.0]]),),
        "mean_in_pieces": (torch.tensor([0.0, 0.0, 3.0]), 2),
        "without_padding": (torch.tensor([[0.0, 20_000.0]]), torch.tensor([True, False])),
        "drop_some": (torch.ones(8), 0.5, False),
        "last_words": (torch.tensor([[[1.0], [0.0], [0.0]], [[2.0], [3.0], [0.0]]]), torch.tensor([1, 2])),
        "hold_out": ([7, 7], 2),
        "newest_file": ([9, 10],),
    }
    if name not in proofs:
        raise ValueError(f"{name} keeps its promise.")
    return proofs[name]
    ### END SOLUTION


# %% part="evidence"

# %% [markdown]
# ## Part 2 · The verdict
#
# About 10 minutes, ●○○
#
# If you can name a kind of bug, you will find its relatives. Say in one word what is wrong:
#
# | word | what it means |
# |---|---|
# | `shift` | a word is taken from one place too early, too late, or around the end |
# | `axis` | something is computed over other numbers than those that belong together |
# | `scale` | everything is counted, but not with the weight that it should have |
# | `mask` | what should be hidden can still be seen |
# | `mode` | training and use are mixed up |
# | `layout` | numbers lie in memory in another way than they are read |
# | `sharing` | two things that should be apart have something in common |
# | `order` | things are put in order by something else than what is meant |
#
# Each word is the best one for exactly one of the eight.
#
# **To think about.** Which of these bugs makes the reported loss *better*? Who will look for it?


# %%
def verdict(name: str) -> str | None:
    """What is wrong with the suspect of this name: one of the eight words, or None if it keeps its promise.

    A verdict counts only together with the evidence of Part 1; for a suspect that keeps its promise, together with the
    refusal of `evidence`.
    """
    # TODO: for each suspect a word, or None
    ### BEGIN SOLUTION
    words = {
        "cut_windows": "shift",
        "row_weights": "axis",
        "mean_in_pieces": "scale",
        "without_padding": "mask",
        "drop_some": "mode",
        "last_words": "layout",
        "hold_out": "sharing",
        "newest_file": "order",
    }
    return words.get(name)
    ### END SOLUTION


# %% part="verdict"

# %% [markdown]
# ## Part 3 · The repair
#
# About 20 minutes, ●●○
#
# Only now is it time for a patch: you know what fails, and can tell when it no longer does. Change as little as you can.
# A repair that rewrites everything has to be read again from the first line.
#
# And check that the repair is one. The most frequent false repair makes your *evidence* pass and no more: a larger
# constant, a special case. Ask of your own line what you asked of theirs: when would it matter?
#
# **One number by hand.** The function with the set is repaired by `sorted(numbers)[len(numbers) // 2]`. On the evidence
# `[1, 1, 2]` it gives number 1 of `[1, 1, 2]`, which is 1, as promised; and on `[3, 1, 2]` it still gives 2.
#
# **To think about.** You have asked an assistant to mend a function, and it answers with thirty new lines and the words
# *now it works*. What do you ask it next?


# %%
def repaired(name: str) -> Callable:
    """A function that is called like the suspect of this name and keeps the suspect's promise on every fair input.

    For a suspect that keeps its promise: the suspect itself. Arguments keep their values. Answers have the type of the
    suspect's answers, and tensors of decimal numbers the number type of the tensor that came in.
    Write functions of your own anywhere in this file, and return the right one.
    """
    # TODO: a function for each suspect that breaks its promise; the suspect itself for the others
    ### BEGIN SOLUTION
    def windows(ids: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
        begins = range(0, len(ids) - size, size)
        return [(ids[b : b + size], ids[b + 1 : b + 1 + size]) for b in begins]

    def mean(losses: Tensor, size: int) -> Tensor:
        return sum(piece.sum() for piece in losses.split(size)) / len(losses)           # ()

    def masked(scores: Tensor, real: Tensor) -> Tensor:
        return scores.masked_fill(~real, -torch.inf).softmax(dim=-1)                    # (T, S)

    def drop(x: Tensor, p: float, training: bool) -> Tensor:
        if not training:
            return x
        return x * (torch.rand(x.shape) >= p) / (1 - p)

    def last(hidden: Tensor, lengths: Tensor) -> Tensor:
        return hidden[torch.arange(len(lengths)), lengths - 1]                          # (B, C)

    def divided(items: list[int], every: int) -> tuple[list[int], list[int]]:
        numbers = {item: number for number, item in enumerate(dict.fromkeys(items))}
        training = [item for item in items if numbers[item] % every != 0]
        return training, [item for item in items if numbers[item] % every == 0]

    repairs = {
        "cut_windows": windows,
        "row_weights": lambda scores: scores.softmax(dim=-1),
        "mean_in_pieces": mean,
        "without_padding": masked,
        "drop_some": drop,
        "last_words": last,
        "hold_out": divided,
        "newest_file": lambda steps: f"step-{max(steps)}.pt",
    }
    return repairs.get(name, SUSPECTS[name])
    ### END SOLUTION


# %% part="repair"

# %% [markdown]
# The picture gives every suspect 200 random inputs of one ordinary size and scale, and 200 more whose sizes, scales and
# repetitions vary, and shows how many tell it from your repair. Beside the bars stands whether your evidence does. Which
# of the suspects would each of both random tests have found?

# %% picture="repair"

# %% [markdown]
# ## Ask for evidence, not for a patch
#
# Assistants write code as fluently as prose, and they repair it with the same fluency, right or wrong. A patch that you
# cannot judge is one more function of which somebody says that it works. So turn the question around. Four requests that
# are worth more than *fix it*:
#
# - *Give me the smallest input for which this function breaks its docstring, the answer that it gives, and the answer
#   that it promises.* You can run that in ten seconds, and you know whether to read on. If the input does not fail, the
#   explanation that came with it is wrong, however good it sounds.
# - *Which sentence of the docstring is broken?* If none is, you have been offered another opinion of what the function
#   should do. That may be a good idea; it is not a bug.
# - *Change one line.* If the answer is thirty lines long, ask what each of the others is for.
# - *What would convince you that you are wrong?* The answer is a test. Run that one as well.
#
# You have done each of these yourself in this assignment. An assistant that has to show evidence is a good colleague,
# and the evidence stays in your tests when the conversation is long forgotten.
#
# ## Harder: let the computer shrink it
#
# Not graded; about 35 minutes, ●●○.
# You found small inputs by thinking. When the input that fails is a file of a thousand
# lines, the computer can make it small: throw a part away, see whether it still fails, go on. The file `harder.py` beside
# this one asks for that. Run `python harder.py`: it checks what you write there and says in sentences what is missing.
#
# ## Look back
#
# Eight lines, and each of them is in use somewhere. They have one thing in common: **they are right as long as an
# assumption holds that nobody wrote down.** All pieces are equally long. No score is larger than ten thousand. The batch
# is padded to its longest sentence. All file names have the same number of digits. Nothing occurs twice. When you write
# your next function, write its assumption down: as a sentence of the docstring, or better as an `assert`.
#
# **One last question.** Two suspects looked odd and were right. What would have happened if you had repaired them?
#
# ## Read on
#
# - Mark Weiser, *Programmers Use Slices When Debugging* (1982): experienced programmers keep in mind the lines that
#   influence the wrong value, also where these stand far apart. Look for how this was found out.
# - Koen Claessen and John Hughes, *QuickCheck: A Lightweight Tool for Random Testing of Haskell Programs* (2000): write
#   down the promise, let the computer try inputs. Look for what they say about how the inputs are distributed.
# - Andreas Zeller and Ralf Hildebrandt, *Simplifying and Isolating Failure-Inducing Input* (2002): the method of
#   `harder.py`. Look for the web page of 896 lines on which a browser crashed, and for what was left of it.
