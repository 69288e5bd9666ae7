"""The figure of docs/parameter_studies.md: `python examples/parameter_study.py [folder]`."""

import re
import sys
from pathlib import Path

from transduce import figures

PAGE = Path(__file__).parents[1] / "docs" / "parameter_studies.md"


def main(folder):
    """Run the page's first block, and draw the sensitivity."""
    study = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    names = {}
    exec(study, names)  # the page's own code
    S = names["O"].sensitivity()
    figures.sensitivity(S, Path(folder) / "parameter_study", xlabel="time (s)")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/figures")
