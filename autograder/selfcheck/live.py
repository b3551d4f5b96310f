"""What moves in a notebook: the bar and the loss curve of a training loop, and the sliders of a picture.

The bar needs tqdm, the sliders need ipywidgets. Without them, there is a bar of characters and a
static picture.
"""

import io
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.checks import pictured
from autograder.selfcheck.drawing import on_any_page
from autograder.text.consoles import encodable

DRAWINGS = 25  # how often a curve is drawn in one training


def in_notebook() -> bool:
    """Whether this code runs in the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def as_image(figure: Any, words: str) -> Any:
    """Return a figure as an image with an alternative text."""
    from IPython.display import Image

    file = io.BytesIO()
    on_any_page(figure)
    figure.savefig(file, format="png", dpi=110, bbox_inches="tight")
    return Image(data=file.getvalue(), alt=words)


def watch_training(
    steps: int, title: str = "training", measure: str = "loss", step: str = "step"
) -> Callable[[int, float], None]:
    """Return `watch(done, value)`, to be called with the number of steps done and the latest loss, or other measure.

    It moves a bar and, in a notebook, draws the curve of the values so far. Example: watch =
    watch_training(1000), then watch(50, 3.2), watch(100, 2.9) and so on up to watch(1000, 1.4).
    """
    seen: dict[int, float] = {}
    move: Callable[[int, str], None] | None = None
    handle: Any = None
    drawn = 0

    def watch(done: int, value: float) -> None:
        nonlocal move, handle, drawn
        seen[done] = value
        move = move or _bar(steps, title)
        move(done, f"{measure} {value:.3f}")
        due = len(seen) > 1 and (done >= steps or done - drawn >= steps / DRAWINGS)
        if due and in_notebook():
            from IPython.display import display

            image = as_image(
                _curve(seen, steps, title, measure, step),
                f"{title}: the {measure} {pictured.curve(list(seen.values()))}",
            )
            drawn = done
            handle = handle.update(image) or handle if handle else display(image, display_id=True)

    return watch


def _bar(steps: int, title: str) -> Callable[[int, str], None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets, tqdm warns and uses characters
            from tqdm.auto import tqdm

            bar = tqdm(total=steps, desc=title, file=sys.stdout)
    except ImportError:
        return lambda done, note: _print_bar(done, steps, title, note)

    def move(done: int, note: str) -> None:
        bar.set_postfix_str(note, refresh=False)
        bar.update(done - bar.n)
        if done >= steps:
            bar.close()

    return move


def _print_bar(done: int, steps: int, title: str, note: str) -> None:
    bar = "█" * (30 * done // steps)
    line = encodable(f"{title} {bar:·<30} {done} of {steps}, {note}", sys.stdout)
    print(f"\r{line}", end="\n" if done >= steps else "", flush=True)


def _curve(seen: Mapping[int, float], steps: int, title: str, measure: str, step: str) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(list(seen), list(seen.values()), color="#0072B2", lw=1.5)
    axes.set(xlim=(0, steps), xlabel=step, ylabel=measure, title=title)
    return figure


def add_sliders(
    choices: Mapping[str, Sequence[Any]], values: Mapping[str, Any], show: Callable[..., None]
) -> None:
    """Display a slider for each of the choices; `show` is called with all values when one of them moves."""
    try:
        from ipywidgets import SelectionSlider
    except ImportError:
        return
    from IPython.display import display

    whole_name = {"description_width": "initial"}
    sliders = {
        name: SelectionSlider(
            options=list(options),
            value=values[name],
            description=name,
            continuous_update=False,
            style=whole_name,
        )
        for name, options in choices.items()
    }
    for slider in sliders.values():
        slider.observe(
            lambda _: show(**{name: control.value for name, control in sliders.items()}), "value"
        )
        display(slider)
