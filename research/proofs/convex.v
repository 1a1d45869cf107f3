(* A table of theorem A of which only bounds at points are known: the largest convex falling function below them. And why
   finitely many inequalities between such bounds suffice for every t. *)
Require Import Reals Lra Lia.
From Gris Require Import adaptive.
Open Scope R_scope.

(* ---- The largest convex function ---- *)

Lemma below_line f a b y u v : convex f -> 0 <= a -> a <= y -> y <= b -> a < b -> f a <= u -> f b <= v ->
  (b - a) * f y <= (b - y) * u + (y - a) * v.
Proof.
  intros Hf Ha Hay Hyb Hab Hu Hv. pose proof (Hf a b y Ha Hay Hyb Hab) as H.
  apply (Rmult_le_compat_l (b - a)) in H; [|lra].
  replace ((b - a) * ((b - y) / (b - a) * f a + (y - a) / (b - a) * f b)) with ((b - y) * f a + (y - a) * f b) in H
    by (field; lra).
  nra.
Qed.

Section largest.
Variable x : nat -> R.
Variable v : nat -> R.
Hypothesis v_positive : forall i, 0 <= v i.

Definition below (f : R -> R) := convex f /\ falling f /\ f 0 <= 1 /\ forall i, f (x i) <= v i.
Definition reached (y r : R) := exists f, below f /\ r = f (Rmax 0 y).

Lemma reached_bound y : bound (reached y).
Proof.
  exists 1. intros r [f [[_ [Hf [H1 _]]] ->]]. pose proof (Hf 0 (Rmax 0 y) (Rle_refl 0) (Rmax_l 0 y)). lra.
Qed.
Lemma reached_something y : exists r, reached y r.
Proof.
  exists 0, (fun _ => 0). split; [|reflexivity]. repeat split; try lra; auto; [|intros a b _ _; lra].
  intros a b z _ _ _ _. lra.
Qed.
Definition largest (y : R) : R := proj1_sig (completeness _ (reached_bound y) (reached_something y)).

Lemma largest_is y : is_lub (reached y) (largest y).
Proof. unfold largest. destruct (completeness _ _ _). assumption. Qed.
Lemma below_largest f y : below f -> 0 <= y -> f y <= largest y.
Proof. intros Hf Hy. apply (proj1 (largest_is y)). exists f. rewrite Rmax_right by exact Hy. auto. Qed.
Lemma largest_least y u : 0 <= y -> (forall f, below f -> f y <= u) -> largest y <= u.
Proof.
  intros Hy H. apply (proj2 (largest_is y)). intros r [f [Hf ->]]. rewrite Rmax_right by exact Hy. auto.
Qed.

Lemma largest_convex : convex largest.
Proof.
  intros a b y Ha Hay Hyb Hab. apply largest_least; [lra|]. intros f Hf.
  apply Rle_trans with (1 := proj1 Hf a b y Ha Hay Hyb Hab).
  assert (0 < / (b - a)) by (apply Rinv_0_lt_compat; lra).
  apply Rplus_le_compat; apply Rmult_le_compat_l; try (apply below_largest; [exact Hf|lra]); unfold Rdiv; nra.
Qed.
Lemma largest_falling : falling largest.
Proof.
  intros a b Ha Hab. apply largest_least; [lra|]. intros f Hf.
  apply Rle_trans with (f a); [apply Hf; lra|apply below_largest; assumption].
Qed.
End largest.

(* ---- For every t ---- *)

Lemma parabola c0 c1 c2 s : 0 <= c0 -> 0 <= c2 -> 0 <= c1 \/ c1 * c1 <= 4 * c0 * c2 -> 0 <= s <= 1 ->
  0 <= c0 * ((1 - s) * (1 - s)) + c1 * (s * (1 - s)) + c2 * (s * s).
