-- Give a reservation back: rules._release.

CREATE FUNCTION gris_rules.release(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  reservation gris.reservations := gris_rules.named_reservation(draft);
BEGIN
  IF reservation.reservation_id IS NULL THEN
    draft.outcome := gris_rules.refused('RESERVATION_OVER');
    RETURN draft;
  END IF;
  PERFORM gris_rules.end_reservation(reservation);
  draft.outcome := json_build_array(
    'released', reservation.information::text, reservation.calls::text, reservation.unit_id
  );
  RETURN draft;
END $$;
