"""Shows the first two elements of a release of which all were asked for before."""

import os

import grpc
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc, question_pb2

# The data_version that the policy declares. For a table without one, send the version that its engine reports.
VERSION = "sha256:9c2421aef2b1692b3c8692d6ccbd3fe8a5b237e0cc62dc5ed3e0d41d4eb81234"
SQL = "SELECT app, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY app ORDER BY 2 DESC LIMIT "

service = dp_pb2_grpc.DpServiceStub(grpc.insecure_channel(os.environ["GRIS_DP"]))


def plan_of(k: int) -> bytes:
    """Translate a question for the k largest."""
    question = question_pb2.Question(sql=f"{SQL}{k}")
    request = dp_pb2.TranslateQueryRequest(question=question, data_version=VERSION)
    return service.TranslateQuery(request).plan


apps = histogram_pb2.StringValues(values=["RUMORS_LINE_BOT", "WEBSITE"])
histogram = histogram_pb2.Histogram(
    columns=[histogram_pb2.ElementColumn(name="app", strings=apps)], counts=[23_000, 1_500]
)
drawing = dp_pb2.ReleaseHeader(plan=plan_of(3), data_version=VERSION, keep=True)
kept = service.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=drawing, histogram=histogram)).release.kept

elements = kept.elements.columns[0].strings.values
ascending = sorted(elements)
rows = dp_pb2.KeptChunk(
    elements=kept.elements,
    element_ranks=[ascending.index(each) for each in elements],
)
header = dp_pb2.KeptHeader(plan=plan_of(2), kept=kept)
header.kept.ClearField("elements")
del rows.elements.columns[:]
# One message has all of a small release; a larger one is cut into chunks of at most 1 MiB, and so is the answer.
request = dp_pb2.ShowReleaseRequest(header=header, chunk=rows, end=dp_pb2.ReleaseEnd(row_count=len(elements)))
(response,) = service.ShowRelease(iter([request]))
shown, release = response.shown, response.end
places = release.rows or range(release.shown.element_count)
for place, low, high in zip(places, shown.interval_lower, shown.interval_upper, strict=True):
    print(elements[place], low, high)
