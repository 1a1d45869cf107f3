"""The RPC that checks the text of a policy, for its author. It reads neither data nor files, and serves nothing."""

from __future__ import annotations

from collections.abc import Iterable

from gris_api.dp.v1 import dp_pb2

from dp_service.queries.currency import Currency
from dp_service.queries.errors import PolicyError, Problem, first_problems
from dp_service.queries.policy import PolicyFile, read_policy
from dp_service.queries.policy_review import review
from dp_service.releases.kinds import UnusableParametersError, require_usable
from dp_service.server.errors import RequestError

LARGEST_TEXT_BYTES = 512 * 1024


def check_policy(request: dp_pb2.CheckPolicyRequest, served: Currency) -> dp_pb2.CheckPolicyResponse:
    """Return what is wrong with a policy, or what its author should know.

    Args:
        request: The text.
        served: The currency of the policy that is served.

    Raises:
        RequestError: The text is too long.
    """
    content = request.text.encode()
    if len(content) > LARGEST_TEXT_BYTES:
        raise RequestError("text", f"expected at most {LARGEST_TEXT_BYTES} bytes")
    try:
        # A text from outside must not make this process open files.
        file = read_policy(content, "policy", reads_files=False)
    except PolicyError as error:
        return dp_pb2.CheckPolicyResponse(faults=_messages(error.problems))
    try:
        require_usable(file.policy)
    except UnusableParametersError as error:
        fault = file.document.problem(("epsilon_per",), str(error))
        return dp_pb2.CheckPolicyResponse(faults=_messages([fault]))
    return _sound(file, served)


def _sound(file: PolicyFile, served: Currency) -> dp_pb2.CheckPolicyResponse:
    found = review(file)
    return dp_pb2.CheckPolicyResponse(
        tables=[table.name for table in file.policy.tables],
        warnings=_messages(first_problems(found.warnings, len(found.warnings))),
        defaults=[dp_pb2.PolicyDefault(key=each.key, value=each.value) for each in found.defaults],
        keeps_currency=file.policy.currency == served,
    )


def _messages(problems: Iterable[Problem]) -> list[dp_pb2.PolicyProblem]:
    return [dp_pb2.PolicyProblem(line=each.line, key=each.key, message=each.message) for each in problems]
