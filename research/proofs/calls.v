(* Theorem C of docs/proofs/calls.md: questions that have answers which only one neighbour can give, and what they add.

   A question is a tree of steps of theorem A, with the laws Q and Q' of its answers; what is released has other laws, R
   and R', which lemma 4 of that page holds against them. Each call adds delta, each unit a factor of (1 + delta). *)
Require Import Reals Lra Lia List.
From Gris Require Import adaptive.
Open Scope R_scope.

(* The probability of a complete history. *)
Fixpoint chance (t : interaction) (h : list nat) : R :=
  match t, h with step _ M _ _ next, cons i h => M i * chance (next i) h | _, _ => 1 end.
Fixpoint chance' (t : interaction) (h : list nat) : R :=
  match t, h with step _ _ M' _ next, cons i h => M' i * chance' (next i) h | _, _ => 1 end.

(* The sum over all complete histories. *)
Fixpoint over (t : interaction) (f : list nat -> R) : R :=
  match t with
  | stop => f nil
  | step n _ _ _ next => sum n (fun i => over (next i) (fun h => f (cons i h)))
  end.

Lemma over_le t f g : (forall h, complete t h -> f h <= g h) -> over t f <= over t g.
Proof.
  revert f g. induction t as [|n M M' u next IH]; intros f g H; simpl in *; [apply H; exact I|].
  apply sum_le. intros i Hi. apply IH. intros h Hh. apply H. auto.
Qed.
Lemma over_linear t f g a b : over t (fun h => a * f h + b * g h) = a * over t f + b * over t g.
Proof.
  revert f g. induction t as [|n M M' u next IH]; intros f g; simpl; [lra|].
  rewrite <- sum_linear. apply sum_ext. intros i _. apply IH.
Qed.
Lemma over_ext t f g : (forall h, complete t h -> f h = g h) -> over t f = over t g.
Proof. intros H. apply Rle_antisym; apply over_le; intros h Hh; rewrite (H h Hh); lra. Qed.
Lemma mean_over t f : P t f = over t (fun h => chance t h * f h).
Proof.
  revert f. induction t as [|n M M' u next IH]; intros f; simpl; [lra|].
  apply sum_ext. intros i _. rewrite IH.
  transitivity (over (next i) (fun h => M i * (chance (next i) h * f (cons i h)) + 0 * 0)).
  - rewrite over_linear. ring.
  - apply over_ext. intros. ring.
Qed.
Lemma mean_over' t f : P' t f = over t (fun h => chance' t h * f h).
Proof.
  revert f. induction t as [|n M M' u next IH]; intros f; simpl; [lra|].
  apply sum_ext. intros i _. rewrite IH.
  transitivity (over (next i) (fun h => M' i * (chance' (next i) h * f (cons i h)) + 0 * 0)).
  - rewrite over_linear. ring.
  - apply over_ext. intros. ring.
Qed.

(* Questions one after the other. R and R' are the laws of the released answer, which names a history of the tree q; an
   answer that the tree cannot give has chance 0 there. *)
Inductive questions :=
| done : questions
| ask (q : interaction) (R_ R_' g b : list nat -> R) (c : list nat -> nat) (calls : nat)
      (next : list nat -> questions).

Fixpoint released (t : questions) (S : list (list nat) -> R) : R :=
  match t with
  | done => S nil
  | ask q R_ R_' g b c calls next => over q (fun h => R_ h * released (next h) (fun a => S (cons h a)))
  end.
Fixpoint released' (t : questions) (S : list (list nat) -> R) : R :=
  match t with
  | done => S nil
  | ask q R_ R_' g b c calls next => over q (fun h => R_' h * released' (next h) (fun a => S (cons h a)))
  end.

Section theorem.
Variables e delta : R.
Hypothesis e_positive : 0 < e.
Hypothesis delta_nonnegative : 0 <= delta.
Variable G : (R -> R) -> R -> R.
Hypothesis G_monotone : forall f g, (forall y, 0 <= y -> f y <= g y) -> forall x, 0 <= x -> G f x <= G g x.
Variable V : nat -> R -> R.
Hypothesis V_convex : forall k, convex (V k).
Hypothesis V_falling : forall k, falling (V k).
Hypothesis V_above : forall k x, 0 <= x -> Rmax 0 (1 - x) <= V k x.
Hypothesis V_monotone : forall k x, 0 <= x -> V k x <= V (S k) x.
Hypothesis V_recursion : forall k x t, 0 <= x -> 0 <= t <= e ->
  p e t * V k (x * exp (- t)) + (1 - p e t) * V k (x * exp (e - t)) <= V (S k) x.
Hypothesis V_gaussian : forall k x, 0 <= x -> G (V k) x <= V (S k) x.

(* (3) and (4) of a question whose answers name the histories of the tree q. *)
Definition answers (q : interaction) (R_ R_' g b : list nat -> R) (c : list nat -> nat) (K : nat) (h : list nat) :=
  0 <= R_ h /\ 0 <= R_' h /\ 0 <= g h <= 1 /\ 0 <= b h /\ (c h <= spent q h <= K)%nat /\
  R_ h <= g h * chance q h + b h /\ g h * chance' q h <= (1 + delta) ^ c h * R_' h.

(* No course costs more than K units and l calls, and every question is what lemma 4 says. *)
Fixpoint admitted (t : questions) (K l : nat) : Prop :=
  match t with
  | done => True
  | ask q R_ R_' g b c calls next =>
      keeps e G q K /\ (calls <= l)%nat /\ over q b <= INR calls * delta /\ over q R_ = 1 /\
      forall h, complete q h ->
        answers q R_ R_' g b c K h /\ admitted (next h) (K - spent q h) (l - calls)
  end.

Definition event_of_answers (S : list (list nat) -> R) := forall a, 0 <= S a <= 1.

Lemma released_in t : forall K l S, admitted t K l -> event_of_answers S -> 0 <= released t S <= 1.
Proof.
  induction t as [|q R_ R_' g b c calls next IH]; intros K l S Ha HS; simpl in *; [apply HS|].
  destruct Ha as [_ [_ [_ [H1 Ha]]]].
  assert (Hn : forall h, complete q h -> 0 <= released (next h) (fun a => S (cons h a)) <= 1).
  { intros h Hh. destruct (Ha h Hh) as [_ Hnext]. apply (IH h _ _ _ Hnext). intros a. apply HS. }
  split.
  - apply Rle_trans with (over q (fun h => 0 * R_ h + 0 * R_ h)); [rewrite over_linear; lra|].
    apply over_le. intros h Hh. specialize (Hn h Hh). destruct (Ha h Hh) as [[HR _] _]. nra.
  - rewrite <- H1. apply over_le. intros h Hh. specialize (Hn h Hh). destruct (Ha h Hh) as [[HR _] _]. nra.
Qed.

Lemma released_nonnegative' t : forall K l S, admitted t K l -> event_of_answers S -> 0 <= released' t S.
Proof.
  induction t as [|q R_ R_' g b c calls next IH]; intros K l S Ha HS; simpl in *; [apply HS|].
  destruct Ha as [_ [_ [_ [_ Ha]]]].
  apply Rle_trans with (over q (fun h => 0 * R_' h + 0 * R_' h)); [rewrite over_linear; lra|].
  apply over_le. intros h Hh. destruct (Ha h Hh) as [[_ [HR _]] Hnext].
  assert (0 <= released' (next h) (fun a => S (cons h a))) by (apply (IH h _ _ _ Hnext); intros a; apply HS).
  nra.
Qed.

Lemma power_mono m n : (m <= n)%nat -> 1 <= (1 + delta) ^ m <= (1 + delta) ^ n.
Proof. intros H. split; [apply pow_R1_Rle; lra|apply Rle_pow; [lra|exact H]]. Qed.

(* After the last question. *)
Lemma nothing_more K l s x : 0 <= s <= 1 -> 0 <= x -> s - x * ((1 + delta) ^ K * s) <= V K x + INR l * delta.
Proof.
  intros Hs Hx. pose proof (V_above K x Hx) as Hv. pose proof (pos_INR l).
  pose proof (power_mono 0 K (PeanoNat.Nat.le_0_l K)) as Hp. simpl in Hp.
  assert (s - x * ((1 + delta) ^ K * s) <= Rmax 0 (1 - x)).
  { assert (x <= x * (1 + delta) ^ K) by nra.
    destruct (Rle_dec x 1).
    - apply Rle_trans with (1 - x); [nra|apply Rmax_r].
    - apply Rle_trans with 0; [nra|apply Rmax_l]. }
  assert (0 <= INR l * delta) by nra. lra.
Qed.

(* One question before all others: r and r' are what these may still say, m what their calls may still add. *)
Lemma one_question q R_ R_' g b c calls r r' K m x :
  keeps e G q K -> over q b <= INR calls * delta -> over q R_ = 1 -> 0 <= m -> 0 <= x ->
  (forall h, complete q h -> answers q R_ R_' g b c K h) ->
  (forall h, complete q h -> 0 <= r h <= 1 /\ 0 <= r' h) ->
  (forall h y, complete q h -> 0 <= y ->
    r h - y * ((1 + delta) ^ (K - spent q h) * r' h) <= V (K - spent q h) y + m) ->
  over q (fun h => R_ h * r h) - x * ((1 + delta) ^ K * over q (fun h => R_' h * r' h))
  <= V K x + INR calls * delta + m.
Proof.
  intros Hk Hb H1 Hm Hx Ha Hr Hn.
  (* Q and Q' keep what is left of the table, if what the calls to come may add is taken off. *)
  assert (Hq : P q (fun h => g h * Rmax 0 (r h - m)) - x * P' q (fun h => g h * ((1 + delta) ^ (K - spent q h) * r' h))
               <= V K x).
  { apply (what_is_left e e_positive G G_monotone V); try assumption.
    intros h y Hh Hy. destruct (Ha h Hh) as [_ [_ [Hg _]]]. destruct (Hr h Hh) as [_ Hr'].
    pose proof (Hn h y Hh Hy) as Hi.
    assert (0 <= V (K - spent q h) y).
    { pose proof (V_above (K - spent q h) y Hy). pose proof (Rmax_l 0 (1 - y)). lra. }
    pose proof (power_mono 0 (K - spent q h) (PeanoNat.Nat.le_0_l _)) as Hp. simpl in Hp.
    assert (0 <= y * ((1 + delta) ^ (K - spent q h) * r' h)) by (repeat apply Rmult_le_pos; lra).
    replace (g h * Rmax 0 (r h - m) - y * (g h * ((1 + delta) ^ (K - spent q h) * r' h)))
      with (g h * (Rmax 0 (r h - m) - y * ((1 + delta) ^ (K - spent q h) * r' h))) by ring.
    assert (Rmax 0 (r h - m) - y * ((1 + delta) ^ (K - spent q h) * r' h) <= V (K - spent q h) y).
    { destruct (Rle_dec 0 (r h - m)); [rewrite Rmax_right by lra|rewrite Rmax_left by lra]; lra. }
    nra. }
  rewrite mean_over, mean_over' in Hq.
  (* (3): what is released is at most that, with what falls to b. *)
  assert (H3 : over q (fun h => R_ h * r h)
               <= over q (fun h => 1 * (chance q h * (g h * Rmax 0 (r h - m))) + 1 * (m * R_ h + 1 * b h))).
  { apply over_le. intros h Hh. destruct (Ha h Hh) as [HR [_ [Hg [Hbh [_ [H3 _]]]]]].
    destruct (Hr h Hh) as [Hrh _].
    destruct (Rle_dec 0 (r h - m)) as [Hd|Hd].
    - rewrite Rmax_right by lra.
      assert (R_ h * (r h - m) <= (g h * chance q h + b h) * (r h - m)) by (apply Rmult_le_compat_r; lra).
      assert (b h * (r h - m) <= b h) by nra. lra.
    - rewrite Rmax_left by lra. assert (R_ h * r h <= R_ h * m) by (apply Rmult_le_compat_l; lra). lra. }
  (* (4): the other neighbour releases at least that. *)
  assert (H4 : over q (fun h => chance' q h * (g h * ((1 + delta) ^ (K - spent q h) * r' h)))
               <= over q (fun h => (1 + delta) ^ K * (R_' h * r' h) + 0 * 0)).
  { apply over_le. intros h Hh. destruct (Ha h Hh) as [_ [HR [Hg [_ [Hs [_ H4]]]]]].
    destruct (Hr h Hh) as [_ Hrh].
    pose proof (power_mono 0 (K - spent q h) (PeanoNat.Nat.le_0_l _)) as Hp. simpl in Hp.
    assert (Hsplit : (1 + delta) ^ c h * (1 + delta) ^ (K - spent q h) <= (1 + delta) ^ K).
    { rewrite <- pow_add. apply power_mono. lia. }
    apply Rle_trans with ((1 + delta) ^ c h * R_' h * ((1 + delta) ^ (K - spent q h) * r' h)).
    - replace (chance' q h * (g h * ((1 + delta) ^ (K - spent q h) * r' h)))
        with (g h * chance' q h * ((1 + delta) ^ (K - spent q h) * r' h)) by ring.
      apply Rmult_le_compat_r; [nra|exact H4].
    - replace ((1 + delta) ^ c h * R_' h * ((1 + delta) ^ (K - spent q h) * r' h))
        with ((1 + delta) ^ c h * (1 + delta) ^ (K - spent q h) * (R_' h * r' h)) by ring.
      rewrite Rmult_0_l, Rplus_0_r. apply Rmult_le_compat_r; [nra|exact Hsplit]. }
  rewrite over_linear, over_linear, H1 in H3. rewrite over_linear, Rmult_0_l, Rplus_0_r in H4.
  nra.
Qed.

Theorem theorem_C t : forall K l S x, admitted t K l -> event_of_answers S -> 0 <= x ->
  released t S - x * ((1 + delta) ^ K * released' t S) <= V K x + INR l * delta.
Proof.
  induction t as [|q R_ R_' g b c calls next IH]; intros K l S x Ha HS Hx; simpl in *.
  - apply nothing_more; [apply HS|exact Hx].
  - destruct Ha as [Hk [Hc [Hb [H1 Ha]]]].
    replace (INR l * delta) with (INR calls * delta + INR (l - calls) * delta) by (rewrite minus_INR by exact Hc; ring).
    rewrite <- Rplus_assoc. apply one_question with (g := g) (b := b) (c := c); try assumption.
    + pose proof (pos_INR (l - calls)). nra.
    + intros h Hh. apply (Ha h Hh).
    + intros h Hh. destruct (Ha h Hh) as [_ Hnext].
      assert (HSn : event_of_answers (fun a => S (cons h a))) by (intros a; apply HS).
      split; [apply (released_in (next h) _ _ _ Hnext HSn)|apply (released_nonnegative' (next h) _ _ _ Hnext HSn)].
    + intros h y Hh Hy. destruct (Ha h Hh) as [_ Hnext].
      apply IH; [exact Hnext| |exact Hy]. intros a. apply HS.
Qed.

(* In the words of the page, (2). *)
Corollary private_with_calls t K l S epsilon : admitted t K l -> event_of_answers S ->
  released t S <= exp (epsilon + INR K * ln (1 + delta)) * released' t S + (V K (exp epsilon) + INR l * delta).
Proof.
  intros Ha HS. pose proof (theorem_C t K l S (exp epsilon) Ha HS (Rlt_le _ _ (exp_pos epsilon))) as H.
  assert (Hp : exp (INR K * ln (1 + delta)) = (1 + delta) ^ K).
  { rewrite <- Rpower_pow by lra. unfold Rpower. reflexivity. }
  rewrite exp_plus, Hp. lra.
Qed.
End theorem.

(* The ledger may take more than was spent: what a budget admits, a larger one does. *)
Lemma keeps_more e G t : forall K K', keeps e G t K -> (K <= K')%nat -> keeps e G t K'.
Proof.
  induction t as [|n M M' u next IH]; intros K K' H HK; simpl in *; [exact I|]. destruct H as [H1 [H2 [H3 H]]].
  split; [exact H1|]. split; [exact H2|]. split; [exact H3|]. intros i Hi. destruct (H i Hi) as [Hu Hn]. split; [lia|].
  apply (IH i (K - u i)%nat); [exact Hn|lia].
Qed.
Lemma admitted_more e delta G t : forall K K' l l', admitted e delta G t K l -> (K <= K')%nat -> (l <= l')%nat ->
  admitted e delta G t K' l'.
Proof.
  induction t as [|q R_ R_' g b c calls next IH]; intros K K' l l' H HK Hl; simpl in *; [exact I|].
  destruct H as [H1 [H2 [H3 [H4 H]]]]. split; [apply (keeps_more _ _ _ K); assumption|]. split; [lia|].
  split; [exact H3|]. split; [exact H4|]. intros h Hh. destruct (H h Hh) as [[A1 [A2 [A3 [A4 [A5 [A6 A7]]]]]] A8].
  split; [unfold answers; repeat split; try tauto; lia|].
  apply (IH h (K - spent q h)%nat _ (l - calls)%nat); [exact A8|lia|lia].
Qed.

(* ---- The premises can be met ---- *)

(* What is released by a single step is one of its outcomes. *)
Definition answered (L : nat -> R) (h : list nat) := L (hd O h).

(* A call: beside the unit of two outcomes, one neighbour alone gives the third with probability 1 / 1000. *)
Definition rest (i : nat) : R := match i with 2%nat => 1 / 1000 | _ => 0 end.
Definition with_rest (i : nat) : R := 999 / 1000 * even i + rest i.
Definition one_call := ask one_unit (answered with_rest) (answered uneven) (fun _ => 999 / 1000) (answered rest) (fun _ => O) 1.

Theorem one_call_admitted : admitted 1 (1 / 1000) no_gaussian (one_call (fun _ => done)) 1 1.
Proof.
  split; [exact one_unit_keeps|]. split; [lia|]. unfold answered, with_rest, rest.
  split; [simpl; lra|]. split; [simpl; lra|].
  intros h Hh. split; [|exact I]. destruct h as [|i [|j h]]; simpl in Hh; try tauto. destruct Hh as [Hi _].
  unfold answers, answered. destruct i as [|[|[|i]]]; [| | |lia]; simpl; repeat split; try lra; lia.
Qed.
