"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

from torch import Tensor


def layer_norm_backward(u: Tensor, x: Tensor, gamma: Tensor, eps: float = 1e-5) -> tuple[Tensor, Tensor, Tensor]:
    centred = x - x.mean(dim=-1, keepdim=True)                                  # (..., C)
    sigma = (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()          # (..., 1)
    normed = centred / sigma                                                    # (..., C)
    g = u * gamma                                                               # (..., C)
    along = (g * normed).mean(dim=-1, keepdim=True)                             # (..., 1)
    grad_x = (g - g.mean(dim=-1, keepdim=True) - normed * along) / sigma        # (..., C)
    C = len(gamma)
    return grad_x, (u * normed).reshape(-1, C).sum(dim=0), u.reshape(-1, C).sum(dim=0)
