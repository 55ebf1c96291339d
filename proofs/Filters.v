(** (e) What a change costs through a causal filter of whole numbers (`dpwindows.kernel.families.norms`). *)
From Coq Require Import Arith ZArith List Lia Bool.
From DPWindows Require Import Sums.
Import ListNotations.
Open Scope Z_scope.

(** Row t of the lower-triangular Toeplitz matrix M: `y_t = sum_j taps_j x_{t-j}`, on a horizon of so many places. *)
Definition entry (taps : nat -> Z) (t i : nat) : Z := if (i <=? t)%nat then taps (t - i)%nat else 0.
Definition filtered (taps : nat -> Z) (places : nat) (x : nat -> Z) (t : nat) : Z :=
  sum places (fun i => entry taps t i * x i).
(** `||M x||^2`. *)
Definition squared_norm (taps : nat -> Z) (places : nat) (x : nat -> Z) : Z :=
  sum places (fun t => filtered taps places x t ^ 2).
(** Taps as they are written: a list, followed by zeros. *)
Definition tap (taps : list Z) (j : nat) : Z := nth j taps 0.

(** An answer that is 1 from a place on; 0 and 1 on an interval is the difference of two. *)
Definition step (begin i : nat) : Z := if (begin <=? i)%nat then 1 else 0.
Definition interval (begin length i : nat) : Z := step begin i - step (begin + length) i.

Section Norms.
  Variable taps : nat -> Z.

  Lemma filtered_step : forall places begin t, (t < places)%nat ->
    filtered taps places (step begin) t = sum (S t - begin) taps.
  Proof.
    intros places begin t within. unfold filtered.
    replace places with (S t + (places - S t))%nat by lia. rewrite sum_split.
    rewrite (sum_zero (places - S t)), Z.add_0_r.
    2: { intros i _. unfold entry. destruct (Nat.leb_spec (S t + i) t); lia. }
    clear places within. destruct (le_lt_dec begin (S t)) as [some|none].
    - replace (S t) with (begin + (S t - begin))%nat at 1 by lia. rewrite sum_split, sum_zero.
      2: { intros i hi. unfold step. destruct (Nat.leb_spec begin i); lia. }
      rewrite Z.add_0_l, <- (sum_ext (S t - begin) (fun i => taps (S t - begin - S i)%nat)).
      2: { intros i hi. unfold entry, step. destruct (Nat.leb_spec (begin + i) t), (Nat.leb_spec begin (begin + i)); try lia.
           rewrite Z.mul_1_r. f_equal. lia. }
      generalize (S t - begin)%nat as n. clear. induction n; [reflexivity|].
      rewrite sum_front. cbn [sum]. rewrite <- IHn, Z.add_comm. f_equal. f_equal. lia.
    - replace (S t - begin)%nat with O by lia. change (sum O taps) with 0. apply sum_zero. intros i hi.
      unfold step. destruct (Nat.leb_spec begin i); lia.
  Qed.

  Lemma filtered_difference : forall places x y t,
    filtered taps places (fun i => x i - y i) t = filtered taps places x t - filtered taps places y t.
  Proof.
    intros. unfold filtered. replace (sum _ (fun i => entry taps t i * x i) - _) with
      (sum places (fun i => entry taps t i * x i) + (-1) * sum places (fun i => entry taps t i * y i)) by lia.
    rewrite <- sum_scale, <- sum_add. apply sum_ext. intros. lia.
  Qed.

  (** What the difference of two steps costs, the second so many places after the first, which is so many before the end:
      `sum_{m < last} (C(m) - C(m - apart))^2`, C the sums of the first taps. *)
  Definition steps_cost (last apart : nat) : Z :=
    sum last (fun m => (sum (S m) taps - sum (S m - apart) taps) ^ 2).

  Theorem difference_of_steps_costs : forall places begin apart, (begin <= places)%nat ->
    squared_norm taps places (fun i => step begin i - step (begin + apart) i) = steps_cost (places - begin) apart.
  Proof.
    intros places begin apart within. unfold squared_norm, steps_cost.
    rewrite (sum_ext places _ (fun t => (sum (S t - begin) taps - sum (S t - (begin + apart)) taps) ^ 2)).
    2: { intros t ht. now rewrite filtered_difference, !filtered_step. }
    replace places with (begin + (places - begin))%nat at 1 by lia. rewrite sum_split, sum_zero.
    - apply sum_ext. intros m hm. replace (S (begin + m) - begin)%nat with (S m) by lia.
      now replace (S (begin + m) - (begin + apart))%nat with (S m - apart)%nat by lia.
    - intros t ht. replace (S t - begin)%nat with O by lia. now replace (S t - (begin + apart))%nat with O by lia.
  Qed.

  Lemma steps_cost_grows : forall last more apart, (last <= more)%nat -> steps_cost last apart <= steps_cost more apart.
  Proof. intros. apply sum_more; auto. intros. apply square_nonneg. Qed.
  Lemma steps_cost_beyond : forall last apart, (last <= apart)%nat -> steps_cost last apart = steps_cost last last.
  Proof.
    intros. apply sum_ext. intros m hm. replace (S m - apart)%nat with O by lia. now replace (S m - last)%nat with O by lia.
  Qed.
