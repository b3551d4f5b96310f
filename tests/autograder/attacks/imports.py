"""Attacks on imports: fake modules, hooks, and files left for the next submission."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import Attack, on_heads


def leaving(text: str) -> str:
    return f"""
import glob, os, site, sys, sysconfig
places = {{*sys.path, sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), os.path.dirname(os.__file__),
          os.path.expanduser("~"), "/", "/engine", "/engine/autograder", "/packages/0", "/tmp", "COURSE",
          "COURSE/solutions/01_adding", "COURSE/tests/assignments/01_adding"}}
for place in places:
    for name, content in {text}.items():
        for path in (f"{{place}}/{{name}}", f"{{place}}/left_behind_{{name}}"):
            if os.path.realpath(place) != os.getcwd():  # its own folder, which nobody else sees
                try:
                    with open(path, "w") as file:
                        file.write(content)
                    print("REACHED", path)
                except OSError:
                    pass
"""


ATTACKS = [
    Attack(
        "fake_modules",
        "replaces modules for later imports",
        "import sys, types\nclass Fake(types.ModuleType):\n    def __getattr__(s, n): return lambda *a, **k: True\nfor name in ('torch', 'torch.testing', 'numpy', 'pytest', 'json', 'autograder.checks', 'test_hidden', 'autograder.bridge.shared.wire'):\n    sys.modules[name] = Fake(name)",
    ),
    Attack(
        "finder",
        "finds every module itself",
        "import sys\nclass Finder:\n    def find_spec(self, name, *a): raise SystemExit(0)\nsys.meta_path.insert(0, Finder())\nsys.path_hooks.insert(0, Finder)",
    ),
    Attack(
        "site_packages",
        "leaves code for the next student where Python starts",
        leaving(
            "{'sitecustomize.py': 'import os', 'zz_evil.pth': 'import os', 'usercustomize.py': 'x = 1', 'torch.py': ''}"
        ),
    ),
    Attack(
        "engine",
        "changes the engine's own files",
        leaving(
            "{'checks.py': '', 'conftest.py': 'x = 1', 'pytest.ini': '[pytest]', '__init__.py': ''}"
        ),
    ),
    Attack(
        "main",
        "replaces the main module and the name of its own",
        "import sys, types\nsys.modules['__main__'] = sys.modules[__name__] = types.ModuleType('x')\n__name__ = 'autograder.bridge.inside.worker'\n__file__ = '/engine/autograder/checks/__init__.py'",
    ),
    on_heads(
        "pickles",
        "replaces what unpickles, and leaves pickles",
        "import pickle\nclass Evil:\n    def __reduce__(self): return (print, ('REACHED by unpickling',))\npickle.loads = pickle.load = torch.load = lambda *a, **k: Evil()\ndef attention(q, k, v, mask=None): return Evil(), pickle.dumps(Evil())",
    ),
]
