-- What the ledger keeps in PostgreSQL. Accounts and levels are written as their path joined by slashes, times in
-- microseconds. A change of this file is a new schema version. Everything of one root account is changed only
-- by whoever has locked its row in `roots`.

CREATE SCHEMA gris;

CREATE TABLE gris.schema (version integer NOT NULL);

-- The day of a level that a reservation or a charge was admitted on.
CREATE TYPE gris.hold AS (level text, window_start bigint);

-- What was charged in an earlier day of a sliding window.
CREATE TYPE gris.day AS (start bigint, leaves_at bigint, information bigint, calls bigint);

-- Rows that are written again and again leave room for their next version on the same page.
CREATE TABLE gris.roots (
  root text COLLATE "C" PRIMARY KEY,
  unit_id text NOT NULL,
  last_time bigint NOT NULL,
  limits_version bigint NOT NULL,
  currency_since bigint NOT NULL DEFAULT 0,
  next_unit_id text NOT NULL DEFAULT '',
  next_since bigint NOT NULL DEFAULT 0,
  ahead bigint NOT NULL DEFAULT 0,
  entries bigint NOT NULL DEFAULT 0,
  digest text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

-- The limits that an administrator has set, written as limits.limit_text.
CREATE TABLE gris.stored_limits (
  root text COLLATE "C" NOT NULL,
  level text COLLATE "C" NOT NULL,
  limit_text text NOT NULL,
  PRIMARY KEY (root, level)
);

-- The accounts that are closed.
CREATE TABLE gris.closed (
  root text COLLATE "C" NOT NULL,
  level text COLLATE "C" NOT NULL,
  PRIMARY KEY (root, level)
);

CREATE TABLE gris.balances (
  level text COLLATE "C" PRIMARY KEY,
  window_start bigint NOT NULL,
  window_end bigint CHECK (window_end > window_start),
  spent_information bigint NOT NULL DEFAULT 0 CHECK (spent_information >= 0),
  spent_calls bigint NOT NULL DEFAULT 0 CHECK (spent_calls >= 0),
  reserved_information bigint NOT NULL DEFAULT 0 CHECK (reserved_information >= 0),
  reserved_calls bigint NOT NULL DEFAULT 0 CHECK (reserved_calls >= 0),
  reserved_since bigint NOT NULL,
  leaves_at bigint,
  earlier gris.day[] NOT NULL DEFAULT '{}',
  rule text NOT NULL DEFAULT '',
  day_start bigint NOT NULL DEFAULT 0,
  day_end bigint NOT NULL DEFAULT 0,
  today_information bigint NOT NULL DEFAULT 0 CHECK (today_information >= 0),
  today_calls bigint NOT NULL DEFAULT 0 CHECK (today_calls >= 0)
) WITH (fillfactor = 50);

-- What was charged at each level on each day that is over.
CREATE TABLE gris.days (
  level text COLLATE "C" NOT NULL,
  day_start bigint NOT NULL,
  day_end bigint NOT NULL,
  information bigint NOT NULL,
  calls bigint NOT NULL,
  PRIMARY KEY (level, day_start)
);

CREATE TABLE gris.reservations (
  root text COLLATE "C" NOT NULL,
  reservation_id text COLLATE "C" NOT NULL,
  account text COLLATE "C" NOT NULL,
  request_id text COLLATE "C" NOT NULL,
  query_id text COLLATE "C" NOT NULL,
  information bigint NOT NULL,
  calls bigint NOT NULL,
  unit_id text NOT NULL,
  expires_at bigint NOT NULL,
  paid_release_id text COLLATE "C" NOT NULL,
  forfeits boolean NOT NULL,
  holds gris.hold[] NOT NULL,
  PRIMARY KEY (root, reservation_id)
);
CREATE INDEX reservations_by_end ON gris.reservations (root, expires_at, reservation_id);

CREATE TABLE gris.outcomes (
  root text COLLATE "C" NOT NULL,
  request_id text COLLATE "C" NOT NULL,
  fingerprint text NOT NULL,
  outcome text NOT NULL,
  keep_until bigint NOT NULL,
  PRIMARY KEY (root, request_id)
);
CREATE INDEX outcomes_by_age ON gris.outcomes (root, keep_until);

-- `kind` is release or query, `id` the release or the question that was paid for; NULL: kept for good.
CREATE TABLE gris.payments (
  payer text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  release_id text COLLATE "C" NOT NULL,
  window_start bigint NOT NULL,
  keep_until bigint,
  PRIMARY KEY (payer, kind, id)
);
CREATE INDEX payments_by_age ON gris.payments (payer, keep_until);

-- The entries of one root are numbered in the order they were written, since its row is locked while they are.
CREATE TABLE gris.journal (
  root text COLLATE "C" NOT NULL,
  entry bigint GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  account text COLLATE "C" NOT NULL,
  information bigint NOT NULL,
  calls bigint NOT NULL,
  unit_id text NOT NULL,
  request_id text COLLATE "C" NOT NULL,
  release_id text COLLATE "C" NOT NULL,
  query_id text COLLATE "C" NOT NULL,
  time bigint NOT NULL,
  holds gris.hold[] NOT NULL,
  policy_statement text NOT NULL DEFAULT '',
  shared_information bigint,
  shared_calls bigint,
  reason text NOT NULL DEFAULT '',
  actor text NOT NULL DEFAULT '',
  change text NOT NULL DEFAULT '',
  PRIMARY KEY (root, entry)
);

-- What stands for the dropped entries of each root, as JSON: see ledger.base.
CREATE TABLE gris.bases (
  root text COLLATE "C" PRIMARY KEY,
  position bigint NOT NULL,
  entries bigint NOT NULL,
  base text NOT NULL
);

CREATE FUNCTION gris.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'no entry of the journal can be changed';
END $$;

CREATE FUNCTION gris.refuse_unless_trimmed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM gris.bases WHERE root = OLD.root AND OLD.entry <= position) THEN
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
