(* Theorem D of docs/proofs/blocks.md: a question about some blocks of members is paid for by these alone, and every block
   has the budget K by itself: first without calls, for a member of one block, then with calls, for one of any number. That
   rows of other blocks decide an answer alone is the premise, `reads` and `read_by_member`. The ledger may charge more
   than a question costs this member. *)
Require Import Reals Lra Lia Bool List.
From Gris Require Import adaptive calls.
Open Scope R_scope.

(* A question is about the blocks for which `of` is true. Outcome i costs the member (price i), and is charged at
   (charged i). *)
Inductive questions :=
| ended : questions
| question (of : nat -> bool) (n : nat) (M M' : nat -> R) (price charged : nat -> nat) (next : nat -> questions).

(* What the ledger counts for each block. *)
Definition with_price (own : nat -> nat) (of : nat -> bool) (c : nat) : nat -> nat :=
  fun b => if of b then (own b + c)%nat else own b.

(* The ledger admits a question only if what it may charge still fits, for each block that it is about. *)
Fixpoint admitted (t : questions) (own : nat -> nat) (K : nat) : Prop :=
  match t with
  | ended => True
  | question of n M M' price charged next => forall i, (i < n)%nat ->
      (forall b, of b = true -> (own b + charged i <= K)%nat) /\ admitted (next i) (with_price own of (charged i)) K
  end.

Section member.
Variable e : R.
Variable G : (R -> R) -> R -> R.
Variable b : nat.

(* For a member of block b: other blocks' questions have the same law with and without the member, and those of b are steps
   of theorem A at their price, which is no more than what is charged. *)
Fixpoint reads (t : questions) : Prop :=
  match t with
  | ended => True
  | question of n M M' price charged next => law n M /\ law n M' /\
      (if of b then allowed e G n M M' price /\ (forall i, (i < n)%nat -> (price i <= charged i)%nat)
       else forall i, (i < n)%nat -> M' i = M i) /\
      forall i, (i < n)%nat -> reads (next i)
  end.

(* The interaction as this member pays for it. *)
Fixpoint paid_by (t : questions) : interaction :=
  match t with
  | ended => stop
  | question of n M M' price charged next =>
      step n M M' (fun i => if of b then price i else O) (fun i => paid_by (next i))
  end.

Theorem theorem_D t : forall own K, admitted t own K -> reads t -> (own b <= K)%nat ->
  keeps e G (paid_by t) (K - own b).
Proof.
  induction t as [|of n M M' price charged next IH]; intros own K Ha Hr Hb; simpl in *; [exact I|].
  destruct Hr as [H1 [H2 [Hstep Hnext]]]. split; [exact H1|]. split; [exact H2|].
  destruct (of b) eqn:E.
  - destruct Hstep as [Hstep Hcharged]. split; [exact Hstep|]. intros i Hi. destruct (Ha i Hi) as [Hfit Hadmitted].
    specialize (Hfit b E). specialize (Hcharged i Hi).
    split; [lia|]. pose proof (IH i _ K Hadmitted (Hnext i Hi)) as H. unfold with_price in H. rewrite E in H.
    apply keeps_more with (K - (own b + charged i))%nat; [apply H|]; lia.
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

(* ---- With calls, and for a member with rows of several blocks ---- *)

(* A question about the blocks for which `of` is true; its tree and laws are those of calls.v. The ledger reserves `worst`
   units and its calls, and counts what it charges for the answer. *)
Inductive asked :=
| no_more : asked
| about (of : nat -> bool) (worst calls : nat) (charged : list nat -> nat) (q : interaction) (R_ R_' g b : list nat -> R)
        (c : list nat -> nat) (next : list nat -> asked).

Fixpoint as_questions (t : asked) : calls.questions :=
  match t with
  | no_more => done
  | about of worst n charged q R_ R_' g b c next => ask q R_ R_' g b c n (fun h => as_questions (next h))
  end.

(* Each block has K units and l calls by itself. *)
Fixpoint granted (t : asked) (units calls : nat -> nat) (K l : nat) : Prop :=
  match t with
  | no_more => True
  | about of worst n charged q _ _ _ _ _ next =>
      (forall a, of a = true -> (units a + worst <= K)%nat /\ (calls a + n <= l)%nat) /\
      forall h, complete q h -> (charged h <= worst)%nat /\
        granted (next h) (with_price units of (charged h)) (with_price calls of n) K l
  end.

Fixpoint total (f : nat -> nat) (blocks : list nat) : nat :=
  match blocks with nil => O | cons a blocks => (f a + total f blocks)%nat end.

Lemma total_of_others f of c own : existsb of own = false -> total (with_price f of c) own = total f own.
Proof.
  induction own as [|a own IH]; simpl; intros H; [reflexivity|]. apply Bool.orb_false_iff in H. destruct H as [H1 H2].
  rewrite (IH H2). unfold with_price. rewrite H1. reflexivity.
Qed.
Lemma total_grows f of c own : (total f own <= total (with_price f of c) own)%nat.
Proof. induction own as [|a own IH]; simpl; [lia|]. unfold with_price at 1. destruct (of a); lia. Qed.
Lemma total_of_own f of c own : existsb of own = true -> (total f own + c <= total (with_price f of c) own)%nat.
Proof.
  induction own as [|a own IH]; simpl; intros H; [discriminate|]. pose proof (total_grows f of c own).
  unfold with_price at 1. destruct (of a); simpl in H; [lia|]. specialize (IH H). lia.
Qed.
Lemma total_within f K own : (forall a, In a own -> (f a <= K)%nat) -> (total f own <= length own * K)%nat.
Proof.
  induction own as [|a own IH]; simpl; intros H; [lia|]. pose proof (H a (or_introl eq_refl)).
  assert (total f own <= length own * K)%nat by (apply IH; auto). lia.
Qed.
Lemma left_of_one f K N own a : In a own -> (forall a, In a own -> (f a <= K)%nat) ->
  (length own * K <= N + total f own)%nat -> (K <= N + f a)%nat.
Proof.
  revert N. induction own as [|b own IH]; simpl; intros N Ha H HN; [tauto|].
  pose proof (H b (or_introl eq_refl)).
  assert (Hw : (total f own <= length own * K)%nat) by (apply total_within; auto).
  destruct Ha as [->|Ha]; [lia|]. apply IH; [exact Ha|auto|lia].
Qed.

Section member_of_some.
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
Variable own : list nat.

(* For a member with rows of the blocks `own`: questions that none of them pays for have the same law with and without
   the member, and the others are what calls.v says, at no more than what is charged. *)
Fixpoint read_by_member (t : asked) : Prop :=
  match t with
  | no_more => True
  | about of worst n charged q R_ R_' g b c next =>
      over q R_ = 1 /\
      (existsb of own = true -> keeps e G q worst /\ over q b <= INR n * delta) /\
      forall h, complete q h ->
        (if existsb of own then answers delta q R_ R_' g b c (charged h) h else 0 <= R_ h /\ R_' h = R_ h) /\
        read_by_member (next h)
  end.

(* A question that lemma 4 holds for is one that this member may pay for. *)
Theorem read_by_lemma_4 of worst n charged q R_ R_' g b c next : existsb of own = true ->
  calls.admitted e delta G (ask q R_ R_' g b c n (fun _ => done)) worst n ->
  (forall h, complete q h -> (spent q h <= charged h)%nat /\ read_by_member (next h)) ->
  read_by_member (about of worst n charged q R_ R_' g b c next).
Proof.
  intros E [Hk [_ [Hb [H1 Ha]]]] Hnext. simpl. rewrite E. split; [exact H1|]. split; [intros _; split; assumption|].
  intros h Hh. destruct (Ha h Hh) as [[A1 [A2 [A3 [A4 [A5 [A6 A7]]]]]] _]. destruct (Hnext h Hh) as [Hs Hn].
  split; [unfold answers; repeat split; try tauto; lia|exact Hn].
Qed.

Lemma released_by_asked t : forall S, read_by_member t -> event_of_answers S ->
  0 <= released (as_questions t) S <= 1 /\ 0 <= released' (as_questions t) S.
Proof.
  induction t as [|of worst n charged q R_ R_' g b c next IH]; intros S Hr HS; simpl in *; [pose proof (HS nil); lra|].
  destruct Hr as [H1 [_ Hr]].
  assert (Hp : forall h, complete q h -> 0 <= R_ h /\ 0 <= R_' h).
  { intros h Hh. destruct (Hr h Hh) as [Ha _]. destruct (existsb of own); [unfold answers in Ha; tauto|].
    destruct Ha as [Ha ->]. tauto. }
  assert (Hn : forall h, complete q h -> 0 <= released (as_questions (next h)) (fun a => S (cons h a)) <= 1 /\
                                         0 <= released' (as_questions (next h)) (fun a => S (cons h a))).
  { intros h Hh. apply IH; [apply (Hr h Hh)|]. intros a. apply HS. }
  split; [split|].
  - apply Rle_trans with (over q (fun h => 0 * R_ h + 0 * R_ h)); [rewrite over_linear; lra|].
    apply over_le. intros h Hh. destruct (Hn h Hh). destruct (Hp h Hh). nra.
  - rewrite <- H1. apply over_le. intros h Hh. destruct (Hn h Hh). destruct (Hp h Hh). nra.
  - apply Rle_trans with (over q (fun h => 0 * R_' h + 0 * R_' h)); [rewrite over_linear; lra|].
    apply over_le. intros h Hh. destruct (Hn h Hh). destruct (Hp h Hh). nra.
Qed.

Theorem theorem_D_with_calls t : forall units calls K l N m S x,
  granted t units calls K l -> read_by_member t ->
  (forall a, In a own -> (units a <= K)%nat /\ (calls a <= l)%nat) ->
  (length own * K <= N + total units own)%nat -> (length own * l <= m + total calls own)%nat ->
  event_of_answers S -> 0 <= x ->
  released (as_questions t) S - x * ((1 + delta) ^ N * released' (as_questions t) S) <= V N x + INR m * delta.
Proof.
  induction t as [|of worst n charged q R_ R_' g b c next IH]; intros units calls K l N m S x Hg Hr Hin HN Hm HS Hx; simpl in *.
  - apply nothing_more; try assumption. apply HS.
  - destruct Hg as [Hfit Hg]. destruct Hr as [H1 [Hown Hr]].
    set (r := fun h => released (as_questions (next h)) (fun a => S (cons h a))).
    set (r' := fun h => released' (as_questions (next h)) (fun a => S (cons h a))).
    assert (Hnext : forall h, complete q h -> 0 <= r h <= 1 /\ 0 <= r' h).
    { intros h Hh. apply released_by_asked; [apply (Hr h Hh)|]. intros a. apply HS. }
    assert (Hstill : forall h, complete q h -> forall a, In a own ->
      (with_price units of (charged h) a <= K)%nat /\ (with_price calls of n a <= l)%nat).
    { intros h Hh a Ha. destruct (Hg h Hh) as [Hs _]. destruct (Hin a Ha). unfold with_price.
      destruct (of a) eqn:E; [destruct (Hfit a E); lia|lia]. }
    change (over q (fun h => R_ h * r h) - x * ((1 + delta) ^ N * over q (fun h => R_' h * r' h)) <= V N x + INR m * delta).
    destruct (existsb of own) eqn:E.
    + destruct (proj1 (existsb_exists of own) E) as [a [Ha Hof]]. destruct (Hfit a Hof) as [Hu Hc].
      pose proof (left_of_one units K N own a Ha (fun a Ha => proj1 (Hin a Ha)) HN).
      pose proof (left_of_one calls l m own a Ha (fun a Ha => proj2 (Hin a Ha)) Hm).
      destruct (Hown eq_refl) as [Hk Hb].
      replace (INR m * delta) with (INR n * delta + INR (m - n) * delta) by (rewrite minus_INR by lia; ring).
      rewrite <- Rplus_assoc.
      apply (one_question e delta e_positive delta_nonnegative G G_monotone V V_convex V_falling V_above V_monotone
               V_recursion V_gaussian q R_ R_' g b c n r r'); try assumption.
      * apply (keeps_more e G q worst); [exact Hk|lia].
      * pose proof (pos_INR (m - n)). nra.
      * intros h Hh. destruct (Hr h Hh) as [[A1 [A2 [A3 [A4 [A5 [A6 A7]]]]]] _]. destruct (Hg h Hh) as [Hs _].
        unfold answers. repeat split; try tauto; lia.
      * intros h y Hh Hy. destruct (Hg h Hh) as [Hs Hgn]. destruct (Hr h Hh) as [[_ [_ [_ [_ [[_ Hcost] _]]]]] Hrn].
        pose proof (total_of_own units of (charged h) own E). pose proof (total_of_own calls of n own E).
        apply (IH h (with_price units of (charged h)) (with_price calls of n) K l); try assumption;
          [apply Hstill; exact Hh|lia|lia|]. intros z. apply HS.
    + set (C := V N x + INR m * delta).
      assert (Hall : forall h, complete q h -> r h - x * ((1 + delta) ^ N * r' h) <= C).
      { intros h Hh. destruct (Hg h Hh) as [Hs Hgn]. destruct (Hr h Hh) as [_ Hrn].
        apply (IH h (with_price units of (charged h)) (with_price calls of n) K l); try assumption;
          [apply Hstill; exact Hh| | |].
        - rewrite total_of_others by exact E. exact HN.
        - rewrite total_of_others by exact E. exact Hm.
        - intros z. apply HS. }
      rewrite (over_ext q (fun h => R_' h * r' h) (fun h => R_ h * r' h)).
      * apply Rle_trans with (over q (fun h => 1 * (R_ h * r h) + (- (x * (1 + delta) ^ N)) * (R_ h * r' h))).
        { rewrite over_linear. nra. }
        apply Rle_trans with (over q (fun h => C * R_ h + 0 * R_ h)).
        { apply over_le. intros h Hh. destruct (Hr h Hh) as [[HR _] _]. pose proof (Hall h Hh). nra. }
        rewrite over_linear, H1. lra.
      * intros h Hh. destruct (Hr h Hh) as [[_ ->] _]. reflexivity.
Qed.

(* From the window's beginning on: the guarantee of as many budgets as the member has blocks. *)
Corollary private_by_blocks t K l S epsilon :
  granted t (fun _ => O) (fun _ => O) K l -> read_by_member t -> event_of_answers S ->
  released (as_questions t) S <=
    exp (epsilon + INR (length own * K) * ln (1 + delta)) * released' (as_questions t) S
    + (V (length own * K) (exp epsilon) + INR (length own * l) * delta).
Proof.
  intros Hg Hr HS.
  assert (Hz : forall blocks, total (fun _ => O) blocks = O) by (induction blocks; simpl; auto).
  pose proof (theorem_D_with_calls t (fun _ => O) (fun _ => O) K l (length own * K) (length own * l) S (exp epsilon) Hg Hr)
    as H.
  rewrite Hz in H.
  assert (Hp : exp (INR (length own * K) * ln (1 + delta)) = (1 + delta) ^ (length own * K)).
  { rewrite <- Rpower_pow by lra. unfold Rpower. reflexivity. }
  rewrite exp_plus, Hp.
  assert (Hd : released (as_questions t) S - exp epsilon * ((1 + delta) ^ (length own * K) * released' (as_questions t) S)
               <= V (length own * K) (exp epsilon) + INR (length own * l) * delta).
  { apply H; [intros; lia|lia|lia|exact HS|apply Rlt_le, exp_pos]. }
  lra.
Qed.
End member_of_some.

(* ---- The premises can be met ---- *)

(* Each block has two units and one call. A question about block 0 is charged at all of it, though it costs a member of
   this block one unit, and one about block 1 is admitted after it. With calls, one neighbour alone can give an answer. *)
Definition of_block (a : nat) : nat -> bool := Nat.eqb a.
Definition two_questions : questions :=
  question (of_block 0) 3 even uneven (fun _ => 1%nat) (fun _ => 2%nat) (fun _ =>
  question (of_block 1) 3 even even (fun _ => 1%nat) (fun _ => 2%nat) (fun _ => ended)).
Definition two_asked : asked :=
  about (of_block 0) 2 1 (fun _ => 2%nat) one_unit (answered with_rest) (answered uneven)
    (fun _ => 999 / 1000) (answered rest) (fun _ => O) (fun _ =>
  about (of_block 1) 2 1 (fun _ => 2%nat) one_unit (answered even) (answered even)
    (fun _ => 0) (fun _ => 0) (fun _ => O) (fun _ => no_more)).

Theorem two_questions_admitted : admitted two_questions (fun _ => O) 2.
Proof.
  intros i _. split; [intros a _; lia|]. intros j _. split; [|exact I].
  intros [|[|a]] H; try discriminate H. unfold with_price. simpl. lia.
Qed.
Theorem two_questions_read : reads 1 no_gaussian 0 two_questions.
Proof.
  split; [exact even_law|]. split; [exact uneven_law|]. split.
  - split; [apply unit_step; [exact even_uneven_unit|auto]|intros; lia].
  - intros i _. split; [exact even_law|]. split; [exact even_law|]. split; [intros j _; reflexivity|intros j _; exact I].
Qed.

Theorem two_asked_granted : granted two_asked (fun _ => O) (fun _ => O) 2 1.
Proof.
  split; [intros a _; lia|]. intros h _. split; [lia|]. split; [|intros k _; split; [lia|exact I]].
  intros [|[|a]] H; try discriminate H. unfold with_price. simpl. lia.
Qed.
Theorem two_asked_read : read_by_member 1 (1 / 1000) no_gaussian (cons O nil) two_asked.
Proof.
  apply read_by_lemma_4.
  - reflexivity.
  - apply admitted_more with 1%nat 1%nat; [exact one_call_admitted|lia|lia].
  - intros h Hh. split; [destruct h as [|i [|j h]]; simpl in *; try tauto; lia|]. unfold answered. simpl.
    split; [lra|]. split; [discriminate|]. intros k _. split; [|exact I].
    split; [|reflexivity]. destruct k as [|[|[|i]] k]; simpl; lra.
Qed.

(* What theorem D says of it: two units and a call. *)
Corollary two_asked_private S : event_of_answers S ->
  released (as_questions two_asked) S <=
    exp (2 + INR 2 * ln (1 + 1 / 1000)) * released' (as_questions two_asked) S + 1 / 1000.
Proof.
  intros HS.
  assert (H : released (as_questions two_asked) S <=
    exp (2 + INR 2 * ln (1 + 1 / 1000)) * released' (as_questions two_asked) S + (plain 1 2 (exp 2) + INR 1 * (1 / 1000))).
  { apply (private_by_blocks 1 (1 / 1000)) with (own := cons O nil) (K := 2%nat) (l := 1%nat) (G := no_gaussian);
      try lra; try assumption.
    - intros f g H x Hx. apply H. exact Hx.
    - apply plain_convex.
    - apply plain_falling.
    - intros k x. apply plain_above. lra.
    - intros k x. apply plain_monotone. lra.
    - intros k x t. apply plain_recursion. lra.
    - intros k x. apply plain_monotone. lra.
    - exact two_asked_granted.
    - exact two_asked_read. }
  replace (plain 1 2 (exp 2)) with 0 in H; [simpl INR in *; lra|].
  unfold plain. rewrite <- exp_plus. replace (2 + - (INR 2 * 1)) with 0 by (simpl; ring).
  rewrite exp_0, Rmax_left; lra.
Qed.
