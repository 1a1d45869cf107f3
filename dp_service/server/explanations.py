"""What would be done to answer a question, in sentences for people."""

from __future__ import annotations

from fractions import Fraction

from dp_service.mechanisms.parameters import Cost
from dp_service.queries.resolution import Resolution
from dp_service.release_parameters import ReleaseParameters
from dp_service.terms import CountNoise

_COUNT_NOISES = {
    CountNoise.LAPLACE: "discrete Laplace noise of scale",
    CountNoise.GAUSSIAN: "discrete Gaussian noise of standard deviation",
}


def explanation(resolution: Resolution, noise_scale: Fraction | None, worst: Cost) -> list[str]:
    """Return one sentence for each thing that the policy resolved, and the price.

    Args:
        resolution: The question as the policy resolves it.
        noise_scale: The scale of the noise in the counts; None: no counts are shown.
        worst: The most that the question can cost.
    """
    parameters = resolution.parameters
    lines = [_question([name for name, _ in resolution.columns], parameters), _mechanism(parameters)]
    if resolution.requested_k is not None:
        lines.append(
            f"The question asks for {resolution.requested_k} elements; the policy shows at most {parameters.k}."
        )
    if resolution.window:
        lines.append(f"Only closed periods count: rows with {resolution.window}.")
    if parameters.d_bar:
        lines.append(f"The {parameters.d_bar} largest counts and the one after them are fetched.")
    if noise_scale is not None:
        lines.append(f"Counts carry {_COUNT_NOISES[parameters.count_noise]} {noise_scale}.")
    lines.append(f"It costs at most {worst.information} information and {_calls(worst.calls)}.")
    return lines


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _question(columns: list[str], parameters: ReleaseParameters) -> str:
    size = len(parameters.domain or ())
    domain = f"a known domain of {size} elements" if size else "an unknown domain"
    reach = f"at most {parameters.delta_l0}" if parameters.delta_l0 else "any number of"
    return (
        f"Counts by {', '.join(columns)} over {domain}; "
        f"a member changes {reach} elements, each by at most {parameters.tau}."
    )


def _mechanism(parameters: ReleaseParameters) -> str:
    delta = f" and delta = {parameters.delta}" if parameters.domain is None else ""
    return f"The mechanism is {parameters.mechanism} with epsilon_per = {parameters.epsilon_per}{delta}."
