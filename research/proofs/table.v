(* A table of theorem A as a certificate: whole numbers, and a check of them that suffices, whoever made them.

   The points are g^(i - one), i = 0, 1, ..., for a rational g = up / down with g^unit >= exp(e). Row k bounds V k there,
   in parts of `whole`; its last number is for all further points too, and where there is no row, the bound is 1. V k is
   the largest convex falling function that is at most 1 at 0, and at no point above its row. So rows need not be convex. *)
Require Import Reals Lra Lia ZArith Bool List.
From Gris Require Import adaptive convex.
Import ListNotations.

(* ---- The check ---- *)

Open Scope Z_scope.

Record grid := { up : Z; down : Z; unit : nat; one : nat; whole : Z }.

(* z^n for n that count, and what a row tells of a point. *)
Definition pow (z : Z) (n : nat) : Z := z ^ Z.of_nat n.
Definition value (s : grid) (row : list Z) (i : nat) : Z := nth i row (last row (whole s)).

(* That c0 (1 - s)^2 + c1 s (1 - s) + c2 s^2 is not negative for 0 <= s <= 1. *)
Definition above_parabola (c0 c1 c2 : Z) : bool :=
  (0 <=? c0) && (0 <=? c2) && ((0 <=? c1) || (c1 * c1 <=? 4 * c0 * c2)).

(* That w, at the point g^d x, is above all lines that begin between x and g x, where v falls from v0 to v1, and end
   between g^unit x and g^(unit + 1) x, where it falls from u0 to u1; a, a', b and b' weigh their four ends. *)
Definition above_lines (a a' b b' w v0 v1 u0 u1 : Z) : bool :=
  above_parabola (a * (w - v0) + b * (w - u0))
    (a * (w - v1) + a' * (w - v0) + b * (w - u1) + b' * (w - u0))
    (a' * (w - v1) + b' * (w - u1)).

Definition above_recursion (s : grid) (old new : list Z) : bool :=
  forallb (fun d =>
    let far := pow (up s) d * pow (down s) (S (unit s) - d) in
    let a := pow (up s) (unit s) * down s - far in
    let a' := pow (up s) (S (unit s)) - far in
    let b := far - pow (down s) (S (unit s)) in
    let b' := far - up s * pow (down s) (unit s) in
    forallb (fun i =>
      above_lines a a' b b' (value s new i) (value s old (i - d)) (value s old (S (i - d)))
        (value s old (i - d + unit s)) (value s old (S (i - d + unit s))))
      (seq (unit s) (S (length new) - unit s)))
    (seq 1 (unit s)).

(* Before point `unit`, a row is above the line from (0, 1) to there. *)
Definition above_first_line (s : grid) (row : list Z) : bool :=
  forallb (fun i =>
    (whole s - value s row i) * pow (up s) (unit s - i)
      <=? (whole s - value s row (unit s)) * pow (down s) (unit s - i))
    (seq 0 (unit s)).

Definition proper (s : grid) (row : list Z) : bool :=
  Nat.ltb (unit s) (length row) && forallb (Z.leb 0) row && above_first_line s row.

(* The first row is above max(0, 1 - x), if it is not negative. *)
Definition above_start (s : grid) (row : list Z) : bool :=
  forallb (fun i =>
    whole s * (pow (up s) (one s) * pow (down s) i - pow (up s) i * pow (down s) (one s))
      <=? value s row i * (pow (up s) (one s) * pow (down s) i))
    (seq 0 (S (length row))).

Fixpoint steps (s : grid) (rows : list (list Z)) : bool :=
  match rows with
  | old :: (new :: _) as later => above_recursion s old new && steps s later
  | _ => true
  end.

Definition checked (s : grid) (rows : list (list Z)) : bool :=
  (0 <? down s) && (down s <? up s) && Nat.ltb 0 (unit s) && (0 <? whole s) &&
  above_start s (hd [] rows) && forallb (proper s) rows && steps s rows.

(* ---- What passes the check is a table of theorem A ---- *)

Close Scope Z_scope.
Open Scope R_scope.

