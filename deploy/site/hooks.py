"""Hooks of MkDocs: the site holds everything that its pages link to, and loads nothing from elsewhere.

Pages of the repository link to one another as files, so that the links work on a forge and in an editor. On the site,
what lies outside docs/ is found under `project/`: Markdown as pages, other texts as pages that show them, folders as
lists of their files.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs"
OUTSIDE = "project"
# In the navigation, though no page needs to link to them.
ALWAYS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
# Put there by `make docs`; the theme would load these from another host.
SCRIPTS = ROOT / "node_modules" / ".site"
VENDORED = ("mermaid.min.js", "iframe-worker.js")
NOT_LISTED = "generated"

_CODE_OR_LINK = re.compile(
    r"^```.*?^```|`[^`\n]+`|(?P<head>\]\()(?![a-z]+:|#)(?P<path>[^)\s#]+)", re.DOTALL | re.MULTILINE
)
# Forges begin a list right below a paragraph; MkDocs' parser wants an empty line between the two.
_LIST_BELOW_TEXT = re.compile(
    r"^```.*?^```|^(?P<text>(?![-*] |\d+\. )[^\s|#>`][^\n]*\n)(?=[-*] |1\. )", re.DOTALL | re.MULTILINE
)
_LOADED = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")
_CANONICAL = re.compile(r"""\brel=["']?(?:canonical|next|prev)\b""")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace `folder/*` in the navigation by the pages of that folder."""
    config.nav = list(_expanded(config.nav or []))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside docs/ and is linked to, and what the theme would load from elsewhere."""
    for name in VENDORED:
        if not (SCRIPTS / name).is_file():
            raise PluginError(f"{SCRIPTS / name} is missing: run `make docs`")
        files.append(File.generated(config, f"assets/{name}", abs_src_path=str(SCRIPTS / name)))
    waiting = [*(f"{DOCS}/{page.src_uri}" for page in files.documentation_pages()), *ALWAYS]
    while waiting:
        path = waiting.pop()
        if (added := _outside(path, config)) is not None and files.get_file_from_path(added.src_uri) is None:
            files.append(added)
        waiting += (
            target for target in _targets(path) if files.get_file_from_path(site_path(target)) is None
        )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the links of a page lead to where their targets are on the site."""
    here = page.file.src_uri
    path = repository_path(here)
    if not (path.endswith(".md") or (ROOT / path).is_dir()):
        return markdown

    def there(target: str) -> str:
        return posixpath.relpath(site_path(_resolved(path, target)), posixpath.dirname(here))

    return _with_lists(_with_links(markdown, there))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that loads scripts, styles or pictures from another host."""
    for tag in _LOADED.findall(output):
        if not _CANONICAL.search(tag):
            raise PluginError(f"{page.file.src_uri} loads from another host: {tag}")
    return output


def site_path(path: str) -> str:
    """Return where the site has a file or folder of the repository, as the path of a source."""
    if path.startswith(f"{DOCS}/") or path == DOCS:
        inside = posixpath.relpath(path, DOCS)
        return f"{inside}/README.md".removeprefix("./") if (ROOT / path).is_dir() else inside
    if (ROOT / path).is_dir():
        return f"{OUTSIDE}/{path}/README.md"
    return (
        f"{OUTSIDE}/{path}" if path.endswith(".md") or not _is_text(ROOT / path) else f"{OUTSIDE}/{path}.md"
    )


def repository_path(source: str) -> str:
    """Return what a source of the site was in the repository; the opposite of `site_path`."""
    if not source.startswith(f"{OUTSIDE}/"):
        return f"{DOCS}/{source}"
    path = source.removeprefix(f"{OUTSIDE}/")
    return path if (ROOT / path).exists() else path.removesuffix(".md").removesuffix("/README")


def _expanded(entries: list[Any]) -> Iterator[Any]:
    for entry in entries:
        if isinstance(entry, dict):
            yield {
                title: list(_expanded(below)) if isinstance(below, list) else below
                for title, below in entry.items()
            }
        elif isinstance(entry, str) and entry.endswith("/*"):
            folder = ROOT / DOCS / entry.removesuffix("/*")
            found = sorted(folder.glob("*.md"), key=lambda each: (each.name != "README.md", each.name))
            yield from (str(each.relative_to(ROOT / DOCS)) for each in found)
        else:
            yield entry


def _targets(path: str) -> list[str]:
    """Return what a page or a folder links to, as paths of the repository; dead links are left to MkDocs."""
    if (ROOT / path).is_dir():
        return _tracked(path)
    if not path.endswith(".md"):
        return []
    text = (ROOT / path).read_text()
    found = [_resolved(path, each["path"]) for each in _CODE_OR_LINK.finditer(text) if each["path"]]
    return [each for each in found if (ROOT / each).exists()]


def _with_links(markdown: str, there: Callable[[str], str]) -> str:
    def replaced(found: re.Match[str]) -> str:
        return found["head"] + there(found["path"]) if found["head"] else found[0]

    return _CODE_OR_LINK.sub(replaced, markdown)


def _with_lists(markdown: str) -> str:
    return _LIST_BELOW_TEXT.sub(lambda found: found[0] + ("\n" if found["text"] else ""), markdown)


def _resolved(path: str, target: str) -> str:
    folder = path if (ROOT / path).is_dir() else posixpath.dirname(path)
    return posixpath.normpath(posixpath.join(folder, target))


def _outside(path: str, config: MkDocsConfig) -> File | None:
    """Return the file of the site for a path of the repository; None: it is in docs/, where MkDocs finds it itself."""
    if path.startswith(f"{DOCS}/"):
        return None
    source, target = ROOT / path, site_path(path)
    if source.is_dir():
        readme = source / "README.md"
        return File.generated(
            config, target, content=readme.read_text() if readme.is_file() else _listing(path)
        )
    if path.endswith(".md") or not _is_text(source):
        return File.generated(config, target, abs_src_path=str(source))
    return File.generated(config, target, content=_shown(path))


def _listing(folder: str) -> str:
    links = "\n".join(f"- [{each}]({posixpath.relpath(each, folder)})" for each in _tracked(folder))
    return f"# {folder}/\n\n{links}\n"


def _tracked(folder: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", folder], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return sorted(each for each in listed.split("\0") if each and NOT_LISTED not in Path(each).parts)


def _shown(path: str) -> str:
    """Return a page that shows a text; the search leaves it out."""
    language = Path(path).suffix.removeprefix(".") or "text"
    text = (ROOT / path).read_text()
    return f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n``````{language}\n{text}\n``````\n"


def _is_text(path: Path) -> bool:
    try:
        path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return False
    return True
