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
    limits_version bigint NOT NULL,
    currency_since bigint DEFAULT 0 NOT NULL,
    next_unit_id text DEFAULT ''::text NOT NULL,
    next_since bigint DEFAULT 0 NOT NULL,
    ahead bigint DEFAULT 0 NOT NULL
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
    digest text NOT NULL,
    currency text DEFAULT ''::text NOT NULL
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
    holds gris.hold[] NOT NULL,
    policy_statement text DEFAULT ''::text NOT NULL,
    shared_information bigint,
    shared_calls bigint,
    reason text DEFAULT ''::text NOT NULL
);
ALTER TABLE gris.journal ALTER COLUMN entry ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME gris.journal_entry_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE gris.ledger (
    ledger_id text NOT NULL,
    count bigint NOT NULL
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
INSERT INTO gris.balances VALUES ('acme/ann', 1791936000000000, 1792022400000000, 3, 1, 4, 1, 1791936000000000, 1792540800000000, '{}');
INSERT INTO gris.balances VALUES ('acme', 1790812800000000, 1793491200000000, 4, 2, 5, 2, 1790812800000000, NULL, '{}');
INSERT INTO gris.balances VALUES ('acme/bob', 1790812800000000, 1793491200000000, 1, 1, 1, 1, 1790812800000000, NULL, '{}');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 1, 'direct', 'acme/ann', 3, 1, '0123456789abcdef0123456789abcdef', 'paid', 'rel', 'q-paid', 1791979200000000, '{"(acme,1790812800000000)","(acme/ann,1791936000000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 2, 'direct', 'acme/bob', 1, 1, '0123456789abcdef0123456789abcdef', '\0
''"\\{}:%é😀2', '\0
''"\\{}:%é😀', '', 1791979200000000, '{"(acme,1790812800000000)","(acme/bob,1790812800000000)"}', 'a\0b\\', NULL, NULL, '');
INSERT INTO gris.ledger VALUES ('956f672f-fcb3-4776-9b9f-a77e6e56a69d', 0);
INSERT INTO gris.limits VALUES ('acme', 'acme/ann', '11:5:enforce:month:0:UTC');
INSERT INTO gris.outcomes VALUES ('acme', 'paid', 'cbd1ec11fcd734abf5bdeeaac218d56afac28bc695401d609bfe5bb29edae41b', '["charged", "3", "1", "0", [["1", "30", "9", "enforce", "1790812800000000", "1793491200000000", "3", "1", "0", "0"], ["2", "10", "5", "enforce", "1791936000000000", "1792540800000000", "3", "1", "0", "0"]]]', 1795564800000000);
INSERT INTO gris.outcomes VALUES ('acme', 'paid again', '3bf691621c366795cdcf1f3312442ea0804c42e7b4ef251c8c1c25df14dca341', '["charged", "0", "0", "1", [["1", "30", "9", "enforce", "1790812800000000", "1793491200000000", "3", "1", "0", "0"], ["2", "10", "5", "enforce", "1791936000000000", "1792540800000000", "3", "1", "0", "0"]]]', 1795564800000000);
INSERT INTO gris.outcomes VALUES ('acme', 'too much', '3f6846f17f1d810972170bb374bfed394509af72cad556effaf0437b93559556', '["exhausted", "1791979200000000", [["2", "information", "9", "7", "1792540800000000"]]]', 1791982800000000);
INSERT INTO gris.outcomes VALUES ('acme', 'foreign', '7a57be32f99b62a67cbd854de6662efa415ee65c5211eb37de507f5f1c58a635', '["refused", "UNIT_MISMATCH"]', 1791982800000000);
INSERT INTO gris.outcomes VALUES ('acme', 'r', 'e381387b1dbe23e62088cd13a1f65f52219fdfedfd3f0318ecb5a8642ea140eb', '["reserved", "hold-r", "4", "1", "1791979260000000", "0"]', 1795564800000000);
INSERT INTO gris.outcomes VALUES ('acme', '\0
''"\\{}:%é😀', '5559a4ad8e50e3ec91b5833d986a9bf724a37c96d97b658b70b7d7386e85623d', '["reserved", "hold-\\0\n''\"\\\\{}:%é😀", "1", "1", "1791979260000000", "0"]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'cancelled', '51c82d27f892b121edac39ba7ea58282b1e54c85b90ccbbc0655431c05b32083', '["reserved", "hold-cancelled", "1", "1", "1791979260000000", "0"]', 1795564800000000);
INSERT INTO gris.outcomes VALUES ('acme', 'x', '82feb0dc8a3e28753de939d3aa6cb4711a3da052db377c6b44b22294d744fb03', '["released", "1", "1", "0123456789abcdef0123456789abcdef"]', 1795564800000000);
INSERT INTO gris.outcomes VALUES ('acme', 'y', '82feb0dc8a3e28753de939d3aa6cb4711a3da052db377c6b44b22294d744fb03', '["refused", "RESERVATION_OVER"]', 1791982800000000);
INSERT INTO gris.outcomes VALUES ('acme', '\0
''"\\{}:%é😀2', 'b354d20d4cea5f093fc9438b1fea67ea71c98f5343f411e2e0ed377871ad6090', '["charged", "1", "1", "0", [["1", "30", "9", "enforce", "1790812800000000", "1793491200000000", "4", "2", "5", "2"], ["2", "10", "5", "enforce", "1790812800000000", "1793491200000000", "1", "1", "1", "1"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'set', '51d8fd61a88c93cb4dddca1ac362db7b2a9922acbcb83883bc96f2a815a95b40', '["limits", "1"]', 1795003200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'rel', 'rel', 1791936000000000, 1795564800000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'query', 'q-paid', 'rel', 1791936000000000, 1795564800000000);
INSERT INTO gris.payments VALUES ('acme/bob', 'release', '\0
''"\\{}:%é😀', '\0
''"\\{}:%é😀', 1790812800000000, 1796515200000000);
INSERT INTO gris.reservations VALUES ('acme', 'hold-r', 'acme/ann', 'r', 'q', 4, 1, '0123456789abcdef0123456789abcdef', 1791979260000000, '', false, '{"(acme,1790812800000000)","(acme/ann,1791936000000000)"}');
INSERT INTO gris.reservations VALUES ('acme', 'hold-\0
''"\\{}:%é😀', 'acme/bob', '\0
''"\\{}:%é😀', '\0
''"\\{}:%é😀', 1, 1, '0123456789abcdef0123456789abcdef', 1791979260000000, '', false, '{"(acme,1790812800000000)","(acme/bob,1790812800000000)"}');
INSERT INTO gris.roots VALUES ('acme', '0123456789abcdef0123456789abcdef', 1791979200000000, 1, 0, '', 0, 0);
INSERT INTO gris.schema VALUES (5);
SELECT pg_catalog.setval('gris.journal_entry_seq', 2, true);
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
