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
    rule text DEFAULT ''::text NOT NULL,
    day_start bigint DEFAULT 0 NOT NULL,
    day_end bigint DEFAULT 0 NOT NULL,
    today_information bigint DEFAULT 0 NOT NULL,
    today_calls bigint DEFAULT 0 NOT NULL,
    CONSTRAINT balances_check CHECK ((window_end > window_start)),
    CONSTRAINT balances_reserved_calls_check CHECK ((reserved_calls >= 0)),
    CONSTRAINT balances_reserved_information_check CHECK ((reserved_information >= 0)),
    CONSTRAINT balances_spent_calls_check CHECK ((spent_calls >= 0)),
    CONSTRAINT balances_spent_information_check CHECK ((spent_information >= 0)),
    CONSTRAINT balances_today_calls_check CHECK ((today_calls >= 0)),
    CONSTRAINT balances_today_information_check CHECK ((today_information >= 0))
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
CREATE TABLE gris.days (
    level text NOT NULL COLLATE pg_catalog."C",
    day_start bigint NOT NULL,
    day_end bigint NOT NULL,
    information bigint NOT NULL,
    calls bigint NOT NULL
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
CREATE TABLE gris.schema (
    version integer NOT NULL
);
INSERT INTO gris.balances VALUES ('acme/ann', 1790812800000000, 1791979200000001, 0, 0, 8, 8, 0, NULL, '{}', '', 1790812800000000, 1791979200000001, 23, 23);
INSERT INTO gris.balances VALUES ('acme', 1791979200000000, 1791979200000001, 0, 0, 8, 8, 0, NULL, '{}', '', 1791979200000000, 1791979200000001, 8, 8);
INSERT INTO gris.balances VALUES ('acme/bob', 1791849600000000, 1791892800000001, 0, 0, 0, 0, 0, NULL, '{}', '', 1791849600000000, 1791892800000001, 4, 4);
INSERT INTO gris.days VALUES ('acme/ann', 1788220800000000, 1789387200000001, 3, 3);
INSERT INTO gris.days VALUES ('acme', 1789387200000000, 1789387200000001, 3, 3);
INSERT INTO gris.days VALUES ('acme', 1790812800000000, 1791892800000001, 9, 9);
INSERT INTO gris.days VALUES ('acme', 1791806400000000, 1791806400000001, 10, 10);
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 1, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'september0', '', '', 1789387200000000, '{"(acme/ann,1788220800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 2, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'september1', '', '', 1789387200000000, '{"(acme/ann,1788220800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 3, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'september2', '', '', 1789387200000000, '{"(acme/ann,1788220800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 4, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'before0', 'before0', '', 1791806400000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 5, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'before1', 'before1', '', 1791806400000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 6, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'before2', 'before2', '', 1791806400000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 7, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'before3', 'before3', '', 1791806400000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 8, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'before4', 'before4', '', 1791806400000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 9, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'before5', 'before5', '', 1791806400000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 10, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'before6', 'before6', '', 1791806400000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 11, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'before7', 'before7', '', 1791806400000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 12, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'before8', 'before8', '', 1791806400000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 13, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'before9', 'before9', '', 1791806400000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 14, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'with0', '', '', 1791892800000000, '{"(acme,1790812800000000)","(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 15, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'with1', '', '', 1791892800000000, '{"(acme,1790812800000000)","(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 16, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'with2', '', '', 1791892800000000, '{"(acme,1790812800000000)","(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 17, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'with3', '', '', 1791892800000000, '{"(acme,1790812800000000)","(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 18, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'with4', '', '', 1791892800000000, '{"(acme,1790812800000000)","(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 19, 'direct', 'acme/bob', 1, 1, '0123456789abcdef0123456789abcdef', 'theirs0', '', '', 1791892800000000, '{"(acme,1790812800000000)","(acme/bob,1791849600000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 20, 'direct', 'acme/bob', 1, 1, '0123456789abcdef0123456789abcdef', 'theirs1', '', '', 1791892800000000, '{"(acme,1790812800000000)","(acme/bob,1791849600000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 21, 'direct', 'acme/bob', 1, 1, '0123456789abcdef0123456789abcdef', 'theirs2', '', '', 1791892800000000, '{"(acme,1790812800000000)","(acme/bob,1791849600000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 22, 'direct', 'acme/bob', 1, 1, '0123456789abcdef0123456789abcdef', 'theirs3', '', '', 1791892800000000, '{"(acme,1790812800000000)","(acme/bob,1791849600000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 23, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'after0', '', '', 1791979200000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 24, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'after1', '', '', 1791979200000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 25, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'after2', '', '', 1791979200000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 26, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'after3', '', '', 1791979200000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 27, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'after4', '', '', 1791979200000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 28, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'after5', '', '', 1791979200000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 29, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'after6', '', '', 1791979200000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.journal OVERRIDING SYSTEM VALUE VALUES ('acme', 30, 'direct', 'acme/ann', 1, 1, '0123456789abcdef0123456789abcdef', 'after7', '', '', 1791979200000000, '{"(acme/ann,1790812800000000)"}', '', NULL, NULL, '');
INSERT INTO gris.ledger VALUES ('4ead4a52-ba5b-4220-9919-a158ea105f1b', 0);
INSERT INTO gris.outcomes VALUES ('acme', 'september0', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1788220800000000", "1790812800000000", "1", "1", "0", "0"]]]', 1793836800000000);
INSERT INTO gris.outcomes VALUES ('acme', 'september1', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1788220800000000", "1790812800000000", "2", "2", "0", "0"]]]', 1793836800000000);
INSERT INTO gris.outcomes VALUES ('acme', 'september2', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1788220800000000", "1790812800000000", "3", "3", "0", "0"]]]', 1793836800000000);
INSERT INTO gris.outcomes VALUES ('acme', 'before0', 'b78c88d7361a1704bb9e1265499a7e8be29cbb1282c61f73a9c5b1e947ba8c96', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "1", "1", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'before1', '33bdcb88127adea0202bb05746563ef0c00fe86397accb843d80c6ec67f5a9ec', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "2", "2", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'before2', 'e9cbba72cdc70ba1b26382b829bca1c49d60ffb38ca578616253d07b71e8f481', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "3", "3", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'before3', 'd3391e2486e093ae0d2218c323a838840087c86c39f6f8d9fa85d4f3ac38475b', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "4", "4", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'before4', '747da3ec2f81ee6583c9a34aec3a25decfd1af165cd840962a6cd67a37d8be3b', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "5", "5", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'before5', '5d469d29ad8f25081aa6da8468c41f5cd179f1be201eb1c1cad6eed068f4c521', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "6", "6", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'before6', '6cc1680860b654c99a6170c20fff982e96d7364964fb7c1d411415d35fbbcafd', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "7", "7", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'before7', 'c98c0661889d8466087e6855aa8379148387d3da6c67168b763921d7f99406db', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "8", "8", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'before8', 'a08b60cb54832867c1cfb63de63ce5afa0306bee8742377440b44e519dc1ce17', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "9", "9", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'before9', '79390aa703e71e837e83b6240426e847e28f36529de892df60629bebf2945916', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "10", "10", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'with0', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["1", "45", "45", "enforce", "1790812800000000", "1793491200000000", "1", "1", "0", "0"], ["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "11", "11", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'with1', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["1", "45", "45", "enforce", "1790812800000000", "1793491200000000", "2", "2", "0", "0"], ["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "12", "12", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'with2', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["1", "45", "45", "enforce", "1790812800000000", "1793491200000000", "3", "3", "0", "0"], ["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "13", "13", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'with3', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["1", "45", "45", "enforce", "1790812800000000", "1793491200000000", "4", "4", "0", "0"], ["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "14", "14", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'with4', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["1", "45", "45", "enforce", "1790812800000000", "1793491200000000", "5", "5", "0", "0"], ["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "15", "15", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'theirs0', 'ba01d61b000ab65f2a386d015b703c0076bda387b01fe79de16afaf555d403f1', '["charged", "1", "1", "0", [["1", "45", "45", "enforce", "1790812800000000", "1793491200000000", "6", "6", "0", "0"], ["2", "50", "50", "enforce", "1791849600000000", "1792454400000000", "1", "1", "0", "0"]]]', 1795478400000000);
INSERT INTO gris.outcomes VALUES ('acme', 'theirs1', 'ba01d61b000ab65f2a386d015b703c0076bda387b01fe79de16afaf555d403f1', '["charged", "1", "1", "0", [["1", "45", "45", "enforce", "1790812800000000", "1793491200000000", "7", "7", "0", "0"], ["2", "50", "50", "enforce", "1791849600000000", "1792454400000000", "2", "2", "0", "0"]]]', 1795478400000000);
INSERT INTO gris.outcomes VALUES ('acme', 'theirs2', 'ba01d61b000ab65f2a386d015b703c0076bda387b01fe79de16afaf555d403f1', '["charged", "1", "1", "0", [["1", "45", "45", "enforce", "1790812800000000", "1793491200000000", "8", "8", "0", "0"], ["2", "50", "50", "enforce", "1791849600000000", "1792454400000000", "3", "3", "0", "0"]]]', 1795478400000000);
INSERT INTO gris.outcomes VALUES ('acme', 'theirs3', 'ba01d61b000ab65f2a386d015b703c0076bda387b01fe79de16afaf555d403f1', '["charged", "1", "1", "0", [["1", "45", "45", "enforce", "1790812800000000", "1793491200000000", "9", "9", "0", "0"], ["2", "50", "50", "enforce", "1791849600000000", "1792454400000000", "4", "4", "0", "0"]]]', 1795478400000000);
INSERT INTO gris.outcomes VALUES ('acme', 'after0', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "16", "16", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'after1', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "17", "17", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'after2', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "18", "18", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'after3', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "19", "19", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'after4', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "20", "20", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'after5', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "21", "21", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'after6', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "22", "22", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'after7', 'ce2ade249336eaa02216962f75ccd5a342afec29e81d606a472852b0aa9565f5', '["charged", "1", "1", "0", [["2", "100", "100", "enforce", "1790812800000000", "1793491200000000", "23", "23", "0", "0"]]]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'held0', '36201986a6e4194dd3ea3449a54549a24f4ca701bd1064f28c8673133fb4effd', '["reserved", "hold-held0", "1", "1", "1791979800000000", "0"]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'held1', 'ac665b83a02481f934bacc4d46724935f18b314a7c6964ffbbb44858829270ac', '["reserved", "hold-held1", "1", "1", "1791979800000000", "0"]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'held2', '4351e5bf631912d90d98991c0df201113747b958c4378e492c4fbf1686fea7dc', '["reserved", "hold-held2", "1", "1", "1791979800000000", "0"]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'held3', '93eb99936c5c09f96d621ec8c525c14daf66e8d9d856f48921a0410227362008', '["reserved", "hold-held3", "1", "1", "1791979800000000", "0"]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'held4', '0284089a6afec253924e42f0117388c4bf6bd0ac32d5a13ecea4c0b0c20c9fff', '["reserved", "hold-held4", "1", "1", "1791979800000000", "0"]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'held5', 'c6a557979d919709b3e117ca20e5e5e312782f1f13a820b5d09e6ca7cfdbfbf5', '["reserved", "hold-held5", "1", "1", "1791979800000000", "0"]', 1796515200000000);
INSERT INTO gris.outcomes VALUES ('acme', 'in both', '5e7edba829fd8285106060f0ea1faca8d6a4524e7be85050b4f59b55b6defa36', '["reserved", "hold-in both", "2", "2", "1791979800000000", "0"]', 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'before0', 'before0', 1790812800000000, 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'before1', 'before1', 1790812800000000, 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'before2', 'before2', 1790812800000000, 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'before3', 'before3', 1790812800000000, 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'before4', 'before4', 1790812800000000, 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'before5', 'before5', 1790812800000000, 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'before6', 'before6', 1790812800000000, 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'before7', 'before7', 1790812800000000, 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'before8', 'before8', 1790812800000000, 1796515200000000);
INSERT INTO gris.payments VALUES ('acme/ann', 'release', 'before9', 'before9', 1790812800000000, 1796515200000000);
INSERT INTO gris.reservations VALUES ('acme', 'hold-held0', 'acme/ann', 'held0', 'query-held0', 1, 1, '0123456789abcdef0123456789abcdef', 1791979800000000, '', false, '{"(acme,1791979200000000)","(acme/ann,1790812800000000)"}');
INSERT INTO gris.reservations VALUES ('acme', 'hold-held1', 'acme/ann', 'held1', 'query-held1', 1, 1, '0123456789abcdef0123456789abcdef', 1791979800000000, '', false, '{"(acme,1791979200000000)","(acme/ann,1790812800000000)"}');
INSERT INTO gris.reservations VALUES ('acme', 'hold-held2', 'acme/ann', 'held2', 'query-held2', 1, 1, '0123456789abcdef0123456789abcdef', 1791979800000000, '', false, '{"(acme,1791979200000000)","(acme/ann,1790812800000000)"}');
INSERT INTO gris.reservations VALUES ('acme', 'hold-held3', 'acme/ann', 'held3', 'query-held3', 1, 1, '0123456789abcdef0123456789abcdef', 1791979800000000, '', false, '{"(acme,1791979200000000)","(acme/ann,1790812800000000)"}');
INSERT INTO gris.reservations VALUES ('acme', 'hold-held4', 'acme/ann', 'held4', 'query-held4', 1, 1, '0123456789abcdef0123456789abcdef', 1791979800000000, '', false, '{"(acme,1791979200000000)","(acme/ann,1790812800000000)"}');
INSERT INTO gris.reservations VALUES ('acme', 'hold-held5', 'acme/ann', 'held5', 'query-held5', 1, 1, '0123456789abcdef0123456789abcdef', 1791979800000000, '', false, '{"(acme,1791979200000000)","(acme/ann,1790812800000000)"}');
INSERT INTO gris.reservations VALUES ('acme', 'hold-in both', 'acme/ann', 'in both', 'query-in both', 2, 2, '0123456789abcdef0123456789abcdef', 1791979800000000, '', false, '{"(acme,1790812800000000)","(acme/ann,1790812800000000)"}');
INSERT INTO gris.roots VALUES ('acme', '0123456789abcdef0123456789abcdef', 1791979200000000, 0, 0, '', 0, 0);
INSERT INTO gris.schema VALUES (7);
SELECT pg_catalog.setval('gris.journal_entry_seq', 30, true);
ALTER TABLE ONLY gris.balances
    ADD CONSTRAINT balances_pkey PRIMARY KEY (level);
ALTER TABLE ONLY gris.checkpoint_sums
    ADD CONSTRAINT checkpoint_sums_pkey PRIMARY KEY (root, level, window_start);
ALTER TABLE ONLY gris.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (root);
ALTER TABLE ONLY gris.days
    ADD CONSTRAINT days_pkey PRIMARY KEY (level, day_start);
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
