-- What the ledger keeps in PostgreSQL; `stores.rows` has the keys and what the texts are. A change of this file is a new
-- schema version. Everything of one root account is changed only by whoever has locked its row `roots`.

CREATE SCHEMA gris;

CREATE TABLE gris.schema (version integer NOT NULL);

-- Rows that are written again and again leave room for their next version on the same page.
CREATE TABLE gris.rows (
  root text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  text text NOT NULL,
  keep_until bigint,
  PRIMARY KEY (root, key)
) WITH (fillfactor = 80);
CREATE INDEX rows_by_age ON gris.rows (root, keep_until) WHERE keep_until IS NOT NULL;
CREATE UNIQUE INDEX roots ON gris.rows (root) WHERE key = 'roots';

CREATE VIEW gris.balances AS SELECT
  root,
  substr(key, 10) AS level,
  (text::json #>> '{0,0}')::bigint AS window_start,
  (text::json #>> '{0,1}')::bigint AS window_end,
  (text::json #>> '{3,0}')::bigint AS spent_information,
  (text::json #>> '{3,1}')::bigint AS spent_calls,
  (text::json #>> '{4,0}')::bigint AS reserved_information,
  (text::json #>> '{4,1}')::bigint AS reserved_calls
FROM gris.rows WHERE key > E'balances\t' AND key < E'balances\n';

-- The entries of one root have the numbers from 1 on.
CREATE TABLE gris.journal (
  root text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  text text NOT NULL,
  PRIMARY KEY (root, number)
);

CREATE FUNCTION gris.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'no entry of the journal can be changed';
END $$;

CREATE FUNCTION gris.refuse_unless_trimmed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM gris.rows WHERE root = OLD.root AND key = 'bases' AND OLD.number <= (text::json ->> 'entries')::bigint
  ) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'only a trim drops entries of the journal';
END $$;

CREATE TRIGGER journal_is_not_changed BEFORE UPDATE OR TRUNCATE ON gris.journal
  FOR EACH STATEMENT EXECUTE FUNCTION gris.refuse();
CREATE TRIGGER journal_is_not_shortened BEFORE DELETE ON gris.journal
  FOR EACH ROW EXECUTE FUNCTION gris.refuse_unless_trimmed();

-- One row: the ledger's own name and how often it was counted on, which the marks beside the services repeat.
CREATE TABLE gris.ledger (ledger_id text NOT NULL, count bigint NOT NULL);
INSERT INTO gris.ledger VALUES (gen_random_uuid()::text, 0);
