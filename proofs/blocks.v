(* Theorem D of docs/proofs/blocks.md: a question about some blocks of members is paid for by these alone, and every block
   has the budget K by itself. The member is of one block; that rows of other blocks decide an answer alone is the premise
   `reads`. *)
Require Import Reals Lia.
From Gris Require Import adaptive.
Open Scope R_scope.

(* A question is about the blocks for which `of` is true, and outcome i costs (price i). *)
Inductive questions :=
| ended : questions
| question (of : nat -> bool) (n : nat) (M M' : nat -> R) (price : nat -> nat) (next : nat -> questions).

(* What the ledger counts for each block. *)
Definition with_price (own : nat -> nat) (of : nat -> bool) (c : nat) : nat -> nat :=
  fun b => if of b then (own b + c)%nat else own b.

(* The ledger admits a question only if what it may cost still fits, for each block that it is about. *)
Fixpoint admitted (t : questions) (own : nat -> nat) (K : nat) : Prop :=
  match t with
  | ended => True
  | question of n M M' price next => forall i, (i < n)%nat ->
      (forall b, of b = true -> (own b + price i <= K)%nat) /\ admitted (next i) (with_price own of (price i)) K
  end.

Section member.
Variable e : R.
Variable G : (R -> R) -> R -> R.
Variable b : nat.

(* For a member of block b: other blocks' questions have the same law with and without the member, and those of b are steps
   of theorem A at their price. *)
Fixpoint reads (t : questions) : Prop :=
  match t with
  | ended => True
  | question of n M M' price next => law n M /\ law n M' /\
      (if of b then allowed e G n M M' price else forall i, (i < n)%nat -> M' i = M i) /\
      forall i, (i < n)%nat -> reads (next i)
  end.

(* The interaction as this member pays for it. *)
Fixpoint paid_by (t : questions) : interaction :=
  match t with
  | ended => stop
  | question of n M M' price next =>
      step n M M' (fun i => if of b then price i else O) (fun i => paid_by (next i))
  end.

Theorem theorem_D t : forall own K, admitted t own K -> reads t -> (own b <= K)%nat ->
  keeps e G (paid_by t) (K - own b).
Proof.
  induction t as [|of n M M' price next IH]; intros own K Ha Hr Hb; simpl in *; [exact I|].
  destruct Hr as [H1 [H2 [Hstep Hnext]]]. split; [exact H1|]. split; [exact H2|].
  destruct (of b) eqn:E.
  - split; [exact Hstep|]. intros i Hi. destruct (Ha i Hi) as [Hfit Hadmitted]. specialize (Hfit b E).
    split; [lia|]. pose proof (IH i _ K Hadmitted (Hnext i Hi)) as H. unfold with_price in H. rewrite E in H.
    replace (K - own b - price i)%nat with (K - (own b + price i))%nat by lia. apply H. lia.
  - split; [apply free_step; auto|]. intros i Hi. destruct (Ha i Hi) as [_ Hadmitted].
    split; [lia|]. pose proof (IH i _ K Hadmitted (Hnext i Hi)) as H. unfold with_price in H. rewrite E in H.
    rewrite PeanoNat.Nat.sub_0_r. apply H. exact Hb.
Qed.

(* From the window's beginning on, all of K. *)
Corollary every_block_has_the_budget t K : admitted t (fun _ => O) K -> reads t -> keeps e G (paid_by t) K.
Proof.
  intros Ha Hr. pose proof (theorem_D t (fun _ => O) K Ha Hr (PeanoNat.Nat.le_0_l K)) as H.
  rewrite PeanoNat.Nat.sub_0_r in H. exact H.
Qed.
End member.
