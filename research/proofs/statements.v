(* What is proved, and on which axioms: printed by `make -C research proofs`. *)
Require Import Reals.
From Gris Require Import adaptive blocks calls newcomers prices convex table coarse.

Print law.
Print bounded_range.
Print convex.
Print gaussian.
Print allowed.
Print keeps.
Print event.
Check theorem_A.
Check private.
Check range_and_mean.
Print no_gaussian.
Check pure_composition.
Print one_unit.
Check one_unit_keeps.
Print answers.
Print admitted.
Print released.
Check theorem_C.
Check admitted_more.
Check private_with_calls.
Print one_call.
Check one_call_admitted.
Print blocks.admitted.
Print reads.
Check every_block_has_the_budget.
Print asked.
Print granted.
Print total.
Print read_by_member.
Check read_by_lemma_4.
Check private_by_blocks.
Print two_questions.
Check two_questions_admitted.
Check two_questions_read.
Print two_asked.
Check two_asked_granted.
Check two_asked_read.
Check two_asked_private.
Check half_private.
Check merged.
Check laplace_unit.
Check choice_unit.
Check known_lap_keeps.
Check known_gumb_keeps.
Print moved.
Print peel.
Print unk_gumb.
Check unk_gumb_keeps.
Check unk_gumb_spent.
Print private_but.
Check known_admitted.
Print answered.
Check unk_lap_admitted.
Print those.
Print newcomers.newcomers.
Print with_newcomers.
Print without_newcomers.
Check unk_gumb_admitted.
Print grid.
Print value.
Print above_parabola.
Print above_lines.
Print above_recursion.
Print above_first_line.
Print proper.
Print above_start.
Print steps.
Print checked.
Print ratio.
Print point.
Print entry.
Check checked_table.
Check thirty_units.

(* The axioms of all theorems: asked for together, as each answer takes a second. *)
Definition all_theorems := (
  theorem_A, private, range_and_mean, pure_composition, one_unit_keeps, theorem_C, admitted_more,
  private_with_calls, one_call_admitted, every_block_has_the_budget, read_by_lemma_4, private_by_blocks,
  two_questions_admitted, two_questions_read, two_asked_granted, two_asked_read, two_asked_private,
  half_private, merged, laplace_unit, choice_unit, known_lap_keeps, known_gumb_keeps, unk_gumb_keeps,
  unk_gumb_spent, known_admitted, unk_lap_admitted, unk_gumb_admitted, checked_table, thirty_units).
Print Assumptions all_theorems.
