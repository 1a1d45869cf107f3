"""Wrong forms of what is proved: in each file one text, and what is written instead of it. Coq refuses every one."""

from __future__ import annotations

MUTANTS = {
    "adaptive": {
        "a unit costs nothing": ("u i = 1%nat) -> allowed", "u i = O) -> allowed"),
        "the other law has another mass": ("law n M /\\ law n M' /\\", "law n M /\\ law n M /\\"),
        "a unit has twice the range": ("<= exp e * (M j * M' i)", "<= exp (2 * e) * (M j * M' i)"),
        "a free step may change": ("-> M' i = M i) -> (forall", "-> M' i <= exp e * M i) -> (forall"),
        "the table lies below 1 - x": ("-> Rmax 0 (1 - x) <= V k x", "-> Rmax 0 (1 - 2 * x) <= V k x"),
        "the recursion holds at its ends": (
            "0 <= x -> 0 <= t <= e ->\n  p t",
            "0 <= x -> 0 <= t <= e -> t = 0 ->\n  p t",
        ),
        "the table is concave": ("\n  f y <= (b - y)", "\n  f y >= (b - y)"),
        "units are not counted": ("keeps (next i) (K - u i)", "keeps (next i) K"),
        "an event counts twice": ("0 <= S h <= 1", "0 <= S h <= 2"),
        "Gaussian noise costs a unit less": ("u i = v) -> allowed", "u i = pred v) -> allowed"),
        "no end keeps a budget": ("  match t with\n  | stop => True", "  match t with\n  | stop => False"),
        "the last unit is forgotten": (
            "exp epsilon * P' t S + V K (exp epsilon)",
            "exp epsilon * P' t S + V (pred K) (exp epsilon)",
        ),
    },
    "calls": {
        "a call has twice the mass": (
            "over q b <= INR calls * delta /\\",
            "over q b <= INR calls * (2 * delta) /\\",
        ),
        "calls have no limit": ("(calls <= l)%nat", "(0 <= l)%nat"),
        "calls are not counted": ("(K - spent q h) (l - calls)", "(K - spent q h) l"),
        "more factors than units": ("(c h <= spent q h <= K)%nat", "(spent q h <= c h <= K)%nat"),
        "more than the whole law": ("0 <= g h <= 1 /\\", "0 <= g h <= 2 /\\"),
        "the rest counts twice": ("<= g h * chance q h + b h", "<= g h * chance q h + 2 * b h"),
        "a choice has a larger factor": ("<= (1 + delta) ^ c h * R_' h", "<= (1 + 2 * delta) ^ c h * R_' h"),
        "what is released has another mass": ("over q R_ = 1 /\\", "over q R_ = 2 /\\"),
        "the factor is forgotten": (
            "released t S - x * ((1 + delta) ^ K * released' t S)",
            "released t S - x * released' t S",
        ),
        "the calls are forgotten": (
            "released' t S) <= V K x + INR l * delta.\nProof",
            "released' t S) <= V K x.\nProof",
        ),
        "no end is admitted": ("  | done => True", "  | done => False"),
        "a question's units have twice the range": ("keeps e G q K /\\", "keeps (2 * e) G q K /\\"),
    },
    "prices": {
        "a noisy count has all of e": ("M i <= exp (e / 2) * M' i /\\ M'", "M i <= exp e * M' i /\\ M'"),
        "noise has half of its scale": (":= exp (- (e / 2) *", ":= exp (- e *"),
        "a member moves a count by 2 tau": ("Rabs (c' - c) <= tau ->\n", "Rabs (c' - c) <= 2 * tau ->\n"),
        "a member moves utilities either way": (
            "exists d, 0 <= d <= e /\\ w' i = w i",
            "exists d, - e <= d <= e /\\ w' i = w i",
        ),
        "a member moves utilities by 2 e": (
            "exists d, 0 <= d <= e /\\ w i = w' i",
            "exists d, 0 <= d <= 2 * e /\\ w i = w' i",
        ),
        "a choice is no law": ("then w i / weight_left n w left else", "then w i else"),
        "a choice costs nothing": (
            "(choice (S n) (w' x) left) (fun _ => 1%nat)",
            "(choice (S n) (w' x) left) (fun _ => O)",
        ),
        "a count costs nothing": (
            "step m (noise i) (noise' i) (fun _ => 1%nat)",
            "step m (noise i) (noise' i) (fun _ => O)",
        ),
        "the index is forgotten": (
            "unk_gumb_keeps k K : (dearest k + 1 <= K)",
            "unk_gumb_keeps k K : (dearest k <= K)",
        ),
        "bottom can be used up": (
            "if Nat.eqb i n then counts (counted met) else peel",
            "if false then counts (counted met) else peel",
        ),
        "bottom may weigh nothing": (
            "bottom_positive : forall x, 0 < w x n",
            "bottom_positive : forall x, 0 <= w x n",
        ),
        "what a member changes is free": ("(length (filter changed domain) <= K)", "(O <= K)"),
        "more is drawn than there is": ("(k <= size n left)%nat ->", "(O <= size n left)%nat ->"),
        "a draw is given away": (
            "spent (unk_gumb k) h = length h",
            "spent (unk_gumb k) h = pred (length h)",
        ),
    },
    "newcomers": {
        "UnkLap has all of e": (
            "M_private : private_but n (e / 2) delta M M'",
            "M_private : private_but n e delta M M'",
        ),
        "UnkLap is private in one direction": (
            "M_private' : private_but n (e / 2) delta M' M",
            "M_private' : private_but n (e / 2) delta M M'",
        ),
        "the other law has another mass": ("M_law' : law n M'", "M_law' : law n M"),
        "UnkLap has twice the delta": (
            "if S i then M' i else 0) + delta.",
            "if S i then M' i else 0) + 2 * delta.",
        ),
        "UnkLap costs nothing": ("(ask (step n Q Q' (fun _ => 1%nat)", "(ask (step n Q Q' (fun _ => O)"),
        "units of known domains are twice as large": (
            "0 <= delta -> keeps e G q K ->",
            "0 <= delta -> keeps (2 * e) G q K ->",
        ),
        "noise has twice the range": (
            "noise_unit : forall i, allowed e G m",
            "noise_unit : forall i, allowed (2 * e) G m",
        ),
        "newcomers weigh twice as much": (
            "everything <= delta * w x n",
            "everything <= 2 * delta * w x n",
        ),
        "newcomers of the other table do": (
            "everything <= delta * w' x n",
            "everything <= 4 * delta * w' x n",
        ),
        "bottom is a newcomer": (
            "bottom_common : forall x, common x n = true",
            "bottom_common : forall x, common x n = false",
        ),
        "a member moves weights by 2 e": (
            "common_moved : forall x, moved e",
            "common_moved : forall x, moved (2 * e)",
        ),
        "newcomers are not seen": ("then meets x k' h' else true", "then meets x k' h' else false"),
        "a choice has no factor": ("(@length nat) 1 next", "(fun _ => O) 1 next"),
        "UnkGumb is no call": ("(@length nat) 1 next", "(@length nat) 0 next"),
        "a unit less suffices": (
            "unk_gumb_admitted k next K l : (dearest with_counts k + 1 <= K)",
            "unk_gumb_admitted k next K l : (dearest with_counts k <= K)",
        ),
    },
    "blocks": {
        "nothing is counted": ("if of b then (own b + c)%nat else own b", "own b"),
        "the other blocks pay": (
            "if of b then (own b + c)%nat else own b",
            "if of b then own b else (own b + c)%nat",
        ),
        "what is asked for need not fit": ("(own b + charged i <= K)%nat", "(own b <= K)%nat"),
        "the next question forgets the price": ("(with_price own of (charged i)) K", "own K"),
        "another block's answer may change": ("-> M' i = M i) /\\\n", "-> M' i <= 2 * M i) /\\\n"),
        "the member pays nothing": ("(fun i => if of b then price i else O)", "(fun _ => O)"),
        "the member pays for the next block": (
            "if of b then price i else O",
            "if of (S b) then price i else O",
        ),
        "units have twice the range": ("allowed e G n M M' price", "allowed (2 * e) G n M M' price"),
        "questions of other blocks are the steps": ("(if of b then allowed", "(if negb (of b) then allowed"),
        "a unit less is kept": ("(paid_by t) (K - own b).", "(paid_by t) (K - own b - 1)."),
        "the other law has another mass": ("law n M /\\ law n M' /\\", "law n M /\\ law n M /\\"),
        "calls of a block are not counted": ("(with_price calls of n) K l\n  end", "calls K l\n  end"),
        "calls of a block have no limit": ("/\\ (calls a + n <= l)%nat)", "/\\ (calls a <= l)%nat)"),
        "more is charged than was reserved": ("(charged h <= worst)%nat /\\", "(0 <= worst)%nat /\\"),
        "a block more costs nothing": (
            "(length own * K <= N + total units own)%nat -> (length own * l",
            "(K <= N + total units own)%nat -> (length own * l",
        ),
        "others' answers may change a little": (
            "else 0 <= R_ h /\\ R_' h = R_ h)",
            "else 0 <= R_ h /\\ R_ h <= R_' h <= 2 * R_ h)",
        ),
        "one block of the member pays for all": (
            "(if existsb of own then answers",
            "(if existsb of (tl own) then answers",
        ),
        "less is charged than it costs": ("(price i <= charged i)%nat)", "(charged i <= price i)%nat)"),
        "with calls, less is charged than it costs": (
            "then answers delta q R_ R_' g b c (charged h) h",
            "then answers delta q R_ R_' g b c worst h",
        ),
        "no end is admitted": (
            "(own : nat -> nat) (K : nat) : Prop :=\n  match t with\n  | ended => True",
            "(own : nat -> nat) (K : nat) : Prop :=\n  match t with\n  | ended => False",
        ),
        "no end is read": (
            "Fixpoint reads (t : questions) : Prop :=\n  match t with\n  | ended => True",
            "Fixpoint reads (t : questions) : Prop :=\n  match t with\n  | ended => False",
        ),
        "no end is granted": (
            "(units calls : nat -> nat) (K l : nat) : Prop :=\n  match t with\n  | no_more => True",
            "(units calls : nat -> nat) (K l : nat) : Prop :=\n  match t with\n  | no_more => False",
        ),
        "no end is read with calls": (
            "Fixpoint read_by_member (t : asked) : Prop :=\n  match t with\n  | no_more => True",
            "Fixpoint read_by_member (t : asked) : Prop :=\n  match t with\n  | no_more => False",
        ),
        "no charge is granted": ("(charged h <= worst)%nat /\\", "(charged h < charged h)%nat /\\"),
    },
    "convex": {
        "the largest need not be below convex functions": (
            "convex f /\\ falling f /\\ f 0 <= 1",
            "falling f /\\ falling f /\\ f 0 <= 1",
        ),
        "the largest need not fall": (
            "convex f /\\ falling f /\\ f 0 <= 1",
            "convex f /\\ convex f /\\ f 0 <= 1",
        ),
        "the largest has no bound": ("f 0 <= 1 /\\ forall i", "0 <= f 0 /\\ forall i"),
        "a parabola bends twice as much": ("c1 * c1 <= 4 * c0 * c2 ->", "c1 * c1 <= 8 * c0 * c2 ->"),
        "a parabola has one end": (
            "parabola c0 c1 c2 s : 0 <= c0 -> 0 <= c2",
            "parabola c0 c1 c2 s : 0 <= c0 -> 0 <= c0",
        ),
        "a parabola has no end": ("-> 0 <= s <= 1 ->", "-> -1 <= s <= 1 ->"),
        "points may fall": ("g_large : 1 < g", "g_large : 0 < g"),
        "there is a cell less": ("(d < n)%nat /\\ point", "(S d < n)%nat /\\ point"),
        "lines begin too far below": ("(0 < d <= m)%nat", "(0 < d <= S m)%nat"),
        "the end of a cell is not looked at": ("f (point (S j)) <= v1", "f (point (S j)) <= v0"),
        "the end of the upper cell is not": ("f (point (S (j + m))) <= u1", "f (point (S (j + m))) <= u0"),
        "units may shrink": ("e <= e' -> forall K", "e' <= e -> forall K"),
    },
    "table": {
        "it may begin below 1 - x": ("above_start s (hd [] rows) &&", "true &&"),
        "parabolas may bend as they like": (
            "((0 <=? c1) || (c1 * c1 <=? 4 * c0 * c2))",
            "((0 <=? c1) || (c1 * c1 <=? 8 * c0 * c2))",
        ),
        "only the ends of cells are checked": (
            "((0 <=? c1) || (c1 * c1 <=? 4 * c0 * c2))",
            "true",
        ),
        "the last cell is not checked": ("    (seq 1 (unit s)).", "    (seq 1 (unit s - 1))."),
        "only the first point is checked": ("(seq (unit s) (S (length new) - unit s))", "(seq (unit s) 1)"),
        "only the first step is checked": (
            "above_recursion s old new && steps s later",
            "above_recursion s old new",
        ),
        "lines end a point further": ("(value s old (i - d + unit s))", "(value s old (S (i - d + unit s)))"),
        "the first points are not checked": ("row && above_first_line s row", "row && true"),
        "numbers may be negative": ("forallb (Z.leb 0) row", "forallb (Z.leb (-1)) row"),
        "behind a row there is 0": ("nth i row (last row (whole s))", "nth i row 0"),
        "units are a step longer": ("exp e <= ratio ^ m ->", "exp e <= ratio ^ S m ->"),
        "epsilon is before the point": ("x i <= exp epsilon ->", "exp epsilon <= x i ->"),
        "the last unit is forgotten": ("P' t A + entry K i.", "P' t A + entry (pred K) i."),
        "the next point is taken": ("P' t A + entry K i.", "P' t A + entry K (S i)."),
    },
    "coarse": {
        "a number is smaller": ("687095464", "687095450"),
        "a number of the last row is": ("3056; 1667; 902", "2900; 1667; 902"),
        "a number within is much larger": ("268241382; 124203802", "368241382; 124203802"),
        "the first row begins too low": ("659706978; 343597385; 2];", "659706978; 340000000; 2];"),
        "points are closer": ("up := 25; down := 23", "up := 51; down := 47"),
        "a unit has fewer points": ("unit := 3;", "unit := 2;"),
        "another point is 1": ("one := 27;", "one := 28;"),
        "the parts are smaller": ("whole := 2 ^ 32", "whole := 2 ^ 33"),
        "units are larger": ("keeps (1 / 4) no_gaussian", "keeps (1 / 3) no_gaussian"),
        "there are forty units": ("no_gaussian t 30 ->", "no_gaussian t 40 ->"),
        "epsilon is smaller": ("<= exp (67 / 20) * P' t S + 1", "<= exp (60 / 20) * P' t S + 1"),
        "delta is smaller": ("P' t S + 1 / 1000000.\nProof", "P' t S + 1 / 100000000.\nProof"),
        "there is no delta": ("P' t S + 1 / 1000000.\nProof", "P' t S.\nProof"),
        "exp is below its powers": ("<= exp (INR n * y).", "<= exp (INR n * y) - 1."),
    },
}
