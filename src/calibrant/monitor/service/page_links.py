"""Addresses of the pages. A token of the address stays in the address of each link, so no cookie is needed."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

__all__ = ["PageLinks"]


@dataclass(frozen=True)
class PageLinks:
    """Addresses of the pages below `root`, with the token of the request if it came in the address.

    Names are parameters, not parts of the path: a browser would change a path with the name ``..``.
    """

    root: str = ""
    token: str | None = None

    def overview(self, **parameters: Any) -> str:
        """Return the address of the list of models."""
        return self._address("/", parameters)

    def model(self, model: str, **parameters: Any) -> str:
        """Return the address of the page of a model."""
        return self._address("/model", {"name": model, **parameters})

    def events(self) -> str:
        """Return the address of the stream of changes."""
        return self._address("/v1/events", {})

    def acknowledge(self, model: str, alarm: int) -> str:
        """Return the address of the API that acknowledges an alarm."""
        return f"{self._api(model)}/alarms/{alarm}/acknowledgement"

    def silences(self, model: str) -> str:
        """Return the address of the API that silences a model."""
        return f"{self._api(model)}/silences"

    def asset(self, name: str, digest: str) -> str:
        """Return the address of a style sheet or script, which changes with its content."""
        return f"{self.root}/static/{name}?v={digest}"

    def hidden(self, **parameters: Any) -> dict[str, str]:
        """Return the fields of a form that keep the parameters and the token."""
        return {name: str(value) for name, value in self._with_token(parameters).items() if value is not None}

    def _api(self, model: str) -> str:
        return f"{self.root}/v1/models/{quote(model, safe='')}"

    def _address(self, path: str, parameters: dict[str, Any]) -> str:
        given = {name: value for name, value in self._with_token(parameters).items() if value not in (None, "")}
        return f"{self.root}{path}" + (f"?{urlencode(given)}" if given else "")

    def _with_token(self, parameters: dict[str, Any]) -> dict[str, Any]:
        return parameters if self.token is None else {**parameters, "token": self.token}
