"""Configuration: two files, the environment and flags, read once into one frozen `Settings`."""

from runner.settings.load import LoadedSettings, load_settings
from runner.settings.model import PromptReplacement, Settings
from runner.settings.places import SettingsError
from runner.settings.schema import settings_schema
from runner.settings.show import show
from runner.settings.trust import is_trusted

__all__ = [
    "LoadedSettings",
    "PromptReplacement",
    "Settings",
    "SettingsError",
    "is_trusted",
    "load_settings",
    "settings_schema",
    "show",
]