End Norms.

Lemma taps_end : forall taps m n, (length taps <= m)%nat -> (m <= n)%nat -> sum m (tap taps) = sum n (tap taps).
Proof.
  intros taps m n past more. replace n with (m + (n - m))%nat by lia. rewrite sum_split, (sum_zero (n - m)); [lia|].
  intros i _. unfold tap. apply nth_overflow. lia.
Qed.

(** `q(n)`, on an unbounded horizon: after n places and as many as there are taps nothing comes. *)
Definition interval_norm (taps : list Z) (n : nat) : Z := steps_cost (tap taps) (n + length taps) n.

(** On every horizon an interval of n places costs at most q(n). *)
Theorem interval_costs : forall taps places begin n,
  squared_norm (tap taps) places (interval begin n) <= interval_norm taps n.
Proof.
  intros taps places begin n. destruct (le_lt_dec begin places) as [within|beyond].
  - change (interval begin n) with (fun i => step begin i - step (begin + n) i).
    rewrite difference_of_steps_costs by auto. unfold interval_norm.
    destruct (le_lt_dec (places - begin) (n + length taps)); [now apply steps_cost_grows|].
    unfold steps_cost. replace (places - begin)%nat with (n + length taps + (places - begin - (n + length taps)))%nat by lia.
    rewrite sum_split, (sum_zero (places - begin - (n + length taps))); [lia|].
    intros i _. rewrite (taps_end taps (S (n + length taps + i) - n) (S (n + length taps + i))) by lia. lia.
  - unfold squared_norm. rewrite sum_zero; [apply sum_nonneg; intros; apply square_nonneg|].
    intros t ht. unfold filtered. rewrite sum_zero; auto. intros i hi.
    unfold interval, step. destruct (Nat.leb_spec begin i), (Nat.leb_spec (begin + n) i); lia.
Qed.

(** The rule on signs (`has_contracting_signs`): the first tap is positive, no other is, their sizes do not grow, and
    together they are positive. *)
Fixpoint rising (taps : list Z) : bool :=
  match taps with
  | first :: (second :: _) as rest => (first <=? second) && rising rest
  | _ => true
  end.
Definition total (taps : list Z) : Z := fold_right Z.add 0 taps.
Definition contracting (taps : list Z) : bool :=
  match taps with
  | [] => false
  | first :: later => (0 <? first) && rising later && forallb (fun one => one <=? 0) later && (0 <? total taps)
  end.

(** The same of taps as they are applied. *)
Record contracts (taps : nat -> Z) : Prop := {
  later_nonpositive : forall j, (1 <= j)%nat -> taps j <= 0;
  later_rising : forall j m, (1 <= j <= m)%nat -> taps j <= taps m;
  sums_nonnegative : forall n, 0 <= sum n taps
}.

Lemma tap_nonpositive : forall later j, forallb (fun one => one <=? 0) later = true -> nth j later 0 <= 0.
Proof.
  induction later as [|one later known]; intros [|j] yes; cbn [nth forallb] in *; try lia.
  apply andb_prop in yes as [_ yes]. auto.
Qed.
Lemma rising_sound : forall later j m, rising later = true -> forallb (fun one => one <=? 0) later = true ->
  (j <= m)%nat -> nth j later 0 <= nth m later 0.
Proof.
  intros later j m up below le. induction le as [|m le known]; [lia|].
  apply Z.le_trans with (nth m later 0); auto. clear known le j. revert m.
  induction later as [|one later known]; intros m; [destruct m; cbn; lia|].
  destruct later as [|two later]; [cbn [forallb] in below; destruct m; cbn [nth]; [lia|destruct m; lia]|].
  cbn [rising] in up. apply andb_prop in up as [first up]. cbn [forallb] in below. apply andb_prop in below as [_ below].
  destruct m as [|m]; [cbn [nth]; lia|]. apply (known up below m).
Qed.
Lemma sum_of_taps : forall taps, sum (length taps) (tap taps) = total taps.
Proof.
  induction taps as [|one taps known]; auto. cbn [length total fold_right]. rewrite sum_front.
  unfold tap at 1. cbn [nth]. f_equal. exact known.
