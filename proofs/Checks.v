(** Checkers of the integers that a release applies, each with the theorem that says what its yes means. `make proofs`
    runs them on exported plans. Whoever writes the integers down is not trusted for a bound: it is worked out here. *)
From Coq Require Import Arith ZArith List Lia Bool ZifyBool.
From DPWindows Require Import Sums Logs Neighbours Potentials Filters Lines.
Import ListNotations.
Open Scope Z_scope.

(** What a number counts for in a norm: its absolute value, or its square. *)
Inductive norm := L1 | L2_squared.
Definition size (p : norm) (v : Z) : Z := match p with L1 => Z.abs v | L2_squared => v * v end.

(** ** A matrix, row by row, and changes on intervals *)

(** A row that is written as numbers of equal entries. *)
Definition unfolded (row : list (Z * Z)) : list Z :=
  flat_map (fun entries => repeat (snd entries) (Z.to_nat (fst entries))) row.

Definition dot (row : list Z) (x : nat -> Z) : Z := sum (length row) (fun i => nth i row 0 * x i).
(** `||M x||_1`, or `||M x||^2`. *)
Definition moved (p : norm) (matrix : list (list Z)) (x : nat -> Z) : Z :=
  fold_right (fun row rest => size p (dot row x) + rest) 0 matrix.

(** From the sums of a row: what it makes of the interval of n places from each place on, cut at the end. *)
Definition row_costs (p : norm) (n : nat) (sums : list Z) : list Z :=
  zip (fun later here => size p (later - here)) (skipn n sums ++ repeat (List.last sums 0) n) sums.
Definition costs (p : norm) (places : nat) (all_sums : list (list Z)) (n : nat) : list Z :=
  fold_right (fun sums => zip Z.add (row_costs p n sums)) (repeat 0 (S places)) all_sums.

Definition intervals_within (p : norm) (matrix : list (list Z)) (places : nat) (lengths : list nat) (bound : Z) : bool :=
  forallb (fun row => length row =? places)%nat matrix &&
  let all_sums := map (sums_from 0) matrix in
  forallb (fun n => forallb (fun cost => cost <=? bound) (costs p places all_sums n)) lengths.

Lemma dot_interval : forall row begin n, (begin <= length row)%nat ->
  dot row (interval begin n) =
  sum (min (begin + n) (length row)) (fun j => nth j row 0) - sum begin (fun j => nth j row 0).
Proof.
  intros row begin n within. unfold dot.
  assert (cut : forall upto, sum (length row) (fun i => nth i row 0 * (1 - step upto i)) =
    sum (min upto (length row)) (fun j => nth j row 0)).
  { intros upto. set (m := min upto (length row)). replace (length row) with (m + (length row - m))%nat by lia.
    rewrite sum_split, (sum_zero (length row - m)), Z.add_0_r.
    - apply sum_ext. intros i hi. unfold step. destruct (Nat.leb_spec upto i); lia.
    - intros i hi. unfold step. destruct (Nat.leb_spec upto (m + i)); lia. }
  rewrite <- cut. replace (sum begin _) with (sum (length row) (fun i => nth i row 0 * (1 - step begin i))).
  - assert (forall a b c, a + c = b -> a = b - c) as shift by (intros; lia). apply shift. rewrite <- sum_add.
    apply sum_ext. intros. unfold interval. lia.
  - rewrite cut. now replace (min begin (length row)) with begin by lia.
Qed.

Lemma row_costs_nth : forall p n row i, (i <= length row)%nat ->
  nth i (row_costs p n (sums_from 0 row)) 0 = size p (dot row (interval i n)).
