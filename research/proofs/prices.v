(* What a unit buys: section 6 of research/docs/adaptive-accounting.md. Noisy counts and choices are bounded-range steps, and
   UnkGumb is an interaction of them whose price is the number of its steps. *)
Require Import Reals Lra Lia List.
From Gris Require Import adaptive.
Open Scope R_scope.

(* ---- Noisy counts ---- *)

(* What is (e / 2)-differentially private, outcome by outcome, has bounded range e. *)
Lemma half_private e n M M' :
  (forall i, (i < n)%nat -> 0 <= M i /\ 0 <= M' i /\ M i <= exp (e / 2) * M' i /\ M' i <= exp (e / 2) * M i) ->
  bounded_range e n M M'.
Proof.
  intros H i j Hi Hj. destruct (H i Hi) as [Mi [Mi' [Hi1 _]]]. destruct (H j Hj) as [Mj [Mj' [_ Hj2]]].
  pose proof (exp_pos (e / 2)).
  apply Rle_trans with ((exp (e / 2) * M' i) * (exp (e / 2) * M j)); [apply Rmult_le_compat; assumption|].
  replace (exp e) with (exp (e / 2) * exp (e / 2)) by (rewrite <- exp_plus; f_equal; field).
  right. ring.
Qed.

(* Laws that are proportional to weights keep what the weights keep: the factors cancel. *)
Lemma proportional e n w w' a a' : 0 <= a -> 0 <= a' -> bounded_range e n w w' ->
  bounded_range e n (fun i => a * w i) (fun i => a' * w' i).
Proof.
  intros Ha Ha' H i j Hi Hj. specialize (H i j Hi Hj).
  replace (a * w i * (a' * w' j)) with (a * a' * (w i * w' j)) by ring.
  replace (exp e * (a * w j * (a' * w' i))) with (a * a' * (exp e * (w j * w' i))) by ring.
  apply Rmult_le_compat_l; [apply Rmult_le_pos|]; assumption.
Qed.

