import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "scripts"))  # for made_up_class
