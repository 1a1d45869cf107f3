"""A PostgreSQL of its own that holds no rows, for questions about tables and columns.

It listens on a socket in a folder that nobody else enters, ends with its parent, and keeps nothing. It is asked by a
role that may look at the catalogue and at nothing else: it is refused the tables, cannot write, cannot change what
limits it, and gets two seconds, little memory and no file.

Nothing of it needs a shell, a name of its user or a file system to write to, but for a folder of temporary files.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gris_serving.reloading_files import SecurityError

OWNER, READER, DATABASE = "gris_owner", "gris_reader", "gris"
PORT = 5432
MOST_CONNECTIONS = 8
_END_SECONDS = 60.0
# Of address space for each connection, of which some 85,000 are PostgreSQL itself.
_MOST_KILOBYTES = 160_000
CLUSTER = (
    *("--username", OWNER, "--auth", "trust", "--no-sync"),
    *("--encoding", "UTF8", "--locale", "C", "--wal-segsize", "1"),
)
"""How it is made; that of an image is made with the image."""
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": str(MOST_CONNECTIONS + 6),
    "shared_buffers": "8MB",
    "work_mem": "4MB",
    "temp_file_limit": "16MB",
    "fsync": "off",
    "autovacuum": "off",
    "jit": "off",
    "max_parallel_workers": "0",
    # Callers would see what each other does, and logs would hold it.
    "track_activities": "off",
    "track_counts": "off",
    "log_min_messages": "panic",
    "log_min_error_statement": "panic",
    "timezone": "UTC",
}
_SUPERVISOR = Path(__file__).with_name("catalogue_supervisor.py")


def programs(stated: str | None = None) -> Path | None:
    """Return the folder of PostgreSQL's programs: that stated, else this system's newest; None: there is none.

    Raises:
        SecurityError: The stated one has no `postgres`, or nothing to make a cluster with.
    """
    if stated is not None:
        if not _has_programs(Path(stated)):
            raise SecurityError("postgres.catalogue: expected a folder with the programs postgres and initdb")
        return Path(stated)
    return next((each for each in _candidates() if _has_programs(each)), None)


def version_of(programs: Path) -> str:
    """Return what PostgreSQL calls its version; empty: it does not say."""
    try:
        command = [str(programs / "postgres"), "--version"]
        said = subprocess.run(command, capture_output=True, text=True, check=False, env={}).stdout  # noqa: S603
    except OSError:
        return ""
    return "".join(re.findall(r"\d+(?:\.\d+)?", said)[:1])


def _candidates() -> Iterator[Path]:
    if (found := shutil.which("postgres")) is not None:
        yield Path(found).resolve().parent
    # Debian keeps them out of PATH.
    yield from sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin"), key=_version, reverse=True)


def _version(folder: Path) -> int:
    return int("".join(filter(str.isdigit, folder.parent.name)))


def _has_programs(folder: Path) -> bool:
    return (folder / "postgres").is_file() and ((folder / "initdb").is_file() or _made(folder).is_dir())


def _made(programs: Path) -> Path:
    """Return where a cluster is that was made already, as in images: `initdb` needs a shell."""
    return programs.parent / "empty"


class CatalogueProcess:
    """A PostgreSQL of its own, in a folder that is removed behind it.

    Args:
        programs: The folder of PostgreSQL's programs.
    """

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="gris-catalogue-", dir=_parent()))
        self._process: asyncio.subprocess.Process | None = None

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self._folder / f".s.PGSQL.{PORT}"

    @property
    def is_running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def end(self) -> None:
        """End it."""
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), _END_SECONDS)
            except TimeoutError:
                self._process.kill()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def start(self) -> None:
        """Start it; it listens a little later.

        Raises:
            SecurityError: A program fails; or `OSError`: it cannot be run.
        """
        if whom := _unprivileged():
            os.chown(self._folder, *whom)
        data = self._folder / "data"
        made = _made(self._programs)
        if made.is_dir():
            await asyncio.to_thread(_copy_cluster, made, data)
        else:
            initdb = (str(self._programs / "initdb"), "--pgdata", str(data), *CLUSTER)
            self._process = await self._run("", whom, initdb)
            if await self._process.wait():
                raise SecurityError(f"postgres.catalogue: {initdb[0]} has failed")
        settings = {**_SETTINGS, "unix_socket_directories": str(self._folder)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        server = (str(self._programs / "postgres"), "-D", str(data), "-p", str(PORT), *options)
        self._process = await self._run(str(self._folder), whom, server)

    async def _run(
        self, removed: str, whom: Sequence[int], command: Sequence[str]
    ) -> asyncio.subprocess.Process:
        # To start it as another user Python would fork this process, which breaks gRPC's connections.
        user, group = map(str, whom or ("", ""))
        supervisor = (sys.executable, "-I", "-S", str(_SUPERVISOR))
        return await asyncio.create_subprocess_exec(
            *(*supervisor, removed, str(_MOST_KILOBYTES), user, group, *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            # Nothing of this process's own, which may hold secrets.
            env={"LC_ALL": "C", "PATH": os.defpath, "TZ": "UTC"},
            cwd=self._folder,
            # Ctrl-C is for this process, which ends it.
            start_new_session=True,
        )


def _copy_cluster(made: Path, data: Path) -> None:
    """Copy a cluster of an image, whose files are another user's."""
    shutil.copytree(made, data, copy_function=shutil.copyfile)
    data.chmod(0o700)


def _parent() -> str:
    """Return where its folder is made: that of temporary files, if another user may enter it."""
    usual = Path(tempfile.gettempdir()).resolve()
    is_open = all(each.stat().st_mode & stat.S_IXOTH for each in (usual, *usual.parents))
    return str(usual) if is_open or os.geteuid() != 0 else "/tmp"  # noqa: S108 - a folder of its own below it


def _unprivileged() -> Sequence[int]:
    """Return the user and group of PostgreSQL, which refuses to run as root; empty: those of this process."""
    if os.geteuid() != 0:
        return ()
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return found.pw_uid, found.pw_gid
    return ()