(* Outcomes that are shown as one, as all counts beyond a limit may be, keep it too. *)
Lemma merged e n M M' (to : nat -> nat) m : bounded_range e n M M' ->
  let shown L k := sum n (fun i => if Nat.eqb (to i) k then L i else 0) in bounded_range e m (shown M) (shown M').
Proof.
  intros H shown k l _ _. unfold shown.
  set (at_ := fun (L : nat -> R) k i => if Nat.eqb (to i) k then L i else 0).
  assert (Hpair : forall i j, (i < n)%nat -> (j < n)%nat -> at_ M k i * at_ M' l j <= exp e * (at_ M l j * at_ M' k i)).
  { intros i j Hi Hj. specialize (H i j Hi Hj). unfold at_.
    destruct (Nat.eqb (to i) k), (Nat.eqb (to j) l); try lra. }
  assert (Hscale : forall a f, a * sum n f = sum n (fun i => a * f i)).
  { intros a f. rewrite (sum_ext n (fun i => a * f i) (fun i => a * f i + 0 * f i)) by (intros; ring).
    rewrite sum_linear. ring. }
  assert (Hrow : forall i, (i < n)%nat ->
    at_ M k i * sum n (at_ M' l) <= exp e * at_ M' k i * sum n (at_ M l)).
  { intros i Hi. rewrite !Hscale. apply sum_le. intros j Hj. specialize (Hpair i j Hi Hj). lra. }
  change (sum n (at_ M k) * sum n (at_ M' l) <= exp e * (sum n (at_ M l) * sum n (at_ M' k))).
  rewrite (Rmult_comm (sum n (at_ M k))), <- Rmult_assoc.
  rewrite (Hscale (sum n (at_ M' l)) (at_ M k)), (Hscale (exp e * sum n (at_ M l)) (at_ M' k)). apply sum_le. intros i Hi. specialize (Hrow i Hi). lra.
Qed.

(* The weight of a value z of Laplace noise about a count c: of the reals, and as two-sided geometric noise of whole
   numbers. One member moves the count by at most tau. *)
Definition laplace (e tau c z : R) := exp (- (e / 2) * (Rabs (z - c) / tau)).

Lemma laplace_unit e tau c c' n (z : nat -> R) : 0 <= e -> 0 < tau -> Rabs (c' - c) <= tau ->
  bounded_range e n (fun i => laplace e tau c (z i)) (fun i => laplace e tau c' (z i)).
Proof.
  intros He Ht Hc.
  assert (Hle : forall d d' y, Rabs (d' - d) <= tau -> laplace e tau d y <= exp (e / 2) * laplace e tau d' y).
  { intros d d' y Hd. unfold laplace. rewrite <- exp_plus. apply exp_le.
    assert (Rabs (y - d') <= Rabs (y - d) + tau).
    { replace (y - d') with ((y - d) + - (d' - d)) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra. }
    assert (Rabs (y - d') / tau <= Rabs (y - d) / tau + 1).
    { apply Rmult_le_reg_r with tau; [exact Ht|]. unfold Rdiv. rewrite Rmult_plus_distr_r, !Rmult_assoc, Rinv_l by lra. lra. }
    nra. }
  apply half_private. intros i _. unfold laplace at 1 2.
  repeat split; try (left; apply exp_pos); apply Hle; [assumption|].
  rewrite <- Rabs_Ropp. replace (- (c - c')) with (c' - c) by ring. exact Hc.
Qed.

(* ---- Choices ---- *)

(* The exponential mechanism among those that are left, of weights w. *)
Definition weight_left n (w : nat -> R) (left : nat -> bool) := sum n (fun i => if left i then w i else 0).
Definition choice (n : nat) (w : nat -> R) (left : nat -> bool) (i : nat) := if left i then w i / weight_left n w left else 0.

(* One member moves all utilities by 0 to e in the same direction. *)
Definition moved (e : R) (w w' : nat -> R) :=
  (forall i, exists d, 0 <= d <= e /\ w' i = w i * exp d) \/ (forall i, exists d, 0 <= d <= e /\ w i = w' i * exp d).

Lemma sum_at_least n f i : (forall j, (j < n)%nat -> 0 <= f j) -> (i < n)%nat -> f i <= sum n f.
Proof.
  induction n; intros H Hi; [lia|]. simpl.
  assert (0 <= sum n f).
  { rewrite <- (sum_zero n). apply sum_le. intros j Hj. apply H. lia. }
  destruct (PeanoNat.Nat.eq_dec i n) as [->|Hne]; [lra|].
  assert (f i <= sum n f) by (apply IHn; [intros; apply H; lia|lia]).
  assert (0 <= f n) by (apply H; lia). lra.
Qed.

Lemma weight_left_positive n w left i : (forall j, 0 <= w j) -> 0 < w i -> (i < n)%nat -> left i = true ->
  0 < weight_left n w left.
Proof.
  intros Hw Hwi Hi Hl. unfold weight_left.
  pose proof (sum_at_least n (fun j => if left j then w j else 0) i) as H. simpl in H. rewrite Hl in H.
  apply Rlt_le_trans with (w i); [exact Hwi|]. apply H; [|exact Hi].
  intros j _. destruct (left j); [apply Hw|lra].
Qed.

Lemma choice_law n w left i : (forall j, 0 <= w j) -> 0 < w i -> (i < n)%nat -> left i = true -> law n (choice n w left).
Proof.
  intros Hw Hwi Hi Hl. pose proof (weight_left_positive n w left i Hw Hwi Hi Hl) as Hp. split.
  - intros j _. unfold choice. destruct (left j); [|lra].
    apply Rmult_le_pos; [apply Hw|left; apply Rinv_0_lt_compat; exact Hp].
  - set (f := fun j => if left j then w j else 0).
    rewrite (sum_ext n _ (fun j => / weight_left n w left * f j + 0 * f j)).
    + rewrite sum_linear. change (sum n f) with (weight_left n w left). rewrite Rinv_l by lra. ring.
    + intros j _. unfold choice, f. destruct (left j); [field; lra|ring].
Qed.

Lemma choice_unit e n w w' left i : (forall j, 0 <= w j) -> (forall j, 0 <= w' j) -> 0 < w i -> 0 < w' i ->
  moved e w w' -> (i < n)%nat -> left i = true -> bounded_range e n (choice n w left) (choice n w' left).
Proof.
  intros Hw Hw' Hwi Hwi' Hm Hi Hl.
  pose proof (weight_left_positive n w left i Hw Hwi Hi Hl) as Hp.
  pose proof (weight_left_positive n w' left i Hw' Hwi' Hi Hl) as Hp'.
  set (f := fun v j => if left j then v j else 0 : R).
  assert (Hf : bounded_range e n (f w) (f w')).
  { intros k l _ _. unfold f. destruct (left k), (left l); try lra.
    pose proof (exp_pos e). destruct Hm as [Hm|Hm]; destruct (Hm k) as [dk [Hk Ek]]; destruct (Hm l) as [dl [Hll El]].
    - rewrite Ek, El. assert (exp dl <= exp e * exp dk) by (rewrite <- exp_plus; apply exp_le; lra).
      assert (0 <= w k * w l) by (apply Rmult_le_pos; auto).
      replace (w k * (w l * exp dl)) with (w k * w l * exp dl) by ring.
      replace (exp e * (w l * (w k * exp dk))) with (w k * w l * (exp e * exp dk)) by ring.
      apply Rmult_le_compat_l; lra.
    - rewrite Ek, El. assert (exp dk <= exp e * exp dl) by (rewrite <- exp_plus; apply exp_le; lra).
      assert (0 <= w' k * w' l) by (apply Rmult_le_pos; auto).
      replace (w' k * exp dk * w' l) with (w' k * w' l * exp dk) by ring.
      replace (exp e * (w' l * exp dl * w' k)) with (w' k * w' l * (exp e * exp dl)) by ring.
      apply Rmult_le_compat_l; lra. }
  assert (Hc : forall v, 0 < weight_left n v left -> forall j, choice n v left j = / weight_left n v left * f v j).
  { intros v Hv j. unfold choice, f. destruct (left j); [field; lra|ring]. }
  intros k l Hk Hll. rewrite !(Hc w Hp), !(Hc w' Hp').
  apply (proportional e n (f w) (f w') (/ weight_left n w left) (/ weight_left n w' left)); try assumption;
    left; apply Rinv_0_lt_compat; assumption.
Qed.

(* ---- UnkGumb ---- *)

Section unk_gumb.
Variable e : R.
Variable G : (R -> R) -> R -> R.

(* Fresh noise in the count of each element that was met: m values, with any laws that are units. *)
Variable m : nat.
Variables noise noise' : nat -> nat -> R.
Hypothesis noise_law : forall i, law m (noise i) /\ law m (noise' i).
Hypothesis noise_unit : forall i, allowed e G m (noise i) (noise' i) (fun _ => 1%nat).
(* Whether counts are asked for. *)
Variable with_counts : bool.
Definition counted (met : list nat) := if with_counts then met else nil.

Fixpoint counts (met : list nat) : interaction :=
  match met with
  | nil => stop
  | cons i others => step m (noise i) (noise' i) (fun _ => 1%nat) (fun _ => counts others)
  end.

(* Candidates 0 to n - 1, and n for bottom, one after the other without replacement, until bottom or k elements are met. *)
Variable n : nat.
Variables w w' : nat -> nat -> R.
Hypothesis w_nonnegative : forall x i, 0 <= w x i.
Hypothesis w_nonnegative' : forall x i, 0 <= w' x i.
Hypothesis bottom_positive : forall x, 0 < w x n.
Hypothesis bottom_positive' : forall x, 0 < w' x n.
Hypothesis w_moved : forall x, moved e (w x) (w' x).
Definition without (left : nat -> bool) (i : nat) : nat -> bool := fun j => if Nat.eqb i j then false else left j.
Fixpoint peel (x k : nat) (left : nat -> bool) (met : list nat) : interaction :=
  match k with
  | O => counts (counted met)
  | S k' => step (S n) (choice (S n) (w x) left) (choice (S n) (w' x) left) (fun _ => 1%nat)
      (fun i => if Nat.eqb i n then counts (counted met) else peel x k' (without left i) (cons i met))
  end.

(* First the index x of the threshold, of n_x, on which all weights may depend. *)
Variable n_x : nat.
Hypothesis some_index : (0 < n_x)%nat.
Variables v v' : nat -> R.
Hypothesis v_positive : forall x, 0 < v x.
Hypothesis v_positive' : forall x, 0 < v' x.
Hypothesis v_moved : moved e v v'.
Definition everything (_ : nat) := true.
Definition unk_gumb (k : nat) : interaction :=
  step n_x (choice n_x v everything) (choice n_x v' everything) (fun _ => 1%nat) (fun x => peel x k everything nil).

Lemma counts_keep met K : (length met <= K)%nat -> keeps e G (counts met) K.
Proof.
  revert K. induction met as [|i met IH]; intros K H; simpl in *; [exact I|].
  destruct (noise_law i) as [H1 H2]. repeat split; try apply H1; try apply H2.
  - apply noise_unit.
  - lia.
  - apply IH. lia.
Qed.

Definition dearest (k : nat) := if with_counts then (2 * k)%nat else k.
Lemma counted_keep met K : ((if with_counts then length met else O) <= K)%nat -> keeps e G (counts (counted met)) K.
Proof. intros H. apply counts_keep. unfold counted. destruct with_counts; exact H. Qed.
Lemma peel_keeps x k : forall left met K, left n = true ->
  (dearest k + (if with_counts then length met else O) <= K)%nat ->
  keeps e G (peel x k left met) K.
Proof.
  induction k as [|k IH]; intros left met K Hl HK; simpl peel; [apply counted_keep; lia|].
  assert (Hd : (dearest (S k) = (if with_counts then 2 else 1) + dearest k)%nat) by (unfold dearest; destruct with_counts; lia).
  assert (Hn : (n < S n)%nat) by lia.
  pose proof (choice_law (S n) (w x) left n (w_nonnegative x) (bottom_positive x) Hn Hl) as H1.
  pose proof (choice_law (S n) (w' x) left n (w_nonnegative' x) (bottom_positive' x) Hn Hl) as H2.
  simpl keeps. split; [exact H1|]. split; [exact H2|]. split.
  - apply unit_step; [|auto]. apply choice_unit with (i := n); auto.
  - intros i Hi. split; [destruct with_counts; lia|]. destruct (Nat.eqb i n) eqn:E; [apply counted_keep; destruct with_counts; lia|].
    apply IH; [|simpl length; destruct with_counts; lia]. unfold without. rewrite E. exact Hl.
Qed.

(* Its worst case is 2 k + 1 units. *)
Theorem unk_gumb_keeps k K : (dearest k + 1 <= K)%nat -> keeps e G (unk_gumb k) K.
Proof.
  intros HK. simpl.
  pose proof (choice_law n_x v everything O (fun x => Rlt_le _ _ (v_positive x)) (v_positive O) some_index eq_refl) as H1.
  pose proof (choice_law n_x v' everything O (fun x => Rlt_le _ _ (v_positive' x)) (v_positive' O) some_index eq_refl) as H2.
  split; [exact H1|]. split; [exact H2|]. split.
  - apply unit_step; [|auto]. apply choice_unit with (i := O); auto; intros; left; auto.
  - intros x Hx. split; [lia|]. apply peel_keeps; [reflexivity|simpl length; destruct with_counts; lia].
Qed.

(* What is paid is the number of draws that were made: one each for the index, elements, bottom and counts. *)
Lemma counts_spent met h : complete (counts met) h -> spent (counts met) h = length h.
Proof.
  revert h. induction met as [|i met IH]; intros h H; destruct h; simpl in *; try tauto.
  destruct H as [_ H]. rewrite (IH h H). reflexivity.
Qed.
Lemma peel_spent x k : forall left met h, complete (peel x k left met) h -> spent (peel x k left met) h = length h.
Proof.
  induction k as [|k IH]; intros left met h H; [apply counts_spent; exact H|].
  destruct h as [|i h]; simpl in *; [tauto|]. destruct H as [_ H].
  destruct (Nat.eqb i n); [rewrite (counts_spent (counted met) h H)|rewrite (IH _ _ _ H)]; reflexivity.
Qed.
Theorem unk_gumb_spent k h : complete (unk_gumb k) h -> spent (unk_gumb k) h = length h.
Proof.
  destruct h as [|x h]; simpl; [tauto|]. intros [_ H]. rewrite (peel_spent _ _ _ _ _ H). reflexivity.
Qed.
End unk_gumb.

(* ---- KnownLap and KnownGumb ---- *)

Section known.
Variable e : R.
Variable G : (R -> R) -> R -> R.
Variable m : nat.
Variables noise noise' : nat -> nat -> R.
Hypothesis noise_law : forall i, law m (noise i) /\ law m (noise' i).

(* KnownLap counts every element of the domain; the member changes some of them, and pays for these alone. *)
Section known_lap.
Variable changed : nat -> bool.
Hypothesis noise_unit : forall i, changed i = true -> bounded_range e m (noise i) (noise' i).
Hypothesis noise_same : forall i, changed i = false -> forall z, (z < m)%nat -> noise' i z = noise i z.
Fixpoint known_lap (domain : list nat) : interaction :=
  match domain with
  | nil => stop
  | cons i others => step m (noise i) (noise' i) (fun _ => if changed i then 1%nat else O) (fun _ => known_lap others)
  end.
Theorem known_lap_keeps domain : forall K, (length (filter changed domain) <= K)%nat -> keeps e G (known_lap domain) K.
Proof.
  induction domain as [|i domain IH]; intros K H; simpl in *; [exact I|]. destruct (noise_law i) as [H1 H2].
  split; [exact H1|]. split; [exact H2|]. destruct (changed i) eqn:E; simpl in H.
  - split; [apply unit_step; [apply noise_unit; exact E|auto]|]. intros z _. split; [lia|]. apply IH. lia.
  - split; [apply free_step; [intros z Hz; apply noise_same; assumption|auto]|]. intros z _. split; [lia|]. apply IH. lia.
Qed.
End known_lap.

(* KnownGumb draws k elements of the domain 0 to n - 1, one after the other, and then their counts if they are asked for. *)
Section known_gumb.
Hypothesis noise_unit : forall i, allowed e G m (noise i) (noise' i) (fun _ => 1%nat).
Variable with_counts : bool.
Variable n : nat.
Variables w w' : nat -> R.
Hypothesis w_positive : forall i, 0 < w i.
Hypothesis w_positive' : forall i, 0 < w' i.
Hypothesis w_moved : moved e w w'.
Fixpoint known_gumb (k : nat) (left : nat -> bool) (met : list nat) : interaction :=
  match k with
  | O => counts m noise noise' (counted with_counts met)
  | S k' => step n (choice n w left) (choice n w' left) (fun _ => 1%nat)
      (fun i => known_gumb k' (without left i) (cons i met))
  end.
Fixpoint size (n : nat) (left : nat -> bool) : nat :=
  match n with O => O | S j => ((if left j then 1 else 0) + size j left)%nat end.
Lemma size_some j left : (0 < size j left)%nat -> exists i, (i < j)%nat /\ left i = true.
Proof.
  induction j as [|j IH]; simpl; intros H; [lia|]. destruct (left j) eqn:E; [exists j; split; [lia|exact E]|].
  destruct IH as [i [Hi Hl]]; [lia|]. exists i. split; [lia|exact Hl].
Qed.
Lemma size_without_far j left i : (j <= i)%nat -> size j (without left i) = size j left.
Proof.
  induction j as [|j IH]; intros H; [reflexivity|]. simpl. rewrite IH by lia. unfold without.
  replace (Nat.eqb i j) with false by (symmetry; apply PeanoNat.Nat.eqb_neq; lia). reflexivity.
Qed.
Lemma size_without j left i : (size j left <= S (size j (without left i)))%nat.
Proof.
  induction j as [|j IH]; simpl; [lia|]. unfold without at 1. destruct (Nat.eqb i j) eqn:E.
  - apply PeanoNat.Nat.eqb_eq in E. subst i. rewrite size_without_far by lia. destruct (left j); lia.
  - destruct (left j); lia.
Qed.
Theorem known_gumb_keeps k : forall left met K, (k <= size n left)%nat ->
  (dearest with_counts k + (if with_counts then length met else O) <= K)%nat -> keeps e G (known_gumb k left met) K.
Proof.
  induction k as [|k IH]; intros left met K Hs HK.
  - apply counted_keep with (n_x := 1%nat); [exact noise_law|exact noise_unit|lia|]. unfold dearest in HK. destruct with_counts; lia.
  - destruct (size_some n left) as [i [Hi Hl]]; [lia|].
    assert (Hw : forall j, 0 <= w j) by (intros; left; auto). assert (Hw' : forall j, 0 <= w' j) by (intros; left; auto).
    simpl. split; [apply choice_law with (i := i); auto|]. split; [apply choice_law with (i := i); auto|]. split.
    + apply unit_step; [apply choice_unit with (i := i); auto|auto].
    + intros j Hj. split; [unfold dearest in HK; destruct with_counts; lia|]. apply IH.
      * pose proof (size_without n left j). lia.
      * unfold dearest in *. simpl length. destruct with_counts; lia.
Qed.
End known_gumb.
End known.
