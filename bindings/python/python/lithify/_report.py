"""Reports: dictionaries that print as pages."""

from __future__ import annotations

from typing import Any

__all__ = ["Report"]


class Report(dict[str, Any]):
    """Figures by their names; `str()` is the page that a person reads."""

    __slots__ = ("_text",)

    def __init__(self, figures: dict[str, Any], text: str) -> None:
        super().__init__(figures)
        self._text = text

    def __str__(self) -> str:
        return self._text
