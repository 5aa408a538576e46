"""Clean the notebooks of this folder: outputs, counters and metadata are not stored.

Run `python examples/notebooks/clean.py` before you commit what Jupyter has saved.
"""

import json
from pathlib import Path

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def clean(text: str) -> str:
    """A notebook's text without what running it leaves there, laid out as Jupyter saves it."""
    book = json.loads(text)
    for cell in book["cells"]:
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    book["metadata"] = METADATA
    return json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("*.ipynb")):
        path.write_text(clean(path.read_text(encoding="utf-8")), encoding="utf-8")
