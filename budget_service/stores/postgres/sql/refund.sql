-- Give back what was charged for a release: rules._refund.

-- Balance.charged_in
CREATE FUNCTION gris_rules.charged_in(balance gris.balances, span_start bigint) RETURNS gris.day
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF balance.window_start = span_start THEN
    RETURN gris_rules.today(balance);
  END IF;
  RETURN (SELECT day::gris.day FROM unnest(balance.earlier) AS day WHERE day.start = span_start LIMIT 1);
END $$;

CREATE FUNCTION gris_rules.refund(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
  above_information bigint := coalesce(asked.shared_information, asked.information);
  above_calls bigint := coalesce(asked.shared_calls, asked.calls);
  counted gris.hold[] := ARRAY(
    SELECT (hold.level, hold.window_start)::gris.hold
    FROM unnest(asked.holds) WITH ORDINALITY AS hold (level, window_start, place)
    JOIN gris.balances AS balance ON balance.level = hold.level
    WHERE gris_rules.counts(balance, hold.window_start) ORDER BY hold.place
  );
  was_charged boolean := (
    SELECT bool_and(
      CASE WHEN hold.level = asked.account THEN asked.information ELSE above_information END <= charged.information
      AND CASE WHEN hold.level = asked.account THEN asked.calls ELSE above_calls END <= charged.calls
    )
    FROM unnest(counted) AS hold
    JOIN gris.balances AS balance ON balance.level = hold.level
    CROSS JOIN LATERAL gris_rules.charged_in(balance, hold.window_start) AS charged
  );
BEGIN
  -- Nothing counted: NULL.
  IF was_charged IS NOT TRUE OR NOT gris_rules.is_paid(draft) THEN
    draft.outcome := gris_rules.refused('NOT_PAID');
    RETURN draft;
  END IF;
  INSERT INTO gris.journal (
    root, kind, account, information, calls, unit_id, request_id, release_id, query_id, time, holds,
    shared_information, shared_calls, reason
  ) VALUES (
    asked.root, 'refunded', asked.account, asked.information, asked.calls, asked.unit_id, asked.request_id,
    asked.release_id, asked.query_id, draft.now, counted, asked.shared_information, asked.shared_calls, asked.reason
  );
  PERFORM gris_rules.add_spent(
    ARRAY(SELECT hold FROM unnest(counted) AS hold WHERE hold.level = asked.account), -asked.information, -asked.calls
  );
  PERFORM gris_rules.add_spent(
    ARRAY(SELECT hold FROM unnest(counted) AS hold WHERE hold.level <> asked.account), -above_information, -above_calls
  );
  DELETE FROM gris.payments WHERE payer = asked.payer AND release_id = asked.release_id
    AND ((kind = 'release' AND id = asked.release_id) OR (kind = 'query' AND id = asked.query_id));
  draft.outcome := json_build_array('released', asked.information::text, asked.calls::text, asked.unit_id);
  RETURN draft;
END $$;
