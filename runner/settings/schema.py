"""The JSON schema of the configuration files, for editors."""

from typing import Any

from runner.settings.model import Settings

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def settings_schema() -> dict[str, Any]:
    """Return the JSON schema; `x-nightkeep-scope` says of each key whose it is, repository or machine."""
    return {"$schema": _DIALECT} | Settings.model_json_schema(by_alias=True)
