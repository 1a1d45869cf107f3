"""A gateway that knows its callers by tokens."""

from __future__ import annotations

from gris_gateway.callers import Callers
from gris_gateway.configuration import IdentityRules
from tests.support.pki import ISSUER, Issuer

AUDIENCE = "gateway"


def known_by_tokens(issuer: Issuer) -> Callers:
    """Return what knows callers by their tokens; each has an account of its own."""
    rules = IdentityRules.model_validate(
        {
            "jwt": {
                "key_file": str(issuer.key_file),
                "algorithms": ["ES256"],
                "issuer": ISSUER,
                "audience": AUDIENCE,
                "accounts": [{"claim": "iss", "equals": ISSUER, "prefix": ["app"], "append": "sub"}],
            }
        }
    )
    return Callers(rules)
