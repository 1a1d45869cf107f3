"""The parameters of a release as a message, in the form in which people read them."""

from __future__ import annotations

from gris_api.dp.v1 import dp_pb2

from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.kinds import coverage, kind_of
from dp_service.server.listing_messages import name_of_conditions
from dp_service.server.messages import CONSISTENCIES, MECHANISMS, filled


def parameters_message(asked: ReleaseParameters) -> dp_pb2.MechanismParameters:
    """Return the parameters of a release in the form in which people read them."""
    known, listing = asked.domain is not None, asked.listing
    message = dp_pb2.MechanismParameters(
        mechanism=MECHANISMS[asked.mechanism],
        epsilon_per=str(asked.epsilon_per),
        delta="" if known else str(asked.delta),
        consistency=CONSISTENCIES[asked.consistency],
        tau=asked.tau,
        clipped=asked.clips,
        domain_size=len(asked.domain or ()),
        k=asked.k or 0,
        in_element_order=listing is not None and listing.in_element_order,
        smallest_first=listing is not None and listing.smallest_first,
        having="" if listing is None else name_of_conditions(listing.having),
    )
    kind = kind_of(asked)
    return filled(message, {**kind.said, **coverage.said(kind.coverage)})
