"""One submission in a worker: its text, read once or anew, and the requests that come over a socket."""

import gc
import linecache
import socket
import sys
import types
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch

from autograder.bridge.inside import loading, shell
from autograder.bridge.inside.entries import Entries
from autograder.bridge.inside.server import Server, answer, reply_frame
from autograder.bridge.inside.stand_ins import Names, stand_in
from autograder.bridge.inside.surroundings import (
    add_names_of_site,
    let_loops_do_without_sockets,
    nobody_there,
)
from autograder.bridge.shared import wire
from autograder.bridge.shared.random_states import seed_all, way_back
from autograder.source import text as source
from autograder.source.names_used import names_used, words_in
from autograder.source.side_effects import reaches_outside
from autograder.walls.inside.imports import miss_programs


class Worker(Server):
    """A server for a submission, whose text can be read once more, with answers of the other side in it."""

    # asked before the text is run
    names_used = staticmethod(names_used)
    outline = staticmethod(source.outline)
    reaches_outside = staticmethod(reaches_outside)

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module)
        self._begin_anew = way_back()  # to the random numbers of a new worker
        self._installed = ExitStack()
        self._is_loaded = False

    def load(
        self,
        text: str,
        filename: str,
        limit: float | None = None,
        skipped: Sequence[Sequence[Any]] = (),
        forbidden: Sequence[str] = (),
        stand_ins: dict[str, bool] | None = None,
    ) -> dict[str, Any]:
        """Run the text as any server does, once more in a new module, which takes the place of the first one.

        `forbidden` lists names whose use is recorded. `stand_ins` are names that the other side
        answers, and whether they are classes of modules.
        """
        if self._is_loaded:
            self._forget_module()
        self._is_loaded = True
        self._begin_anew()
        self.entries = Entries(forbidden)
        self._installed = self.entries.install()
        space = self.module.__dict__
        fixed = {name: stand_in(self, name, kind) for name, kind in (stand_ins or {}).items()}
        names = Names(space, fixed) if fixed else space
        answer_to_load = self.run_text(text, filename, names, limit, skipped)
        self.entries.expect(words_in(text, filename))
        return answer_to_load

    def _forget_module(self) -> None:
        self._installed.close()
        self.module = types.ModuleType(self.module.__name__)
        for book in (self.objects, self.numbers, self.graphs):
            book.clear()
        gc.collect()  # its functions and classes are in cycles, and may hold much


def serve(sock: socket.socket) -> None:
    """Answer requests until the other side closes the connection."""
    sys.addaudithook(miss_programs)
    torch.compile = loading.uncompiled
    torch.jit._state.disable()  # scripts run as Python, and no source code has to be found for them
    let_loops_do_without_sockets()
    add_names_of_site()
    server = Worker(types.ModuleType("submission"))
    server.exchange = partial(exchange, server, sock)
    with nobody_there("submission.py", shell.Shell(vars(server.module))):
        while True:
            try:
                number, operation, arguments = wire.receive(sock, max_text=wire.MAX_DATA)
            except EOFError:
                return
            answer_one(server, sock, number, operation, arguments)


def exchange(server: Worker, sock: socket.socket, question: dict[str, Any]) -> dict[str, Any]:
    """Ask the other side, and answer its requests until its reply comes."""
    wire.send(sock, question, register=server.register)
    while True:
        number, operation, arguments = wire.receive(sock, max_text=wire.MAX_DATA)
        if operation == wire.RETURN:
            reply: dict[str, Any] = arguments
            return reply
        answer_one(server, sock, number, operation, arguments)


def rehearse() -> None:
    """Run every common code path once, so that forks of this process share its pages and imports."""
    seed_all(0)  # all workers begin with the same random numbers
    server = Worker(types.ModuleType("rehearsal"))
    server.seed(0)
    text = Path(__file__).with_name("rehearsal.py.txt").read_text("utf-8")
    server.names_used(text, "rehearsal.py")
    server.reaches_outside(text, "rehearsal.py")
    server.load(text, "rehearsal.py")
    call = {"kwargs": {}, "sync": [], "grad": True, "modules": []}
    reply = answer(
        server, "call", {"target": [None, ["Model"]], "args": (4,), "wanted": [], **call}
    )
    wire.parse(wire.dumps(reply, server.register))
    x = torch.randn(2, 3, 4)
    call |= {"target": [wire.Handle(0), []], "args": (x,), "wanted": [0], "modules": [0]}
    wire.parse(wire.dumps(answer(server, "call", call), server.register))
    server.backward(server.calls, [torch.ones(2, 3, 4)])
    wire.parse(wire.dumps(answer(server, "find", {"name": "nothing"}), server.register))
    answer(
        server,
        "call",
        {**call, "target": [None, ["unfinished"]], "args": (), "wanted": [], "modules": []},
    )
    for name in ("rehearsal", "rehearsal.py"):
        sys.modules.pop(name, None)
        linecache.cache.pop(name, None)
    Entries(["torch.nn.LayerNorm"]).install().close()  # makes its index
    loading.remember_modules()


def answer_one(
    server: Worker, sock: socket.socket, number: int, operation: str, arguments: dict[str, Any]
) -> None:
    reply = answer(server, operation, arguments)
    if not number:
        return  # this request has no reply
    _flush()
    wire.send_frame(sock, reply_frame(server, number, reply))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        # closed by the student, or its file is full
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