Proof.
  intros H0 H2 H [Hs Hs'].
  assert (A : 0 <= s * (1 - s)) by nra. assert (B : 0 <= (1 - s) * (1 - s)) by nra. assert (C : 0 <= s * s) by nra.
  destruct (Rle_dec 0 c1) as [Hc|Hc]; [assert (0 <= c1 * (s * (1 - s))) by nra; nra|].
  destruct H as [H|H]; [lra|]. destruct H0 as [H0|H0]; [|rewrite <- H0 in H; nra].
  apply Rmult_le_reg_l with (4 * c0); [lra|]. rewrite Rmult_0_r.
  replace (4 * c0 * (c0 * ((1 - s) * (1 - s)) + c1 * (s * (1 - s)) + c2 * (s * s)))
    with ((2 * c0 * (1 - s) + c1 * s) * (2 * c0 * (1 - s) + c1 * s) + (4 * c0 * c2 - c1 * c1) * (s * s)) by ring.
  assert (0 <= (4 * c0 * c2 - c1 * c1) * (s * s)) by (apply Rmult_le_pos; lra).
  pose proof (Rle_0_sqr (2 * c0 * (1 - s) + c1 * s)) as Q. unfold Rsqr in Q. lra.
Qed.

Section cells.
Variable g : R.
Variable o : nat.
Hypothesis g_large : 1 < g.
Definition point (i : nat) : R := g ^ i / g ^ o.

Lemma power_positive n : 0 < g ^ n.
Proof. apply pow_lt. lra. Qed.
Lemma point_positive i : 0 < point i.
Proof. apply Rdiv_lt_0_compat; apply power_positive. Qed.
Lemma point_plus i d : point (i + d) = point i * g ^ d.
Proof. unfold point. rewrite pow_add. field. apply Rgt_not_eq, power_positive. Qed.
Lemma point_next i : point (S i) = point i * g.
Proof. replace (S i) with (i + 1)%nat by lia. rewrite point_plus. simpl. ring. Qed.
Lemma point_rises i j : (i <= j)%nat -> point i <= point j.
Proof.
  intros H. replace j with (i + (j - i))%nat by lia. rewrite point_plus.
  pose proof (point_positive i). pose proof (pow_R1_Rle g (j - i) (Rlt_le _ _ g_large)). nra.
Qed.

(* What lies within one e below a point is in a cell. *)
Lemma cell_of y : forall n j, point j <= y <= point (j + n) -> (0 < n)%nat ->
  exists d, (d < n)%nat /\ point (j + d) <= y <= point (S (j + d)).
Proof.
  induction n as [|n IH]; intros j [H1 H2] Hn; [lia|].
  destruct (Rle_dec (point (j + n)) y) as [H|H].
  - exists n. split; [lia|]. replace (S (j + n)) with (j + S n)%nat by lia. auto.
  - destruct n as [|n]; [rewrite PeanoNat.Nat.add_0_r in H; lra|].
    destruct (IH j) as [d [Hd Hy]]; [split; [exact H1|lra]|lia|]. exists d. split; [lia|exact Hy].
Qed.

(* In a cell, f is below the line between its ends. *)
Lemma on_chord f c r u v : convex f -> 0 < c -> 0 <= r <= 1 -> f c <= u -> f (c * g) <= v ->
  f (c * (1 + r * (g - 1))) <= (1 - r) * u + r * v.
Proof.
  intros Hf Hc [Hr Hr'] Hu Hv. assert (Hw : 0 < c * (g - 1)) by (apply Rmult_lt_0_compat; lra).
  assert (0 <= c * (g - 1) * r <= c * (g - 1) * 1) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
  pose proof (below_line f c (c * g) (c * (1 + r * (g - 1))) u v Hf) as Hline.
  apply Rmult_le_reg_l with (c * (g - 1)); [exact Hw|].
  replace (c * (g - 1) * ((1 - r) * u + r * v))
    with ((c * g - c * (1 + r * (g - 1))) * u + (c * (1 + r * (g - 1)) - c) * v) by ring.
  replace (c * (g - 1)) with (c * g - c) at 1 by ring. apply Hline; lra.
Qed.

(* At point j + d, for a t that leads from there into cell j: then the other end of the line is in cell j + m. *)
Lemma above_in_cell e m f w v0 v1 u0 u1 j d t : exp e = g ^ m -> convex f -> (0 < d <= m)%nat ->
  f (point j) <= v0 -> f (point (S j)) <= v1 -> f (point (j + m)) <= u0 -> f (point (S (j + m))) <= u1 ->
  point j <= point (j + d) * exp (- t) <= point (S j) ->
  (forall r, 0 <= r <= 1 -> 0 <=
    ((g ^ m - g ^ d) * (w - v0) + (g ^ d - 1) * (w - u0)) * ((1 - r) * (1 - r)) +
    ((g ^ m - g ^ d) * (w - v1) + (g * g ^ m - g ^ d) * (w - v0) + (g ^ d - 1) * (w - u1) + (g ^ d - g) * (w - u0))
      * (r * (1 - r)) +
    ((g * g ^ m - g ^ d) * (w - v1) + (g ^ d - g) * (w - u1)) * (r * r)) ->
  p e t * f (point (j + d) * exp (- t)) + (1 - p e t) * f (point (j + d) * exp (e - t)) <= w.
Proof.
  intros e_is Hf [Hd Hdm] Hv0 Hv1 Hu0 Hu1 Hy Hpar.
  assert (Hg : g ^ d <= g ^ m) by (apply Rle_pow; [lra|exact Hdm]).
  assert (Hgd : g <= g ^ d) by (replace g with (g ^ 1) at 1 by ring; apply Rle_pow; [lra|lia]).
  replace (point (j + d) * exp (e - t)) with (point (j + d) * exp (- t) * g ^ m)
    by (rewrite <- e_is; unfold Rminus; rewrite exp_plus; ring).
  unfold p. rewrite e_is. pose proof (exp_pos t) as Et. rewrite exp_Ropp in *.
  rewrite !point_next in *. rewrite !point_plus in *.
  pose proof (point_positive j) as Hx. set (X := point j) in *. set (D := g ^ d) in *. set (M := g ^ m) in *.
  set (y := X * D * / exp t) in *.
  (* The part of the cell at which y lies. *)
  set (r := (y / X - 1) / (g - 1)). set (s := 1 + r * (g - 1)). assert (Hs : y = X * s) by (unfold s, r; field; lra).
  assert (Hxg : 0 < X * (g - 1)) by (apply Rmult_lt_0_compat; lra).
  assert (Hr : 0 <= r <= 1).
  { rewrite Hs in Hy. unfold s in Hy. split; apply Rmult_le_reg_l with (X * (g - 1)); lra. }
  assert (Hs1 : 1 <= s <= g).
  { assert (0 <= r * (g - 1) <= 1 * (g - 1)) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra).
    unfold s. lra. }
  assert (Hexp : exp t = D / s).
  { assert (H : X * D = y * exp t) by (unfold y; field; lra). rewrite Hs in H.
    apply Rmult_eq_reg_l with (X * s); [|apply Rgt_not_eq, Rmult_lt_0_compat; lra]. rewrite <- H. field. lra. }
  assert (L1 : f y <= (1 - r) * v0 + r * v1) by (rewrite Hs; apply on_chord; assumption).
  assert (L2 : f (y * M) <= (1 - r) * u0 + r * u1).
  { rewrite Hs. replace (X * s * M) with (X * M * s) by ring.
    apply on_chord; try assumption. apply Rmult_lt_0_compat; lra. }
  rewrite Hexp. assert (Es : s = 1 + r * (g - 1)) by reflexivity. clearbody s y r. clear Hxg Hy Hexp.
  replace (1 - (M - D / s) / (M - 1)) with ((D - s) / (s * (M - 1))) by (field; lra).
  replace ((M - D / s) / (M - 1)) with ((s * M - D) / (s * (M - 1))) by (field; lra).
  apply Rmult_le_reg_l with (s * (M - 1)); [apply Rmult_lt_0_compat; lra|].
  replace (s * (M - 1) * ((s * M - D) / (s * (M - 1)) * f y + (D - s) / (s * (M - 1)) * f (y * M)))
    with ((s * M - D) * f y + (D - s) * f (y * M)) by (field; lra).
  assert (1 * M <= s * M) by (apply Rmult_le_compat_r; lra).
  assert (W1 : (s * M - D) * f y <= (s * M - D) * ((1 - r) * v0 + r * v1)) by (apply Rmult_le_compat_l; lra).
  assert (W2 : (D - s) * f (y * M) <= (D - s) * ((1 - r) * u0 + r * u1)) by (apply Rmult_le_compat_l; lra).
  specialize (Hpar r Hr). rewrite Es in W1, W2 |- *. lra.
Qed.
End cells.

(* ---- A unit of e is one of any larger e ---- *)

Lemma keeps_longer e e' G t : e <= e' -> forall K, keeps e G t K -> keeps e' G t K.
Proof.
  intros He. induction t as [|n M M' u next IH]; intros K H; simpl in *; [exact I|].
  destruct H as [H1 [H2 [Ha H]]]. split; [exact H1|]. split; [exact H2|]. split.
  - destruct Ha as [Hs Hu|Hr Hu|v Hv Hu]; [apply free_step|apply unit_step|apply (gaussian_step _ _ _ _ _ _ v)]; auto.
    intros i j Hi Hj. apply Rle_trans with (1 := Hr i j Hi Hj). apply Rmult_le_compat_r; [|apply exp_le; exact He].
    apply Rmult_le_pos; [apply H1|apply H2]; assumption.
  - intros i Hi. destruct (H i Hi) as [Hu Hn]. auto.
Qed.
