"""SQLAlchemy's way to a gateway: `create_engine("gris://gateway.example.org:8443/?token_file=ana.jwt")`.

For pandas, SQLAlchemy Core and BI tools, on SQLAlchemy 1.4 and 2. Every statement that is executed is a question to the
gateway, paid for when it returns; tables and columns are those that the gateway's policy shows. Files of the URL are
names below the folder in the environment variable GRIS_CREDENTIALS_DIR.
"""

from pinot_connector.sqlalchemy.dialect import GrisDialect

__all__ = ["GrisDialect"]
