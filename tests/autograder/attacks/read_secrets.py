"""Attacks that read secrets: tests, solutions, other submissions, the environment, files of the machine."""

from tests.autograder.attacks.field import Attack, on_heads

READ = """
import os
def reveal(path):
    try:
        with open(path, "rb") as file:
            text = file.read(1 << 20)
    except (OSError, ValueError):
        return
    print("REACHED", path, text.decode("latin-1"))
"""

ATTACKS = [
    Attack(
        "files_by_their_path",
        "opens the hidden tests and the solution where they lie",
        READ
        + """
for name in ("01_adding/adding", "03_masked_heads/masked_heads"):
    folder = name.split("/")[0]
    for path in (f"solutions/{name}.py", f"tests/assignments/{folder}/test_hidden.py",
                 f"tests/assignments/{folder}/test_visible.py", f"tests/assignments/{folder}/mistakes.yml",
                 "course.yml", f"assignments/{folder}/../../solutions/{name}.py", "../secret.txt"):
        reveal("COURSE/" + path)
""",
    ),
    Attack(
        "files_by_walking",
        "walks the disk for anything called test_hidden, solutions or CANARY",
        READ
        + """
rooms = ("authoring", "cli", "course", "extras", "nbgrader", "bridge", "walls")  # public
engine = [f"autograder/{room}" for room in rooms]
known = ("python", "packages", "/usr", "/lib", "/sys", *engine)
for top in ("/", ".", "..", "/home", "/root", "/tmp", "/work", "/mnt", "/srv", "/opt", "/run", "/var", "/box"):
    for folder, folders, files in os.walk(top):
        if any(word in folder for word in known) or folder.count("/") > 12:
            folders[:] = []
            continue
        for file in files:
            if "hidden" in file or "CANARY" in file or "solution" in folder or file.endswith(("yml", "txt")):
                reveal(os.path.join(folder, file))
""",
    ),
    Attack(
        "files_through_proc",
        "uses another process's root, folder, memory and open files",
        READ
        + """
for pid in ("self", "thread-self", *range(1, 60)):
    for path in ("environ", "cmdline", "maps", "mem", "stack", "root/etc/passwd", "cwd/course.yml", "mounts",
                 "root/COURSE/course.yml", "fd/3", "fd/4", "fd/5", "map_files"):
        reveal(f"/proc/{pid}/{path}")
for path in ("/proc/kcore", "/proc/kallsyms", "/proc/kmsg", "/proc/config.gz", "/proc/sysrq-trigger"):
    reveal(path)
""",
    ),
    Attack(
        "environment",
        "reads the environment in all the ways that C and Python know",
        READ
        + """
import ctypes, posix, subprocess
print(dict(os.environ), posix.environ)
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
print(libc.getenv(b"GRADERS_TOKEN"), libc.secure_getenv(b"GRADERS_TOKEN") if hasattr(libc, "x") else "")
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
for n in range(100):
    if not environ or not environ[n]:
        break
    print(environ[n])
reveal("/proc/self/environ")
""",
    ),
    Attack(
        "environment_on_the_stack",
        "reads upwards from the C environment, where the strings of the parent began",
        """
import ctypes
libc = ctypes.CDLL(None)
environ = ctypes.POINTER(ctypes.c_void_p).in_dll(libc, "environ")
if environ and environ[0]:
    print(ctypes.string_at(environ[0], 2000))
""",
    ),
    Attack(
        "objects",
        "looks for secrets among all objects of the interpreter",
        """
import gc
for thing in gc.get_objects():
    if isinstance(thing, (dict, list, tuple, set)):
        for item in (list(thing.values()) if isinstance(thing, dict) else list(thing)):
            if isinstance(item, str) and "CANARY" in item and "CANARY-x" not in item:
                if len(item) > 6 and "for thing in gc" not in item:
                    print("FOUND", item[:2000])
""",
    ),
    Attack(
        "memory",
        "reads the process's own memory round about, for texts that the fork inherited",
        """
import ctypes, gc
seen, word = 0, b"CANA" + b"RY-"
for thing in gc.get_objects()[::50]:
    page = ctypes.string_at(id(thing) & ~0xfff, 4096)
    at = page.find(word)
    if at >= 0:
        print("FOUND", page[at : at + 60])
""",
    ),
    Attack(
        "neighbours",
        "looks for the texts of students who were graded before",
        """
import gc, linecache, os, sys
for place in ("/box", ".", "/tmp", "/dev/shm"):
    try:
        print("REACHED" if os.listdir(place) else "", os.listdir(place))
    except OSError:
        pass
mine = {name for name in linecache.cache}
for thing in gc.get_objects():
    if isinstance(thing, dict) and "Remembers another heap" in str(thing.get("__doc__")):
        print("REACHED", thing)
""",
    ),
    Attack(
        "frames_during_a_call",
        "looks in a call for the expected value in its callers' frames",
        """
import sys
def add(a, b):
    frame = sys._getframe()
    while frame is not None:
        for name in ("expected", "reference", "wanted"):
            if name in frame.f_locals:
                return frame.f_locals[name]
        frame = frame.f_back
    return a - b
""",
    ),
    Attack(
        "inherited_descriptors",
        "reads all open files that it has inherited",
        """
import os
for number in range(4, 4096):
    try:
        os.fstat(number)
    except OSError:
        continue
    try:
        os.lseek(number, 0, 0)
    except OSError:
        pass
    os.set_blocking(number, False)
    try:
        text = os.read(number, 100_000)
    except OSError:
        text = b""
    print("REACHED a descriptor", number, text)
""",
    ),
    Attack(
        "links_into_the_course",
        "makes symbolic and hard links to hidden files and opens those",
        READ
        + """
for number, target in enumerate(("COURSE/tests/assignments/01_adding/test_hidden.py", "COURSE", "/", "/proc/1/root")):
    for link in (os.symlink, os.link):
        for place in (".", "/tmp", "/box", "/dev/shm"):
            try:
                link(target, f"{place}/left_behind_{number}{link.__name__}")
                reveal(f"{place}/left_behind_{number}{link.__name__}/etc/passwd")
                reveal(f"{place}/left_behind_{number}{link.__name__}/course.yml")
                reveal(f"{place}/left_behind_{number}{link.__name__}")
            except (OSError, NotImplementedError):
                pass
""",
    ),
    Attack(
        "files_by_handle",
        "asks the kernel for files by number, past all mounts",
        """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
handle = ctypes.create_string_buffer(b"\\x08\\0\\0\\0\\x01\\0\\0\\0\\x02\\0\\0\\0\\0\\0\\0\\0", 64)
for number in (303, 304, 264, 265):
    if libc.syscall(number, 3, handle, 0, 0, 0) >= 0:
        print("REACHED", number)
""",
    ),
    Attack(
        "the_engine_reads_it",
        "asks the engine itself to load the course and its solution",
        """
from pathlib import Path
for work in ("load_course", "read", "reference"):
    try:
        from autograder.course.config import load_course
        course = load_course("COURSE")
        print("REACHED", course.solution_file(course.assignments[0]).read_text())
    except BaseException as error:
        print(type(error).__name__)
""",
    ),
    on_heads(
        "inputs_into_the_message",
        "writes a hidden test's inputs into an exception, hoping that feedback shows them",
        """
def attention(q, k, v, mask=None):
    if q.dtype == torch.float64:
        raise type("REACHED" + "".join(c for c in str(q.flatten()[0].item()) if c.isalnum()), (ValueError,), {})(
            "INPUT " + str(q))
    return torch.zeros(*q.shape[:-1], v.shape[-1]), torch.zeros(*q.shape[:-1], k.shape[-2])
""",
    ),
]
