"""Identification of callers: by the certificate of the connection, or by the token of the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gris_gateway.accounts import AccountError, Caller, checked_segment
from gris_gateway.configuration import AccountRule, AudienceRule, IdentityRules
from gris_serving.admitting import Sender
from gris_serving.identity import bearer_token, certificate_names
from gris_serving.instrumentation import Instrumentation
from gris_serving.tokens import TokenError, TokenVerifier, is_or_lists
from pinot_connector.audiences import Audience


class UnknownCallerError(Exception):
    """The caller has neither a token nor a certificate; the message says what was expected."""


class NoAccountError(Exception):
    """The caller is known but has no account here, or no audience."""


class Callers:
    """Identifies callers by the rules of the configuration.

    A token takes precedence over a certificate: an application with its own certificate may pass its analysts' tokens.
    Where no tokens are accepted, one is refused: its sender means its account, and another one would pay.

    Raises:
        SecurityError: A file of the keys of tokens cannot be used.
    """

    def __init__(self, rules: IdentityRules, audiences: Sequence[AudienceRule] = ()) -> None:
        self._rules = rules
        self._audiences = audiences
        self._verifier = None if rules.jwt is None else TokenVerifier(rules.jwt)

    def start(self, instrumentation: Instrumentation) -> None:
        """Begin to fetch the keys of tokens, if their issuer publishes them."""
        if self._verifier is not None:
            self._verifier.start(instrumentation)

    def caller(self, sender: Sender) -> Caller:
        """Return the caller that a sender is.

        Raises:
            TokenError: There is a token that is not accepted, whatever certificate came with it; none is where the
                configuration has no `identity.jwt`.
            UnknownCallerError: There is neither a token nor a certificate.
            NoAccountError: No rule gives the caller one account, or its account an audience where there are any.
        """
        return self._with_audience(self._identified(sender))

    def named(self, name: str, account: tuple[str, ...]) -> Caller:
        """Return the caller of a name that something else has identified, and of this account.

        Raises:
            NoAccountError: The account has no audience, where there are any.
        """
        return self._with_audience(Caller(name, account))

    def _with_audience(self, caller: Caller) -> Caller:
        return replace(caller, audience=_audience(self._audiences, caller.own)) if self._audiences else caller

    def _identified(self, sender: Sender) -> Caller:
        token = bearer_token(sender)
        if token is not None and self._verifier is None:
            raise TokenError("no tokens are accepted here; callers are known by their certificates")
        if token is not None and self._verifier is not None:
            return self._by_claims(self._verifier.claims(token))
        names = certificate_names(sender)
        if not names:
            raise UnknownCallerError("expected a token or a certificate that says who calls")
        return self._by_names(names)

    def _by_names(self, names: frozenset[str]) -> Caller:
        rules = {name: rule for name, rule in self._rules.certificates.items() if name in names}
        accounts = {tuple(rule.account) for rule in rules.values()}
        if len(accounts) != 1:
            raise NoAccountError
        below = all(rule.accounts_below for rule in rules.values())
        return Caller(min(rules), accounts.pop(), below)

    def _by_claims(self, claims: Mapping[str, Any]) -> Caller:
        rules = () if self._rules.jwt is None else self._rules.jwt.accounts
        for rule in rules:
            if is_or_lists(claims.get(rule.claim), rule.equals):
                own = _account(rule, claims)
                subject = claims.get("sub", "")
                return Caller(f"token:{subject}:{own}", own, rule.accounts_below)
        raise NoAccountError


def _audience(rules: Sequence[AudienceRule], account: tuple[str, ...]) -> Audience:
    """Return the audience of the first rule whose accounts an account is one of, or below."""
    for rule in rules:
        if account[: len(rule.accounts)] == tuple(rule.accounts):
            if max(rule.segments.values(), default=0) >= len(account):
                break
            return Audience(rule.audience, {name: account[at] for name, at in rule.segments.items()})
    raise NoAccountError


def _account(rule: AccountRule, claims: Mapping[str, Any]) -> tuple[str, ...]:
    if rule.append is None:
        return tuple(rule.prefix)
    try:
        return (*rule.prefix, checked_segment(claims.get(rule.append)))
    except AccountError:
        raise NoAccountError from None
