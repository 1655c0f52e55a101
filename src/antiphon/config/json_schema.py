"""The JSON schema of the configuration file, generated from its fields; it validates nothing itself.

It is wider than what is read in a few places: paths are not looked at, and what holds between two fields is not said.
"""

from typing import Any

from antiphon.config.schema import ServerConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def config_schema() -> dict[str, Any]:  # a schema is any JSON object
    """The schema, in the dialect of 2020-12. A file may name the schema it keeps to, as `$schema`."""
    schema = ServerConfig.model_json_schema()
    schema["properties"]["$schema"] = {"type": "string", "description": "where this schema is; not read"}
    return {"$schema": DIALECT, **schema, "title": "The configuration of antiphon"}
