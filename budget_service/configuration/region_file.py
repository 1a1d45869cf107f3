"""The configuration of a region, `region.yaml`.

name: eu                            # lower-case letters, digits and hyphens
home: home.example:50052            # the address of the home ledger
tls: {ca_file: ca.pem, certificate_file: eu.pem, key_file: eu.key}      # the last two only if the home wants them
insecure: false                     # true: no tls, though the home is on another machine
token_file: /run/secrets/gris-home-token
skew_seconds: 2                     # how far this clock and the home's may differ
report_seconds: 1
idle_seconds: 60
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator, model_validator

from budget_service.configuration.budget_file import ConfigurationError
from gris_serving.documents import Strict, read_document
from gris_serving.options import checked_address
from gris_serving.reloading_files import SecurityError
from gris_serving.tls import is_loopback


class HomeTls(Strict):
    """The certificates that a region trusts and shows."""

    ca_file: str
    certificate_file: str | None = None
    key_file: str | None = None

    @model_validator(mode="after")
    def _a_certificate_has_a_key(self) -> HomeTls:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file are given together")
        return self


class RegionConfiguration(Strict):
    """A valid `region.yaml`."""

    name: str = Field(pattern="^[a-z0-9-]{1,32}$")
    home: str
    tls: HomeTls | None = None
    insecure: bool = False
    token_file: str | None = None
    skew_seconds: float = Field(2.0, ge=0.1, le=10)
    report_seconds: float = Field(1.0, ge=0.05, le=30)
    idle_seconds: float = Field(60.0, ge=1, le=600)

    @field_validator("home")
    @classmethod
    def _home_is_an_address(cls, home: str) -> str:
        checked_address(home)
        return home

    @model_validator(mode="after")
    def _a_token_is_not_shown_to_everybody(self) -> RegionConfiguration:
        if self.token_file is not None and self.tls is None:
            raise ValueError("a token_file needs tls: without it everybody on the way reads the token")
        return self

    @model_validator(mode="after")
    def _nobody_on_the_way_reads_or_changes_anything(self) -> RegionConfiguration:
        if self.tls is None and not (self.insecure or is_loopback(self.home)):
            raise ValueError("expected tls, since the home is on another machine; or insecure: true")
        return self


def load_region(path: Path) -> RegionConfiguration:
    """Read and check a region's file.

    Raises:
        ConfigurationError: The file cannot be read, or is not valid.
    """
    try:
        return read_document(path, RegionConfiguration)
    except SecurityError as error:
        raise ConfigurationError(str(error)) from None
