"""What a text can change outside of its own module, where reading it anew does not undo that."""

from __future__ import annotations

import json

import pytest

from autograder.source.side_effects import reaches_outside

OWN = {
    "its own object": "class Head:\n    def f(self, x):\n        self.x = x\n        self.inner.x[0] = x",
    "its own module": "calls = []\ndef f(x):\n    global last\n    last = x\n    calls.append(x)",
    "its own table": "seen = {}\ndef f(x):\n    seen[x] = 1\n    del seen[x]",
    "a tensor": "import torch\ndef f(x):\n    x.data += 1\n    x.grad = None\n    x[0] = 1",
    "an attribute of a layer": "class Head:\n    def f(self):\n        self.out.weight = self.table.weight",
    "functions of libraries": "import torch\nimport numpy as np\nx = torch.add(torch.nn.functional.relu(y), np.sort(y))",
    "methods of a list": "def f(x):\n    x.rows.append(1)\n    x.update(2)",
    "a model in eval mode": "def f(model):\n    model.eval()\n    return model.compile()",
    "a setting inside a block": "import torch\ndef f(x):\n    with torch.no_grad():\n        return x + 1",
    "fields that it reads": "def f(config):\n    return [size for name, size in vars(config).items()]",
    "its own buffer": "def f(self_attention):\n    self_attention.register_buffer('mask', None)",
    "what is not run": "def f(x):\n    return x\nif __name__ == '__main__':\n    import os\n    os.remove('x')",
    "a sentence that names it": "def f(x):\n    '''Do not open a file.'''\n    return x",
    "nothing that Python can read": "def f(:",
}
OUTSIDE = {
    "a module that is not known": "import os",
    "a module of a package": "import torch.backends.cuda",
    "a module beside it": "from . import helpers",
    "an attribute of another object": "def f(x):\n    x.calls = 1",
    "an attribute of what a call returns": "def f(x):\n    type(x).calls = 1",
    "an attribute that it removes": "import math\ndef f(x):\n    del math.pi",
    "an item of a library": "from copy import _deepcopy_dispatch as table\ntable[int] = None",
    "a file": "def f(x):\n    open('x', 'w')",
    "a setting": "import torch\ntorch.set_default_dtype(torch.float64)",
    "code in a text": "def f(x):\n    exec(x)",
    "a name in a text": "import operator\nf = operator.attrgetter('torch.backends')",
    "another self": "import math\nself = math\nself.x = 1",
    "self of a function": "def f(self):\n    self.x = 1",
    "self as a second argument": "class Head:\n    def f(mine, self):\n        self.x = 1",
    "a library as self": "import math as self",
    "a part of a library": "import torch\ndef f(x):\n    return torch.sparse.mm(x, x)",
    "what is private in a library": "import copy\nkept = copy._deepcopy_dispatch",
    "a list in a library": "from torch import nn\nnn.Linear.names.append('x')",
    "a library's own table": "from copy import Table\nTable.update(x=1)",
    "a setting of a library": "import numpy as np\nnp.setbufsize(16)",
    "a setting of a library by its own name": "from numpy import seterr\nseterr(divide='raise')",
    "what a layer holds of a library": "class Head:\n    def f(self):\n        self.act.calls = 1",
    "a ready-made model": "from transformers import GPT2Config\ndef f(x):\n    GPT2Config().attribute_map[x] = 1",
    "fields of a library": "import copy\ndef f(x):\n    for table in vars(copy).values():\n        table[x] = 1",
    "fields of what it was given": "def f(x):\n    return vars(x)",
    "fields of what it can look up": "def f(x):\n    return vars(type(x)).values()",
    "fields that it keeps": "def f(x):\n    fields = vars(x)\n    fields['y'] = 1",
    "a special attribute": "def f(layer):\n    layer.__constants__.append(1)",
    "a hook of all modules": "from torch.nn.modules.module import register_module_forward_hook",
    "a coroutine in a block": "async def f(lock, x):\n    with lock:\n        await x",
    "a block that can stay open": "def f(lock):\n    with lock:\n        yield 1",
}


@pytest.mark.parametrize("text", OWN.values(), ids=OWN)
def test_what_changes_only_its_own(text):
    assert not reaches_outside(text, "text.py")


@pytest.mark.parametrize("text", OUTSIDE.values(), ids=OUTSIDE)
def test_what_can_change_more(text):
    assert reaches_outside(text, "text.py")


def test_any_cell_of_a_notebook_counts():
    cells = [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": []}
        for source in ("x = 1", "%env SPOILT=1")
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    assert reaches_outside(json.dumps(notebook), "text.ipynb")
    notebook["cells"] = cells[:1]
    assert not reaches_outside(json.dumps(notebook), "text.ipynb")
