"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 16` in the course's folder. In the
notebook: `catch("kl", lambda: (log_probs, reference_log_probs))`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 16 --give-up B`.
"""

import torch

# What is called with your input, in each part: once with your code as `program`, once with each wrong program. With
# gradient=True, the gradients of the loss are compared as well: what training would change. There is nothing to change
# here.


def answers(program, logits, ids, answer, gradient=False):
    """logits (B, T, V), ids (B, T), answer (B, T): the log-probabilities and the loss; the gradient of the logits."""
    if logits.ndim != 3 or ids.shape != logits.shape[:2] or answer.shape != ids.shape:
        raise ValueError("logits is (B, T, V), ids and answer are (B, T).")
    if answer.dtype != torch.bool:
        raise ValueError("answer is a tensor of booleans.")
    if ids.dtype != torch.long or bool((ids < 0).any()) or bool((ids >= logits.shape[-1]).any()):
        raise ValueError("ids are whole numbers from 0 to V - 1.")
    logits = logits.clone().requires_grad_()
    log_probs = program.answer_log_probs(logits, ids, answer)
    loss = program.sft_loss(logits, ids, answer)
    found = {"the log-probabilities": log_probs, "the loss": loss}
    return {**found, **gradients(loss, {"the logits": logits})} if gradient else found


def comparisons(program, chosen, rejected, gradient=False):
    """chosen (B,), rejected (B,): the loss of the scores."""
    scores = like_one_another({"chosen": chosen, "rejected": rejected})
    loss = program.bradley_terry_loss(*scores.values())
    return {"the loss": loss, **gradients(loss, scores)} if gradient else {"the loss": loss}


def dpo(
    program,
    policy_chosen,
    policy_rejected,
    reference_chosen,
    reference_rejected,
    beta=0.1,
    gradient=False,
):
    """Four times (B,), log-probabilities of answers: the loss and the margins."""
    given = {
        "policy_chosen": policy_chosen,
        "policy_rejected": policy_rejected,
        "reference_chosen": reference_chosen,
        "reference_rejected": reference_rejected,
    }
    log_probs = like_one_another(given)
    loss, margins = program.dpo_loss(*log_probs.values(), beta=beta)
    found = {"the loss": loss, "the list of margins": margins}
    return {**found, **gradients(loss, log_probs)} if gradient else found


def advantages(program, rewards, eps=1e-4):
    """rewards (G, K): the advantages."""
    if rewards.ndim != 2 or not rewards.is_floating_point():
        raise ValueError("rewards is (G, K), of numbers with a point.")
    return {"the table of advantages": program.group_advantages(rewards, eps)}


def clipping(program, log_probs, old_log_probs, advantages, epsilon=0.2, gradient=False):
    """Three times (N,): the loss."""
    given = {"log_probs": log_probs, "old_log_probs": old_log_probs, "advantages": advantages}
    tensors = like_one_another(given)
    loss = program.clipped_loss(*tensors.values(), epsilon=epsilon)
    return {"the loss": loss, **gradients(loss, tensors)} if gradient else {"the loss": loss}


def tokens(program, log_probs, old_log_probs, advantages, answer, epsilon=0.2, gradient=False):
    """Twice (B, T), then (B,), then booleans (B, T): the loss."""
    given = {"log_probs": log_probs, "old_log_probs": old_log_probs, "advantages": advantages}
    if log_probs.ndim != 2 or not log_probs.shape == old_log_probs.shape == answer.shape:
        raise ValueError("log_probs, old_log_probs and answer are (B, T).")
    if advantages.shape != log_probs.shape[:1] or answer.dtype != torch.bool:
        raise ValueError("advantages is (B,), and answer is a tensor of booleans.")
    if not all(tensor.is_floating_point() for tensor in given.values()):
        raise ValueError(f"{', '.join(given)} are numbers with a point.")
    tensors = {name: tensor.clone().requires_grad_() for name, tensor in given.items()}
    loss = program.token_clipped_loss(*tensors.values(), answer, epsilon=epsilon)
    return {"the loss": loss, **gradients(loss, tensors)} if gradient else {"the loss": loss}


def kl(program, log_probs, reference_log_probs, gradient=False):
    """Twice (N,): the penalty."""
    tensors = like_one_another({"log_probs": log_probs, "reference_log_probs": reference_log_probs})
    penalty = program.kl_penalty(*tensors.values())
    found = {"the penalty": penalty}
    return {**found, **gradients(penalty, tensors)} if gradient else found


def like_one_another(given):
    """Copies that ask for a gradient, once it is clear that all are lists of numbers of the same length."""
    first = next(iter(given.values()))
    for tensor in given.values():
        if tensor.ndim != 1 or tensor.shape != first.shape or not tensor.is_floating_point():
            raise ValueError(f"{', '.join(given)} are lists of numbers, all of the same length.")
    return {name: tensor.clone().requires_grad_() for name, tensor in given.items()}


def gradients(loss, tensors):
    """The gradient of each tensor, zeros where none arrives."""
    if loss.requires_grad:
        loss.backward()
    return {
        f"the gradient of {name}": torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
        for name, tensor in tensors.items()
    }


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

half, quarter = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.25, 0.75]).log()
two_tokens = torch.tensor(
    [[[1.0, 1.0, 2.0], [3.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 1.0]]]
).log()

INPUTS = {
    "answers": lambda: (
        two_tokens,
        torch.tensor([[0, 2, 1, 0]]),
        torch.tensor([[False, True, True, False]]),
    ),
    "comparisons": lambda: (torch.tensor([2.0]), torch.tensor([1.0])),
    "dpo": lambda: (
        torch.tensor([-10.0]),
        torch.tensor([-11.0]),
        torch.tensor([-12.0]),
        torch.tensor([-9.0]),
    ),
    "advantages": lambda: torch.tensor([[0.0, 0.0, 4.0, 4.0]]),
    "clipping": lambda: (torch.tensor([1.5]).log(), torch.tensor([0.0]), torch.tensor([1.0])),
    "tokens": lambda: (
        torch.tensor([[1.5, 1.0]]).log(),
        torch.zeros(1, 2),
        torch.tensor([1.0]),
        torch.tensor([[True, True]]),
    ),
    "kl": lambda: (half, quarter),
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "answers": lambda: (
        torch.randn(2, 4, 5),
        torch.randint(0, 5, (2, 4)),
        torch.tensor([[False, False, True, True], [False, True, True, False]]),
    ),
    "comparisons": lambda: (torch.randn(3), torch.randn(3)),
    "dpo": lambda: (-torch.rand(3), -torch.rand(3), -torch.rand(3), -torch.rand(3)),
    "advantages": lambda: torch.randn(2, 3),
    "clipping": lambda: (-torch.rand(3), -torch.rand(3), torch.randn(3)),
    "tokens": lambda: (torch.randn(2, 4), torch.randn(2, 4), torch.randn(2), torch.ones(2, 4, dtype=torch.bool)),
    "kl": lambda: (-torch.rand(3), -torch.rand(3)),
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
