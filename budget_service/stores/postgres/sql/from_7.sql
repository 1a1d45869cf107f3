-- From schema 7 to 8: accounts are closed and moved. A process of schema 7 knows nothing of it, and would let closed
-- accounts spend: it finds no limits under the name that it knows, and can do nothing from now on.

ALTER TABLE gris.limits RENAME TO stored_limits;

CREATE TABLE gris.accounts (
  root text COLLATE "C" NOT NULL,
  level text COLLATE "C" NOT NULL,
  state text NOT NULL,
  PRIMARY KEY (root, level)
);
