"""A worker under a student's control can send anything; on the trusted side, this is at most a StudentError.

The student's text replaces functions of the worker, or writes to its socket. For any message, a test gets a
valid value or a StudentError: no other exception, no hang, no memory of the declared size.
"""

from __future__ import annotations

import pickle
import random
import resource
import sys

import pytest
import torch
from torch import nn

from autograder.bridge.outside.mirror import MAX_ENTRIES, RemoteModule
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.remote_call import mirror_input_mutation
from autograder.bridge.outside.worker_connection import MAX_CALLBACKS_INSIDE, WorkerConnection
from autograder.bridge.shared.errors import (
    StudentCrashedError,
    StudentError,
    StudentRaisedError,
    StudentTimeoutError,
    told_exception,
)
from autograder.bridge.shared.graphs import MAX_GRAPHS
from autograder.course.config import Limits
from autograder.walls.outside.alarm import TestAlarm, alarm
from tests.autograder.sampling import sampled, thinned

PRELUDE = '''
import os, struct, sys, threading, time
import torch
from torch import nn
worker = sys.modules["autograder.bridge.inside.worker"]
wire = sys.modules["autograder.bridge.shared.wire"]
honestly = worker.answer
ODD = {"type": "X", "bases": [], "text": "", "frames": []}

class Net(nn.Module):
    def __init__(self, d=3):
        super().__init__()
        self.linear = nn.Linear(d, d)
        self.scale = nn.Parameter(torch.ones(d))
        self.register_buffer("table", torch.zeros(d))
    def forward(self, x):
        return self.linear(x) * self.scale + self.table

def product(x, y): return x * y
def draw(generator): return torch.randn(1, generator=generator)
def use(model): return model(1)
def thing(): return product

def forge(when, change):
    """From now on every answer to the operation `when` is changed."""
    def answer(server, operation, arguments):
        reply = honestly(server, operation, arguments)
        if operation == when:
            reply = change(reply, arguments)
        return reply
    worker.answer = answer

def change_call(**changes):
    def change(reply, arguments):
        if "modules" in arguments and reply.get("ok", {}).get("differentiable") and any(reply["ok"]["differentiable"]):
            reply["ok"].update(changes)
        return reply
    forge("call", change)

def describe_as(**changes):
    honest_description = worker.Server.describe
    worker.Server.describe = lambda server, value: {**honest_description(server, value), **changes}

def frame(value):
    return wire.dumps(value)

def write(data):
    data = memoryview(data)
    while data:
        data = data[os.write(3, data):]
'''


