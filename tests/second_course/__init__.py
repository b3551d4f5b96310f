"""A course about strings, measurements and queues, as an author of another subject writes one."""

import re
from pathlib import Path

FOLDER = Path(__file__).parent
OF_TRANSFORMERS = re.compile(
    r"\b(attention|tokens?|heads?|transformers?|torch|tensors?|embeddings?|logits?|softmax)\b",
    re.IGNORECASE,
)
