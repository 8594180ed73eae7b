"""What tells this machine, and this process, from others."""

import socket
from pathlib import Path

import psutil


def host_name() -> str:
    """Return this machine's name, or "unknown"."""
    return socket.gethostname() or "unknown"


def boot_id() -> str:
    """Return what tells one start of this machine from another, "" where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """Return the name of the namespace that process ids count in here, "" where the system does not say."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def pid_started() -> float:
    """Return when this process started, in seconds of the epoch."""
    return psutil.Process().create_time()