Qed.

Theorem contracting_contracts : forall taps, contracting taps = true -> contracts (tap taps).
Proof.
  intros [|first later]; [discriminate|]. unfold contracting. rewrite !andb_true_iff. intros [[[pos up] below] whole].
  assert (nonpos : forall j, (1 <= j)%nat -> tap (first :: later) j <= 0).
  { intros [|j] hj; [lia|]. exact (tap_nonpositive later j below). }
  split; auto.
  - intros [|j] [|m] hjm; try lia. exact (rising_sound later j m up below ltac:(lia)).
  - intros [|n]; [cbn; lia|]. apply Z.ltb_lt in whole. rewrite <- sum_of_taps in whole.
    destruct (le_lt_dec (S n) (length (first :: later))) as [before|after].
    + replace (length (first :: later)) with (S n + (length (first :: later) - S n))%nat in whole by lia.
      rewrite sum_split in whole.
      assert (sum (length (first :: later) - S n) (fun i => tap (first :: later) (S n + i)) <= 0); [|lia].
      rewrite <- (sum_zero (length (first :: later) - S n) (fun _ => 0)) by auto. apply sum_le. intros. apply nonpos. lia.
    + rewrite <- (taps_end _ (length (first :: later))) by lia. lia.
Qed.

Section Signs.
  Variables (taps : nat -> Z) (places : nat).
  Hypothesis signs : contracts taps.

  (** `(M'M)_ij` on the horizon. *)
  Definition gram (i j : nat) : Z := sum places (fun t => entry taps t i * entry taps t j).

  Lemma column_sum : forall j, 0 <= sum places (fun t => entry taps t j).
  Proof.
    intros j. destruct (le_lt_dec j places) as [within|beyond].
    - replace places with (j + (places - j))%nat by lia. rewrite sum_split, sum_zero.
      2: { intros i hi. unfold entry. destruct (Nat.leb_spec j i); lia. }
      rewrite (sum_ext _ _ taps); [apply (sums_nonnegative _ signs)|].
      intros i hi. unfold entry. destruct (Nat.leb_spec j (j + i)); [f_equal; lia|lia].
    - rewrite sum_zero; [lia|]. intros i hi. unfold entry. destruct (Nat.leb_spec j i); lia.
  Qed.

  (** Off the diagonal no product is positive: `r_m <= 0`, on every horizon. *)
  Theorem signs_lemma : forall i j, i <> j -> gram i j <= 0.
  Proof.
    assert (ordered : forall i j, (i < j)%nat -> gram i j <= 0).
    { intros i j less. apply Z.le_trans with (taps (j - i)%nat * sum places (fun t => entry taps t j)).
      - rewrite <- sum_scale. apply sum_le. intros t _. unfold entry.
        destruct (Nat.leb_spec j t), (Nat.leb_spec i t); try lia.
        destruct (Nat.eq_dec t j) as [->|]; [lia|].
        assert (taps (t - j)%nat <= 0) by (apply (later_nonpositive _ signs); lia).
        assert (taps (j - i)%nat <= taps (t - i)%nat) by (apply (later_rising _ signs); lia). nia.
      - assert (taps (j - i)%nat <= 0) by (apply (later_nonpositive _ signs); lia).
        assert (pos := column_sum j). nia. }
    intros i j apart. destruct (le_lt_dec i j); [apply ordered; lia|].
    replace (gram i j) with (gram j i) by (apply sum_ext; intros; lia). auto.
  Qed.

  Lemma inner_product : forall x y,
    sum places (fun t => filtered taps places x t * filtered taps places y t) =
    sum places (fun i => sum places (fun j => gram i j * (x i * y j))).
  Proof.
    intros x y.
    rewrite (sum_ext places _ (fun t => sum places (fun i => sum places (fun j =>
      entry taps t i * entry taps t j * (x i * y j))))).
    2: { intros t _. unfold filtered at 1. rewrite Z.mul_comm, <- sum_scale. apply sum_ext. intros i _.
         rewrite Z.mul_comm. unfold filtered. rewrite <- sum_scale. apply sum_ext. intros. lia. }
    rewrite sum_swap. apply sum_ext. intros i _. rewrite sum_swap. apply sum_ext. intros j _.
    unfold gram. rewrite (Z.mul_comm (sum _ _)), <- sum_scale. apply sum_ext. intros. lia.
  Qed.

  (** Changes of one sign at different places cost no more together than apart. *)
  Theorem apart_costs_no_less : forall x y, (forall i, 0 <= x i) -> (forall i, 0 <= y i) -> (forall i, x i * y i = 0) ->
    squared_norm taps places (fun i => x i + y i) <= squared_norm taps places x + squared_norm taps places y.
  Proof.
    intros x y hx hy apart.
    assert (cross : sum places (fun t => filtered taps places x t * filtered taps places y t) <= 0).
    { rewrite inner_product, <- (sum_zero places (fun _ => 0)) by auto. apply sum_le. intros i _.
      rewrite <- (sum_zero places (fun _ => 0)) by auto. apply sum_le. intros j _. specialize (hx i). specialize (hy j).
      destruct (Nat.eq_dec i j) as [<-|different]; [rewrite apart; lia|].
      assert (below := signs_lemma i j different). assert (0 <= x i * y j) by nia. nia. }
    unfold squared_norm.
    rewrite (sum_ext places (fun t => filtered taps places (fun i => x i + y i) t ^ 2) (fun t =>
      filtered taps places x t ^ 2 + (filtered taps places y t ^ 2 + 2 * (filtered taps places x t * filtered taps places y t)))).
    - rewrite !sum_add, sum_scale. lia.
    - intros t _. assert (filtered taps places (fun i => x i + y i) t = filtered taps places x t + filtered taps places y t) as ->.
      { unfold filtered. rewrite <- sum_add. apply sum_ext. intros. lia. }
      ring.
  Qed.
