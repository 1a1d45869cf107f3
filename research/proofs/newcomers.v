(* Lemma 4 of docs/proofs/calls.md: what each mechanism releases, beside an interaction of units whose answers both
   neighbours can give. So each of its questions is one of theorem C: one call of UnkLap and UnkGumb, none of the others. *)
Require Import Reals Lra Lia List.
From Gris Require Import adaptive calls prices.
Open Scope R_scope.

Lemma scaled a n f : a * sum n f = sum n (fun i => a * f i).
Proof.
  rewrite (sum_ext n (fun i => a * f i) (fun i => a * f i + 0 * f i)) by (intros; ring). rewrite sum_linear. ring.
Qed.
Lemma keeps_spent e G t : forall K h, keeps e G t K -> complete t h -> (spent t h <= K)%nat.
Proof.
  induction t as [|n M M' u next IH]; intros K h Hk Hh; destruct h; simpl in *; try tauto; [lia|].
  destruct Hk as [_ [_ [_ Hk]]]. destruct Hh as [Hi Hh].
  destruct (Hk _ Hi) as [Hu Hn]. specialize (IH _ _ _ Hn Hh). lia.
Qed.

(* The probability of all that can happen is 1. *)
Fixpoint lawful (t : interaction) : Prop :=
  match t with stop => True | step n M _ _ next => law n M /\ forall i, (i < n)%nat -> lawful (next i) end.
Lemma over_scaled t a f : over t (fun h => a * f h) = a * over t f.
Proof. rewrite (over_ext t _ (fun h => a * f h + 0 * f h)) by (intros; ring). rewrite over_linear. ring. Qed.
Lemma over_nothing t : over t (fun _ => 0) = 0.
Proof. rewrite (over_ext t _ (fun _ => 0 * 0)) by (intros; ring). rewrite (over_scaled t 0 (fun _ => 0)). ring. Qed.
Lemma total t : lawful t -> over t (chance t) = 1.
Proof.
  induction t as [|n M M' u next IH]; intros H; simpl in *; [reflexivity|]. destruct H as [[_ H1] H].
  rewrite (sum_ext n _ M); [exact H1|]. intros i Hi. rewrite over_scaled, (IH i (H i Hi)). ring.
Qed.

(* ---- KnownLap and KnownGumb, whose answers both neighbours can give: no call ---- *)

Lemma keeps_lawful e G t : forall K, keeps e G t K -> lawful t.
Proof.
  induction t as [|n M M' u next IH]; intros K H; simpl in *; [exact I|]. destruct H as [H1 [_ [_ H]]].
  split; [exact H1|]. intros i Hi. apply (IH i (K - u i)%nat). apply H. exact Hi.
Qed.
Lemma keeps_nonnegative e G t : forall K h, keeps e G t K -> complete t h -> 0 <= chance t h /\ 0 <= chance' t h.
Proof.
  induction t as [|n M M' u next IH]; intros K h Hk Hh; destruct h as [|i h]; simpl in *; try tauto; [lra|].
  destruct Hk as [[H1 _] [[H2 _] [_ Hk]]]. destruct Hh as [Hi Hh].
  destruct (IH i _ h (proj2 (Hk i Hi)) Hh). split; apply Rmult_le_pos; auto.
Qed.
Theorem known_admitted e delta G q next K l : 0 <= delta -> keeps e G q K ->
  (forall h, complete q h -> admitted e delta G (next h) (K - spent q h) l) ->
  admitted e delta G (ask q (chance q) (chance' q) (fun _ => 1) (fun _ => 0) (fun _ => O) 0 next) K l.
Proof.
  intros Hd Hk Hnext. simpl. split; [exact Hk|]. split; [lia|]. split; [rewrite over_nothing; lra|].
  split; [apply total; apply (keeps_lawful e G q K Hk)|]. intros h Hh. rewrite PeanoNat.Nat.sub_0_r.
  destruct (keeps_nonnegative e G q K h Hk Hh). pose proof (keeps_spent e G q K h Hk Hh).
  repeat split; try lra; try lia. apply Hnext. exact Hh.
Qed.

(* ---- UnkLap: all that is taken of it is that it is (e / 2, delta)-differentially private in both directions ---- *)

Definition private_but n (z delta : R) (M M' : nat -> R) := forall S : nat -> bool,
  sum n (fun i => if S i then M i else 0) <= exp z * sum n (fun i => if S i then M' i else 0) + delta.

(* What both have in common: no more than either, nearly all of it, and z-differentially private. *)
Definition common_part z (M M' : nat -> R) (i : nat) := Rmin (M i) (exp z * M' i).

Lemma most_in_common n z delta M M' : law n M -> private_but n z delta M M' -> 1 - delta <= sum n (common_part z M M').
Proof.
  intros [_ H1] Hp. set (S := fun i => if Rlt_dec (exp z * M' i) (M i) then true else false). specialize (Hp S).
  rewrite scaled in Hp.
  assert (Heq : sum n M = 1 * sum n (common_part z M M') +
    1 * (1 * sum n (fun i => if S i then M i else 0) + -1 * sum n (fun i => exp z * (if S i then M' i else 0)))).
  { rewrite <- !sum_linear. apply sum_ext. intros i _. unfold S, common_part.
    destruct (Rlt_dec (exp z * M' i) (M i)); [rewrite Rmin_right by lra|rewrite Rmin_left by lra]; ring. }
  lra.
Qed.

Definition half (z : R) n (Q Q' : nat -> R) :=
  forall i, (i < n)%nat -> 0 <= Q i /\ 0 <= Q' i /\ Q i <= exp z * Q' i /\ Q' i <= exp z * Q i.

(* The larger of both is lowered to the mass of the smaller one, and both are scaled. *)
Lemma same_mass n z delta (A A' : nat -> R) : 0 < z -> delta < 1 -> half z n A A' ->
  1 - delta <= sum n A' -> sum n A' <= sum n A ->
  exists Q Q', law n Q /\ law n Q' /\ half z n Q Q' /\
    forall i, (i < n)%nat -> (1 - delta) * Q i <= A i /\ (1 - delta) * Q' i <= A' i.
Proof.
  intros Hz Hd Hh Hm Hle. set (m := sum n A). set (m' := sum n A'). fold m m' in Hm, Hle.
  assert (Hs : exp (- z) < 1) by (rewrite <- exp_0; apply exp_increasing; lra). pose proof (exp_pos (- z)) as Hp.
  assert (Hgap : 0 < m - exp (- z) * m') by nra.
  set (a := (m - m') / (m - exp (- z) * m')).
  assert (Ha : 0 <= a <= 1).
  { unfold a. split; [apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; exact Hgap]|].
    apply Rmult_le_reg_r with (m - exp (- z) * m'); [exact Hgap|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra. }
  set (B := fun i => (1 - a) * A i + (a * exp (- z)) * A' i).
  assert (HB : sum n B = m').
  { unfold B. rewrite sum_linear. fold m m'.
    assert (Hd0 : a * (m - exp (- z) * m') = m - m') by (unfold a; field; lra). lra. }
  assert (Hin : forall i, (i < n)%nat -> 0 <= B i /\ B i <= A i /\ B i <= exp z * A' i /\ A' i <= exp z * B i).
  { intros i Hi. destruct (Hh i Hi) as [H0 [H0' [H1 H2]]].
    assert (Hinv : exp (- z) * exp z = 1) by (rewrite <- exp_plus; replace (- z + z) with 0 by ring; apply exp_0).
    assert (Hlow : exp (- z) * A' i <= A i).
    { apply Rle_trans with (exp (- z) * (exp z * A i)); [apply Rmult_le_compat_l; lra|].
      rewrite <- Rmult_assoc, Hinv. lra. }
    assert (HBA : B i <= A i) by (unfold B; nra).
    assert (HBlow : exp (- z) * A' i <= B i) by (unfold B; nra).
    assert (0 <= exp (- z) * A' i) by (apply Rmult_le_pos; lra).
    repeat split; try lra. apply Rle_trans with (exp z * (exp (- z) * A' i)).
    - rewrite <- Rmult_assoc, (Rmult_comm (exp z)), Hinv. lra.
    - apply Rmult_le_compat_l; [left; apply exp_pos|exact HBlow]. }
  assert (Hpos : 0 < m') by lra. assert (Hi' : 0 < / m') by (apply Rinv_0_lt_compat; exact Hpos).
  exists (fun i => / m' * B i), (fun i => / m' * A' i). split; [|split; [|split]].
  - split; [intros i Hi; apply Rmult_le_pos; [lra|apply Hin; exact Hi]|]. rewrite <- scaled, HB. apply Rinv_l. lra.
  - split; [intros i Hi; apply Rmult_le_pos; [lra|apply Hh; exact Hi]|]. rewrite <- scaled.
    apply Rinv_l. unfold m' in Hpos. lra.
  - intros i Hi. destruct (Hin i Hi) as [H0 [_ [H1 H2]]]. destruct (Hh i Hi) as [_ [H0' _]].
    repeat split; try (apply Rmult_le_pos; lra).
    + replace (exp z * (/ m' * A' i)) with (/ m' * (exp z * A' i)) by ring. apply Rmult_le_compat_l; lra.
    + replace (exp z * (/ m' * B i)) with (/ m' * (exp z * B i)) by ring. apply Rmult_le_compat_l; lra.
  - intros i Hi. destruct (Hin i Hi) as [H0 [H1 _]]. destruct (Hh i Hi) as [_ [H0' _]].
    assert (Hf : (1 - delta) * / m' <= 1).
    { apply Rmult_le_reg_r with m'; [exact Hpos|]. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    rewrite <- !Rmult_assoc.
    assert (0 <= 1 - delta) by lra. assert (0 <= (1 - delta) * / m') by (apply Rmult_le_pos; lra).
    split; [apply Rle_trans with (1 * B i)|apply Rle_trans with (1 * A' i)];
      try (apply Rmult_le_compat_r; assumption); lra.
Qed.

Lemma units_in_unk_lap n z delta M M' : 0 < z -> delta < 1 -> law n M -> law n M' ->
  private_but n z delta M M' -> private_but n z delta M' M ->
  exists Q Q', law n Q /\ law n Q' /\ half z n Q Q' /\
    forall i, (i < n)%nat -> (1 - delta) * Q i <= M i /\ (1 - delta) * Q' i <= M' i.
Proof.
  intros Hz Hd HM HM' Hp Hp'.
  pose proof (most_in_common n z delta M M' HM Hp) as Hm. pose proof (most_in_common n z delta M' M HM' Hp') as Hm'.
  set (A := common_part z M M') in *. set (A' := common_part z M' M) in *.
  assert (Hh : half z n A A').
  { intros i Hi. destruct HM as [H0 _]. destruct HM' as [H0' _]. specialize (H0 i Hi). specialize (H0' i Hi).
    unfold A, A', common_part. pose proof (exp_pos z).
    assert (1 <= exp z) by (rewrite <- exp_0; apply exp_le; lra).
    assert (0 <= exp z * M i) by (apply Rmult_le_pos; lra). assert (0 <= exp z * M' i) by (apply Rmult_le_pos; lra).
    unfold Rmin. repeat split; repeat destruct Rle_dec; nra. }
  assert (Hbelow : forall i, A i <= M i /\ A' i <= M' i) by (intros; split; apply Rmin_l).
  destruct (Rle_dec (sum n A') (sum n A)) as [Hc|Hc].
  - destruct (same_mass n z delta A A' Hz Hd Hh Hm' Hc) as [Q [Q' [H1 [H2 [H3 H4]]]]].
    exists Q, Q'. repeat split; try apply H1; try apply H2; try apply H3; auto;
      intros; specialize (Hbelow i); specialize (H4 i H); lra.
  - assert (Hh' : half z n A' A) by (intros i Hi; specialize (Hh i Hi); tauto).
    destruct (same_mass n z delta A' A Hz Hd Hh' Hm) as [Q' [Q [H2 [H1 [H3 H4]]]]]; [lra|].
    exists Q, Q'. split; [exact H1|]. split; [exact H2|]. split.
    + intros i Hi. specialize (H3 i Hi). tauto.
    + intros i Hi. specialize (Hbelow i). specialize (H4 i Hi). lra.
Qed.

Section unk_lap.
Variables e delta : R.
Hypothesis e_positive : 0 < e.
Hypothesis delta_small : 0 <= delta < 1.
Variable G : (R -> R) -> R -> R.
Variable n : nat.
Variables M M' : nat -> R.
Hypothesis M_law : law n M.
Hypothesis M_law' : law n M'.
Hypothesis M_private : private_but n (e / 2) delta M M'.
Hypothesis M_private' : private_but n (e / 2) delta M' M.

Theorem unk_lap_admitted : exists Q Q' g b c, forall next K l, (1 <= K)%nat -> (1 <= l)%nat ->
  (forall i, (i < n)%nat -> admitted e delta G (next (cons i nil)) (K - 1) (l - 1)) ->
  admitted e delta G (ask (step n Q Q' (fun _ => 1%nat) (fun _ => stop)) (answered M) (answered M') g b c 1 next) K l.
Proof.
  assert (Hz : 0 < e / 2) by lra. destruct delta_small as [Hd0 Hd].
  destruct (units_in_unk_lap n (e / 2) delta M M' Hz Hd M_law M_law' M_private M_private')
    as [Q [Q' [H1 [H2 [H3 H4]]]]].
  exists Q, Q', (fun _ => 1 - delta),
    (answered (fun i => M i - (1 - delta) * Q i)), (fun _ => O).
  intros next K l HK Hl Hnext. simpl. split; [|split; [exact Hl|split; [|split]]].
  - split; [exact H1|]. split; [exact H2|]. split; [|intros i _; split; [exact HK|exact I]].
    apply unit_step; [apply half_private; exact H3|auto].
  - destruct M_law as [_ HM1]. destruct H1 as [_ HQ1]. unfold answered. simpl.
    rewrite (sum_ext n _ (fun i => 1 * M i + - (1 - delta) * Q i)) by (intros; ring).
    rewrite sum_linear, HM1, HQ1. lra.
  - apply M_law.
  - intros h Hh. destruct h as [|i [|j h]]; simpl in *; try tauto. destruct Hh as [Hi _]. specialize (Hnext i Hi).
    unfold answered. simpl.
    destruct M_law as [HM _]. destruct M_law' as [HM' _]. specialize (HM i Hi). specialize (HM' i Hi).
    destruct (H4 i Hi). unfold answers. simpl. repeat split; try lra; try lia. exact Hnext.
Qed.
End unk_lap.

(* ---- UnkGumb: some of the candidates 0 to n - 1 are newcomers, above the threshold's count in one table alone ---- *)

Section unk_gumb.
Variables e delta : R.
Hypothesis delta_nonnegative : 0 <= delta.
Variable G : (R -> R) -> R -> R.
Variable m : nat.
Variables noise noise' : nat -> nat -> R.
Hypothesis noise_law : forall i, law m (noise i) /\ law m (noise' i).
Hypothesis noise_unit : forall i, allowed e G m (noise i) (noise' i) (fun _ => 1%nat).
Variable with_counts : bool.
Variable n : nat.
(* Weights by the index x of the threshold: newcomers of the other table have weight 0. *)
Variables w w' : nat -> nat -> R.
Hypothesis w_nonnegative : forall x i, 0 <= w x i.
Hypothesis w_nonnegative' : forall x i, 0 <= w' x i.
Hypothesis bottom_positive : forall x, 0 < w x n.
Hypothesis bottom_positive' : forall x, 0 < w' x n.
(* Which are candidates in both tables, bottom among them. *)
Variable common : nat -> nat -> bool.
Hypothesis bottom_common : forall x, common x n = true.
Definition those (x : nat) (f : nat -> R) (i : nat) := if common x i then f i else 0.
Definition newcomers (x : nat) (f : nat -> R) (i : nat) := if common x i then 0 else f i.
Hypothesis common_moved : forall x, moved e (those x (w x)) (those x (w' x)).
(* What newcomers weigh beside bottom, as dp_service/mechanisms/unk_gumb.py shows. *)
Hypothesis few : forall x, weight_left (S n) (newcomers x (w x)) everything <= delta * w x n.
Hypothesis few' : forall x, weight_left (S n) (newcomers x (w' x)) everything <= delta * w' x n.
Variable n_x : nat.
Hypothesis some_index : (0 < n_x)%nat.
Variables v v' : nat -> R.
Hypothesis v_positive : forall x, 0 < v x.
Hypothesis v_positive' : forall x, 0 < v' x.
Hypothesis v_moved : moved e v v'.

(* What is released, and what is compared with it. *)
Notation drawn := (peel m noise noise' with_counts n w w').
Notation kept := (peel m noise noise' with_counts n (fun x => those x (w x)) (fun x => those x (w' x))).
Definition with_newcomers := unk_gumb m noise noise' with_counts n w w' n_x v v'.
Definition without_newcomers :=
  unk_gumb m noise noise' with_counts n (fun x => those x (w x)) (fun x => those x (w' x)) n_x v v'.

(* Whether an answer has met a newcomer. *)
Fixpoint meets (x k : nat) (h : list nat) : bool :=
  match k, h with
  | S k', cons i h' => if Nat.eqb i n then false else if common x i then meets x k' h' else true
  | _, _ => false
  end.
Definition newcomers' k (h : list nat) : R :=
  match h with cons x h' => if meets x k h' then chance (with_newcomers k) h else 0 | nil => 0 end.

Lemma weight_apart x f left : weight_left (S n) f left =
  weight_left (S n) (those x f) left + weight_left (S n) (newcomers x f) left.
Proof.
  unfold weight_left. rewrite <- (Rmult_1_l (sum (S n) (fun i => if left i then those x f i else 0))).
  rewrite <- (Rmult_1_l (sum (S n) (fun i => if left i then newcomers x f i else 0))), <- sum_linear. apply sum_ext.
  intros i _. unfold those, newcomers. destruct (left i), (common x i); ring.
Qed.
Lemma those_nonnegative x f i : (forall j, 0 <= f j) -> 0 <= those x f i.
Proof. intros H. unfold those. destruct (common x i); [apply H|lra]. Qed.
Lemma weight_nonnegative f left : (forall j, 0 <= f j) -> 0 <= weight_left (S n) f left.
Proof.
  intros H. apply Rle_trans with (sum (S n) (fun _ => 0)); [rewrite sum_zero; lra|].
  unfold weight_left. apply sum_le. intros i _. destruct (left i); [apply H|lra].
Qed.
Lemma newcomers_nonnegative x f i : (forall j, 0 <= f j) -> 0 <= newcomers x f i.
Proof. intros H. unfold newcomers. destruct (common x i); [lra|apply H]. Qed.
Lemma weight_less f left : (forall j, 0 <= f j) -> weight_left (S n) f left <= weight_left (S n) f everything.
Proof.
  intros H. unfold weight_left. apply sum_le. intros i _. unfold everything. destruct (left i); [lra|apply H].
Qed.
Lemma bottom_in_those x f left : (forall j, 0 <= f j) -> left n = true -> f n <= weight_left (S n) (those x f) left.
Proof.
  intros H Hl. unfold weight_left.
  pose proof (sum_at_least (S n) (fun i => if left i then those x f i else 0) n) as Hs. cbv beta in Hs. rewrite Hl in Hs.
  replace (f n) with (those x f n) by (unfold those; rewrite bottom_common; reflexivity). apply Hs; [|lia].
  intros j _. destruct (left j); [apply those_nonnegative; exact H|lra].
Qed.

(* (3): without newcomers each choice is among less. *)
Lemma choice_less x left i : left n = true -> common x i = true ->
  0 <= choice (S n) (w x) left i <= choice (S n) (those x (w x)) left i.
Proof.
  intros Hl Hc. pose proof (bottom_in_those x (w x) left (w_nonnegative x) Hl) as Hb.
  pose proof (weight_nonnegative (newcomers x (w x)) left (fun j => newcomers_nonnegative x (w x) j (w_nonnegative x))) as Hn.
  pose proof (weight_apart x (w x) left) as Ha. pose proof (bottom_positive x) as Hp.
  unfold choice, those at 1. rewrite Hc. destruct (left i); [|lra]. unfold Rdiv.
  pose proof (w_nonnegative x i) as Hw.
  assert (0 < / weight_left (S n) (w x) left) by (apply Rinv_0_lt_compat; lra).
  split; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat_l; [exact Hw|]. apply Rinv_le_contravar; lra.
Qed.
(* (4): and a factor of 1 + delta at each choice is more than newcomers have taken. *)
Lemma choice_nearly x left i : left n = true ->
  0 <= choice (S n) (those x (w' x)) left i <= (1 + delta) * choice (S n) (w' x) left i.
Proof.
  intros Hl. pose proof (bottom_in_those x (w' x) left (w_nonnegative' x) Hl) as Hb.
  pose proof (weight_nonnegative (newcomers x (w' x)) left (fun j => newcomers_nonnegative x (w' x) j (w_nonnegative' x))) as Hn.
  pose proof (weight_less (newcomers x (w' x)) left (fun j => newcomers_nonnegative x (w' x) j (w_nonnegative' x))) as Hle.
  pose proof (few' x) as Hf. pose proof (weight_apart x (w' x) left) as Ha. pose proof (bottom_positive' x) as Hp.
  unfold choice. destruct (left i); [|lra]. pose proof (w_nonnegative' x i) as Hw. unfold Rdiv.
  set (A := weight_left (S n) (those x (w' x)) left) in *. set (T := weight_left (S n) (w' x) left) in *.
  assert (HA : 0 < A) by lra. assert (HT : 0 < T) by lra.
  assert (HAi : 0 < / A) by (apply Rinv_0_lt_compat; exact HA).
  assert (HTi : 0 < / T) by (apply Rinv_0_lt_compat; exact HT).
  assert (HTA : T <= (1 + delta) * A) by nra.
  assert (Hinv : / A <= (1 + delta) * / T).
  { apply Rmult_le_reg_r with (A * T); [nra|]. replace (/ A * (A * T)) with T by (field; lra).
    replace ((1 + delta) * / T * (A * T)) with ((1 + delta) * A) by (field; lra). exact HTA. }
  unfold those. destruct (common x i).
  - split; [apply Rmult_le_pos; lra|].
    replace ((1 + delta) * (w' x i * / T)) with (w' x i * ((1 + delta) * / T)) by ring. apply Rmult_le_compat_l; assumption.
  - rewrite Rmult_0_l. split; [lra|]. repeat apply Rmult_le_pos; lra.
Qed.

Lemma chance_of_counts met h : complete (counts m noise noise' met) h ->
  0 <= chance (counts m noise noise' met) h /\ 0 <= chance' (counts m noise noise' met) h.
Proof.
  revert h. induction met as [|i met IH]; intros h H; destruct h as [|z h]; simpl in *; try tauto; [lra|].
  destruct H as [Hz H]. destruct (IH h H). destruct (noise_law i) as [[L1 _] [L2 _]].
  split; apply Rmult_le_pos; auto.
Qed.

Lemma stays left i : left n = true -> Nat.eqb i n = false -> without left i n = true.
Proof. intros Hl E. unfold without. rewrite E. exact Hl. Qed.

Lemma less_likely x k : forall left met h, left n = true -> complete (drawn x k left met) h -> meets x k h = false ->
  0 <= chance (drawn x k left met) h <= chance (kept x k left met) h.
Proof.
  induction k as [|k IH]; intros left met h Hl Hh Hm.
  - simpl peel in *. pose proof (chance_of_counts _ h Hh). lra.
  - destruct h as [|i h]; [simpl in Hh; tauto|]. simpl in Hh, Hm. destruct Hh as [Hi Hh].
    assert (Hc : common x i = true).
    { destruct (Nat.eqb i n) eqn:E; [apply PeanoNat.Nat.eqb_eq in E; subst i; apply bottom_common|].
      destruct (common x i); [reflexivity|discriminate Hm]. }
    pose proof (choice_less x left i Hl Hc) as Hch. simpl chance.
    assert (Hrest : 0 <= chance (if Nat.eqb i n then counts m noise noise' (counted with_counts met) else drawn x k (without left i) (cons i met)) h
        <= chance (if Nat.eqb i n then counts m noise noise' (counted with_counts met) else kept x k (without left i) (cons i met)) h).
    { destruct (Nat.eqb i n) eqn:E; [pose proof (chance_of_counts _ h Hh); lra|]. rewrite Hc in Hm.
      apply IH; [apply stays; assumption|exact Hh|exact Hm]. }
    split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra].
Qed.

Lemma nearly_as_likely x k : forall left met h, left n = true -> complete (drawn x k left met) h ->
  0 <= chance' (kept x k left met) h <= (1 + delta) ^ length h * chance' (drawn x k left met) h.
Proof.
  assert (Hcounts : forall met h, complete (counts m noise noise' met) h ->
    0 <= chance' (counts m noise noise' met) h <= (1 + delta) ^ length h * chance' (counts m noise noise' met) h).
  { intros met h H. destruct (chance_of_counts met h H) as [_ H']. split; [exact H'|].
    assert (1 <= (1 + delta) ^ length h) by (apply pow_R1_Rle; lra). nra. }
  induction k as [|k IH]; intros left met h Hl Hh; [apply Hcounts; exact Hh|].
  destruct h as [|i h]; [simpl in Hh; tauto|]. simpl in Hh. destruct Hh as [Hi Hh].
  pose proof (choice_nearly x left i Hl) as Hch. simpl chance'. simpl length. rewrite <- tech_pow_Rmult.
  assert (Hrest : 0 <= chance' (if Nat.eqb i n then counts m noise noise' (counted with_counts met) else kept x k (without left i) (cons i met)) h
      <= (1 + delta) ^ length h *
         chance' (if Nat.eqb i n then counts m noise noise' (counted with_counts met) else drawn x k (without left i) (cons i met)) h).
  { destruct (Nat.eqb i n) eqn:E; [apply Hcounts; exact Hh|]. apply IH; [apply stays; assumption|exact Hh]. }
  split; [apply Rmult_le_pos; lra|].
  match goal with |- _ <= (1 + delta) * ?p * (?a * ?b) =>
    replace ((1 + delta) * p * (a * b)) with ((1 + delta) * a * (p * b)) by ring end.
  apply Rmult_le_compat; lra.
Qed.

Lemma chance_nonnegative (a a' : nat -> nat -> R) x k : (forall y i, 0 <= a y i) -> (forall y i, 0 <= a' y i) ->
  (forall y, 0 < a y n) -> (forall y, 0 < a' y n) -> forall left met h, left n = true ->
  complete (peel m noise noise' with_counts n a a' x k left met) h ->
  0 <= chance (peel m noise noise' with_counts n a a' x k left met) h /\ 0 <= chance' (peel m noise noise' with_counts n a a' x k left met) h.
Proof.
  intros Ha Ha' Hb Hb'. assert (Hn : (n < S n)%nat) by lia.
  induction k as [|k IH]; intros left met h Hl Hh; [apply chance_of_counts; exact Hh|].
  destruct h as [|i h]; [simpl in Hh; tauto|]. simpl in Hh. destruct Hh as [Hi Hh].
  destruct (choice_law (S n) (a x) left n (Ha x) (Hb x) Hn Hl) as [Hc _].
  destruct (choice_law (S n) (a' x) left n (Ha' x) (Hb' x) Hn Hl) as [Hc' _].
  simpl chance. simpl chance'. destruct (Nat.eqb i n) eqn:E.
  - destruct (chance_of_counts _ h Hh). split; apply Rmult_le_pos; auto.
  - destruct (IH (without left i) (cons i met) h (stays left i Hl E) Hh). split; apply Rmult_le_pos; auto.
Qed.

Lemma counts_lawful met : lawful (counts m noise noise' met).
Proof. induction met as [|i met IH]; simpl; [exact I|]. split; [apply noise_law|auto]. Qed.
Lemma drawn_lawful x k : forall left met, left n = true -> lawful (drawn x k left met).
Proof.
  induction k as [|k IH]; intros left met Hl; simpl; [apply counts_lawful|].
  assert (Hn : (n < S n)%nat) by lia. split.
  - exact (choice_law (S n) (w x) left n (w_nonnegative x) (bottom_positive x) Hn Hl).
  - intros i Hi. destruct (Nat.eqb i n) eqn:E; [apply counts_lawful|apply IH; apply stays; assumption].
Qed.

(* A newcomer comes before bottom with probability delta at most. *)
Lemma newcomers_unlikely x k : forall left met, left n = true ->
  over (drawn x k left met) (fun h => if meets x k h then chance (drawn x k left met) h else 0) <= delta.
Proof.
  induction k as [|k IH]; intros left met Hl; [simpl; rewrite over_nothing; exact delta_nonnegative|].
  set (c := choice (S n) (w x) left).
  pose proof (bottom_in_those x (w x) left (w_nonnegative x) Hl) as Hb.
  pose proof (weight_less (newcomers x (w x)) left (fun j => newcomers_nonnegative x (w x) j (w_nonnegative x))) as Hle.
  pose proof (weight_nonnegative (newcomers x (w x)) left (fun j => newcomers_nonnegative x (w x) j (w_nonnegative x))) as Hnn.
  pose proof (few x) as Hf. pose proof (weight_apart x (w x) left) as Ha. pose proof (bottom_positive x) as Hp.
  set (T := weight_left (S n) (w x) left) in *. set (A := weight_left (S n) (those x (w x)) left) in *.
  set (N := weight_left (S n) (newcomers x (w x)) left) in *.
  assert (HT : 0 < T) by lra. assert (HTi : 0 < / T) by (apply Rinv_0_lt_compat; exact HT).
  assert (Hc : forall i, 0 <= c i).
  { intros i. unfold c, choice. fold T. destruct (left i); [|lra]. apply Rmult_le_pos; [apply w_nonnegative|lra]. }
  (* What a choice adds. *)
  assert (Hbelow : over (drawn x (S k) left met) (fun h => if meets x (S k) h then chance (drawn x (S k) left met) h else 0)
      <= sum n (fun i => c i * (if common x i then delta else 1)) + 0).
  { simpl. rewrite PeanoNat.Nat.eqb_refl. apply Rplus_le_compat; [|rewrite over_nothing; lra].
    apply sum_le. intros i Hi. assert (E : Nat.eqb i n = false) by (apply PeanoNat.Nat.eqb_neq; lia). rewrite E. fold c.
    assert (Hl' : without left i n = true) by (apply stays; assumption).
    destruct (common x i).
    - rewrite (over_ext _ _ (fun h => c i * (if meets x k h then chance (drawn x k (without left i) (cons i met)) h else 0))).
      + rewrite over_scaled. apply Rmult_le_compat_l; [apply Hc|apply IH; exact Hl'].
      + intros h _. destruct (meets x k h); ring.
    - rewrite over_scaled. rewrite (total _ (drawn_lawful x k _ _ Hl')). lra. }
  assert (Hsum : sum n (fun i => c i * (if common x i then delta else 1)) = / T * (delta * (A - w x n) + N)).
  { unfold A, N, weight_left. simpl. rewrite Hl. unfold those at 2. unfold newcomers at 2. rewrite (bottom_common x).
    replace (delta * (sum n (fun i => if left i then those x (w x) i else 0) + w x n - w x n) +
             (sum n (fun i => if left i then newcomers x (w x) i else 0) + 0))
      with (delta * sum n (fun i => if left i then those x (w x) i else 0) +
            1 * sum n (fun i => if left i then newcomers x (w x) i else 0)) by ring.
    rewrite <- sum_linear, scaled. apply sum_ext. intros i _. unfold c, choice, those, newcomers. fold T.
    destruct (left i), (common x i); unfold Rdiv; ring. }
  assert (Hend : / T * (delta * (A - w x n) + N) <= delta).
  { apply Rmult_le_reg_l with T; [exact HT|]. rewrite <- Rmult_assoc, Rinv_r by lra. nra. }
  lra.
Qed.

(* Both are trees of the same answers. *)
Lemma same_over x k : forall left met f, over (kept x k left met) f = over (drawn x k left met) f.
Proof.
  induction k as [|k IH]; intros left met f; [reflexivity|]. simpl over. f_equal.
  - apply sum_ext. intros i _. destruct (Nat.eqb i n); [reflexivity|apply IH].
  - destruct (Nat.eqb n n); [reflexivity|apply IH].
Qed.
Lemma same_answers x k : forall left met h, complete (kept x k left met) h -> complete (drawn x k left met) h.
Proof.
  induction k as [|k IH]; intros left met h H; [exact H|]. destruct h as [|i h]; [exact H|].
  destruct H as [Hi H]. split; [exact Hi|]. destruct (Nat.eqb i n); [exact H|apply IH; exact H].
Qed.

Theorem unk_gumb_admitted k next K l : (dearest with_counts k + 1 <= K)%nat -> (1 <= l)%nat ->
  (forall h, complete (without_newcomers k) h ->
    admitted e delta G (next h) (K - spent (without_newcomers k) h) (l - 1)) ->
  admitted e delta G (ask (without_newcomers k) (chance (with_newcomers k)) (chance' (with_newcomers k)) (fun _ => 1)
    (newcomers' k) (@length nat) 1 next) K l.
Proof.
  intros HK Hl Hnext.
  assert (Hkeeps : keeps e G (without_newcomers k) K).
  { apply unk_gumb_keeps; auto; intros; try (apply those_nonnegative; auto);
      unfold those; rewrite bottom_common; auto. }
  pose proof (choice_law n_x v everything O (fun x => Rlt_le _ _ (v_positive x)) (v_positive O) some_index eq_refl) as Hv.
  pose proof (choice_law n_x v' everything O (fun x => Rlt_le _ _ (v_positive' x)) (v_positive' O) some_index eq_refl) as Hv'.
  simpl. split; [exact Hkeeps|]. split; [exact Hl|]. split; [|split].
  - destruct Hv as [Hv Hv1].
    apply Rle_trans with (sum n_x (fun x => delta * choice n_x v everything x)); [|rewrite <- scaled, Hv1; lra].
    apply sum_le. intros x Hx. rewrite same_over.
    rewrite (over_ext _ _ (fun h => choice n_x v everything x *
      (if meets x k h then chance (drawn x k everything nil) h else 0))).
    + rewrite over_scaled, (Rmult_comm delta). apply Rmult_le_compat_l; [apply Hv; exact Hx|].
      apply newcomers_unlikely. reflexivity.
    + intros h _. destruct (meets x k h); [reflexivity|ring].
  - destruct Hv as [Hv Hv1]. rewrite <- Hv1. apply sum_ext. intros x Hx. rewrite same_over, over_scaled.
    rewrite total by (apply drawn_lawful; reflexivity). ring.
  - intros h Hh. specialize (Hnext h Hh).
    assert (Hs : length h = spent (without_newcomers k) h) by (symmetry; apply unk_gumb_spent; exact Hh).
    pose proof (keeps_spent e G _ K h Hkeeps Hh) as Hin.
    destruct h as [|x h]; [simpl in Hh; tauto|]. destruct Hh as [Hx Hh].
    pose proof (same_answers x k everything nil h Hh) as Hd.
    pose proof (nearly_as_likely x k everything nil h eq_refl Hd) as H4.
    pose proof (proj1 Hv x Hx) as Hc. pose proof (proj1 Hv' x Hx) as Hc'.
    destruct (chance_nonnegative w w' x k w_nonnegative w_nonnegative' bottom_positive bottom_positive' everything nil h
      eq_refl Hd) as [H0 H0'].
    assert (Hkept : 0 <= chance (kept x k everything nil) h).
    { apply chance_nonnegative; auto; intros; try (apply those_nonnegative; auto); unfold those; rewrite bottom_common; auto. }
    unfold newcomers', with_newcomers, without_newcomers, unk_gumb in *. simpl chance in *. simpl chance' in *.
    simpl in Hs, Hin.
    unfold answers. simpl chance. simpl chance'. simpl spent.
    repeat split; try lra; try (apply Rmult_le_pos; assumption); try assumption; try (simpl; lia).
    + destruct (meets x k h); [apply Rmult_le_pos; assumption|lra].
    + destruct (meets x k h) eqn:E.
      * assert (0 <= choice n_x v everything x * chance (kept x k everything nil) h) by (apply Rmult_le_pos; assumption). lra.
      * pose proof (less_likely x k everything nil h eq_refl Hd E). rewrite Rmult_1_l, Rplus_0_r.
        apply Rmult_le_compat_l; lra.
    + simpl length. rewrite <- tech_pow_Rmult, Rmult_1_l.
      set (c := choice n_x v' everything x) in *. set (q := chance' (kept x k everything nil) h) in *.
      set (r := chance' (drawn x k everything nil) h) in *. set (f := (1 + delta) ^ length h) in *.
      assert (0 <= c * (f * r)) by (apply Rmult_le_pos; lra).
      apply Rle_trans with (c * (f * r)); [apply Rmult_le_compat_l; lra|].
      replace ((1 + delta) * f * (c * r)) with ((1 + delta) * (c * (f * r))) by ring. nra.
Qed.
End unk_gumb.
