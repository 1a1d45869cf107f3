-- Let the time of the root go on: administration.resume_clock.

CREATE FUNCTION gris_rules.resume_clock(draft gris_rules.draft) RETURNS gris_rules.draft LANGUAGE plpgsql AS $$
DECLARE
  asked gris_rules.request := draft.asked;
BEGIN
  IF abs(draft.clock - asked.told_time) > asked.clock_tolerance THEN
    draft.outcome := gris_rules.refused('CLOCKS_DISAGREE');
    RETURN draft;
  END IF;
  IF draft.now - draft.clock - draft.ahead < asked.clock_tolerance THEN
    draft.outcome := gris_rules.refused('CLOCK_NOT_BEHIND');
    RETURN draft;
  END IF;
  draft.ahead := draft.now - draft.clock;
  INSERT INTO gris.journal (
    root, kind, account, information, calls, unit_id, request_id, release_id, query_id, time, holds
  ) VALUES (
    asked.root, 'clock', asked.account, 0, 0, '', asked.request_id, '', '', draft.now,
    ARRAY[(asked.account, draft.ahead)::gris.hold]
  );
  draft.outcome := json_build_array('clock', draft.ahead::text);
  RETURN draft;
END $$;
