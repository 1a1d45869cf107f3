-- From schema 1 to 2: each root had one currency from the beginning.

ALTER TABLE gris.roots
  ADD COLUMN currency_since bigint NOT NULL DEFAULT 0,
  ADD COLUMN next_unit_id text NOT NULL DEFAULT '',
  ADD COLUMN next_since bigint NOT NULL DEFAULT 0,
  ADD COLUMN ahead bigint NOT NULL DEFAULT 0;
ALTER TABLE gris.checkpoints ADD COLUMN currency text NOT NULL DEFAULT '';
UPDATE gris.checkpoints AS each SET currency = unit_id || ',0,,0' FROM gris.roots AS root WHERE root.root = each.root;
CREATE TABLE gris.ledger (ledger_id text NOT NULL, count bigint NOT NULL);
INSERT INTO gris.ledger VALUES (gen_random_uuid()::text, 0);
