(* What is proved, and on which axioms: printed by `make proofs`. *)
Require Import Reals.
From Gris Require Import adaptive blocks calls newcomers prices.

Print law.
Print bounded_range.
Print convex.
Print gaussian.
Print allowed.
Print keeps.
Check theorem_A.
Check private.
Check range_and_mean.
Check pure_composition.
Print admitted.
Check theorem_C.
Check private_with_calls.
Print blocks.admitted.
Print reads.
Check every_block_has_the_budget.
Check half_private.
Check merged.
Check laplace_unit.
Check choice_unit.
Check unk_gumb_keeps.
Check unk_gumb_spent.
Print private_but.
Check known_admitted.
Check unk_lap_admitted.
Check unk_gumb_admitted.
Print Assumptions private.
Print Assumptions pure_composition.
Print Assumptions private_with_calls.
Print Assumptions every_block_has_the_budget.
Print Assumptions merged.
Print Assumptions laplace_unit.
Print Assumptions unk_gumb_keeps.
Print Assumptions unk_gumb_spent.
Print Assumptions known_admitted.
Print Assumptions unk_lap_admitted.
Print Assumptions unk_gumb_admitted.
