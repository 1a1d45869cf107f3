"""Collects everything that Python needs to run into a folder, which with its present content becomes an image.

    python3 collect.py /image
    python3 collect.py /image catalogue

Takes the interpreter that runs it, its standard library, the shared libraries that these and the packages in the
folder need, the certificates of public authorities, a user without rights, and what scanners for vulnerabilities ask
for: which system this is, and of which of its packages something is here. Left out is everything with which an
image could be changed from inside: shells, package managers, compilers. Works on systems with glibc.

With `catalogue` it is Debian's PostgreSQL server instead, what that loads, and a cluster without tables, which is made
here because `initdb` needs a shell; the gateway copies it when it starts (gris_gateway.faces.postgres).
"""

import compileall
import py_compile
import shutil
import ssl
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from tempfile import TemporaryDirectory

USER = 10001
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

# Parts of the standard library that install, test, compile, draw or teach.
_LEFT_OUT = shutil.ignore_patterns(
    *(
        "__pycache__",
        "site-packages",
        "dist-packages",
        "config-*",
        "test",
        "tests",
        "idlelib",
        "tkinter",
        "_tkinter*",
    ),
    *("ensurepip", "venv", "lib2to3", "distutils", "pydoc_data", "turtledemo"),
)
# Loaded by name when a thread is cancelled or ends, so that nothing asks for it beforehand.
_LOADED_BY_NAME = ("libgcc_s.so.1",)
POSTGRESQL = Path("/usr/lib/postgresql")
CLUSTER = (
    *("--username", "gris_owner", "--auth", "trust", "--no-sync"),
    *("--encoding", "UTF8", "--locale", "C", "--wal-segsize", "1"),
)
"""How `initdb` makes a catalogue, as in gris_gateway.faces.postgres."""
# What the server loads by name: modules, and folders of what it reads.
_MODULES = ("plpgsql", "dict_snowball")
_READ = ("extension", "timezonesets", "tsearch_data")
_ZONES = ("UTC", "Etc/UTC")
# What says which system this is.
_RELEASE = ("/etc/os-release", "/usr/lib/os-release", "/etc/debian_version")
_DOCUMENTS = Path("/usr/share/doc")
_LICENCES = Path("/usr/share/common-licenses")
_USR_MERGED = ("/lib", "/lib64", "/bin", "/sbin")


class CollectError(RuntimeError):
    """Something that Python needs cannot be found."""


def collect(root: Path) -> None:
    """Make `root` a whole file system for the interpreter that runs this."""
    for link in map(Path, _USR_MERGED):
        if link.is_symlink():
            _target(root, link).symlink_to(link.readlink())
    interpreter = Path(sys.executable).resolve()
    _copy(root, interpreter)
    link = root / "opt" / "gris" / "bin" / "python"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(interpreter)
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, _target(root, library), ignore=_LEFT_OUT, ignore_dangling_symlinks=True)
    _prune(root / "opt" / "gris" / "lib")
    libraries = _copy_shared_libraries(root, interpreter)
    _copy_settings(root)
    describe(root, [interpreter, library / "os.py", library / "lib-dynload", CERTIFICATES, *libraries])
    _compile(root)


def collect_catalogue(root: Path) -> None:
    """Put PostgreSQL's server and a cluster without tables into `root`, where this system has the server.

    Raises:
        CollectError: There is no server here.
    """
    version = max(POSTGRESQL.glob("*"), key=lambda each: int(each.name), default=None)
    if version is None:
        raise CollectError(f"{POSTGRESQL}: expected PostgreSQL's server")
    loaded = [version / "bin" / "postgres", *(version / "lib" / f"{name}.so" for name in _MODULES)]
    libraries = {path for file in loaded for path in _linked_libraries(file, set())}
    zones = [Path("/usr/share/zoneinfo") / name for name in _ZONES]
    for path in (*loaded, *zones, *sorted(libraries), Path("/etc/ld.so.cache")):
        _copy(root, path)
    read = [Path("/usr/share/postgresql") / version.name / name for name in _READ]
    for path in read:
        shutil.copytree(path, _target(root, path), ignore_dangling_symlinks=True)
    _make_cluster(version / "bin" / "initdb", root / version.relative_to("/") / "empty")
    describe(root, [*loaded, *zones, *libraries])


