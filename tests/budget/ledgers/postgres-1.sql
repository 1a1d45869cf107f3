CREATE SCHEMA gris;
CREATE TYPE gris.day AS (
	start bigint,
	leaves_at bigint,
	information bigint,
	calls bigint
);
CREATE TYPE gris.hold AS (
	level text,
	window_start bigint
);
CREATE TABLE gris.balances (
    level text NOT NULL COLLATE pg_catalog."C",
    window_start bigint NOT NULL,
    window_end bigint,
    spent_information bigint DEFAULT 0 NOT NULL,
    spent_calls bigint DEFAULT 0 NOT NULL,
    reserved_information bigint DEFAULT 0 NOT NULL,
    reserved_calls bigint DEFAULT 0 NOT NULL,
    reserved_since bigint NOT NULL,
    leaves_at bigint,
    earlier gris.day[] DEFAULT '{}'::gris.day[] NOT NULL,
    CONSTRAINT balances_check CHECK ((window_end > window_start)),
    CONSTRAINT balances_reserved_calls_check CHECK ((reserved_calls >= 0)),
    CONSTRAINT balances_reserved_information_check CHECK ((reserved_information >= 0)),
    CONSTRAINT balances_spent_calls_check CHECK ((spent_calls >= 0)),
    CONSTRAINT balances_spent_information_check CHECK ((spent_information >= 0))
)
WITH (fillfactor='50');
CREATE FUNCTION gris.refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'the journal is append-only';
END $$;
CREATE FUNCTION gris.refuse_unless_sealed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF EXISTS (SELECT FROM gris.checkpoints WHERE root = OLD.root AND OLD.entry <= position) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'the journal is append-only';
END $$;
CREATE TABLE gris.reservations (
    root text NOT NULL COLLATE pg_catalog."C",
    reservation_id text NOT NULL COLLATE pg_catalog."C",
    account text NOT NULL COLLATE pg_catalog."C",
    request_id text NOT NULL COLLATE pg_catalog."C",
    query_id text NOT NULL COLLATE pg_catalog."C",
    information bigint NOT NULL,
    calls bigint NOT NULL,
    unit_id text NOT NULL,
    expires_at bigint NOT NULL,
    paid_release_id text NOT NULL COLLATE pg_catalog."C",
    forfeits boolean NOT NULL,
    holds gris.hold[] NOT NULL
);
CREATE TABLE gris.roots (
    root text NOT NULL COLLATE pg_catalog."C",
    unit_id text NOT NULL,
    last_time bigint NOT NULL,
    limits_version bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE gris.checkpoint_sums (
    root text NOT NULL COLLATE pg_catalog."C",
    level text NOT NULL COLLATE pg_catalog."C",
    window_start bigint NOT NULL,
    information bigint NOT NULL,
    calls bigint NOT NULL
);
CREATE TABLE gris.checkpoints (
    root text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    entries bigint NOT NULL,
    digest text NOT NULL
);
CREATE TABLE gris.journal (
    root text NOT NULL COLLATE pg_catalog."C",
    entry bigint NOT NULL,
    kind text NOT NULL,
    account text NOT NULL COLLATE pg_catalog."C",
    information bigint NOT NULL,
    calls bigint NOT NULL,
    unit_id text NOT NULL,
    request_id text NOT NULL COLLATE pg_catalog."C",
    release_id text NOT NULL COLLATE pg_catalog."C",
    query_id text NOT NULL COLLATE pg_catalog."C",
    "time" bigint NOT NULL,
    holds gris.hold[] NOT NULL
);
ALTER TABLE gris.journal ALTER COLUMN entry ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME gris.journal_entry_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE gris.limits (
    root text NOT NULL COLLATE pg_catalog."C",
    level text NOT NULL COLLATE pg_catalog."C",
    limit_text text NOT NULL
);
CREATE TABLE gris.outcomes (
    root text NOT NULL COLLATE pg_catalog."C",
    request_id text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL,
    outcome text NOT NULL,
    keep_until bigint NOT NULL
);
CREATE TABLE gris.payments (
    payer text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    release_id text NOT NULL COLLATE pg_catalog."C",
    window_start bigint NOT NULL,
    keep_until bigint
);
CREATE TABLE gris.schema (
    version integer NOT NULL
);
INSERT INTO gris.balances VALUES ('acme', 1790812800000000, 1793491200000000, 3, 1, 6, 2, 1790812800000000, NULL, '{}');
INSERT INTO gris.balances VALUES ('acme/ann', 1790812800000000, 1793491200000000, 3, 1, 6, 2, 1790812800000000, NULL, '{}');
INSERT INTO gris.checkpoint_sums VALUES ('acme', 'acme', 1790812800000000, 3, 1);
INSERT INTO gris.checkpoint_sums VALUES ('acme', 'acme/ann', 1790812800000000, 3, 1);
INSERT INTO gris.checkpoints VALUES ('acme', 1, 1, 'f068a5c206609dade3ac54992f3e922f0a193eff436648af5cf1e72009ac1268');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 1, 'direct', 'acme/ann', 3, 1, '0123456789abcdef0123456789abcdef', 'paid', 'rel', 'q-paid', 1791979200000000, '{"(acme,1790812800000000)","(acme/ann,1790812800000000)"}');
INSERT INTO gris.outcomes VALUES ('acme', 'paid', 'cbd1ec11fcd734abf5bdeeaac218d56afac28bc695401d609bfe5bb29edae41b', '["charged", "3", "1", "0", [["1", "30", "9", "enforce", "1790812800000000", "1793491200000000", "3", "1", "0", "0"], ["2", "10", "5", "enforce", "1790812800000000", "1793491200000000", "3", "1", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'r', 'a9ac1853b6aeb2b2fe861e74f40a18e4022923a9d4156a4811792ec8b162fb01', '["reserved", "hold-r", "4", "1", "1791979800000000", "0"]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 's', '6a38ea91d50b7947b89dfaec292699fa1ef11aa2884b3d450866f33e1e2087ad', '["reserved", "hold-s", "2", "1", "1791979800000000", "0"]', 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'rel', 'rel', 1790812800000000, 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'query', 'q-paid', 'rel', 1790812800000000, 1796515200000000);
INSERT INTO gris.reservations VALUES ('acme', 'hold-r', 'acme/ann', 'r', 'query-r', 4, 1, '0123456789abcdef0123456789abcdef', 1791979800000000, '', false, '{"(acme,1790812800000000)","(acme/ann,1790812800000000)"}');
INSERT INTO gris.reservations VALUES ('acme', 'hold-s', 'acme/ann', 's', 'query-s', 2, 1, '0123456789abcdef0123456789abcdef', 1791979800000000, '', false, '{"(acme,1790812800000000)","(acme/ann,1790812800000000)"}');
INSERT INTO gris.roots VALUES ('acme', '0123456789abcdef0123456789abcdef', 1791979200000000, 0);
INSERT INTO gris.schema VALUES (1);
SELECT pg_catalog.setval('gris.journal_entry_seq', 1, true);
ALTER TABLE ONLY gris.balances
    ADD CONSTRAINT balances_pkey PRIMARY KEY (level);
