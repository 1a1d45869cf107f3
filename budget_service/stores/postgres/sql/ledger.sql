-- The arithmetic and the draft of budget_service/ledger, in the same order. Python passes one JSON object, with all that
-- needs a calendar or a hash computed; it brings this file along, into a schema named after the text (`gris_rules` here).
--
-- Every change runs alone within its root account, whose row it locks before it reads anything else. So two of them can
-- never wait for each other, and each statement sees what the one before it wrote (READ COMMITTED).

-- A level with its limit and its span around the time that Python guessed.
CREATE TYPE gris_rules.level AS (
  level text, depth integer, information bigint, calls bigint, mode text, window_start bigint, window_end bigint,
  counts_from bigint, leaves_at bigint
);

-- A limit that is set, or removed if its text is NULL.
CREATE TYPE gris_rules.limit_change AS (level text, limit_text text);

-- `clock` is the time to use instead of PostgreSQL's own, NULL outside tests; `limits_version` that of the root's stored
-- limits which the levels were found with.
CREATE TYPE gris_rules.request AS (
  operation text, clock bigint, root text, account text, payer text, levels gris_rules.level[], fingerprint text,
  request_id text, reservation_id text, query_id text, release_id text, information bigint, calls bigint, unit_id text,
  policy_statement text, worst_case_above boolean, reason text,
  holds gris.hold[], shared_information bigint, shared_calls bigint, ttl bigint, forfeits boolean, expired_at_once integer, purged_at_once integer, retention bigint,
  refusal_retention bigint, limits_version bigint,
  window_start bigint, window_end bigint, told_time bigint, clock_tolerance bigint,
  changes gris_rules.limit_change[], most_limits bigint
);

-- `unit_id`, `since`, `next_unit_id` and `next_since` are the currency of the root at `now`, which is `ahead` of `clock`.
-- `leaf` is the balance of the last level; a release that is now paid for is so in the leaf's span that began at
-- `paid_in`, as the answer to `paid_query_id`.
CREATE TYPE gris_rules.draft AS (
  asked gris_rules.request, clock bigint, ahead bigint, now bigint, unit_id text, since bigint, next_unit_id text, next_since bigint,
  leaf gris.balances, outcome json, paid_in bigint, paid_query_id text
);

CREATE TYPE gris_rules.answer AS (kind text, outcome text);

