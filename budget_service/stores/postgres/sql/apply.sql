-- What Python calls.

CREATE FUNCTION gris_rules.outcome(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
BEGIN
  IF asked.operation = 'release' THEN
    RETURN gris_rules.release(draft);
  END IF;
  IF asked.operation = 'write off' THEN
    RETURN gris_rules.write_off(draft);
  END IF;
  IF asked.operation = 'refund' THEN
    RETURN gris_rules.refund(draft);
  END IF;
  IF draft.unit_id NOT IN ('', asked.unit_id) THEN
    draft.outcome := gris_rules.refused('UNIT_MISMATCH');
    RETURN draft;
  END IF;
  IF asked.operation = 'reserve' THEN
    RETURN gris_rules.reserve(draft);
  END IF;
  IF asked.reservation_id <> '' THEN
    RETURN gris_rules.settle(draft);
  END IF;
  RETURN gris_rules.deduct(draft);
END $$;

-- Decide a request and write the change: rules.decide. `kind` is decided, replayed, reused (the id has other content),
-- limits (the levels were found with other ones than the root has now), or clock: Python guessed the time to find the
-- windows, guessed wrong and is told the time to ask again.
CREATE FUNCTION gris_rules.apply(told jsonb) RETURNS gris_rules.answer LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := jsonb_populate_record(NULL::gris_rules.request, told);
  root gris.roots := gris_rules.locked(asked.root);
  clock bigint := gris_rules.clock(asked.clock);
  now bigint := greatest(clock + root.ahead, root.last_time);
  draft gris_rules.draft := (
    asked, clock, root.ahead, now, root.unit_id, root.currency_since, root.next_unit_id, root.next_since, NULL, NULL, NULL, NULL
  )::gris_rules.draft;
  known gris.outcomes;
BEGIN
  -- Currency.at
  IF root.next_unit_id <> '' AND now >= root.next_since THEN
    draft.unit_id := root.next_unit_id;
    draft.since := root.next_since;
    draft.next_unit_id := '';
    draft.next_since := 0;
  END IF;
  SELECT * INTO known FROM gris.outcomes AS each
  WHERE each.root = asked.root AND each.request_id = asked.request_id AND draft.now < each.keep_until;
  IF FOUND THEN
    IF known.fingerprint <> asked.fingerprint THEN
      RETURN ('reused', '')::gris_rules.answer;
    END IF;
    RETURN ('replayed', known.outcome)::gris_rules.answer;
  END IF;
  IF asked.operation = 'set limits' THEN
    RETURN gris_rules.finish(gris_rules.set_limits(draft));
  END IF;
  IF asked.operation = 'resume clock' THEN
    RETURN gris_rules.finish(gris_rules.resume_clock(draft));
  END IF;
  IF asked.limits_version <> root.limits_version THEN
    -- Nothing was decided, so that a root that was only asked for is not there.
    DELETE FROM gris.roots AS each WHERE each.root = asked.root AND each.last_time = 0;
    RETURN ('limits', '')::gris_rules.answer;
  END IF;
  IF asked.operation = 'change currency' THEN
    IF draft.now < asked.window_start OR asked.window_end <= draft.now THEN
      RETURN ('clock', draft.now::text)::gris_rules.answer;
    END IF;
    RETURN gris_rules.finish(gris_rules.change_currency(draft));
  END IF;
  IF EXISTS (
    SELECT FROM unnest(asked.levels) AS each WHERE draft.now < each.window_start OR each.window_end <= draft.now
  ) THEN
    RETURN ('clock', draft.now::text)::gris_rules.answer;
  END IF;
  RETURN gris_rules.finish(gris_rules.outcome(gris_rules.refresh(gris_rules.expire(draft))));
END $$;

-- Decide several requests of one root account, one after the other, all of them or none: {kind, outcome} for each.
CREATE FUNCTION gris_rules.apply_all(told jsonb) RETURNS SETOF gris_rules.answer LANGUAGE plpgsql AS $$
DECLARE
  each jsonb;
BEGIN
  FOR each IN SELECT value FROM jsonb_array_elements(told) WITH ORDINALITY ORDER BY ordinality LOOP
    RETURN NEXT gris_rules.apply(each);
  END LOOP;
END $$;

-- What Python needs to state an account's balances by the pure rules, as of one moment: STABLE.
CREATE FUNCTION gris_rules.read(clock bigint, wanted_root text, wanted_levels text[], expired_at_once integer)
RETURNS json LANGUAGE sql STABLE AS $$
  WITH root AS (
    SELECT coalesce(max(unit_id), '') AS unit_id, coalesce(max(last_time), 0) AS last_time,
      coalesce(max(limits_version), 0) AS limits_version, coalesce(max(currency_since), 0) AS currency_since,
      coalesce(max(next_unit_id), '') AS next_unit_id, coalesce(max(next_since), 0) AS next_since,
      coalesce(max(ahead), 0) AS ahead
    FROM gris.roots WHERE root = wanted_root
  ), moment AS MATERIALIZED (
    SELECT *, greatest(gris_rules.clock(clock) + ahead, last_time) AS now FROM root
  ), due AS (
    SELECT * FROM gris.reservations
    WHERE root = wanted_root AND expires_at <= (SELECT now FROM moment)
    ORDER BY expires_at, reservation_id LIMIT expired_at_once
  )
  SELECT json_build_object(
    'now', now, 'unit_id', unit_id, 'last_time', last_time, 'limits_version', limits_version,
    'currency_since', currency_since, 'next_unit_id', next_unit_id, 'next_since', next_since, 'ahead', ahead,
    'balances', (SELECT json_agg(balance) FROM gris.balances AS balance WHERE level = ANY (wanted_levels)),
    'due', (SELECT json_agg(each ORDER BY expires_at, reservation_id) FROM due AS each)
  ) FROM moment
$$;