class Hostile:
    """Loads texts, each in a worker with its own limits, and returns their modules."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.connections = []

    def __call__(self, text, **limits):
        allowed = Limits(**{"call_seconds": 3, **limits})
        connection = WorkerConnection(self.sandbox.spawn(allowed), allowed.call_seconds)
        self.connections.append(connection)
        loaded = connection.request("load", text=PRELUDE + text, filename="net.py")
        assert loaded["errors"] == [], told_exception(loaded["errors"][0])
        connection.start_test(3)
        return RemoteStudent(connection)

    @property
    def connection(self):
        """The connection to the last worker."""
        return self.connections[-1]


@pytest.fixture
def hostile(sandbox):
    hostile = Hostile(sandbox)
    yield hostile
    for connection in hostile.connections:
        connection.close()


def use_net(student):
    net, x = student.Net(3), torch.ones(2, 3, requires_grad=True)
    net(x).sum().backward()
    return net, x


# ---------------------------------------------------------------------- replies
# One lie for each line of the engine that notices one, and what one validator takes in several ways.

CALLS = [
    "mutated=[[99, torch.ones(2, 3)]]",
    "mutated=[[0, 'x']]",
    "mutated=5",
    "mutated=[[0, torch.ones(2, 3, device='meta')]]",
    "mutated=[[0, torch.ones(5, dtype=torch.int64)]]",
    "refilled=[[9, []]]",
    "refilled=[[0, []]]",
    "refilled=5",
    "modules=[[99, {'values': {}, 'flags': {}, 'modes': {}}]]",
    "modules=[[0, {}]]",
    "modules=7",
    "modules=[[0, {'values': {'nope': torch.ones(3)}, 'flags': {}, 'modes': {}}]]",
    "modules=[[0, {'values': {'scale': 3}, 'flags': {}, 'modes': {}}]]",
    "modules=[[0, {'values': {'scale': torch.ones(3, dtype=torch.int64)}, 'flags': {}, 'modes': {}}]]",
    "modules=[[0, {'values': {}, 'flags': {'nope': True}, 'modes': {}}]]",
    "modules=[[0, {'values': {}, 'flags': {}, 'modes': {'nope': True}}]]",
    "modules=[[0, {'description': {}}]]",
    "modules=[[0, {'description': {'modules': [], 'parameters': [['a.b', torch.ones(1), True]], 'buffers': []}}]]",
    "differentiable=[]",
    "differentiable=[torch.ones(2)]",
    "call=float('nan')",
    "result=wire.Handle(0, None)",
    "result=[torch.ones(1)] * 2",
]


@pytest.mark.parametrize("changes", thinned(CALLS, 6))
def test_forged_results_are_values_or_student_errors(hostile, changes):
    student = hostile(f"change_call({changes})")
    with mirror_input_mutation(), pytest.raises(StudentCrashedError):
        use_net(student)


GENERATORS = [
    "[3]", "[None]", "3", "None", "[torch.zeros(9)]", "[torch.Generator().get_state()]",
    "[wire.Handle(0, None)]",
]  # fmt: skip


@pytest.mark.parametrize("generators", GENERATORS)
def test_forged_generators_are_student_errors(hostile, generators):
    text = f"forge('call', lambda reply, arguments: {{'ok': {{**reply['ok'], 'generators': {generators}}}}})"
    with pytest.raises(StudentCrashedError):
        hostile(text).draw(torch.Generator())


GRADIENTS = [
    "[]", "None", "3", "'abc'", "{}", "torch.ones(4)", "wire.Handle(0, None)", "[None]", "[None] * 9",
    "[3] * 4", "['x'] * 4", "{0: 1, 1: 1, 2: 1, 3: 1}", "tuple(reply['ok'])", "[torch.ones(7)] * 4",
    "[g.double() for g in reply['ok']]", "[g.long() for g in reply['ok']]",
    "[g.to('meta') for g in reply['ok']]", "[g[None] for g in reply['ok']]",
    "[g.numpy() for g in reply['ok']]", "[g + 1j for g in reply['ok']]", "[torch.tensor(1.0)] * 4",
    "reply['ok'][::-1]",
]  # fmt: skip


@pytest.mark.parametrize("gradients", thinned(GRADIENTS, 5))
def test_forged_gradients_are_student_errors(hostile, gradients):
    student = hostile(f"forge('backward', lambda reply, arguments: {{'ok': {gradients}}})")
    with pytest.raises(StudentCrashedError):
        use_net(student)


def test_backward_pass_that_raises_or_ends_the_worker_is_a_student_error(hostile):
    for text, kind in (
        ("def stop(r, a): raise SystemExit\nforge('backward', stop)", StudentCrashedError),
        ("forge('backward', lambda r, a: os._exit(3))", StudentCrashedError),
        ("forge('backward', lambda r, a: time.sleep(60))", StudentTimeoutError),
        ("forge('backward', lambda r, a: {'error': {**ODD, 'bases': ['ValueError']}})", ValueError),
    ):
        with pytest.raises(kind) as caught:
            use_net(hostile(text, call_seconds=1))
        assert isinstance(caught.value, StudentError)


ANSWERS = [
    "{}",
    "{'ok': 1, 'error': 2}",
    "{'id': 99, 'ok': 1}",
    "{'ok': None}",
    "{'ok': {}}",
    "{'ok': {'kind': 'value'}}",
    "{'ok': wire.Handle(0, {'kind': 'module'})}",
    "{'ok': {'kind': 'value', 'value': wire.Handle(3, None)}}",
    "{'error': None}",
    "{'error': {**ODD, 'bases': 5}}",
    "{'error': {**ODD, 'frames': [1]}}",
    "{'error': {**ODD, 'frames': [['f', float('inf'), 'a', 'b']]}}",
]


@pytest.mark.parametrize("operation", ["find", "call", "get", "convert"])
@pytest.mark.parametrize("reply", thinned(ANSWERS, 6))
def test_invalid_replies_are_student_errors(hostile, operation, reply):
    student = hostile(
        f"forge('{operation}', lambda reply, arguments: {reply} if armed else reply)\narmed = []"
    )
    net = student.Net(3)
    hostile.connection.request("set", target=[None, ["armed"]], value=[1])
    actions = {
        "find": lambda: student.Net,
        "call": lambda: net(torch.ones(3)).shape + (1,),
        "get": lambda: net.something.shape,
        "convert": lambda: net.double(),
    }
    with pytest.raises(StudentError):
        if operation == "find":
            student.product  # noqa: B018
        actions[operation]()


def test_forged_errors_are_truncated_and_have_known_types(hostile):
    student = hostile("""
