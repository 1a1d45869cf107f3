-- Hold a worst case: rules._reserve.

CREATE FUNCTION gris_rules.reserve(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
  recorded text := gris_rules.recorded_release(draft, asked.query_id);
  expires_at bigint := draft.now + asked.ttl;
  held_information bigint := 0;
  held_calls bigint := 0;
  held_in gris.hold[] := '{}';
BEGIN
  IF recorded = '' THEN
    draft.outcome := gris_rules.admission(draft);
    IF draft.outcome IS NOT NULL THEN
      RETURN draft;
    END IF;
    held_information := asked.information;
    held_calls := asked.calls;
    held_in := gris_rules.holds(draft);
  END IF;
  INSERT INTO gris.reservations VALUES (
    asked.root, asked.reservation_id, asked.account, asked.request_id, asked.query_id, held_information, held_calls,
    asked.unit_id, expires_at, recorded, asked.forfeits, held_in
  );
  PERFORM gris_rules.add_reserved(held_in, held_information, held_calls);
  draft.outcome := json_build_array(
    'reserved', asked.reservation_id, held_information::text, held_calls::text, expires_at::text,
    CASE WHEN recorded = '' THEN '0' ELSE '1' END
  );
  RETURN draft;
END $$;