Proof.
  intros p n row i within. assert (long := sums_from_length row 0).
  assert (top : List.last (sums_from 0 row) 0 = nth (length row) (sums_from 0 row) 0).
  { replace (length row) with (pred (length (sums_from 0 row))) by lia. generalize (sums_from 0 row). clear.
    induction l as [|x [|y l] known]; auto. }
  unfold row_costs. rewrite zip_nth by (rewrite ?app_length, ?skipn_length, ?repeat_length; lia). f_equal.
  assert (sums : forall m, (m <= length row)%nat -> sum m (fun j => nth j row 0) = nth m (sums_from 0 row) 0).
  { intros. now rewrite sums_from_nth. }
  rewrite dot_interval, !sums by lia. f_equal.
  destruct (le_lt_dec (length row) (i + n)) as [beyond|before].
  - rewrite Nat.min_r, <- top by lia. destruct (Nat.eq_dec (i + n) (length row)) as [same|].
    + rewrite app_nth1, nth_skipn, top by (rewrite skipn_length; lia). f_equal. lia.
    + rewrite app_nth2 by (rewrite skipn_length; lia).
      rewrite nth_indep with (d' := List.last (sums_from 0 row) 0) by (rewrite repeat_length, skipn_length; lia).
      apply nth_repeat.
  - rewrite Nat.min_l, app_nth1, nth_skipn by (rewrite ?skipn_length; lia). f_equal. lia.
Qed.

Theorem intervals_within_sound : forall p matrix places lengths bound,
  intervals_within p matrix places lengths bound = true ->
  forall begin n, In n lengths -> (begin <= places)%nat -> moved p matrix (interval begin n) <= bound.
Proof.
  intros p matrix places lengths bound yes begin n among within. unfold intervals_within in yes.
  apply andb_prop in yes as [whole yes]. rewrite forallb_forall in yes. specialize (yes n among).
  rewrite forallb_forall in yes.
  assert (shape : length (costs p places (map (sums_from 0) matrix) n) = S places /\
    nth begin (costs p places (map (sums_from 0) matrix) n) 0 = moved p matrix (interval begin n)).
  { clear yes among. unfold costs, moved.
    induction matrix as [|row matrix known]; cbn [map fold_right forallb] in *; [rewrite repeat_length, nth_repeat; auto|].
    apply andb_prop in whole as [fits whole]. destruct (known whole) as [long value].
    assert (length (row_costs p n (sums_from 0 row)) = S places).
    { unfold row_costs. rewrite zip_length, app_length, skipn_length, repeat_length, sums_from_length. lia. }
    rewrite zip_length, zip_nth, row_costs_nth, value by lia. lia. }
  destruct shape as [long <-]. apply Z.leb_le, yes, nth_In. lia.
Qed.

(** The change of a log's count, at the places 0, 1, ... for the windows that end at the steps 1, 2, ... *)
Definition change_of (k : nat) (start : nat -> nat) (old new : log) (i : nat) : Z :=
  Z.of_nat (count_at_least k new (start (S i)) (S i)) - Z.of_nat (count_at_least k old (start (S i)) (S i)).

Lemma moved_ext : forall p matrix places x y, forallb (fun row => length row =? places)%nat matrix = true ->
  (forall i, (i < places)%nat -> x i = y i) -> moved p matrix x = moved p matrix y.
Proof.
  intros p matrix places x y whole same. unfold moved. induction matrix as [|row matrix known]; cbn; auto.
  cbn [forallb] in whole. apply andb_prop in whole as [fits whole]. apply Nat.eqb_eq in fits.
  rewrite known by auto. do 2 f_equal. apply sum_ext. intros i hi. rewrite same; auto. lia.
Qed.

(** *Rolling counts of at least 1, one occurrence added*: through any matrix, on every log. (Removed: the same with the
    logs exchanged, and neither norm sees a sign.) *)
Theorem rolling_event_checked : forall p matrix steps length_ bound, (1 <= length_)%nat ->
  intervals_within p matrix steps (seq 0 (S length_)) bound = true ->
  forall (others more : log) x s, (1 <= s)%nat ->
  moved p matrix (change_of 1 (rolling_start length_) (others ++ x :: more) (others ++ added x s :: more)) <= bound.
Proof.
  intros p matrix steps w bound hw yes others more x s hs.
  destruct (rolling_counts_change_on_an_interval x s w steps hs hw) as (from & upto & low & high & changes).
  assert (whole := yes). unfold intervals_within in whole. apply andb_prop in whole as [whole _].
  rewrite (moved_ext p matrix steps _ (interval (min (from - 1) steps) (min (upto - from) w))); auto.
  - apply (intervals_within_sound _ _ _ _ _ yes); [apply in_seq|]; lia.
  - intros i hi. unfold change_of. rewrite one_occurrence_changes_its_item by auto.
    specialize (changes (S i) ltac:(lia)). unfold interval, step.
    destruct (changed 1 x s (rolling_start w (S i)) (S i));
      destruct (Nat.leb_spec (min (from - 1) steps) i), (Nat.leb_spec (min (from - 1) steps + min (upto - from) w) i);
      try lia; exfalso;
      (assert (from <= S i < upto)%nat by (apply changes; reflexivity); lia) ||
      (assert (false = true) by (apply changes; lia); discriminate).
Qed.

(** *Cumulative counts of at least k, one item added*: through any matrix, on every log. *)
Theorem cumulative_presence_checked : forall p matrix steps bound,
  intervals_within p matrix steps [steps] bound = true ->
  forall k (others more : log) x, (1 <= k)%nat ->
  moved p matrix (change_of k (fun _ => 1%nat) (others ++ more) (others ++ x :: more)) <= bound.
Proof.
  intros p matrix steps bound yes k others more x hk.
  assert (whole := yes). unfold intervals_within in whole. apply andb_prop in whole as [whole _].
  destruct (rise (fun i => counted k x 1 (S i)) steps) as (begin & within & turns).
  { intros i _. unfold counted. rewrite !Nat.leb_le. assert (mono := occurrences_monotone x 1 1 (S i) (S (S i))). lia. }
  rewrite (moved_ext p matrix steps _ (interval begin steps)); auto.
  - apply (intervals_within_sound _ _ _ _ _ yes); [left; reflexivity|lia].
  - intros i hi. unfold change_of, count_at_least. rewrite !filter_app, !app_length. cbn [filter].
    rewrite turns by auto. unfold interval, step. destruct (begin <=? i)%nat eqn:at_; cbn [length];
      destruct (Nat.leb_spec (begin + steps) i); lia.
Qed.

(** ** Crossed counters: a line for every start and one for every end *)

Definition forward_lines (steps : nat) (weights : list Z) : list line :=
  map (fun one => {| first := S (fst one); last := steps; places := steps - fst one; weight := snd one; backward := false |})
    (combine (seq 0 (length weights)) weights).
Definition backward_lines (weights : list Z) : list line :=
  map (fun one => {| first := 1; last := S (fst one); places := S (fst one); weight := snd one; backward := true |})
    (combine (seq 0 (length weights)) weights).

(** Costs of one step for n = 0, 1, ...: sums of squares of the sums of the first taps. *)
Fixpoint step_costs (known sum_ : Z) (taps : list Z) (places : nat) : list Z :=
  known :: match places with
           | O => []
           | S more => let sum_ := sum_ + hd 0 taps in step_costs (known + sum_ * sum_) sum_ (tl taps) more
           end.
Definition weighed (costs : list Z) (l : line) : Z := weight l ^ 2 * nth (places l) costs 0.
Definition crossed_within (taps start_weights end_weights : list Z) (steps thresholds : nat) (bound : Z) : bool :=
  (length start_weights =? steps)%nat && (length end_weights =? steps)%nat &&
  let costs := step_costs 0 0 taps steps in
  (Z.of_nat thresholds * all_lines (weighed costs) (forward_lines steps start_weights ++ backward_lines end_weights) <=? bound).

Lemma step_costs_nth : forall n places taps known sum_, (n <= places)%nat ->
  nth n (step_costs known sum_ taps places) 0 = known + sum n (fun m => (sum_ + sum (S m) (tap taps)) ^ 2).
Proof.
  induction n as [|n more]; intros places taps known sum_ hn; destruct places as [|places]; try lia; cbn [step_costs nth].
  - cbn. lia.
  - cbn. lia.
  - rewrite more by lia. rewrite (sum_front n).
    assert (tap_tl : forall j, tap (tl taps) j = tap taps (S j)) by (intros j; unfold tap; destruct taps; [destruct j|]; reflexivity).
    assert (tap_hd : hd 0 taps = tap taps O) by (destruct taps; reflexivity).
    rewrite (sum_ext n _ (fun m => (sum_ + sum (S (S m)) (tap taps)) ^ 2)).
    + rewrite tap_hd. cbn [sum]. ring.
    + intros m hm. rewrite (sum_front (S m)), tap_hd. rewrite (sum_ext (S m) (tap (tl taps)) (fun i => tap taps (S i))) by auto.
      ring.
Qed.

Lemma all_lines_ext : forall f g lines, Forall (fun l => f l = g l) lines -> all_lines f lines = all_lines g lines.
Proof. intros f g lines same. induction same; cbn; auto. congruence. Qed.

(** *Any windows, one item added or removed*, at least each of some thresholds: the lines of all starts and all ends
    through one filter. *)
Theorem crossed_checked : forall taps start_weights end_weights steps ks bound, Forall (fun k => (1 <= k)%nat) ks ->
  crossed_within taps start_weights end_weights steps (length ks) bound = true -> forall x : history,
  measured_change (tap taps) ks x never (forward_lines steps start_weights ++ backward_lines end_weights) <= bound.
Proof.
  intros taps sw ew steps ks bound hk yes x. unfold crossed_within in yes. rewrite !andb_true_iff in yes.
  destruct yes as [[ls le_] yes]. apply Nat.eqb_eq in ls, le_. apply Z.leb_le in yes. eapply Z.le_trans; [|exact yes].
  assert (fits : Forall (fun l => proper l /\ (places l <= steps)%nat) (forward_lines steps sw ++ backward_lines ew)).
  { apply Forall_app. split; apply Forall_forall; intros l listed; apply in_map_iff in listed as [[n w] [<- listed]];
      apply in_combine_l, in_seq in listed; unfold proper; cbn [first last places weight backward fst snd]; lia. }
  apply items_on_lines with (cost := fun n => steps_cost (tap taps) n n); auto.
  - apply Forall_impl with (2 := fits). now intros l [].
  - intros n. lia.
  - apply Z.eq_le_incl, all_lines_ext. apply Forall_impl with (2 := fits). intros l [_ within]. unfold weighed. f_equal.
    rewrite step_costs_nth by auto. cbn [Z.add]. apply sum_ext. intros m hm.
    replace (S m - places l)%nat with O by lia. cbn [sum]. f_equal. lia.
Qed.

(** ** A filter over gaps: the worst way to cut a range into gaps, by potentials *)

(** Products of polynomials, cut off: entry g of `product` is the sum of `x_i y_j` over i + j = g. *)
Fixpoint plus_lists (xs ys : list Z) : list Z :=
  match xs, ys with [], _ => ys | _, [] => xs | x :: xs, y :: ys => x + y :: plus_lists xs ys end.
Fixpoint product (most : nat) (xs ys : list Z) : list Z :=
  match most, xs with
  | S less, x :: xs => plus_lists (map (Z.mul x) (firstn most ys)) (0 :: product less xs ys)
  | _, _ => []
  end.

Lemma plus_lists_nth : forall xs ys i, nth i (plus_lists xs ys) 0 = nth i xs 0 + nth i ys 0.
Proof.
  induction xs as [|x xs known]; intros ys i; [cbn; destruct i; lia|]. destruct ys as [|y ys]; [cbn; destruct i; lia|].
  destruct i; cbn [plus_lists nth]; auto.
Qed.
Theorem product_nth : forall most xs ys g, (g < most)%nat ->
  nth g (product most xs ys) 0 = sum (S g) (fun i => nth i xs 0 * nth (g - i) ys 0).
Proof.
  induction most as [|most known]; intros xs ys g hg; [lia|]. destruct xs as [|x xs].
  - rewrite sum_zero; [destruct g; reflexivity|]. intros i _. destruct i; cbn [nth]; lia.
  - cbn [product]. rewrite plus_lists_nth. rewrite sum_front. cbn [nth]. rewrite Nat.sub_0_r. f_equal.
    + rewrite <- (Z.mul_0_r x) at 1. rewrite map_nth. f_equal.
      rewrite <- (firstn_skipn (S most) ys) at 2.
      destruct (le_lt_dec (length (firstn (S most) ys)) g).
      * rewrite !nth_overflow; auto. rewrite firstn_skipn. rewrite firstn_length in l. lia.
      * now rewrite app_nth1.
    + destruct g as [|g]; [reflexivity|]. rewrite known by lia. apply sum_ext. intros i hi. reflexivity.
Qed.

(** `C(0), C(1), ...`: the sums of the first taps. *)
Definition filter_sums (taps : list Z) (steps : nat) : list Z := tl (sums_from 0 (firstn steps (taps ++ repeat 0 steps))).
Definition square (v : Z) : Z := v * v.
(** What a gap of g = 0, 1, ... steps is charged: the sum of `(w_n C(i) C(j))^2 - 2 offset w_n C(i) C(j)` over
    i + j + n = g, n >= 1. *)
Definition gap_charges (taps weights : list Z) (offset : Z) : list Z :=
  let steps := length weights in
  let sums := filter_sums taps steps in
  let squares := product steps (0 :: map square weights) (product steps (map square sums) (map square sums)) in
  let once := product steps (0 :: weights) (product steps sums sums) in
  plus_lists squares (map (Z.mul (- 2 * offset)) once).

(** `table` is the potential of T+1, T, ..., 0 steps that are still to be cut. *)
Definition gaps_within (taps weights : list Z) (offset total bound : Z) (table : list Z) : bool :=
  let steps := length weights in
  let windows := Z.of_nat steps * (Z.of_nat steps + 1) / 2 in
  let charges := firstn steps (gap_charges taps weights offset) in
  (length charges =? steps)%nat && (length table =? steps + 2)%nat && cuts_accepted charges table &&
  (total * total + (windows - 1) * (offset * offset) + hd 0 table <=? bound).

(** *Any windows, one item added or removed, through a filter over gaps*: whatever parts T+1 steps are cut into, a gap
    and a step after it each, what they are charged stays within the bound. *)
Theorem gaps_checked : forall taps weights offset total bound table,
  gaps_within taps weights offset total bound table = true ->
  forall parts, whole parts = S (length weights) -> Forall (fun part => (1 <= part <= length weights)%nat) parts ->
  total * total + (Z.of_nat (length weights) * (Z.of_nat (length weights) + 1) / 2 - 1) * (offset * offset) +
    Potentials.total (firstn (length weights) (gap_charges taps weights offset)) parts <= bound.
Proof.
  intros taps weights offset total bound table yes parts filled each. unfold gaps_within in yes.
  rewrite !andb_true_iff in yes. destruct yes as [[[lc lt] accepted_] yes]. apply Nat.eqb_eq in lc, lt. apply Z.leb_le in yes.
  assert (worst := cuts_bounded _ table accepted_ parts O ltac:(cbn [plus]; lia) ltac:(rewrite lc; exact each)).
  destruct table; cbn [hd nth] in *; lia.
Qed.
