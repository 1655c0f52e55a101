"""The server's configuration, from a file and flags to frozen values; it opens no model and knows no HTTP."""

from antiphon.config.loading import build_config, load_config, model_registration
from antiphon.config.schema import AUTO, ModelConfig, ServerConfig, usable_cores
from antiphon.config.surroundings import Surroundings
from antiphon.config.written import written_fields

__all__ = [
    "AUTO",
    "ModelConfig",
    "ServerConfig",
    "Surroundings",
    "build_config",
    "load_config",
    "model_registration",
    "usable_cores",
    "written_fields",
]
