-- Plan the next currency, or none any more: administration.change_currency.

CREATE FUNCTION gris_rules.change_currency(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
  begins_at bigint := CASE WHEN asked.unit_id = '' THEN 0 ELSE asked.window_end END;
  reason text := CASE
    WHEN asked.unit_id = '' AND draft.next_unit_id = '' THEN 'NO_CURRENCY_PLANNED'
    WHEN asked.unit_id <> '' AND draft.next_unit_id <> '' THEN 'CURRENCY_PLANNED'
    WHEN asked.unit_id <> '' AND asked.unit_id = draft.unit_id THEN 'UNIT_UNCHANGED'
    WHEN begins_at IS NULL THEN 'WINDOW_NEVER_ENDS'
  END;
BEGIN
  IF reason IS NOT NULL THEN
    draft.outcome := gris_rules.refused(reason);
    RETURN draft;
  END IF;
  draft.next_unit_id := asked.unit_id;
  draft.next_since := begins_at;
  INSERT INTO gris.journal (
    root, kind, account, information, calls, unit_id, request_id, release_id, query_id, time, holds
  ) VALUES (
    asked.root, 'currency', asked.account, 0, 0, asked.unit_id, asked.request_id, '', '', draft.now,
    ARRAY[(asked.account, begins_at)::gris.hold]
  );
  draft.outcome := json_build_array('currency', asked.unit_id, begins_at::text);
  RETURN draft;
END $$;
