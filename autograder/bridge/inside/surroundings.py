"""What a text finds around it where nobody sits before a screen: no window, no widget, no keyboard, no debugger.

Each stand-in is called as the real thing is called, and does nothing.
"""

import importlib
import io
import site
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from autograder.bridge.inside.shell import Shell, clear_output, display

_BACKEND = "matplotlib.backends.backend_"
_WINDOWED = frozenset(
    _BACKEND + name
    for name in (
        *("gtk3agg", "gtk3cairo", "gtk4agg", "gtk4cairo", "macosx", "nbagg", "qt4agg", "qt5agg"),
        *("qt5cairo", "qtagg", "qtcairo", "tkagg", "tkcairo", "webagg", "wx", "wxagg", "wxcairo"),
    )
)
LONGEST_WAIT = 0.05  # seconds, in an event loop that no other thread can wake


@contextmanager
def nobody_there(filename: str, shell: Shell | None = None) -> Iterator[None]:
    """In this block, stand for what a desktop and a notebook offer; `shell` stands for IPython's.

    Without a shell, IPython stays as it is.
    """
    stand_ins: list[tuple[Any, str, Any]] = [
        (sys, "argv", [filename]),
        (sys, "stdin", io.TextIOWrapper(io.BytesIO(), "utf-8")),
        (sys, "breakpointhook", _no_breakpoint),
        (importlib.import_module("pdb"), "set_trace", _no_breakpoint),
        (importlib.import_module("getpass"), "getpass", _no_password),
        *(_of_ipython(shell) if shell is not None else ()),
    ]
    before = [(target, name, getattr(target, name)) for target, name, _ in stand_ins]
    windows = Finder(lambda name: _fill_backend if name in _WINDOWED else None)
    extras = Finder(_EXTRAS.get)
    sys.meta_path.insert(0, windows)
    sys.meta_path.append(extras)
    for target, name, stand_in in stand_ins:
        setattr(target, name, stand_in)
    try:
        yield
    finally:
        for target, name, real in before:
            setattr(target, name, real)
        windows.forget()
        extras.forget()


class Output(io.TextIOWrapper):
    """What is printed meanwhile, in a stream that has all that a terminal's has: a buffer, an encoding to change."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", "backslashreplace", newline="", write_through=True)
        self._kept = self.buffer

    def getvalue(self) -> str:
        kept: Any = self._kept
        return "" if kept.closed else str(kept.getvalue().decode("utf-8", "ignore"))


def _no_breakpoint(*args: Any, **kwargs: Any) -> None:
    """Go on: there is nobody who debugs."""


def _no_password(prompt: str = "Password: ", stream: Any = None, **how: Any) -> str:
    return input(prompt)


def _of_ipython(shell: Shell) -> Iterator[tuple[Any, str, Any]]:
    stand_ins: dict[str, Callable[..., Any]] = {
        "get_ipython": lambda: shell,
        "display": display,
        "clear_output": clear_output,
        "embed": _no_breakpoint,
        "set_trace": _no_breakpoint,
    }
    for module in ("", ".core.getipython", ".core.display_functions", ".display", ".core.debugger"):
        target = importlib.import_module(f"IPython{module}")
        for name, stand_in in stand_ins.items():
            if callable(getattr(target, name, None)):
                yield target, name, stand_in


class Finder(MetaPathFinder, Loader):
    """Finds the modules for which `filling` has a function that fills them."""

    def __init__(self, filling: Callable[[str], Callable[[Any], None] | None]) -> None:
        self._filling = filling
        self._has_filled = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if self._filling(fullname) is None:
            return None
        return ModuleSpec(fullname, self, is_package=fullname in _EXTRAS)

    def exec_module(self, module: types.ModuleType) -> None:
        fill = self._filling(module.__name__)
        assert fill is not None
        self._has_filled = True
        fill(module)

    def forget(self) -> None:
        """Find no module any more, and let later imports find these elsewhere."""
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        if not self._has_filled:
            return
        mine = [n for n, m in sys.modules.items() if getattr(m, "__loader__", None) is self]
        for name in mine:
            del sys.modules[name]


def _fill_backend(module: Any) -> None:
    """Fill a backend of matplotlib that draws as Agg does, and whose windows do nothing."""
    from matplotlib.backend_bases import FigureManagerBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    class WindowManager(FigureManagerBase):
        window = frame = Anything()

        @classmethod
        def pyplot_show(cls, *, block: bool | None = None) -> None:
            """Show nothing."""

    class WindowCanvas(FigureCanvasAgg):
        manager_class = WindowManager

        def start_event_loop(self, timeout: float = 0) -> None:
            """Wait for nobody."""

    module.FigureCanvas = WindowCanvas
    module.FigureManager = WindowManager


class Anything:
    """An object of a library for screens: it takes every argument, and keeps the attributes that it is given."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function that this decorates, as `@interact(x=3)` does, or nothing."""
        decorated = [given for given in args if isinstance(given, types.FunctionType)]
        return decorated[0] if decorated else Anything()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None: ...


def _fill_widgets(module: Any) -> None:
    module.__getattr__ = _widget


def _widget(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name[:1].islower():
        return Anything()
    return type(name, (Anything,), {})


class Bar(Anything):
    """A bar of tqdm that is not drawn."""

    n: float = 0

    def __init__(self, iterable: Any = None, *args: Any, total: Any = None, **kwargs: Any) -> None:
        super().__init__(iterable=iterable, total=total, **kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def __len__(self) -> int:
        return len(self.iterable) if self.total is None else int(self.total)

    def update(self, n: float = 1) -> None:
        self.n += n

    @classmethod
    def write(cls, s: str, file: Any = None, end: str = "\n", nolock: bool = False) -> None:
        print(s, file=file, end=end)


def _fill_bars(module: Any) -> None:
    module.tqdm = module.tqdm_notebook = Bar
    module.trange = module.tnrange = lambda *args, **kwargs: Bar(range(*args), **kwargs)


_EXTRAS: dict[str, Callable[[Any], None]] = {
    "ipywidgets": _fill_widgets,
    "tqdm": _fill_bars,
    "tqdm.auto": _fill_bars,
    "tqdm.autonotebook": _fill_bars,
    "tqdm.notebook": _fill_bars,
}


def add_names_of_site() -> None:
    """Add `exit`, `quit` and `help`, which a worker's interpreter starts without."""
    site.setquit()
    site.sethelper()


def let_loops_do_without_sockets() -> None:
    """Let event loops work in this process, which may open no socket; other threads wake them after a moment."""

    def look_often(self: Any) -> None:
        select = self._selector.select
        self._selector.select = lambda timeout=None: select(
            LONGEST_WAIT if timeout is None else min(timeout, LONGEST_WAIT)
        )

    loops: Any = importlib.import_module("asyncio.selector_events").BaseSelectorEventLoop
    loops._make_self_pipe = look_often
    loops._close_self_pipe = lambda self: None
    loops._write_to_self = lambda self: None
