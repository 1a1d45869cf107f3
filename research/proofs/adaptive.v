(* Theorem A of research/docs/adaptive-accounting.md: whatever an analyst asks, and however they choose it by what they
   were shown, if no course of the interaction costs more than K units, then P(S) <= exp(epsilon) P'(S) + V K (exp epsilon)
   for every event S.

   V is any family of functions that is convex, above max(0, 1 - x), never less for one unit more, and above the
   recursion (1) of that page. So a finite table can be a certificate, and nobody has to trust how it was made.

   Interactions are finite trees, and steps have finitely many outcomes. Coq 8.16 and its standard library suffice. *)
Require Import Reals Lra Lia.
Open Scope R_scope.

(* ---- Finite sums ---- *)

Fixpoint sum (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S m => sum m f + f m end.

Lemma sum_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> sum n f <= sum n g.
Proof.
  induction n; intros H; simpl; [lra|].
  assert (sum n f <= sum n g) by (apply IHn; intros; apply H; lia).
  assert (f n <= g n) by (apply H; lia). lra.
Qed.

Lemma sum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof. intros H. apply Rle_antisym; apply sum_le; intros i Hi; rewrite (H i Hi); lra. Qed.

Lemma sum_linear n f g a b : sum n (fun i => a * f i + b * g i) = a * sum n f + b * sum n g.
Proof. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.

Lemma sum_zero n : sum n (fun _ => 0) = 0.
Proof. induction n; simpl; lra. Qed.

Lemma sum_positive n f : 0 < sum n f -> exists i, (i < n)%nat /\ 0 < f i.
Proof.
  induction n; simpl; intros H; [lra|].
  destruct (Rlt_le_dec 0 (f n)) as [Hn|Hn]; [exists n; split; [lia|exact Hn]|].
  destruct IHn as [i [Hi Hf]]; [lra|]. exists i. split; [lia|exact Hf].
Qed.

Lemma least n (f : nat -> R) : (0 < n)%nat -> exists i, (i < n)%nat /\ forall j, (j < n)%nat -> f i <= f j.
Proof.
  induction n; intros H; [lia|]. destruct n.
  - exists O. split; [lia|]. intros j Hj. replace j with O by lia. lra.
  - destruct IHn as [i [Hi Hle]]; [lia|].
    destruct (Rle_dec (f i) (f (S n))) as [Hb|Hb].
    + exists i. split; [lia|]. intros j Hj. destruct (PeanoNat.Nat.eq_dec j (S n)) as [->|]; [exact Hb|apply Hle; lia].
    + exists (S n). split; [lia|]. intros j Hj.
      destruct (PeanoNat.Nat.eq_dec j (S n)) as [->|]; [lra|]. assert (f i <= f j) by (apply Hle; lia). lra.
Qed.

(* ---- The interaction ---- *)

(* After every outcome i the analyst goes on with (next i), or stops. A step has the laws M and M' under two neighbouring
   tables, and outcome i costs (u i) units. *)
Inductive interaction :=
| stop : interaction
| step (n : nat) (M M' : nat -> R) (u : nat -> nat) (next : nat -> interaction).

(* A history lists the outcomes until the analyst stops; an event says of every history whether it is in it: 1 or 0. *)
Fixpoint complete (t : interaction) (h : list nat) : Prop :=
  match t, h with
  | stop, nil => True
  | step n _ _ _ next, cons i h => (i < n)%nat /\ complete (next i) h
  | _, _ => False
  end.
Definition event (S : list nat -> R) := forall h, 0 <= S h <= 1.

(* The probability of an event, or the mean of a function of the history, under one table and under the other. *)
Fixpoint P (t : interaction) (S : list nat -> R) : R :=
  match t with
  | stop => S nil
  | step n M M' u next => sum n (fun i => M i * P (next i) (fun h => S (cons i h)))
  end.
Fixpoint P' (t : interaction) (S : list nat -> R) : R :=
  match t with
  | stop => S nil
  | step n M M' u next => sum n (fun i => M' i * P' (next i) (fun h => S (cons i h)))
  end.
Fixpoint spent (t : interaction) (h : list nat) : nat :=
  match t, h with
  | step _ _ _ u next, cons i h => (u i + spent (next i) h)%nat
  | _, _ => O
  end.

(* ---- What a step may be ---- *)

Definition law (n : nat) (M : nat -> R) := (forall i, (i < n)%nat -> 0 <= M i) /\ sum n M = 1.

(* Bounded range e: no two outcomes have likelihood ratios further apart than a factor of exp(e). *)
Definition bounded_range (e : R) (n : nat) (M M' : nat -> R) :=
  forall i j, (i < n)%nat -> (j < n)%nat -> M i * M' j <= exp e * (M j * M' i).

Definition convex (f : R -> R) := forall a b y, 0 <= a -> a <= y -> y <= b -> a < b ->
  f y <= (b - y) / (b - a) * f a + (y - a) / (b - a) * f b.
Definition falling (f : R -> R) := forall a b, 0 <= a -> a <= b -> f b <= f a.

Lemma law_has_outcome n M : law n M -> exists i, (i < n)%nat /\ 0 < M i.
Proof. intros [_ H]. apply sum_positive. lra. Qed.

(* Lemma 1: the likelihood ratio of a unit lies in [exp(-t), exp(e - t)] for some t in [0, e], and has mean 1. *)
Lemma range_and_mean e n M M' : law n M -> law n M' -> bounded_range e n M M' ->
  exists (L : nat -> R) (t : R), 0 <= t <= e /\
    (forall i, (i < n)%nat -> M' i = M i * L i) /\
    (forall i, (i < n)%nat -> exp (- t) <= L i <= exp (e - t)) /\
    sum n (fun i => M i * L i) = 1.
Proof.
  intros [HM H1] [HM' H1'] Hr.
  destruct (law_has_outcome n M (conj HM H1)) as [o [Ho Hpos]].
  destruct (law_has_outcome n M' (conj HM' H1')) as [o' [Ho' Hpos']].
  pose proof (exp_pos e) as Ee.
  assert (Hnull : forall i, (i < n)%nat -> M i = 0 -> M' i = 0).
  { intros i Hi Hz. pose proof (Hr o i Ho Hi) as H. rewrite Hz in H. pose proof (HM' i Hi).
    assert (M o * M' i <= 0) by lra. nra. }
  assert (Hsupport : forall i, (i < n)%nat -> 0 < M i -> 0 < M' i).
  { intros i Hi Hp. pose proof (HM' i Hi) as Hn. destruct Hn as [Hn|Hn]; [exact Hn|exfalso].
    pose proof (Hr i o' Hi Ho') as H. rewrite <- Hn in H. nra. }
  (* An outcome that neither table gives has the ratio of one that is given. *)
  set (rep := fun i => if Req_EM_T (M i) 0 then o else i).
  assert (Hrep : forall i, (i < n)%nat -> (rep i < n)%nat /\ 0 < M (rep i) /\ 0 < M' (rep i)).
  { intros i Hi. unfold rep. destruct (Req_EM_T (M i) 0) as [Hz|Hz]; [auto|].
    assert (0 < M i) by (pose proof (HM i Hi); lra). auto. }
  set (L := fun i => M' (rep i) / M (rep i)).
  assert (HL : forall i, (i < n)%nat -> 0 < L i).
  { intros i Hi. destruct (Hrep i Hi) as [_ [Ha Hb]]. unfold L. apply Rdiv_lt_0_compat; assumption. }
  assert (HML : forall i, (i < n)%nat -> M' i = M i * L i).
  { intros i Hi. unfold L, rep. destruct (Req_EM_T (M i) 0) as [Hz|Hz]; [rewrite (Hnull i Hi Hz), Hz; ring|].
    field. exact Hz. }
  assert (Hspread : forall i j, (i < n)%nat -> (j < n)%nat -> L j <= exp e * L i).
  { intros i j Hi Hj. destruct (Hrep i Hi) as [Ri [Ai Bi]]. destruct (Hrep j Hj) as [Rj [Aj Bj]].
    pose proof (Hr (rep i) (rep j) Ri Rj) as H. unfold L.
    apply (Rmult_le_reg_r (M (rep i) * M (rep j))); [apply Rmult_lt_0_compat; assumption|].
    replace (M' (rep j) / M (rep j) * (M (rep i) * M (rep j))) with (M (rep i) * M' (rep j)) by (field; lra).
    replace (exp e * (M' (rep i) / M (rep i)) * (M (rep i) * M (rep j)))
      with (exp e * (M (rep j) * M' (rep i))) by (field; lra).
    exact H. }
  assert (Hmean : sum n (fun i => M i * L i) = 1).
  { rewrite <- H1'. apply sum_ext. intros i Hi. symmetry. apply HML. exact Hi. }
  destruct (least n L) as [m [Hm Hleast]]; [lia|].
  assert (Hlow : L m <= 1).
  { assert (sum n (fun i => L m * M i + 0 * M i) <= sum n (fun i => M i * L i)).
    { apply sum_le. intros i Hi. pose proof (Hleast i Hi). pose proof (HM i Hi). nra. }
    rewrite sum_linear, H1 in H. lra. }
  assert (Hhigh : 1 <= exp e * L m).
  { assert (sum n (fun i => M i * L i) <= sum n (fun i => (exp e * L m) * M i + 0 * M i)).
    { apply sum_le. intros i Hi. pose proof (Hspread m i Hm Hi). pose proof (HM i Hi). nra. }
    rewrite sum_linear, H1 in H. lra. }
  pose proof (HL m Hm) as Hpm.
  exists L, (- ln (L m)). rewrite Ropp_involutive, exp_ln by exact Hpm.
  replace (e - - ln (L m)) with (e + ln (L m)) by ring. rewrite exp_plus, exp_ln by exact Hpm.
  assert (Hln : ln (L m) <= 0).
  { rewrite <- ln_1. destruct Hlow as [Hlt|Heq]; [left; apply ln_increasing; lra|rewrite Heq; lra]. }
  assert (Hln' : 0 <= e + ln (L m)).
  { rewrite <- (ln_exp e), <- ln_mult by assumption. rewrite <- ln_1.
    destruct Hhigh as [Hlt|Heq]; [left; apply ln_increasing; lra|rewrite <- Heq; lra]. }
  repeat split; try assumption; try lra; intros; auto.
Qed.

Section theorem.
Variable e : R.
Hypothesis e_positive : 0 < e.
Definition p t := (exp e - exp t) / (exp e - 1).

(* Lemma 2: two outcomes are the worst. *)
Lemma two_outcomes f n M L x t : convex f -> 0 < x -> 0 <= t <= e ->
  (forall i, (i < n)%nat -> 0 <= M i) -> (forall i, (i < n)%nat -> exp (- t) <= L i <= exp (e - t)) ->
  sum n M = 1 -> sum n (fun i => M i * L i) = 1 ->
  sum n (fun i => M i * f (x * L i)) <= p t * f (x * exp (- t)) + (1 - p t) * f (x * exp (e - t)).
Proof.
  intros Hf Hx Ht HM HL H1 H2.
  set (a := x * exp (- t)). set (b := x * exp (e - t)).
  assert (Ea : exp (- t) = / exp t) by apply exp_Ropp.
  assert (Eb : exp (e - t) = exp e * / exp t) by (unfold Rminus; rewrite exp_plus, exp_Ropp; reflexivity).
  assert (Pt : 0 < exp t) by apply exp_pos.
  assert (E1 : 1 < exp e) by (rewrite <- exp_0; apply exp_increasing; lra).
  assert (Pi : 0 < / exp t) by (apply Rinv_0_lt_compat; exact Pt).
  assert (Hab : a < b).
  { unfold a, b. apply Rmult_lt_compat_l; [exact Hx|]. rewrite Ea, Eb. nra. }
  assert (Ha : 0 <= a) by (unfold a; rewrite Ea; nra).
  assert (Hp : (b - x) / (b - a) = p t).
  { unfold a, b, p. rewrite Ea, Eb. field. repeat split; try lra; nra. }
  assert (Hq : (x - a) / (b - a) = 1 - p t).
  { rewrite <- Hp. field. lra. }
  (* The straight line through the points of f at a and b. *)
  set (A := b / (b - a) * f a - a / (b - a) * f b). set (B := (f b - f a) / (b - a)).
  assert (Hline : forall i, (i < n)%nat -> M i * f (x * L i) <= A * M i + (B * x) * (M i * L i)).
  { intros i Hi. specialize (HL i Hi). specialize (HM i Hi).
    assert (Hy1 : a <= x * L i) by (unfold a; apply Rmult_le_compat_l; lra).
    assert (Hy2 : x * L i <= b) by (unfold b; apply Rmult_le_compat_l; lra).
    pose proof (Hf a b (x * L i) Ha Hy1 Hy2 Hab) as Hc.
    assert (He : (b - x * L i) / (b - a) * f a + (x * L i - a) / (b - a) * f b = A + B * (x * L i)).
    { unfold A, B. field. lra. }
    rewrite He in Hc.
    replace (A * M i + B * x * (M i * L i)) with (M i * (A + B * (x * L i))) by ring.
    apply Rmult_le_compat_l; assumption. }
  eapply Rle_trans; [apply sum_le; exact Hline|].
  rewrite sum_linear, H1, H2.
  rewrite <- Hq at 1. rewrite <- Hp. unfold A, B.
  right. field. lra.
Qed.

(* Gaussian noise takes part by one fact: (G f x) is the mean of f(x L) for the ratio L of one unit of it, and no step
   that is worth v units has a larger mean, whichever convex and falling f is taken. Where there is no Gaussian noise,
   (fun f x => f x) will do for G. *)
Variable G : (R -> R) -> R -> R.
Hypothesis G_monotone : forall f g, (forall y, 0 <= y -> f y <= g y) -> forall x, 0 <= x -> G f x <= G g x.
Fixpoint gaussian_units (v : nat) (f : R -> R) : R -> R :=
  match v with O => f | S w => G (gaussian_units w f) end.
Definition gaussian (v : nat) (n : nat) (M M' : nat -> R) := exists L : nat -> R,
  (forall i, (i < n)%nat -> 0 <= L i /\ M' i = M i * L i) /\
  forall f x, convex f -> falling f -> 0 <= x -> sum n (fun i => M i * f (x * L i)) <= gaussian_units v f x.

(* The table. *)
Variable V : nat -> R -> R.
Hypothesis V_convex : forall k, convex (V k).
Hypothesis V_falling : forall k, falling (V k).
Hypothesis V_above : forall k x, 0 <= x -> Rmax 0 (1 - x) <= V k x.
Hypothesis V_monotone : forall k x, 0 <= x -> V k x <= V (S k) x.
Hypothesis V_recursion : forall k x t, 0 <= x -> 0 <= t <= e ->
  p t * V k (x * exp (- t)) + (1 - p t) * V k (x * exp (e - t)) <= V (S k) x.
Hypothesis V_gaussian : forall k x, 0 <= x -> G (V k) x <= V (S k) x.

(* What a step may be, and what its outcomes cost. A question about a block that the member is not of is a free step. *)
Inductive allowed (n : nat) (M M' : nat -> R) (u : nat -> nat) : Prop :=
| free_step : (forall i, (i < n)%nat -> M' i = M i) -> (forall i, (i < n)%nat -> u i = O) -> allowed n M M' u
| unit_step : bounded_range e n M M' -> (forall i, (i < n)%nat -> u i = 1%nat) -> allowed n M M' u
| gaussian_step v : gaussian v n M M' -> (forall i, (i < n)%nat -> u i = v) -> allowed n M M' u.

(* No course costs more than K units. *)
Fixpoint keeps (t : interaction) (K : nat) : Prop :=
  match t with
  | stop => True
  | step n M M' u next => law n M /\ law n M' /\ allowed n M M' u /\
      forall i, (i < n)%nat -> (u i <= K)%nat /\ keeps (next i) (K - u i)
  end.

(* All that the induction needs of a step: on average, what is left of the table after it is no more than there was. *)
Definition priced (n : nat) (M M' : nat -> R) (u : nat -> nat) := exists L : nat -> R,
  (forall i, (i < n)%nat -> 0 <= L i /\ M' i = M i * L i) /\
  forall K x, (forall i, (i < n)%nat -> (u i <= K)%nat) -> 0 <= x ->
    sum n (fun i => M i * V (K - u i) (x * L i)) <= V K x.

Lemma V_nonnegative k x : 0 <= x -> 0 <= V k x.
Proof. intros H. pose proof (V_above k x H). pose proof (Rmax_l 0 (1 - x)). lra. Qed.

Lemma gaussian_units_below v k x : 0 <= x -> gaussian_units v (V k) x <= V (v + k) x.
Proof.
  revert x. induction v; intros x Hx; simpl; [lra|].
  apply Rle_trans with (G (V (v + k)) x); [apply G_monotone; auto|apply V_gaussian; exact Hx].
Qed.

Lemma allowed_is_priced n M M' u : law n M -> law n M' -> allowed n M M' u -> priced n M M' u.
Proof.
  intros HM HM' [Hsame Hu|Hr Hu|v [L [HL Hf]] Hu].
  - exists (fun _ => 1). split.
    { intros i Hi. split; [lra|]. rewrite (Hsame i Hi). ring. }
    intros K x _ Hx. destruct HM as [_ H1].
    rewrite (sum_ext n _ (fun i => V K x * M i + 0 * M i)), sum_linear, H1; [lra|].
    intros i Hi. rewrite (Hu i Hi), PeanoNat.Nat.sub_0_r, Rmult_1_r. ring.
  - destruct (range_and_mean e n M M' HM HM' Hr) as [L [t [Ht [HML [HL Hmean]]]]]. exists L. split.
    { intros i Hi. split; [|apply HML; exact Hi]. pose proof (exp_pos (- t)). specialize (HL i Hi). lra. }
    intros K x HK Hx. destruct (law_has_outcome n M HM) as [o [Ho _]]. destruct HM as [HM H1].
    destruct K as [|K]; [specialize (HK o Ho); rewrite (Hu o Ho) in HK; lia|].
    rewrite (sum_ext n _ (fun i => M i * V K (x * L i))).
    2: { intros i Hi. rewrite (Hu i Hi). replace (S K - 1)%nat with K by lia. reflexivity. }
    destruct (Rle_lt_or_eq_dec 0 x Hx) as [Hlt|Heq].
    + pose proof (two_outcomes (V K) n M L x t (V_convex K) Hlt Ht HM HL H1 Hmean).
      pose proof (V_recursion K x t Hx Ht). lra.
    + subst x. rewrite (sum_ext n _ (fun i => V K 0 * M i + 0 * M i)), sum_linear, H1.
      * pose proof (V_monotone K 0 (Rle_refl 0)). lra.
      * intros. rewrite Rmult_0_l. ring.
  - exists L. split; [exact HL|]. intros K x HK Hx.
    destruct (law_has_outcome n M HM) as [o [Ho _]].
    assert (HvK : (v <= K)%nat) by (specialize (HK o Ho); rewrite (Hu o Ho) in HK; exact HK).
    rewrite (sum_ext n _ (fun i => M i * V (K - v) (x * L i))) by (intros i Hi; rewrite (Hu i Hi); reflexivity).
    pose proof (Hf (V (K - v)) x (V_convex _) (V_falling _) Hx).
    pose proof (gaussian_units_below v (K - v) x Hx). replace (v + (K - v))%nat with K in H0 by lia. lra.
Qed.

(* The induction, for any numbers A and B at the end that keep what is left of the table. *)
Lemma what_is_left : forall t K A B x, keeps t K ->
  (forall h y, complete t h -> 0 <= y -> A h - y * B h <= V (K - spent t h) y) ->
  0 <= x -> P t A - x * P' t B <= V K x.
Proof.
  induction t as [|n M M' u next IH]; intros K A B x Hk Hend Hx; simpl in *.
  - specialize (Hend nil x I Hx). rewrite PeanoNat.Nat.sub_0_r in Hend. exact Hend.
  - destruct Hk as [HM [HM' [Ha Hk]]].
    destruct (allowed_is_priced n M M' u HM HM' Ha) as [L [HL Hprice]].
    assert (Hstep : sum n (fun i => 1 * (M i * P (next i) (fun h => A (cons i h)))
                                    + (- x) * (M' i * P' (next i) (fun h => B (cons i h))))
                    <= sum n (fun i => M i * V (K - u i) (x * L i))).
    { apply sum_le. intros i Hi. destruct (HL i Hi) as [Hl ->]. destruct (Hk i Hi) as [_ Hn].
      assert (Hxl : 0 <= x * L i) by (apply Rmult_le_pos; assumption).
      assert (Hnext : P (next i) (fun h => A (cons i h)) - x * L i * P' (next i) (fun h => B (cons i h))
                      <= V (K - u i) (x * L i)).
      { apply IH; [exact Hn| |exact Hxl]. intros h y Hh Hy.
        rewrite <- PeanoNat.Nat.sub_add_distr. apply (Hend (cons i h) y (conj Hi Hh) Hy). }
      destruct HM as [HM _]. specialize (HM i Hi).
      replace (1 * (M i * P (next i) (fun h => A (cons i h)))
               + - x * (M i * L i * P' (next i) (fun h => B (cons i h))))
        with (M i * (P (next i) (fun h => A (cons i h)) - x * L i * P' (next i) (fun h => B (cons i h)))) by ring.
      apply Rmult_le_compat_l; assumption. }
    rewrite sum_linear in Hstep.
    pose proof (Hprice K x (fun i Hi => proj1 (Hk i Hi)) Hx). lra.
Qed.

Theorem theorem_A t K S x : keeps t K -> event S -> 0 <= x -> P t S - x * P' t S <= V K x.
Proof.
  intros Hk HS Hx. apply what_is_left; [exact Hk| |exact Hx].
  intros h y _ Hy. specialize (HS h). pose proof (V_above (K - spent t h) y Hy).
  destruct (Rle_dec y 1).
  - apply Rle_trans with (Rmax 0 (1 - y)); [|assumption]. apply Rle_trans with (1 - y); [nra|apply Rmax_r].
  - apply Rle_trans with (Rmax 0 (1 - y)); [|assumption]. apply Rle_trans with 0; [nra|apply Rmax_l].
Qed.

(* In the words of the page: (epsilon, V K (exp epsilon))-differential privacy. *)
Corollary private t K S epsilon : keeps t K -> event S -> P t S <= exp epsilon * P' t S + V K (exp epsilon).
Proof.
  intros Hk HS. pose proof (theorem_A t K S (exp epsilon) Hk HS (Rlt_le _ _ (exp_pos epsilon))). lra.
Qed.
End theorem.

(* ---- The premises can be met ---- *)

(* Pure composition, V k x = max(0, 1 - x exp(- k e)): epsilons add up, which shows that the theorem is about something. *)
Section pure.
Variable e : R.
Hypothesis e_positive : 0 < e.
Definition plain (k : nat) (x : R) := Rmax 0 (1 - x * exp (- (INR k * e))).
Definition no_gaussian (f : R -> R) (x : R) := f x.

Lemma plain_convex k : convex (plain k).
Proof.
  intros a b y Ha Hay Hyb Hab. unfold plain. set (g := exp (- (INR k * e))).
  assert (Hl : (b - y) / (b - a) + (y - a) / (b - a) = 1) by (field; lra).
  assert (H0 : 0 <= (b - y) / (b - a)) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (H1 : 0 <= (y - a) / (b - a)) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (Hy : (b - y) / (b - a) * a + (y - a) / (b - a) * b = y) by (field; lra).
  set (u := (b - y) / (b - a)) in *. set (v := (y - a) / (b - a)) in *.
  pose proof (Rmax_l 0 (1 - a * g)). pose proof (Rmax_r 0 (1 - a * g)).
  pose proof (Rmax_l 0 (1 - b * g)). pose proof (Rmax_r 0 (1 - b * g)).
  apply Rmax_lub; [nra|].
  rewrite <- Hy. replace (1 - (u * a + v * b) * g) with (u * (1 - a * g) + v * (1 - b * g)) by (rewrite <- Hl at 3; ring).
  apply Rplus_le_compat; apply Rmult_le_compat_l; assumption.
Qed.

Lemma plain_falling k : falling (plain k).
Proof.
  intros z x Hz Hzx. unfold plain. apply Rmax_lub; [apply Rmax_l|].
  apply Rle_trans with (1 - z * exp (- (INR k * e))); [|apply Rmax_r].
  pose proof (exp_pos (- (INR k * e))). nra.
Qed.

Lemma plain_next k x : plain (S k) x = plain k (x * exp (- e)).
Proof.
  unfold plain. rewrite S_INR. replace (- ((INR k + 1) * e)) with (- e + - (INR k * e)) by ring.
  rewrite exp_plus. f_equal. ring.
Qed.

Lemma exp_le a b : a <= b -> exp a <= exp b.
Proof. intros [H|H]; [left; apply exp_increasing; exact H|rewrite H; lra]. Qed.

Lemma plain_above k x : 0 <= x -> Rmax 0 (1 - x) <= plain k x.
Proof.
  intros Hx. unfold plain. apply Rmax_lub; [apply Rmax_l|].
  apply Rle_trans with (1 - x * exp (- (INR k * e))); [|apply Rmax_r].
  assert (exp (- (INR k * e)) <= 1).
  { rewrite <- exp_0. apply exp_le. pose proof (pos_INR k). nra. }
  nra.
Qed.

Lemma plain_monotone k x : 0 <= x -> plain k x <= plain (S k) x.
Proof.
  intros Hx. assert (0 < exp (- e) <= 1) by (split; [apply exp_pos|rewrite <- exp_0; apply exp_le; lra]).
  rewrite plain_next. apply plain_falling; nra.
Qed.

Lemma plain_recursion k x t : 0 <= x -> 0 <= t <= e ->
  p e t * plain k (x * exp (- t)) + (1 - p e t) * plain k (x * exp (e - t)) <= plain (S k) x.
Proof.
  intros Hx [Ht0 Ht1].
  assert (E1 : 1 < exp e) by (rewrite <- exp_0; apply exp_increasing; lra).
  assert (Em : 0 < exp (- e)) by apply exp_pos.
  assert (Ha : plain k (x * exp (- t)) <= plain (S k) x).
  { rewrite plain_next. apply plain_falling; [nra|]. apply Rmult_le_compat_l; [exact Hx|apply exp_le; lra]. }
  assert (Hb : plain k (x * exp (e - t)) <= plain (S k) x).
  { rewrite plain_next. apply plain_falling; [nra|]. apply Rmult_le_compat_l; [exact Hx|apply exp_le; lra]. }
  assert (Hp : 0 <= p e t <= 1).
  { unfold p. assert (1 <= exp t) by (rewrite <- exp_0; apply exp_le; lra).
    assert (exp t <= exp e) by (apply exp_le; lra).
    split; [apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]|].
    apply Rmult_le_reg_r with (exp e - 1); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  nra.
Qed.

Corollary pure_composition t K A : keeps e no_gaussian t K -> event A -> P t A <= exp (INR K * e) * P' t A.
Proof.
  intros Hk HA.
  assert (H : P t A <= exp (INR K * e) * P' t A + plain K (exp (INR K * e))).
  { apply private with (e := e) (G := no_gaussian); try assumption.
    - intros f g H x Hx. apply H. exact Hx.
    - apply plain_convex.
    - apply plain_falling.
    - apply plain_above.
    - apply plain_monotone.
    - apply plain_recursion.
    - apply plain_monotone. }
  unfold plain in H. rewrite <- exp_plus in H. replace (INR K * e + - (INR K * e)) with 0 in H by ring.
  rewrite exp_0 in H. replace (1 - 1) with 0 in H by ring. rewrite Rmax_left in H by lra. lra.
Qed.
End pure.

(* A unit of range 1: 1/2 and 1/2 against 1/3 and 2/3, and a third outcome that neither table gives. *)
Definition even (i : nat) : R := match i with O | 1%nat => 1 / 2 | _ => 0 end.
Definition uneven (i : nat) : R := match i with O => 1 / 3 | 1%nat => 2 / 3 | _ => 0 end.
Definition one_unit : interaction := step 3 even uneven (fun _ => 1%nat) (fun _ => stop).

Lemma even_law : law 3 even.
Proof. split; [intros [|[|i]] _|]; simpl; lra. Qed.
Lemma uneven_law : law 3 uneven.
Proof. split; [intros [|[|i]] _|]; simpl; lra. Qed.
Lemma even_uneven_unit : bounded_range 1 3 even uneven.
Proof.
  assert (H : 2 < exp 1) by (pose proof (exp_ineq1 1); lra).
  intros [|[|i]] [|[|j]] _ _; simpl; nra.
Qed.
Theorem one_unit_keeps : keeps 1 no_gaussian one_unit 1.
Proof.
  split; [exact even_law|]. split; [exact uneven_law|]. split; [|intros i _; split; [lia|exact I]].
  apply unit_step; [exact even_uneven_unit|auto].
Qed.