step = ["f" * 999, 1, "w" * 999, "c" * 999]
claim = {"type": "T" * 9999, "bases": ["SystemExit", "Skipped", "KeyError"], "text": "x" * 9999, "frames": [step] * 50}
forge("find", lambda reply, arguments: {"error": claim})
""")
    with pytest.raises(KeyError) as caught:
        student.Net  # noqa: B018
    remote = caught.value.remote
    assert isinstance(caught.value, StudentRaisedError) and not isinstance(caught.value, SystemExit)
    assert (
        len(remote.type) == 80
        and len(remote.text) == 2000
        and len(remote.frames) == 8
        and len(remote.frames[0].code) == 300
    )


# ---------------------------------------------------------------------- descriptions

ROW = "['', 'Net', True, '']"
DESCRIPTIONS = [
    "modules=3",
    "modules=[['', 'Net']]",
    f"modules=[{ROW}, ['a.b', 'X', True, 'a.b']]",
    f"modules=[{ROW}, ['__class__', 'X', True, '__class__']]",
    f"modules=[{ROW}, ['a\\n', 'X', True, 'a\\n']]",
    f"modules=[{ROW}, ['a', 'X', True, '']]",
    f"modules=[{ROW}, *[[n, '', True, of] for n, of in (('a', 'a'), ('b', 'b'), ('a.b', 'b'), ('b.a', 'a'))]]",
    f"modules=[{ROW}, ['a.', 'X', True, 'a.']]",
    f"modules=[{ROW}, ['a' * 501, 'X', True, 'a' * 501]]",
    f"modules=[{ROW}, ['a', 'X', torch.ones(2), 'a']]",
    f"modules=[{ROW}, *[[f'm{{i}}', 'X', True, f'm{{i}}'] for i in range({MAX_ENTRIES})]]",
    "parameters=[3]",
    "parameters=[['w', 'v', True]]",
    "parameters=[['__class__', torch.ones(1), True]]",
    "parameters=[[3, torch.ones(1), True]]",
    "parameters=[['w', torch.ones(1, dtype=torch.int64), True]]",
    "parameters=[['', torch.ones(1), True]]",
    "parameters=[[f'w{i}', torch.ones(1), True] for i in range(100_000)]",
    "buffers=3",
    "buffers=[['b', 'nobody', True]]",
    "buffers=[['x.b', torch.ones(1), True]]",
    "kind=3",
]


@pytest.mark.parametrize("changes", thinned(DESCRIPTIONS, 6))
def test_forged_descriptions_are_student_errors(hostile, changes):
    student = hostile(f"describe_as({changes})")
    with pytest.raises(StudentError):
        net = student.Net(3)
        assert isinstance(net, RemoteModule)
        net.linear.weight.sum().backward()


def test_number_of_shared_submodules_is_limited(hostile):
    rows = ["['', 'Net', True, '']"]
    for i in range(40):
        name = ".".join(["a"] * (i + 1))
        rows += [f"['{name}', 'X', True, '{name}']"]
    rows += [
        f"['{'.'.join(['a'] * i + ['b'])}', 'X', True, '{'.'.join(['a'] * (i + 1))}']"
        for i in range(1, 40)
    ]
    student = hostile(f"describe_as(modules=[{', '.join(rows)}], parameters=[], buffers=[])")
    with pytest.raises(StudentCrashedError):
        list(student.Net(3).state_dict())


def test_names_cannot_hide_the_proxys_own_attributes(hostile):
    student = hostile('''
class Poison(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("_path", "_handle", "forward", "load_state_dict", "parameters", "training", "_connection", "kind"):
            self._parameters[name] = nn.Parameter(torch.zeros(1))
            self._modules[name + "x"] = nn.Linear(1, 1)
    def forward(self, x): return x
''')  # fmt: skip
    net = student.Poison()
    assert net.kind == "Poison" and net.training is True and callable(net.load_state_dict)
    assert net(torch.ones(2)).tolist() == [1, 1] and len(list(net.parameters())) == 8 + 16
    net.load_state_dict(net.state_dict())


# ---------------------------------------------------------------------- calls back


class Fake(nn.Module):
    secret_of_the_test = "no"

    def __init__(self):
        super().__init__()
        self.block_size, self._answer, self.calls = 8, 42, 0
        self.layer = nn.Linear(1, 1)

    def forward(self, x):
        self.calls += 1
        return torch.ones(1)


def callback(number, path, args="()", **more):
    frame = {"callback": number, "path": path, "args": args, "kwargs": "{}", "grad": "True", **more}
    return "{" + ", ".join(f"'{key}': {value}" for key, value in frame.items()) + "}"


ASK = """
def use(model):
    write(frame({frame}))
    number, operation, arguments = wire.receive({sock}, max_text=wire.MAX_DATA)
    return [operation, sorted(arguments), arguments.get("type"), arguments.get("value")]
