"""Print the JSON schema: `python -m runner.settings > docs/nightkeep.schema.json`."""

import json

from runner.settings.schema import settings_schema

if __name__ == "__main__":
    print(json.dumps(settings_schema(), indent=2))  # noqa: T201
