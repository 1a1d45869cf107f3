"""What would be done to answer a question, for people."""

from __future__ import annotations

from gris_api.dp.v1 import dp_pb2

from dp_service.mechanisms.parameters import Cost
from dp_service.queries.resolution import Resolution

_MECHANISM_NAMES = {
    dp_pb2.MECHANISM_KNOWN_LAP: "KnownLap",
    dp_pb2.MECHANISM_KNOWN_GUMB: "KnownGumb",
    dp_pb2.MECHANISM_UNK_LAP: "UnkLap",
    dp_pb2.MECHANISM_UNK_GUMB: "UnkGumb",
}
_COUNT_NOISES = {
    dp_pb2.COUNT_NOISE_DISCRETE_LAPLACE: "discrete Laplace noise of scale",
    dp_pb2.COUNT_NOISE_DISCRETE_GAUSSIAN: "discrete Gaussian noise of standard deviation",
}


def explanation(resolution: Resolution, parameters: dp_pb2.MechanismParameters, worst: Cost) -> list[str]:
    """Return one sentence for each thing that policy resolved, and the price."""
    lines = [_question([name for name, _ in resolution.columns], parameters), _mechanism(parameters)]
    if resolution.window:
        lines.append(f"Only closed periods count: rows with {resolution.window}.")
    if parameters.d_bar:
        lines.append(f"The {parameters.d_bar} largest counts and the one after them are fetched.")
    if parameters.noise_scale:
        lines.append(f"Counts carry {_COUNT_NOISES[parameters.count_noise]} {parameters.noise_scale}.")
    lines.append(f"It costs at most {worst.information} information and {_calls(worst.calls)}.")
    return lines


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _question(columns: list[str], parameters: dp_pb2.MechanismParameters) -> str:
    size = parameters.domain_size
    domain = f"a known domain of {size} elements" if size else "an unknown domain"
    reach = f"at most {parameters.delta_l0}" if parameters.delta_l0 else "any number of"
    return (
        f"Counts by {', '.join(columns)} over {domain}; "
        f"a member changes {reach} elements, each by at most {parameters.tau}."
    )


def _mechanism(parameters: dp_pb2.MechanismParameters) -> str:
    name = _MECHANISM_NAMES[parameters.mechanism]
    delta = f" and delta = {parameters.delta}" if parameters.delta else ""
    return f"The mechanism is {name} with epsilon_per = {parameters.epsilon_per}{delta}."