Lemma IZR_power z n : IZR (pow z n) = IZR z ^ n.
Proof. unfold pow. symmetry. apply pow_IZR. Qed.

Section table.
Variable s : grid.
Variable rows : list (list Z).
Hypothesis ok : checked s rows = true.
Notation m := (unit s).
Definition ratio : R := IZR (up s) / IZR (down s).
Definition row (k : nat) : list Z := nth k rows [].
Definition entry (k i : nat) : R := IZR (value s (row k) i) / IZR (whole s).
Notation x := (point ratio (one s)).

Lemma parts : (0 < down s < up s)%Z /\ (0 < m)%nat /\ (0 < whole s)%Z /\ above_start s (hd [] rows) = true /\
  (forall r, In r rows -> proper s r = true) /\ steps s rows = true.
Proof.
  unfold checked in ok. rewrite !andb_true_iff in ok. destruct ok as [[[[[[H1 H2] H3] H4] H5] H6] H7].
  rewrite PeanoNat.Nat.ltb_lt in H3. rewrite Z.ltb_lt in *. rewrite forallb_forall in H6. repeat split; auto.
Qed.

Lemma down_positive : 0 < IZR (down s).
Proof. apply IZR_lt, parts. Qed.
Lemma whole_positive : 0 < IZR (whole s).
Proof. apply IZR_lt, parts. Qed.
Lemma ratio_large : 1 < ratio.
Proof.
  pose proof down_positive as H. unfold ratio. apply Rmult_lt_reg_r with (IZR (down s)); [exact H|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_l, Rmult_1_r by lra. apply IZR_lt, parts.
Qed.
Lemma up_power n : IZR (pow (up s) n) = ratio ^ n * IZR (down s) ^ n.
Proof.
  rewrite IZR_power, <- Rpow_mult_distr. f_equal. unfold ratio. field. pose proof down_positive. lra.
Qed.
Lemma entry_is k i : IZR (value s (row k) i) = entry k i * IZR (whole s).
Proof. unfold entry. field. pose proof whole_positive. lra. Qed.

Lemma row_cases k : row k = [] \/ In (row k) rows.
Proof. unfold row. destruct (nth_in_or_default k rows []); auto. Qed.
Lemma value_in r i : r <> [] -> In (value s r i) r.
Proof.
  intros H. unfold value. destruct (nth_in_or_default i r (last r (whole s))) as [Hn|Hn]; [exact Hn|rewrite Hn].
  pattern r at 2. rewrite (app_removelast_last (whole s) H). apply in_or_app. right. left. reflexivity.
Qed.
Lemma entry_nothing k i : row k = [] -> entry k i = 1.
Proof.
  intros H. unfold entry, value. rewrite H.
  replace (nth i [] (last [] (whole s))) with (whole s) by (destruct i; reflexivity). field. pose proof whole_positive. lra.
Qed.
Lemma entry_positive k i : 0 <= entry k i.
Proof.
  destruct (row_cases k) as [H|H]; [rewrite entry_nothing by exact H; lra|].
  destruct parts as [_ [_ [_ [_ [Hp _]]]]]. specialize (Hp _ H). unfold proper in Hp. rewrite !andb_true_iff in Hp.
  destruct Hp as [[Hl Hp] _]. rewrite forallb_forall in Hp.
  assert (Hn : row k <> []) by (intros E; rewrite E in Hl; apply PeanoNat.Nat.ltb_lt in Hl; simpl in Hl; lia).
  specialize (Hp _ (value_in _ i Hn)). apply Z.leb_le in Hp. apply IZR_le in Hp.
  unfold entry. apply Rmult_le_pos; [exact Hp|left; apply Rinv_0_lt_compat, whole_positive].
Qed.

Definition V (k : nat) : R -> R := largest x (entry k) (entry_positive k).

(* A function is below a row if it is where steps are checked: up to the first point behind the row. *)
Lemma below_at_points k f : convex f -> falling f -> f 0 <= 1 -> row k <> [] ->
  (forall i, (m <= i <= length (row k))%nat -> f (x i) <= entry k i) -> below x (entry k) f.
Proof.
  intros Hf Hd H0 Hn H. destruct parts as [_ [_ [_ [_ [Hp _]]]]].
  destruct (row_cases k) as [E|Hin]; [contradiction|]. specialize (Hp _ Hin). unfold proper in Hp.
  rewrite !andb_true_iff in Hp. destruct Hp as [[Hl _] Hline]. apply PeanoNat.Nat.ltb_lt in Hl.
  repeat split; try assumption. intros i. pose proof ratio_large as Hg.
  pose proof (point_positive ratio (one s) Hg i) as Hx.
  destruct (Compare_dec.le_lt_dec m i) as [Hi|Hi]; [destruct (Compare_dec.le_lt_dec i (length (row k))) as [Hi'|Hi']|].
  - apply H. lia.
  - apply Rle_trans with (f (x (length (row k)))).
    + apply Hd; [left; apply point_positive; exact Hg|apply point_rises; [exact Hg|lia]].
    + apply Rle_trans with (1 := H (length (row k)) (conj (PeanoNat.Nat.lt_le_incl _ _ Hl) (le_n _))).
      unfold entry, value. rewrite !nth_overflow by lia. apply Rle_refl.
  - unfold above_first_line in Hline. rewrite forallb_forall in Hline.
    assert (Hs : In i (seq 0 m)) by (apply in_seq; lia).
    specialize (Hline i Hs). apply Z.leb_le, IZR_le in Hline.
    rewrite !mult_IZR, !minus_IZR, !entry_is, up_power, IZR_power in Hline.
    pose proof (H m ltac:(lia)) as Hm. replace m with (i + (m - i))%nat in Hm at 1 by lia.
    rewrite point_plus in Hm by exact Hg. set (n := (m - i)%nat) in *.
    assert (Hgn : 1 < ratio ^ n) by (apply Rlt_pow_R1; [exact Hg|unfold n; lia]).
    assert (Hdn : 0 < IZR (down s) ^ n) by (apply pow_lt, down_positive). pose proof whole_positive as Hw.
    assert (Hline' : (1 - entry k i) * ratio ^ n <= 1 - entry k m).
    { apply Rmult_le_reg_r with (IZR (whole s) * IZR (down s) ^ n); [apply Rmult_lt_0_compat; assumption|]. lra. }
    assert (Hxn : x i * 1 < x i * ratio ^ n) by (apply Rmult_lt_compat_l; assumption).
    pose proof (below_line f 0 (x i * ratio ^ n) (x i) 1 (entry k m) Hf) as Hb.
    apply Rmult_le_reg_l with (x i * ratio ^ n); [lra|].
    apply Rle_trans with ((x i * ratio ^ n - x i) * 1 + (x i - 0) * entry k m).
    + replace (x i * ratio ^ n) with (x i * ratio ^ n - 0) at 1 by ring. apply Hb; lra.
    + apply Rmult_le_compat_l with (r := x i) in Hline'; lra.
Qed.

Lemma V_below k i : V k (x i) <= entry k i.
Proof.
  apply largest_least; [left; apply point_positive, ratio_large|]. intros f [_ [_ [_ Hf]]]. apply Hf.
Qed.
Lemma V_at_most_1 k y : 0 <= y -> V k y <= 1.
Proof.
  intros Hy. apply largest_least; [exact Hy|]. intros f [_ [Hf [H0 _]]]. specialize (Hf 0 y (Rle_refl 0) Hy). lra.
Qed.

Lemma steps_at : forall rs k, steps s rs = true -> (S k < length rs)%nat ->
  above_recursion s (nth k rs []) (nth (S k) rs []) = true.
Proof.
  induction rs as [|old rs IH]; intros k H Hk; [simpl in Hk; lia|].
  destruct rs as [|new rs]; [simpl in Hk; lia|]. simpl in H. apply andb_true_iff in H. destruct H as [H1 H2].
  destruct k as [|k]; [exact H1|]. apply (IH k); [exact H2|simpl in *; lia].
Qed.

(* The check of one cell, in reals. *)
Lemma above_cell k i d : row (S k) <> [] -> (0 < d <= m)%nat -> (m <= i <= length (row (S k)))%nat ->
  let w := entry (S k) i in let v j := entry k j in let j := (i - d)%nat in let g := ratio in
  forall r, 0 <= r <= 1 -> 0 <=
    ((g ^ m - g ^ d) * (w - v j) + (g ^ d - 1) * (w - v (j + m)%nat)) * ((1 - r) * (1 - r)) +
    ((g ^ m - g ^ d) * (w - v (S j)) + (g * g ^ m - g ^ d) * (w - v j) + (g ^ d - 1) * (w - v (S (j + m)))
      + (g ^ d - g) * (w - v (j + m)%nat)) * (r * (1 - r)) +
    ((g * g ^ m - g ^ d) * (w - v (S j)) + (g ^ d - g) * (w - v (S (j + m)))) * (r * r).
Proof.
  intros Hn Hd Hi w v j g r Hr. destruct parts as [_ [_ [_ [_ [_ Hs]]]]].
  assert (Hk : (S k < length rows)%nat).
  { destruct (Compare_dec.le_lt_dec (length rows) (S k)) as [Hk|Hk]; [|exact Hk].
    exfalso. apply Hn. unfold row. apply nth_overflow. exact Hk. }
  pose proof (steps_at rows k Hs Hk) as H. unfold above_recursion in H. rewrite forallb_forall in H.
  specialize (H d). rewrite forallb_forall in H.
  assert (H1 : In d (seq 1 m)) by (apply in_seq; lia).
  assert (H2 : In i (seq m (S (length (nth (S k) rows [])) - m))) by (apply in_seq; unfold row in Hi; lia).
  specialize (H H1 i H2). fold (row k) (row (S k)) in H. fold j in H.
  unfold above_lines, above_parabola in H. rewrite !andb_true_iff, orb_true_iff, !Z.leb_le in H.
  destruct H as [[Hc0 Hc2] Hc1]. apply IZR_le in Hc0, Hc2.
  set (q := IZR (down s)) in *. pose proof down_positive as Hq. pose proof whole_positive as Hw.
  assert (Hfar : IZR (pow (up s) d * pow (down s) (S m - d)) = g ^ d * q ^ S m).
  { rewrite mult_IZR, up_power, IZR_power. fold q g. rewrite Rmult_assoc, <- pow_add. do 2 f_equal. lia. }
  set (z := q ^ S m * IZR (whole s)). assert (Hz : 0 < z) by (apply Rmult_lt_0_compat; [apply pow_lt|]; assumption).
  assert (Za : IZR (pow (up s) m * down s - pow (up s) d * pow (down s) (S m - d)) = (g ^ m - g ^ d) * q ^ S m).
  { rewrite minus_IZR, Hfar, mult_IZR, up_power. fold q g. simpl. ring. }
  assert (Za' : IZR (pow (up s) (S m) - pow (up s) d * pow (down s) (S m - d)) = (g * g ^ m - g ^ d) * q ^ S m).
  { rewrite minus_IZR, Hfar, up_power. fold q g. simpl. ring. }
  assert (Zb : IZR (pow (up s) d * pow (down s) (S m - d) - pow (down s) (S m)) = (g ^ d - 1) * q ^ S m).
  { rewrite minus_IZR, Hfar, IZR_power. fold q. ring. }
  assert (Zb' : IZR (pow (up s) d * pow (down s) (S m - d) - up s * pow (down s) m) = (g ^ d - g) * q ^ S m).
  { rewrite minus_IZR, Hfar, mult_IZR, IZR_power. fold q. replace (IZR (up s)) with (g * q).
    - simpl. ring.
    - unfold g, ratio. fold q. field. unfold q. lra. }
  set (a := (pow (up s) m * down s - pow (up s) d * pow (down s) (S m - d))%Z) in *.
  set (a' := (pow (up s) (S m) - pow (up s) d * pow (down s) (S m - d))%Z) in *.
  set (b := (pow (up s) d * pow (down s) (S m - d) - pow (down s) (S m))%Z) in *.
  set (b' := (pow (up s) d * pow (down s) (S m - d) - up s * pow (down s) m)%Z) in *.
  assert (Hterm : forall c cr k' i', IZR c = cr * q ^ S m ->
    IZR (c * (value s (row (S k)) i - value s (row k') i')) = z * (cr * (w - entry k' i'))).
  { intros c cr k' i' Hc. rewrite mult_IZR, minus_IZR, !entry_is, Hc. unfold z, w. ring. }
  rewrite plus_IZR, (Hterm _ _ _ _ Za), (Hterm _ _ _ _ Zb) in Hc0.
  rewrite plus_IZR, (Hterm _ _ _ _ Za'), (Hterm _ _ _ _ Zb') in Hc2.
  rewrite <- Rmult_plus_distr_l in Hc0, Hc2.
  unfold v. apply parabola; [apply Rmult_le_reg_l with z; lra|apply Rmult_le_reg_l with z; lra| |exact Hr].
  destruct Hc1 as [Hc1|Hc1]; apply IZR_le in Hc1; [left|right].
  - rewrite !plus_IZR, (Hterm _ _ _ _ Za), (Hterm _ _ _ _ Za'), (Hterm _ _ _ _ Zb), (Hterm _ _ _ _ Zb') in Hc1.
    apply Rmult_le_reg_l with z; [exact Hz|]. lra.
  - rewrite !mult_IZR, !plus_IZR, (Hterm _ _ _ _ Za), (Hterm _ _ _ _ Za'), (Hterm _ _ _ _ Zb), (Hterm _ _ _ _ Zb'),
      (Hterm _ _ _ _ Za), (Hterm _ _ _ _ Za'), (Hterm _ _ _ _ Zb), (Hterm _ _ _ _ Zb') in Hc1.
    apply Rmult_le_reg_l with (z * z); [apply Rmult_lt_0_compat; exact Hz|]. lra.
Qed.

(* Theorem A is taken at ln g^unit, which is at least e. *)
Definition span : R := ln (ratio ^ m).
Lemma span_is : exp span = ratio ^ m.
Proof. apply exp_ln, pow_lt. pose proof ratio_large. lra. Qed.
Lemma span_positive : 0 < span.
Proof.
  destruct parts as [_ [Hm _]]. apply exp_lt_inv. rewrite exp_0, span_is.
  apply Rlt_pow_R1; [apply ratio_large|exact Hm].
Qed.

(* What a unit may leave of row k. *)
Definition after (k : nat) (t y : R) : R :=
  p span t * V k (y * exp (- t)) + (1 - p span t) * V k (y * exp (span - t)).

Lemma chance_between t : 0 <= t <= span -> 0 <= p span t <= 1.
Proof.
  intros [H0 H1]. unfold p. pose proof span_positive.
  assert (exp t <= exp span) by (apply exp_le; exact H1).
  assert (1 <= exp t) by (rewrite <- exp_0; apply exp_le; exact H0).
  assert (1 < exp span) by (rewrite <- exp_0; apply exp_increasing; exact H).
  split; apply Rmult_le_reg_r with (exp span - 1); try lra; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.

Lemma after_below k t : 0 <= t <= span -> below x (entry (S k)) (after k t).
Proof.
  intros Ht. pose proof (chance_between t Ht) as Hp. pose proof (exp_pos (- t)) as E1.
  pose proof (exp_pos (span - t)) as E2.
  set (c := exp (- t)) in *. set (c' := exp (span - t)) in *. pose proof ratio_large as Hg.
  assert (Hd : falling (after k t)).
  { intros a b Ha Hab. unfold after. fold c c'.
    apply Rplus_le_compat; apply Rmult_le_compat_l; try lra; apply largest_falling; nra. }
  assert (Hf : convex (after k t)).
  { assert (Hscale : forall r, 0 < r -> convex (fun y => V k (y * r))).
    { intros r Hr a b y Ha Hay Hyb Hab.
      assert (Hc : V k (y * r) <= (b * r - y * r) / (b * r - a * r) * V k (a * r)
                                  + (y * r - a * r) / (b * r - a * r) * V k (b * r)) by (apply largest_convex; nra).
      replace ((b * r - y * r) / (b * r - a * r)) with ((b - y) / (b - a)) in Hc by (field; nra).
      replace ((y * r - a * r) / (b * r - a * r)) with ((y - a) / (b - a)) in Hc by (field; nra). exact Hc. }
    intros a b y Ha Hay Hyb Hab. unfold after. fold c c'.
    pose proof (Hscale c E1 a b y Ha Hay Hyb Hab). pose proof (Hscale c' E2 a b y Ha Hay Hyb Hab).
    apply Rmult_le_compat_l with (r := p span t) in H; [|lra].
    apply Rmult_le_compat_l with (r := 1 - p span t) in H0; [|lra]. simpl in *. lra. }
  assert (H1 : forall y, 0 <= y -> after k t y <= 1).
  { intros y Hy. unfold after. fold c c'.
    pose proof (V_at_most_1 k (y * c) ltac:(nra)). pose proof (V_at_most_1 k (y * c') ltac:(nra)). nra. }
  destruct (row (S k)) as [|z r] eqn:E.
  - repeat split; auto; [apply H1; lra|]. intros i. rewrite entry_nothing by exact E.
    apply H1. left. apply point_positive. exact Hg.
  - assert (Hn : row (S k) <> []) by (rewrite E; discriminate).
    apply below_at_points; try assumption; [apply H1; lra|]. intros i Hi.
    destruct parts as [_ [Hm _]].
    destruct (cell_of ratio (one s) (x i * c) m (i - m)%nat) as [n [Hnm Hy]]; [|exact Hm|].
    { replace (i - m + m)%nat with i by lia. pose proof (point_positive ratio (one s) Hg i) as Hx.
      assert (c <= 1) by (unfold c; rewrite <- exp_0; apply exp_le; lra).
      assert (Hc : exp (- span) <= c) by (unfold c; apply exp_le; lra). split; [|nra].
      pose proof (point_positive ratio (one s) Hg (i - m)) as Hxm.
      assert (Hxi : x i = x (i - m)%nat * exp span).
      { rewrite span_is, <- point_plus by exact Hg. f_equal. lia. }
      rewrite Hxi. apply Rle_trans with (x (i - m)%nat * exp span * exp (- span)).
      - rewrite Rmult_assoc, <- exp_plus, Rplus_opp_r, exp_0. lra.
      - apply Rmult_le_compat_l; [rewrite <- Hxi; lra|exact Hc]. }
    set (j := (i - m + n)%nat) in *. set (d := (m - n)%nat).
    replace i with (j + d)%nat in Hy |- * by (unfold j, d; lia).
    assert (Hj : (j + d - d)%nat = j) by lia.
    pose proof (above_cell k (j + d) d Hn ltac:(unfold d; lia) ltac:(unfold j, d; lia)) as Hcell. simpl in Hcell.
    rewrite Hj in Hcell.
    apply (above_in_cell ratio (one s) Hg span m (V k) _
             (entry k j) (entry k (S j)) (entry k (j + m)) (entry k (S (j + m))));
      try apply V_below; try assumption; [apply span_is|apply largest_convex|unfold d; lia].
Qed.

Lemma table_recursion k y t : 0 <= y -> 0 <= t <= span ->
  p span t * V k (y * exp (- t)) + (1 - p span t) * V k (y * exp (span - t)) <= V (S k) y.
Proof.
  intros Hy Ht. change (after k t y <= V (S k) y). apply below_largest; [apply after_below; exact Ht|exact Hy].
Qed.

Lemma table_monotone k y : 0 <= y -> V k y <= V (S k) y.
Proof.
  intros Hy. pose proof (table_recursion k y 0 Hy). pose proof span_positive as Hs.
  assert (Hp : p span 0 = 1).
  { unfold p. rewrite exp_0. field. assert (1 < exp span) by (rewrite <- exp_0; apply exp_increasing; exact Hs). lra. }
  rewrite Hp, Ropp_0, exp_0, Rmult_1_r in H. lra.
Qed.

Lemma start_told i : 1 - x i <= entry 0 i.
Proof.
  pose proof ratio_large as Hg. destruct parts as [_ [_ [_ [Hs _]]]].
  assert (H : forall j, (j <= length (row 0))%nat -> 1 - x j <= entry 0 j).
  { intros j Hj. replace (hd [] rows) with (row 0) in Hs by (unfold row; destruct rows; reflexivity).
    unfold above_start in Hs. rewrite forallb_forall in Hs. specialize (Hs j).
    assert (Hin : In j (seq 0 (S (length (row 0))))) by (apply in_seq; lia).
    specialize (Hs Hin). apply Z.leb_le, IZR_le in Hs.
    rewrite !mult_IZR, minus_IZR, !mult_IZR, entry_is, !up_power, !IZR_power in Hs.
    pose proof whole_positive as Hw. pose proof down_positive as Hd.
    pose proof (pow_lt _ j Hd) as Hj'. pose proof (pow_lt _ (one s) Hd) as Ho.
    assert (Hr : 0 < ratio ^ one s) by (apply pow_lt; lra).
    apply Rmult_le_reg_r with (IZR (whole s) * (ratio ^ one s * IZR (down s) ^ one s * IZR (down s) ^ j)).
    { repeat apply Rmult_lt_0_compat; assumption. }
    replace ((1 - x j) * (IZR (whole s) * (ratio ^ one s * IZR (down s) ^ one s * IZR (down s) ^ j)))
      with (IZR (whole s) * (ratio ^ one s * IZR (down s) ^ one s * IZR (down s) ^ j
                             - ratio ^ j * IZR (down s) ^ j * IZR (down s) ^ one s)) by (unfold point; field; lra).
    lra. }
  destruct (Compare_dec.le_lt_dec i (length (row 0))) as [Hi|Hi]; [apply H; exact Hi|].
  apply Rle_trans with (1 - x (length (row 0))).
  - pose proof (point_rises ratio (one s) Hg (length (row 0)) i ltac:(lia)). lra.
  - apply Rle_trans with (1 := H _ (le_n _)). unfold entry, value. rewrite !nth_overflow by lia. apply Rle_refl.
Qed.

Lemma table_above k y : 0 <= y -> Rmax 0 (1 - y) <= V k y.
Proof.
  intros Hy. induction k as [|k IH]; [|apply Rle_trans with (1 := IH); apply table_monotone; exact Hy].
  (* max(0, 1 - x) is pure composition of no units. *)
  assert (Hplain : forall z, plain 1 0 z = Rmax 0 (1 - z)).
  { intros z. unfold plain. simpl. rewrite Rmult_0_l, Ropp_0, exp_0, Rmult_1_r. reflexivity. }
  rewrite <- Hplain. apply (below_largest x (entry 0) (entry_positive 0)); [|exact Hy].
  split; [apply plain_convex|]. split; [apply plain_falling|]. split.
  - rewrite Hplain. apply Rmax_lub; lra.
  - intros i. rewrite Hplain. apply Rmax_lub; [apply entry_positive|apply start_told].
Qed.

(* Where point i is at most exp(epsilon), row K tells delta. *)
Theorem checked_table e t K i A epsilon : exp e <= ratio ^ m -> x i <= exp epsilon ->
  keeps e no_gaussian t K -> event A -> P t A <= exp epsilon * P' t A + entry K i.
Proof.
  intros Hm Hx Hk HA.
  assert (Hspan : e <= span).
  { destruct (Rle_lt_dec e span) as [Hl|Hl]; [exact Hl|]. apply exp_increasing in Hl. rewrite span_is in Hl. lra. }
  apply (keeps_longer e span) in Hk; [|exact Hspan].
  apply Rle_trans with (exp epsilon * P' t A + V K (exp epsilon)).
  - apply private with (e := span) (G := no_gaussian); try assumption.
    + apply span_positive.
    + intros f g H y Hy. apply H. exact Hy.
    + intros k. apply largest_convex.
    + intros k. apply largest_falling.
    + intros. apply table_above. assumption.
    + intros. apply table_monotone. assumption.
    + intros. apply table_recursion; assumption.
    + intros. apply table_monotone. assumption.
  - apply Rplus_le_compat_l. apply Rle_trans with (V K (x i)); [|apply V_below].
    apply largest_falling; [|exact Hx]. left. apply point_positive, ratio_large.
Qed.
End table.
