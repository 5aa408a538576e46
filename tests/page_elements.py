"""The elements of a page, without a browser."""

import json
from html.parser import HTMLParser
from typing import Any

HOSTILE = "</script><img src=x onerror=alert(1)>&amp;"


class Elements(HTMLParser):
    """The elements of a page, with their attributes and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data

    def payload(self) -> dict[str, Any]:
        """The data of the page's scripts."""
        places = [attributes.get("id") for tag, attributes in self.found if tag == "script"]
        return dict(json.loads(self.scripts[places.index("payload")]))
