"""The settings under which limits are tested."""

from __future__ import annotations

from budget_service.configuration.budget_file import Configuration
from budget_service.server.settings import LiveSettings, Settings

CONFIGURATION = Configuration.model_validate(
    {
        "accounts": [{"path": ["acme", "ann"], "limit": {"information": 10, "calls": 5}}],
    }
)
SETTINGS = LiveSettings(Settings(CONFIGURATION))
