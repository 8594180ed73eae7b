"""The seal around every test holds."""

import os
import subprocess
import urllib.request

import pytest


def test_git_knows_nobody() -> None:
    shown = subprocess.run(["git", "config", "--global", "--list"], capture_output=True, text=True, check=False)
    assert shown.stdout == ""
    assert not [name for name in os.environ if name.startswith(("GIT_", "GITHUB_"))]


def test_no_network_beyond_loopback() -> None:
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen("http://example.com", timeout=5)
