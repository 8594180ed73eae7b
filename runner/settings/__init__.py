"""Configuration: two files, the environment and flags, read once into one frozen `Settings`."""

from runner.settings.load import REPOSITORY_FILE, LoadedSettings, file_problems, load_settings
from runner.settings.model import PromptReplacement, Settings
from runner.settings.places import SettingsError
from runner.settings.schema import settings_schema
from runner.settings.show import show
from runner.settings.sources import home_relative
from runner.settings.trust import entry_for, is_repository, is_trusted
from runner.settings.values import read_duration

__all__ = [
    "REPOSITORY_FILE",
    "LoadedSettings",
    "PromptReplacement",
    "Settings",
    "SettingsError",
    "entry_for",
    "file_problems",
    "home_relative",
    "is_repository",
    "is_trusted",
    "load_settings",
    "read_duration",
    "settings_schema",
    "show",
]
