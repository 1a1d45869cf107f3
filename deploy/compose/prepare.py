"""Makes the secrets and the folders that compose.yaml mounts, and `.env`, which says whose they are.

    python3 deploy/compose/prepare.py

What is there already is kept: a new noise key would mean new noise for every question, and under another key of the
release store the gateway does not start. Only Python's standard library is used. Only their owner may read the secrets,
so the containers run as their owner; where that is root, they are given to the images' own user.
"""

import os
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGE_USER = 10001
KEY_BYTES = 32
# What containers write: the ledger and, apart from it, its high-water mark, the gateway's releases and history, the
# certificates of the gateway and two callers. Beside the releases is the folder of their key.
FOLDERS = ("redis", "mark", "history", "certificates", "releases")
# The ledgers of the home and both regions.
REGIONS = ("certificates", "home", "eu", "us")

_REDIS = """\
# Every charge is on the disk before it is answered, and nothing is ever evicted.
dir /data
appendonly yes
appendfsync always
maxmemory-policy noeviction
requirepass {password}
"""


def prepare(root: Path) -> None:
    """Write what is missing below `root`, the folder of compose.yaml; raises OSError where that cannot be done."""
    folder = root / ".gris" / "compose"
    user, group = (os.getuid(), os.getgid()) if os.getuid() else (IMAGE_USER, IMAGE_USER)
    regions = folder / "regions"
    for each in (
        folder,
        *(folder / name for name in FOLDERS),
        regions,
        *(regions / name for name in REGIONS),
    ):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chown(each, user, group)
    password = secrets.token_hex(KEY_BYTES)
    contents = {
        "noise.key": secrets.token_bytes(KEY_BYTES),
        "releases/releases.key": secrets.token_bytes(KEY_BYTES),
        "redis.conf": _REDIS.format(password=password).encode(),
        "store.address": f"redis://:{password}@redis:6379/0\n".encode(),
    }
    if (folder / "redis.conf").exists() != (folder / "store.address").exists():
        sys.exit(f"{folder}: one of redis.conf and store.address is missing, and they hold one password")
    for name, content in contents.items():
        _write(folder / name, content, user, group)
    if not (root / ".env").exists():
        (root / ".env").write_text(f"GRIS_USER={user}:{group}\n")


def _write(path: Path, content: bytes, user: int, group: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchown(descriptor, user, group)


if __name__ == "__main__":
    prepare(ROOT)
