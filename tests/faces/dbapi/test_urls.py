"""What a URL may say: a gateway, and names of files in one folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from pinot_connector import Credentials
from pinot_connector.dbapi import InterfaceError
from pinot_connector.dbapi.urls import CREDENTIALS_DIR, GATEWAYS, GatewayUrl, parsed_url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder for credentials, with somebody else's file beside it and links out of it."""
    folder = tmp_path / "credentials"
    (folder / "deeper").mkdir(parents=True)
    for path in (folder / "ana.jwt", folder / "deeper" / "ca.pem", tmp_path / "secret"):
        path.write_text("x")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    return folder


def parsed(text: str, folder: Path | str) -> GatewayUrl:
    """Return what a URL says where that folder is the one for credentials."""
    return parsed_url(text, {CREDENTIALS_DIR: str(folder)})


def test_a_url_says_gateway_account_intervals_and_files(folder: Path) -> None:
    """Files are below the folder, however deep."""
    text = "gris://[::1]:8443/?token_file=ana.jwt&ca_file=deeper/ca.pem&account=app/acme/ana&intervals=1"
    text += "&max_cost=20"
    assert GatewayUrl(
        "[::1]:8443",
        Credentials(ca_file=folder / "deeper" / "ca.pem", token_file=folder / "ana.jwt"),
        "app/acme/ana",
        intervals=True,
        max_cost=20,
    ) == parsed(text, folder)
    expected = GatewayUrl("h:1", Credentials(), None, intervals=False, max_cost=None)
    assert expected == parsed("gris://h:1", "")


@pytest.mark.parametrize(
    "name",
    [
        "../secret",
        "link",
        "out/secret",
        "/etc/passwd",
        "",
        ".",
        "deeper",
        "none",
        "ana.jwt/x",
        "a\0b",
        "~/x",
        "a" * 300,
    ],
)
def test_a_file_elsewhere_is_refused_in_the_same_words_as_none(folder: Path, name: str) -> None:
    """Nobody who may add a database learns anything about the files of the machine."""
    with pytest.raises(InterfaceError) as refused:
        parsed("gris://h:1/?" + urlencode({"key_file": name}), folder)
    said = f"expected key_file to be the name of a file in the folder {CREDENTIALS_DIR}"
    assert f"url: {said}" == str(refused.value)


def test_a_replaced_secret_is_found_behind_its_link(folder: Path) -> None:
    """As Kubernetes replaces one: the link leads to a new folder, and the old one is removed."""
    for name in ("old", "new"):
        (folder / name).mkdir()
        (folder / name / "token").write_text(name)
    (folder / "data").symlink_to("old")
    (folder / "token").symlink_to("data/token")
    said = parsed("gris://h:1/?token_file=token", folder).credentials.token_file
    (folder / "next").symlink_to("new")
    (folder / "next").rename(folder / "data")
    (folder / "old" / "token").unlink()
    assert said is not None
    assert "new" == Path(said).read_text()


def test_without_the_folder_no_file_is_read() -> None:
    """Not even one of the working directory."""
    with pytest.raises(InterfaceError, match=f"expected {CREDENTIALS_DIR} to be set"):
        parsed("gris://h:1/?token_file=pyproject.toml", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gris://ana:hunter2@h:1/", "certificate_file or token_file"),
        ("gris://h:1/database", "user, password and database"),
        ("gris://h/", "gris://HOST:PORT/"),
        ("gris:///?intervals=1", "gris://HOST:PORT/"),
        ("http://h:1/", "gris://HOST:PORT/"),
        ("gris://h:1/#hunter2?intervals=1", "gris://HOST:PORT/"),
        ("gris://h:1/?intervals=yes", "intervals to be 0 or 1"),
        ("gris://h:1/?intervals=0&intervals=1", "intervals once"),
        ("gris://h:1/?max_cost=-1", "max_cost to be a number of information units"),
        ("gris://h:1/?token=hunter2", "only the options account, ca_file"),
    ],
)
def test_anything_else_is_refused_and_not_repeated(folder: Path, text: str, said: str) -> None:
    """A URL can hold a secret that was put into the wrong place."""
    with pytest.raises(InterfaceError, match=said) as refused:
        parsed(text, folder)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("gris://evil.example.org:8443/", "gateway.example.org:8443"),
        ("gris://gateway.example.org:8444/", "gateway.example.org:8443"),
        ("gris://gateway.example.org.:8443/", "gateway.example.org:8443"),
        ("gris://gateway.example.org:8443/", ""),
        # A list that cannot be read lists nothing, or a slip of the pen would open it.
        ("gris://gateway.example.org:8443/", "gateway.example.org:8443, gateway.example.org"),
        ("gris://unix:8443/", "unix:8443"),
    ],
)
def test_a_gateway_that_is_not_listed_is_refused(folder: Path, text: str, listed: str) -> None:
    """Nobody who may add a database can have a token sent to a host of their own."""
    with pytest.raises(InterfaceError) as refused:
        parsed_url(text + "?token_file=ana.jwt", {CREDENTIALS_DIR: str(folder), GATEWAYS: listed})
    assert "example.org" not in str(refused.value)


@pytest.mark.parametrize("text", ["gris://Gateway.Example.org:8443/", "gris://[0:0::1]:1/"])
def test_a_gateway_that_is_listed_is_taken(text: str) -> None:
    """In whatever letters, and however its address is shortened."""
    environment = {GATEWAYS: "gateway.example.org:8443, [::1]:1,"}
    assert parsed_url(text, environment).address in environment[GATEWAYS]
