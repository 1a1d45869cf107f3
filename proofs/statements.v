(* What is proved, and on which axioms: printed by `make proofs`. *)
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
Print answers.
Print admitted.
Print released.
Check theorem_C.
Check admitted_more.
Check private_with_calls.
Print blocks.admitted.
Print reads.
Check every_block_has_the_budget.
Print asked.
Print granted.
Print total.
Print read_by_member.
Check private_by_blocks.
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
Print Assumptions private.
Print Assumptions pure_composition.
Print Assumptions private_with_calls.
Print Assumptions every_block_has_the_budget.
Print Assumptions private_by_blocks.
Print Assumptions merged.
Print Assumptions laplace_unit.
Print Assumptions unk_gumb_keeps.
Print Assumptions unk_gumb_spent.
Print Assumptions known_admitted.
Print Assumptions unk_lap_admitted.
Print Assumptions unk_gumb_admitted.
Print Assumptions known_lap_keeps.
Print Assumptions known_gumb_keeps.
Print Assumptions admitted_more.
Print Assumptions checked_table.
Print Assumptions thirty_units.
