-- Charge: rules._charge and rules._settle.

CREATE FUNCTION gris_rules.charged(draft gris_rules.draft) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_array(
    'charged', (draft.asked).information::text, (draft.asked).calls::text, '0', gris_rules.statuses(draft)
  );
END $$;

CREATE FUNCTION gris_rules.already_paid(draft gris_rules.draft) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_array('charged', '0', '0', '1', gris_rules.statuses(draft));
END $$;

-- JournalEntry.cost_at: the account itself counts what is asked, the levels above it what is `shared`, unless that is
-- NULL.
CREATE FUNCTION gris_rules.spend(
  draft gris_rules.draft, kind text, question text, counts_in gris.hold[], shared_information bigint DEFAULT NULL,
  shared_calls bigint DEFAULT NULL
) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
BEGIN
  draft.unit_id := asked.unit_id;
  INSERT INTO gris.journal (
    root, kind, account, information, calls, unit_id, request_id, release_id, query_id, time, holds,
    policy_statement, shared_information, shared_calls
  ) VALUES (
    asked.root, kind, asked.account, asked.information, asked.calls, asked.unit_id, asked.request_id,
    asked.release_id, question, draft.now, counts_in, coalesce(asked.policy_statement, ''),
    shared_information, shared_calls
  );
  IF shared_information IS NULL THEN
    PERFORM gris_rules.add_spent(counts_in, asked.information, asked.calls);
  ELSE
    PERFORM gris_rules.add_spent(
      ARRAY(SELECT hold FROM unnest(counts_in) AS hold WHERE hold.level = asked.account), asked.information, asked.calls
    );
    PERFORM gris_rules.add_spent(
      ARRAY(SELECT hold FROM unnest(counts_in) AS hold WHERE hold.level <> asked.account), shared_information,
      shared_calls
    );
  END IF;
  draft.outcome := gris_rules.charged(draft);
  RETURN draft;
END $$;

-- Why a reservation cannot be settled by what is asked, NULL if it can. `recorded` is the release its question was paid
-- for as.
CREATE FUNCTION gris_rules.mismatch(asked gris_rules.request, reservation gris.reservations, recorded text)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN asked.unit_id <> reservation.unit_id THEN 'UNIT_MISMATCH'
    WHEN asked.query_id NOT IN ('', reservation.query_id) THEN 'QUERY_MISMATCH'
    WHEN reservation.paid_release_id NOT IN ('', asked.release_id) THEN 'RELEASE_MISMATCH'
    WHEN recorded NOT IN ('', asked.release_id) THEN 'RELEASE_MISMATCH'
  END
$$;

-- The start of the leaf's span in which what was held there is paid for, NULL if it counts no more.
CREATE FUNCTION gris_rules.payment_span(draft gris_rules.draft, hold gris.hold) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  balance gris.balances;
BEGIN
  SELECT * INTO balance FROM gris.balances WHERE level = hold.level;
  RETURN CASE
    WHEN balance.level IS NULL OR NOT gris_rules.counts(balance, hold.window_start) THEN NULL
    WHEN hold.level = (draft.leaf).level THEN hold.window_start
    ELSE (draft.leaf).window_start
  END;
END $$;

CREATE FUNCTION gris_rules.settle(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
  reservation gris.reservations := gris_rules.named_reservation(draft);
  reason text;
BEGIN
  IF reservation.reservation_id IS NULL THEN
    draft.outcome := gris_rules.refused('RESERVATION_OVER');
    RETURN draft;
  END IF;
  reason := gris_rules.mismatch(asked, reservation, gris_rules.recorded_release(draft, reservation.query_id));
  IF reason IS NOT NULL THEN
    draft.outcome := gris_rules.refused(reason);
    RETURN draft;
  END IF;
  IF reservation.paid_release_id <> '' AND NOT gris_rules.was_paid(draft) THEN
    draft.outcome := gris_rules.refused('RESERVATION_OVER');
    RETURN draft;
  END IF;
  IF reservation.paid_release_id <> '' OR gris_rules.is_paid(draft) THEN
    PERFORM gris_rules.end_reservation(reservation);
    draft.outcome := gris_rules.already_paid(draft);
    RETURN draft;
  END IF;
  IF asked.information > reservation.information OR asked.calls > reservation.calls THEN
    draft.outcome := gris_rules.refused('COST_ABOVE_RESERVATION');
    RETURN draft;
  END IF;
  PERFORM gris_rules.end_reservation(reservation);
  draft := gris_rules.spend(
    draft, 'settled', reservation.query_id, reservation.holds,
    CASE WHEN asked.worst_case_above THEN reservation.information END,
    CASE WHEN asked.worst_case_above THEN reservation.calls END
  );
  draft.paid_in := gris_rules.payment_span(draft, reservation.holds[cardinality(reservation.holds)]);
  draft.paid_query_id := reservation.query_id;
  RETURN draft;
END $$;

CREATE FUNCTION gris_rules.deduct(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
BEGIN
  IF gris_rules.recorded_release(draft, asked.query_id) NOT IN ('', asked.release_id) THEN
    draft.outcome := gris_rules.refused('RELEASE_MISMATCH');
    RETURN draft;
  END IF;
  IF gris_rules.is_paid(draft) THEN
    draft.outcome := gris_rules.already_paid(draft);
    RETURN draft;
  END IF;
  draft.outcome := gris_rules.admission(draft);
  IF draft.outcome IS NOT NULL THEN
    RETURN draft;
  END IF;
  draft := gris_rules.spend(draft, 'direct', asked.query_id, gris_rules.holds(draft));
  draft.paid_in := (draft.leaf).window_start;
  draft.paid_query_id := asked.query_id;
  RETURN draft;
END $$;
