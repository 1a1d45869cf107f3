"""Releases a histogram privately, as a stream of chunks."""

import os

import grpc
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc, question_pb2

# The data_version that the policy declares. For a table without one, send the version that its engine reports.
VERSION = "sha256:9c2421aef2b1692b3c8692d6ccbd3fe8a5b237e0cc62dc5ed3e0d41d4eb81234"

service = dp_pb2_grpc.DpServiceStub(grpc.insecure_channel(os.environ["GRIS_DP"]))
question = question_pb2.Question(
    sql="SELECT app, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY app ORDER BY 2 DESC LIMIT 3"
)
translated = service.TranslateQuery(dp_pb2.TranslateQueryRequest(question=question, data_version=VERSION))
# The engine's answer to the translated query: true counts, which only the application's server may see.
apps = histogram_pb2.StringValues(values=["RUMORS_LINE_BOT", "WEBSITE"])
histogram = histogram_pb2.Histogram(
    columns=[histogram_pb2.ElementColumn(name="app", strings=apps)], counts=[23_000, 1_500]
)
header = dp_pb2.ReleaseHeader(plan=translated.plan, data_version=VERSION)
parts = [
    dp_pb2.AddNoiseRequest(header=header),
    dp_pb2.AddNoiseRequest(chunk=histogram),
    dp_pb2.AddNoiseRequest(end=dp_pb2.ReleaseEnd(row_count=len(histogram.counts))),
]
for part in service.AddNoise(iter(parts)):
    if part.HasField("shown"):
        print(list(part.shown.columns[0].strings.values), list(part.shown.noisy_counts))
    else:
        # Only now is it a release. Show it to nobody before UpdateBudget has charged it.
        print("costs", part.end.bill.cost.information, "release", part.end.bill.release_id)