End Signs.

(** Runs: each begins where the one before ends, or later; a run is its first place and its length. *)
Fixpoint apart_from (low : nat) (runs : list (nat * nat)) : Prop :=
  match runs with [] => True | (begin, n) :: more => (low <= begin)%nat /\ apart_from (begin + n) more end.
Definition pattern (runs : list (nat * nat)) (i : nat) : Z :=
  fold_right (fun run rest => interval (fst run) (snd run) i + rest) 0 runs.

Lemma interval_nonneg : forall begin n i, 0 <= interval begin n i.
Proof. intros. unfold interval, step. destruct (Nat.leb_spec begin i), (Nat.leb_spec (begin + n) i); lia. Qed.
Lemma pattern_nonneg : forall runs i, 0 <= pattern runs i.
Proof.
  induction runs as [|[b n] runs known]; intros i; cbn [pattern fold_right]; [lia|]. assert (p := interval_nonneg b n i).
  specialize (known i). unfold pattern in known. cbn [fst snd]. lia.
Qed.
Lemma pattern_before : forall runs low i, apart_from low runs -> (i < low)%nat -> pattern runs i = 0.
Proof.
  induction runs as [|[b n] runs known]; intros low i far before; cbn [pattern fold_right fst snd]; auto.
  destruct far as [hb far]. fold (pattern runs i). rewrite (known (b + n)%nat) by (auto; lia).
  unfold interval, step. destruct (Nat.leb_spec b i), (Nat.leb_spec (b + n) i); lia.
Qed.

(** Each run is charged by itself: `||M g||^2 <= sum q(n_i)`. *)
Theorem runs_cost : forall taps places runs low, contracting taps = true -> apart_from low runs ->
  squared_norm (tap taps) places (pattern runs) <= fold_right (fun run rest => interval_norm taps (snd run) + rest) 0 runs.
Proof.
  intros taps places runs. induction runs as [|[b n] runs known]; intros low signs far.
  - cbn. unfold squared_norm. rewrite sum_zero; [lia|]. intros t _. unfold filtered. rewrite sum_zero; auto. intros.
    cbn. lia.
  - destruct far as [_ far]. cbn [fold_right fst snd].
    change (pattern ((b, n) :: runs)) with (fun i => interval b n i + pattern runs i).
    apply Z.le_trans with (squared_norm (tap taps) places (interval b n) + squared_norm (tap taps) places (pattern runs)).
    + apply apart_costs_no_less.
      * now apply contracting_contracts.
      * apply interval_nonneg.
      * apply pattern_nonneg.
      * intros i. destruct (le_lt_dec (b + n) i).
        -- unfold interval, step. destruct (Nat.leb_spec b i), (Nat.leb_spec (b + n) i); lia.
        -- rewrite (pattern_before runs (b + n)); auto. lia.
    + assert (one := interval_costs taps places b n). specialize (known _ signs far). lia.
Qed.

(** Runs of either sign cost at most twice the sum. *)
Theorem signed_runs_cost : forall taps places x y,
  squared_norm taps places (fun i => x i - y i) <= 2 * (squared_norm taps places x + squared_norm taps places y).
Proof.
  intros. unfold squared_norm. rewrite <- sum_add, <- sum_scale. apply sum_le. intros t _. rewrite filtered_difference.
  assert (pos := square_nonneg (filtered taps places x t + filtered taps places y t)). nia.
Qed.