def _make_cluster(initdb: Path, made: Path) -> None:
    """Make a cluster that everybody may read; none is made as root."""
    with TemporaryDirectory() as folder:
        shutil.chown(folder, "postgres")
        data = Path(folder) / "data"
        subprocess.run([initdb, "--pgdata", data, *CLUSTER], user="postgres", cwd=folder, check=True)
        shutil.copytree(data, made, copy_function=shutil.copyfile)
    for path in (made, *made.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def describe(root: Path, taken: Iterable[Path]) -> None:
    """Say in `root` which system it was made on, and which packages of it the files belong to that were taken.

    The packages stand where scanners look for them in images without a package manager, /var/lib/dpkg/status.d: one
    file for each, as dpkg describes it, and their licences in /usr/share, as Debian has them, since files are passed on
    with these. A file that no package owns is left out, as Python is where it was compiled; scanners find that by
    itself. Python's own packages have their metadata beside them.
    """
    for path in map(Path, _RELEASE):
        if path.exists():
            shutil.copyfile(path, _target(root, path))
    if shutil.which("dpkg-query") is None:
        return
    shutil.copytree(_LICENCES, root / _LICENCES.relative_to("/"), dirs_exist_ok=True)
    for package in sorted({name for path in taken for name in _owners(path)}):
        described = subprocess.run(
            ["dpkg-query", "--status", package], capture_output=True, text=True, check=True
        )
        name = package.partition(":")[0]
        _write(root / "var" / "lib" / "dpkg" / "status.d" / name, described.stdout.splitlines())
        _copy_licence(root, name)


def _copy_licence(root: Path, package: str) -> None:
    """Copy what Debian says of a package's licences; by the package's own name where its folder is another's."""
    licence = _DOCUMENTS / package / "copyright"
    if licence.exists():
        target = root / licence.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(licence, target)


def _owners(path: Path) -> Iterator[str]:
    """Yield the Debian packages that own a file; its folder may have moved below /usr since they were made."""
    text = str(path.resolve())
    for each in (text, text.removeprefix("/usr"), f"/usr{text}"):
        done = subprocess.run(["dpkg-query", "--search", each], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            names = (line.partition(": /")[0] for line in done.stdout.splitlines() if ": /" in line)
            yield from (name for listed in names for name in listed.split(", "))
            return
    if path == CERTIFICATES:
        yield "ca-certificates"


def _prune(packages: Path) -> None:
    """Drop the tests and the programs that packages bring along; nothing imports them."""
    for name in ("tests", "__pycache__"):
        for folder in list(packages.rglob(name)):
            shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(packages / "bin", ignore_errors=True)


def _copy_shared_libraries(root: Path, interpreter: Path) -> list[Path]:
    known = _known_libraries()
    wanted = {known[name] for name in _LOADED_BY_NAME if name in known}
    files = (root / interpreter.relative_to("/"), *root.rglob("*.so"), *root.rglob("*.so.*"))
    # A package's own libraries find one another only once the module that needs them has been loaded.
    brought = {file.name for file in files}
    for file in files:
        wanted |= {path for path in _linked_libraries(file, brought) if not path.is_relative_to(root)}
    for path in sorted(wanted):
        _copy(root, path)
    _copy(root, Path("/etc/ld.so.cache"))
    return sorted(wanted)


def _linked_libraries(file: Path, brought: Set[str]) -> Iterator[Path]:
    """Yield the shared libraries that a program or library is linked with, directly or not.

    Raises:
        CollectError: One is neither on this machine nor among those that packages have brought, which have these names.
    """
    done = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if "not found" in line:
            if line.split()[0] in brought:
                continue
            raise CollectError(f"{file}: {line.strip()}")
        yield from (Path(word) for word in line.split() if word.startswith("/"))


def _known_libraries() -> dict[str, Path]:
    done = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True)
    lines = (line.split() for line in done.stdout.splitlines() if "=>" in line)
    return {words[0]: Path(words[-1]) for words in lines}


def _copy_settings(root: Path) -> None:
    authorities = ssl.get_default_verify_paths().openssl_cafile
    shutil.copyfile(CERTIFICATES, _target(root, Path(authorities)))
    _write(root / "etc" / "passwd", [f"gris:x:{USER}:{USER}::/nonexistent:/nonexistent"])
    _write(root / "etc" / "group", [f"gris:x:{USER}:"])
    temporary = root / "tmp"
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)


def _write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def _compile(root: Path) -> None:
    """Compile every module: a container whose file system is read-only would do it at each start."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(root, maxlevels=32, quiet=2, stripdir=str(root), invalidation_mode=mode)


def _copy(root: Path, path: Path) -> None:
    shutil.copy2(path, _target(root, path))


def _target(root: Path, path: Path) -> Path:
    """Return where a file of this machine belongs below `root`; links in its folder's name are followed first."""
    target = root / path.parent.resolve().relative_to("/") / path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


if __name__ == "__main__":
    (collect_catalogue if sys.argv[2:] == ["catalogue"] else collect)(Path(sys.argv[1]))
