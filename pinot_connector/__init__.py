"""The application side of Gris: asks an engine, adds noise, pays, and only then shows a result.

    with PrivateClient(dp="localhost:50051", budget="localhost:50052", account="app/acme/ana", engine=engine) as client:
        result = client.top_k("feedback", "article_id", 10)

It sees true counts and is trusted code: it belongs on the application's server.
"""

from pinot_connector.audiences import Audience
from pinot_connector.budgets import Cost, Level, Mode, Share
from pinot_connector.catalog import Catalog
from pinot_connector.channels import Timeouts
from pinot_connector.client import AsyncPrivateClient
from pinot_connector.endpoints import Credentials, Endpoint
from pinot_connector.gateway_client import AsyncGatewayClient, gateway_address
from pinot_connector.guarantees import Guarantee
from pinot_connector.parameters import Mechanism
from pinot_connector.questions import (
    Between,
    In,
    Measure,
    NotIn,
    sql_question,
    structured_question,
)
from pinot_connector.results import Explanation, PrivateResult, Row
from pinot_connector.sync_client import GatewayClient, PrivateClient

__all__ = [
    "AsyncGatewayClient",
    "AsyncPrivateClient",
    "Audience",
    "Between",
    "Catalog",
    "Cost",
    "Credentials",
    "Endpoint",
    "Explanation",
    "GatewayClient",
    "Guarantee",
    "In",
    "Level",
    "Measure",
    "Mechanism",
    "Mode",
    "NotIn",
    "PrivateClient",
    "PrivateResult",
    "Row",
    "Share",
    "Timeouts",
    "gateway_address",
    "sql_question",
    "structured_question",
]