CREATE FUNCTION gris_rules.clock(told_clock bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT coalesce(told_clock, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;

-- Lock before anything is read, also for a repeat: the commit of a lock waits for the standbys as that of a charge does,
-- so that a repeat acknowledges nothing that a fail-over could still lose.
CREATE FUNCTION gris_rules.locked(wanted text) RETURNS gris.roots LANGUAGE plpgsql AS $$
DECLARE
  found_root gris.roots;
BEGIN
  LOOP
    SELECT * INTO found_root FROM gris.roots WHERE root = wanted FOR UPDATE;
    IF FOUND THEN
      RETURN found_root;
    END IF;
    INSERT INTO gris.roots VALUES (wanted, '', 0, 0) ON CONFLICT DO NOTHING;
  END LOOP;
END $$;

CREATE FUNCTION gris_rules.add_reserved(holds gris.hold[], information bigint, calls bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE gris.balances AS balance
  SET reserved_information = reserved_information + information, reserved_calls = reserved_calls + calls
  FROM unnest(holds) AS hold
  WHERE balance.level = hold.level AND hold.window_start >= balance.reserved_since;
END $$;

CREATE FUNCTION gris_rules.end_reservation(ended gris.reservations) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM gris.reservations WHERE root = ended.root AND reservation_id = ended.reservation_id;
  PERFORM gris_rules.add_reserved(ended.holds, -ended.information, -ended.calls);
END $$;

CREATE FUNCTION gris_rules.add_spent(holds gris.hold[], information bigint, calls bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE gris.balances AS balance
  SET spent_information = spent_information + information, spent_calls = spent_calls + calls,
      earlier = gris_rules.charged_days(balance.earlier, hold.window_start, information, calls)
  FROM unnest(holds) AS hold
  WHERE balance.level = hold.level AND gris_rules.counts(balance, hold.window_start);
END $$;

-- Write charges of reservations that lapse and are forfeited, the oldest first; the first one fixes the currency.
CREATE FUNCTION gris_rules.forfeit(draft gris_rules.draft, lapsed gris.reservations[]) RETURNS gris_rules.draft
LANGUAGE plpgsql AS $$
DECLARE
  first_unit_id text := (
    SELECT unit_id FROM unnest(lapsed) WHERE forfeits ORDER BY expires_at, reservation_id LIMIT 1
  );
BEGIN
  draft.unit_id := coalesce(nullif(draft.unit_id, ''), first_unit_id, '');
  INSERT INTO gris.journal (
    root, kind, account, information, calls, unit_id, request_id, release_id, query_id, time, holds
  )
  SELECT root, 'forfeited', account, information, calls, unit_id, request_id, '', query_id, expires_at, holds
  FROM unnest(lapsed) WHERE forfeits ORDER BY expires_at, reservation_id;
  RETURN draft;
END $$;

CREATE FUNCTION gris_rules.expire(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  lapsed gris.reservations[] := ARRAY(
    SELECT each FROM gris.reservations AS each
    WHERE root = (draft.asked).root AND expires_at <= draft.now
    ORDER BY expires_at, reservation_id LIMIT (draft.asked).expired_at_once
  );
  held record;
BEGIN
  IF lapsed = '{}' THEN
    RETURN draft;
  END IF;
  DELETE FROM gris.reservations WHERE root = (draft.asked).root AND reservation_id IN (
    SELECT reservation_id FROM unnest(lapsed)
  );
  -- Many hold in the same spans, whose balances are written once.
  FOR held IN
    SELECT ARRAY[hold] AS spans, sum(information)::bigint AS information, sum(calls)::bigint AS calls,
      sum(information * forfeits::integer)::bigint AS lost_information,
      sum(calls * forfeits::integer)::bigint AS lost_calls
    FROM unnest(lapsed) AS each CROSS JOIN unnest(each.holds) AS hold GROUP BY hold
  LOOP
    PERFORM gris_rules.add_reserved(held.spans, -held.information, -held.calls);
    PERFORM gris_rules.add_spent(held.spans, held.lost_information, held.lost_calls);
  END LOOP;
  RETURN gris_rules.forfeit(draft, lapsed);
END $$;

-- Every level is brought up to now, and written only if that changed it.
CREATE FUNCTION gris_rules.refresh(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  span gris_rules.level;
  last gris.balances;
BEGIN
  FOREACH span IN ARRAY (draft.asked).levels LOOP
    SELECT * INTO last FROM gris.balances WHERE level = span.level;
    draft.leaf := CASE
      WHEN last.level IS NULL THEN gris_rules.opened_balance(span, span.window_start)
      ELSE gris_rules.moved(last, span, draft.now)
    END;
    IF (draft.leaf).reserved_since < draft.since AND (span.mode = 'track' OR gris_rules.is_empty(draft.leaf)) THEN
      draft.leaf := gris_rules.opened_balance(span, greatest(span.window_start, draft.since));
    END IF;
    IF draft.leaf IS DISTINCT FROM last THEN
      INSERT INTO gris.balances SELECT (draft.leaf).* ON CONFLICT (level) DO UPDATE
      SET window_start = excluded.window_start, window_end = excluded.window_end, leaves_at = excluded.leaves_at,
          spent_information = excluded.spent_information, spent_calls = excluded.spent_calls,
          reserved_information = excluded.reserved_information, reserved_calls = excluded.reserved_calls,
          reserved_since = excluded.reserved_since, earlier = excluded.earlier;
    END IF;
  END LOOP;
  RETURN draft;
END $$;

-- What the rules ask of the draft. Sums of what is spent and reserved never leave 64 bits: `admission` sees to it.

CREATE FUNCTION gris_rules.shortfalls(draft gris_rules.draft, asked_information bigint, asked_calls bigint)
RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN (
    SELECT json_agg(
      json_build_array(
        each.depth::text, unit.name, unit.asked::text, left_over::text, coalesce(counted.window_end::text, '')
      ) ORDER BY each.depth, unit.place
    )
    FROM unnest((draft.asked).levels) AS each
    JOIN gris.balances AS balance USING (level)
    CROSS JOIN LATERAL gris_rules.counted(balance, each, draft.since) AS counted
    CROSS JOIN LATERAL (VALUES
      (
        1, 'information', asked_information, each.information,
        counted.spent_information + counted.reserved_information
      ),
      (2, 'calls', asked_calls, each.calls, counted.spent_calls + counted.reserved_calls)
    ) AS unit (place, name, asked, maximum, used)
    CROSS JOIN LATERAL greatest(unit.maximum - unit.used, 0) AS left_over
    WHERE each.mode = 'enforce' AND unit.asked > left_over
  );
END $$;

CREATE FUNCTION gris_rules.is_countable(draft gris_rules.draft, asked_information bigint, asked_calls bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN (
    SELECT bool_and(
      asked_information <= 9223372036854775807 - counted.spent_information - counted.reserved_information
      AND asked_calls <= 9223372036854775807 - counted.spent_calls - counted.reserved_calls
    )
    FROM unnest((draft.asked).levels) AS each JOIN gris.balances AS balance USING (level)
    CROSS JOIN LATERAL gris_rules.counted(balance, each, draft.since) AS counted
  );
END $$;

CREATE FUNCTION gris_rules.refused(reason text) RETURNS json LANGUAGE sql AS $$
  SELECT json_build_array('refused', reason)
$$;

-- Why what is asked may not be added to every level, NULL if it may.
CREATE FUNCTION gris_rules.admission(draft gris_rules.draft) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
  missing json := gris_rules.shortfalls(draft, asked.information, asked.calls);
BEGIN
  IF missing IS NOT NULL THEN
    RETURN json_build_array('exhausted', draft.now::text, missing);
  END IF;
  IF NOT gris_rules.is_countable(draft, asked.information, asked.calls) THEN
    RETURN gris_rules.refused('SUM_OVERFLOW');
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION gris_rules.statuses(draft gris_rules.draft) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN (
    SELECT json_agg(
      json_build_array(
        each.depth::text, each.information::text, each.calls::text, each.mode, counted.window_start::text,
        coalesce(counted.window_end::text, ''), counted.spent_information::text, counted.spent_calls::text,
        counted.reserved_information::text, counted.reserved_calls::text
      ) ORDER BY each.depth
    )
    FROM unnest((draft.asked).levels) AS each
    JOIN gris.balances AS balance USING (level)
    CROSS JOIN LATERAL gris_rules.counted(balance, each, draft.since) AS counted
  );
END $$;

CREATE FUNCTION gris_rules.holds(draft gris_rules.draft) RETURNS gris.hold[] LANGUAGE plpgsql AS $$
BEGIN
  RETURN (
    SELECT array_agg((level, balance.window_start)::gris.hold ORDER BY depth)
    FROM unnest((draft.asked).levels) AS each JOIN gris.balances AS balance USING (level)
  );
END $$;

CREATE FUNCTION gris_rules.named_reservation(draft gris_rules.draft) RETURNS gris.reservations LANGUAGE plpgsql AS $$
BEGIN
  RETURN (
    SELECT each FROM gris.reservations AS each
    WHERE root = (draft.asked).root AND reservation_id = (draft.asked).reservation_id
      AND account = (draft.asked).account AND draft.now < expires_at
  );
END $$;

CREATE FUNCTION gris_rules.recorded_release(draft gris_rules.draft, question text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce((
    SELECT release_id FROM gris.payments
    WHERE payer = (draft.asked).payer AND kind = 'query' AND id = question
      AND window_start >= draft.since AND gris_rules.counts(draft.leaf, window_start)
  ), '');
END $$;

CREATE FUNCTION gris_rules.is_paid(draft gris_rules.draft) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM gris.payments
    WHERE payer = (draft.asked).payer AND kind = 'release' AND id = (draft.asked).release_id
      AND window_start >= draft.since AND gris_rules.counts(draft.leaf, window_start)
  );
END $$;

-- In any span, however old: only a refund takes that away.
CREATE FUNCTION gris_rules.was_paid(draft gris_rules.draft) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM gris.payments
    WHERE payer = (draft.asked).payer AND kind = 'release' AND id = (draft.asked).release_id
  );
END $$;

-- What is written for every decision, whatever it is.

CREATE FUNCTION gris_rules.write_payment(draft gris_rules.draft) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO gris.payments
  SELECT (draft.asked).payer, paid.kind, paid.id, (draft.asked).release_id, draft.paid_in,
    gris_rules.last_end(draft.leaf) + (draft.asked).retention
  FROM (VALUES ('release', (draft.asked).release_id), ('query', draft.paid_query_id)) AS paid (kind, id)
  WHERE paid.id <> ''
  ON CONFLICT (payer, kind, id) DO UPDATE
  SET release_id = excluded.release_id, window_start = excluded.window_start, keep_until = excluded.keep_until;
END $$;

-- What is out of date goes a little at a time, faster than it comes, so that no request pays for a month.
CREATE FUNCTION gris_rules.purge(draft gris_rules.draft) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM gris.outcomes WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM gris.outcomes
    WHERE root = (draft.asked).root AND keep_until <= draft.now LIMIT (draft.asked).purged_at_once
  ));
  DELETE FROM gris.payments WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM gris.payments
    WHERE payer = (draft.asked).payer AND keep_until <= draft.now LIMIT (draft.asked).purged_at_once
  ));
END $$;

CREATE FUNCTION gris_rules.finish(draft gris_rules.draft) RETURNS gris_rules.answer LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
  is_refusal boolean := draft.outcome ->> 0 IN ('refused', 'exhausted');
  keep_until bigint := CASE
    WHEN is_refusal THEN draft.now + asked.refusal_retention
    ELSE coalesce(gris_rules.last_end(draft.leaf), draft.now) + asked.retention
  END;
BEGIN
  UPDATE gris.roots SET
    unit_id = draft.unit_id, currency_since = draft.since, next_unit_id = draft.next_unit_id,
    next_since = draft.next_since, last_time = draft.now, ahead = draft.ahead
  WHERE root = asked.root;
  IF draft.paid_in IS NOT NULL AND asked.release_id <> '' THEN
    PERFORM gris_rules.write_payment(draft);
  END IF;
  INSERT INTO gris.outcomes AS old VALUES (
    asked.root, asked.request_id, asked.fingerprint, draft.outcome::text, keep_until
  ) ON CONFLICT (root, request_id) DO UPDATE
  SET fingerprint = excluded.fingerprint, outcome = excluded.outcome, keep_until = excluded.keep_until;
  PERFORM gris_rules.purge(draft);
  RETURN ('decided', draft.outcome::text)::gris_rules.answer;
END $$;