ALTER TABLE ONLY gris.checkpoint_sums
    ADD CONSTRAINT checkpoint_sums_pkey PRIMARY KEY (root, level, window_start);
ALTER TABLE ONLY gris.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (root);
ALTER TABLE ONLY gris.journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY (root, entry);
ALTER TABLE ONLY gris.limits
    ADD CONSTRAINT limits_pkey PRIMARY KEY (root, level);
ALTER TABLE ONLY gris.outcomes
    ADD CONSTRAINT outcomes_pkey PRIMARY KEY (root, request_id);
ALTER TABLE ONLY gris.payments
    ADD CONSTRAINT payments_pkey PRIMARY KEY (payer, kind, id);
ALTER TABLE ONLY gris.reservations
    ADD CONSTRAINT reservations_pkey PRIMARY KEY (root, reservation_id);
ALTER TABLE ONLY gris.roots
    ADD CONSTRAINT roots_pkey PRIMARY KEY (root);
CREATE INDEX outcomes_by_age ON gris.outcomes USING btree (root, keep_until);
CREATE INDEX payments_by_age ON gris.payments USING btree (payer, keep_until);
CREATE INDEX reservations_by_end ON gris.reservations USING btree (root, expires_at, reservation_id);
CREATE TRIGGER journal_is_not_changed BEFORE UPDATE OR TRUNCATE ON gris.journal FOR EACH STATEMENT EXECUTE FUNCTION gris.refuse();
CREATE TRIGGER journal_is_not_shortened BEFORE DELETE ON gris.journal FOR EACH ROW EXECUTE FUNCTION gris.refuse_unless_sealed();