"""
SOCK = "__import__('socket').socket(fileno=os.dup(3))"
REFUSED = [
    (99, "[]"),
    (-1, "[]"),
    ("'0'", "3"),
    ("float('nan')", "[]"),
    ("float('inf')", "[]"),
    ("None", "[]"),
    ("torch.ones(2)", "[]"),
    (0, "3"),
    (0, "None"),
    (0, "[3]"),
    (0, "['forward', 'x']"),
    (0, "[['a']]"),
]


@pytest.mark.parametrize("number, path", thinned(REFUSED, 6))
def test_forbidden_callbacks_are_refused(hostile, number, path):
    student = hostile(ASK.format(frame=callback(number, path), sock=SOCK))
    fake = Fake()
    found = student.use(fake)
    assert found[0] == "return" and found[1] == ["error", "type"] and fake.calls == 0


@pytest.mark.parametrize(
    "name",
    [
        "_answer", "__class__", "__dict__", "load_state_dict", "apply", "_parameters", "__module__",
        "T_destination",
    ],
)  # fmt: skip
def test_private_attributes_of_the_tests_model_are_not_sent(hostile, name):
    student = hostile(ASK.format(frame=callback(0, "['__getattr__']", f"('{name}',)"), sock=SOCK))
    assert student.use(Fake())[1:3] == [["error", "type"], "AttributeError"]


@pytest.mark.parametrize(
    "more",
    [
        {"args": "3"},
        {"args": "None"},
        {"kwargs": "3"},
        {"kwargs": "{1: 2}"},
        {"grad": "torch.ones(2)"},
        {"args": "(wire.Handle(5, None),)"},
        {"args": "(wire.CallableHandle(77, None),)"},
        {"args": "([],) * 30"},
        {"args": "(wire.Handle(5, {'kind': 'module'}),)"},
    ],
)
def test_forged_callback_arguments_are_student_errors(hostile, more):
    student = hostile(ASK.format(frame=callback(0, "[]", **more), sock=SOCK))
    assert student.use(Fake())[:2] == ["return", ["error", "type"]]


@pytest.mark.parametrize(
    "pulled",
    [
        "{'pull_back': 99, 'gradients': [torch.ones(2)]}",
        "{'pull_back': -1, 'gradients': []}",
        "{'pull_back': 'x', 'gradients': [None]}",
        "{'pull_back': [], 'gradients': [None]}",
        "{'pull_back': torch.ones(2), 'gradients': [None]}",
        "{'pull_back': 1}",
        "{'pull_back': 1, 'gradients': 3}",
        "{'pull_back': 1, 'gradients': [3]}",
        "{'pull_back': 1, 'gradients': [torch.ones(5)]}",
        "{'pull_back': 1, 'gradients': [wire.Handle(5, {'kind': 'module'})]}",
    ],
)
def test_forged_callback_gradients_are_student_errors(hostile, pulled):
    ask = ASK.format(frame=pulled, sock=SOCK).replace(
        "model):", "model):\n    model(torch.ones(2))", 1
    )
    assert hostile(ask).use(lambda x: x * 2)[:2] == ["return", ["error", "type"]]


def test_stored_graphs_of_callbacks_are_limited(hostile):
    student = hostile("def use(model):\n for _ in range(900): model(torch.ones(2))")
    student.use(lambda x: x * 2)
    assert 0 < len(hostile.connection.graphs) <= MAX_GRAPHS
    hostile.connection.start_test(5)
    assert not len(hostile.connection.graphs)


@pytest.mark.parametrize(
    "marked",
    ["3", "[[0, 1]]", "[[7, True, None]]", "[[0, True, torch.ones(9)]]", "[['x', True, None]]"],
)
def test_forged_marks_on_inputs_are_student_errors(hostile, marked):
    student = hostile(f"change_call(marked={marked})")
    with pytest.raises(StudentCrashedError), mirror_input_mutation():
        student.product(torch.ones(2, requires_grad=True), torch.ones(2))


def test_endless_callbacks_time_out(hostile):
    student = hostile("def use(model):\n while True: model(1)", call_seconds=1)
    with pytest.raises(StudentTimeoutError):
        student.use(Fake())
    assert hostile.connection.dead


def test_depth_of_nested_callbacks_is_limited(hostile):
    student = hostile("def use(function): return function(function)")
    with pytest.raises(StudentCrashedError, match="nested too deeply"):
        student.use(student.use)
    assert MAX_CALLBACKS_INSIDE < 50


def test_callbacks_with_new_objects_do_not_fill_memory(hostile):
    student = hostile("def use(model):\n for _ in range(300): model.me")
    fake = Fake()
    type(fake).me = property(lambda self: self)
    try:
        student.use(fake)
    finally:
        del type(fake).me
    assert hostile.connection.register(print).number == 1, "only the model has a number"


def test_failed_check_inside_a_callback_cannot_be_hidden_by_the_worker(hostile):
    student = hostile(
        "def use(model):\n try: model(1)\n except BaseException: pass\n return 'all fine'"
    )

    def refuse(x):
        raise AssertionError("not like this")

    with pytest.raises(AssertionError, match="not like this"):
        student.use(refuse)


# ---------------------------------------------------------------------- the socket itself


FRAMES = [
    'b"\\xff" * 8', 'frame({"id": 99, "ok": 1})', "frame([1, 2, 3])", 'frame({"callback": 0})',
    'frame({"id": 3, "ok": 1, "error": 2})',
]  # fmt: skip


@pytest.mark.parametrize("data", FRAMES)
@pytest.mark.parametrize(
    "then", sampled(["os._exit(0)", "time.sleep(60)", "None"], "os._exit(0)".__eq__)
)
def test_bytes_written_to_the_socket_are_student_errors(hostile, data, then):
    student = hostile(f"def use(model):\n write({data})\n {then}", call_seconds=1)
    with pytest.raises(StudentError):
        student.use(1)
        student.product(torch.ones(2), 1)
    assert hostile.connection.dead


def test_flooded_socket_is_a_student_error(hostile):
    student = hostile('''
def flood():
    while True: write(frame({"id": 5, "ok": list(range(1000))}))
def use(model):
    threading.Thread(target=flood, daemon=True).start()
    return 1
''', call_seconds=2)  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(StudentError):
        for _ in range(50):
            student.use(1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_early_reply_is_not_used_for_a_later_request(hostile):
    student = hostile('''
def use(model):
    write(b"".join(frame({"id": n, "ok": {"kind": "value", "value": 7}}) for n in range(100)))
    return 1
''')  # fmt: skip
    with pytest.raises(StudentError):
        student.use(1)


def test_large_replies_do_not_accumulate(hostile):
    student = hostile("def use(model): return torch.zeros(15_000_000)", memory_mb=1024)
    with pytest.raises(StudentCrashedError, match="too much of it in one test"):
        for _ in range(20):
            student.use(1)


def test_dead_worker_reports_its_reason_for_every_call(hostile):
    student = hostile("def use(code): os._exit(code)")
    for _ in range(3):
        with pytest.raises(StudentCrashedError, match="exit code 3"):
            student.use(3)
    depth, step = 0, None
    try:
        student.use(3)
    except StudentCrashedError as error:
        step = error.__traceback__
    while step is not None:
        depth, step = depth + 1, step.tb_next
    assert depth < 12


# ---------------------------------------------------------------------- objects


@pytest.mark.parametrize(
    "length", ["-1", "'x'", "10**30", "1.5", "None", "torch.tensor(3)", "True"]
)
def test_invalid_lengths_are_student_errors(hostile, length):
    student = hostile(
        f"class Bag:\n def length(self): return {length}\nBag.__len__ = lambda self: self.length()"
    )
    bag = student.Bag()
    with pytest.raises(StudentError):
        len(bag)


def test_endless_sequence_is_a_student_error(hostile):
    student = hostile("class Bag:\n def __getitem__(self, n): return n", call_seconds=1)
    bag = student.Bag()
    with pytest.raises((StudentError, TestAlarm)), alarm(1):
        list(bag)


# ---------------------------------------------------------------------- what is on the trusted side


def test_seed_of_the_test_is_not_sent_to_the_worker(hostile):
    """With the seed, a student's code could draw the test's secret random numbers, for example which of the
    models cheats.
    """
    student = hostile("import random\ndef drawn(): return random.random(), torch.rand(()).item()")
    draws = []
    for seed in (3, 3, 4):
        hostile.connection.start_test(seed)
        random.seed(seed)
        torch.manual_seed(seed)
        theirs = student.drawn()
        assert not set(theirs) & {random.random(), torch.rand(()).item()}
        draws.append(theirs)
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps this limit")
def test_returned_number_used_as_a_size_does_not_fill_memory(hostile):
    student = hostile("def tokens(): return torch.tensor([1 << 28])")
    with pytest.raises((RuntimeError, MemoryError)):
        torch.bincount(student.tokens())
    assert torch.zeros(1 << 20).sum() == 0
    hostile.connection.close()
    assert torch.empty(1 << 28, dtype=torch.int64).numel() == 1 << 28


def test_callback_inputs_are_limited_in_size(hostile):
    student = hostile("def use(model): return model(torch.zeros(1 << 26, 4, device='meta'))")
    with pytest.raises(StudentError):
        student.use(lambda ids: torch.zeros(*ids.shape, 7))


def test_large_replies_are_not_recorded(hostile):
    student = hostile(
        "import numpy\ndef array(): return numpy.zeros(1 << 24, 'u1')\ndef raw(): return bytes(1 << 24)\n"
        "def texts(): return ['x' * 60_000] * 200"
    )
    for answer in (student.array(), student.raw(), student.texts()):
        assert len(answer) >= 200
    kept = [answer.value["result"] for answer in hostile.connection.transcript.answers]
    assert sum(len(pickle.dumps(value)) for value in kept) < 100_000
    assert kept[0][0] == (1 << 24,) and kept[1][:2] == ("bytes", 1 << 24)
