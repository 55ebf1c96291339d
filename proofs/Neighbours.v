(** What a neighbour changes for k = 1 (`dpwindows.kernel.families.runs`): one occurrence more, and one whole item. *)
From Coq Require Import Arith List Lia Bool ZArith ZifyBool.
From DPWindows Require Import Logs.
Import ListNotations.

(** An occurrence more at step s. *)
Definition added (x : history) (s : nat) : history := fun t => if t =? s then S (x t) else x t.
(** A window changes: it is counted with the occurrence, and is not without it. *)
Definition changed (k : nat) (x : history) (s a b : nat) : bool := counted k (added x s) a b && negb (counted k x a b).

Lemma occurrences_added : forall x s a b, 1 <= s ->
  occurrences (added x s) a b = occurrences x a b + (if (a <=? s) && (s <=? b) then 1 else 0).
Proof.
  intros x s a b hs. induction b as [|b known]; cbn [occurrences].
  - destruct (Nat.leb_spec s 0); [lia|]. rewrite andb_false_r. lia.
  - rewrite known. unfold added.
    destruct (Nat.leb_spec a (S b)), (Nat.leb_spec a s), (Nat.leb_spec s (S b)), (Nat.leb_spec s b),
      (Nat.eqb_spec (S b) s); cbn; lia.
Qed.

(** Answers of different items add up: all that an occurrence more changes of a log's count is what it changes of its
    item's, from 0 to 1 and never back. *)
Theorem one_occurrence_changes_its_item : forall k (others more : log) x s a b, 1 <= s ->
  count_at_least k (others ++ added x s :: more) a b =
  count_at_least k (others ++ x :: more) a b + (if changed k x s a b then 1 else 0).
Proof.
  intros k others more x s a b hs. unfold count_at_least. rewrite !filter_app, !app_length. cbn [filter].
  unfold changed. assert (counted k x a b = true -> counted k (added x s) a b = true).
  { unfold counted. rewrite !Nat.leb_le, occurrences_added by auto. lia. }
  destruct (counted k x a b), (counted k (added x s) a b); cbn; try lia.
Qed.

(** (c) Any windows: one rectangle, of the starts after the item's last occurrence before the step, and the ends before
    its next one. *)
Theorem any_windows_change_on_a_rectangle : forall x s steps, 1 <= s ->
  exists lo hi, 1 <= lo /\ forall a b, 1 <= a -> a <= b -> b <= steps ->
    (changed 1 x s a b = true <-> lo <= a <= s /\ s <= b < hi).
Proof.
  intros x s steps hs. exists (S (recency 1 x s)).
  destruct (rise (fun i => counted 1 x s (s + i)) (S (steps - s))) as (high & _ & turns).
  { intros i hi. unfold counted. assert (mono := occurrences_monotone x s s (s + i) (s + S i)). lia. }
  exists (s + high). split; [lia|]. intros a b ha ab hb. unfold changed. rewrite andb_true_iff, negb_true_iff.
  assert (back : a <= s -> (counted 1 x a s = false <-> S (recency 1 x s) <= a)).
  { intros _. rewrite recency_counts by auto. lia. }
  assert (forth : s <= b -> (counted 1 x s b = false <-> b < s + high)).
  { intros sb. specialize (turns (b - s) ltac:(lia)). replace (s + (b - s)) with b in turns by lia. lia. }
  assert (both : a <= s -> s <= b -> (counted 1 x a b = false <-> counted 1 x a s = false /\ counted 1 x s b = false)).
  { intros as_ sb. unfold counted. rewrite !Nat.leb_gt.
    rewrite (occurrences_split x a s b) by lia.
    assert (two := occurrences_monotone x (S s) s b b ltac:(lia) ltac:(lia)).
    assert (three := occurrences_monotone x s a b b ltac:(lia) ltac:(lia)).
    rewrite (occurrences_split x a s b) in three by lia. lia. }
  assert (outside : counted 1 (added x s) a b = true /\ counted 1 x a b = false ->
    a <= s /\ s <= b).
  { unfold counted. rewrite Nat.leb_le, Nat.leb_gt, occurrences_added by auto.
    destruct (Nat.leb_spec a s), (Nat.leb_spec s b); cbn; lia. }
  split.
  - intros yes. destruct (outside yes) as [as_ sb]. destruct yes as [_ no]. apply both in no as [l r]; auto.
    apply back in l; auto. apply forth in r; auto.
  - intros [[lo_ as_] [sb up]]. split.
    + unfold counted. rewrite Nat.leb_le, occurrences_added by auto.
      destruct (Nat.leb_spec a s), (Nat.leb_spec s b); cbn; lia.
    + apply both; auto. split; [now apply back|now apply forth].
Qed.

(** Cumulative counts, the windows 1..t: one interval of ends. *)
Theorem cumulative_counts_change_on_an_interval : forall x s steps, 1 <= s ->
  exists from upto, forall t, 1 <= t <= steps -> (changed 1 x s 1 t = true <-> from <= t < upto).
Proof.
  intros x s steps hs. destruct (any_windows_change_on_a_rectangle x s steps hs) as (lo & hi & hl & rectangle).
  exists (if lo <=? 1 then s else hi), hi. intros t ht. rewrite rectangle by lia. destruct (Nat.leb_spec lo 1); lia.
Qed.

(** Rolling counts, the windows max(1, t-W+1)..t: one interval of at most W ends, within the W ends from the step on. *)
Definition rolling_start (length t : nat) : nat := S (t - length).

Theorem rolling_counts_change_on_an_interval : forall x s length steps, 1 <= s -> 1 <= length ->
  exists from upto, s <= from /\ upto <= s + length /\ forall t, 1 <= t <= steps ->
    (changed 1 x s (rolling_start length t) t = true <-> from <= t < upto).
Proof.
  intros x s length steps hs hw. destruct (any_windows_change_on_a_rectangle x s steps hs) as (lo & hi & hl & rectangle).
  exists (if lo <=? 1 then s else max s (lo - 1 + length)), (min hi (s + length)).
  split; [destruct (lo <=? 1); lia|]. split; [lia|]. unfold rolling_start. intros t ht. rewrite rectangle by lia.
  destruct (Nat.leb_spec lo 1); lia.
Qed.

(** (d) One whole item's rolling counts of at least k. *)
Section WholeItem.
  Variables (x : history) (length : nat).
  Hypothesis some_steps : 1 <= length.

  (** Whether the item is counted in the window that ends at step t; there is none at step 0. *)
  Definition rolls (k t : nat) : bool := counted k x (rolling_start length t) t.
  (** It starts being counted; and how often it does in the first steps. *)
  Definition starts (k t : nat) : bool := rolls k t && negb (rolls k (pred t)).
  Fixpoint runs (k steps : nat) : nat :=
    match steps with O => 0 | S before => runs k before + (if starts k steps then 1 else 0) end.

  Lemma rolls_less : forall k j t, j <= k -> rolls k t = true -> rolls j t = true.
  Proof. unfold rolls, counted. intros. lia. Qed.

  Lemma start_occurs : forall k t, 1 <= k -> starts k t = true -> 1 <= t /\ 1 <= x t.
  Proof.
    intros k [|t] hk; unfold starts, rolls, counted, rolling_start; cbn [pred]; intros start; [cbn in start; lia|].
    rewrite occurrences_step in start by lia.
    assert (mono := occurrences_monotone x (S (S t - length)) (S (t - length)) t t). lia.
  Qed.

  (** For k = 1 a run has at least W places, but for one that the horizon cuts: an item that starts being counted at step
      t is counted at least until step t+W-1. *)
  Theorem runs_are_long : forall t later, starts 1 t = true -> t <= later < t + length -> rolls 1 later = true.
  Proof.
    intros t later start within. apply start_occurs in start as [ht occurs]; [|lia]. unfold rolls, counted, rolling_start.
    assert (mono := occurrences_monotone x t (S (later - length)) t later).
    destruct t as [|t]; [lia|]. rewrite occurrences_step in mono by lia. lia.
  Qed.

  (** Something occurs at each start. *)
  Lemma starts_occur : forall k a b, 1 <= k -> a <= b -> runs k a <= runs k b <= runs k a + occurrences x (S a) b.
  Proof.
    intros k a b hk ab. induction ab as [|b ab known]; [rewrite occurrences_empty; lia|].
    cbn [runs]. rewrite occurrences_step by lia. assert (some := start_occurs k (S b) hk).
    destruct (starts k (S b)); lia.
  Qed.

  (** Any W+1 consecutive steps hold at most k starts: where the last of them is, fewer than k occurred since the first. *)
  Theorem few_starts : forall k a b, 1 <= k -> a <= b <= a + S length -> runs k b <= runs k a + k.
  Proof.
    intros k a b hk [ab within]. induction ab as [|b ab known]; [lia|]. cbn [runs].
    assert (before := starts_occur k a b hk ab). destruct (starts k (S b)) eqn:start; [|lia].
    unfold starts, rolls, counted in start. cbn [pred] in start. unfold rolling_start at 2 in start.
    assert (mono := occurrences_monotone x (S a) (S (b - length)) b b). lia.
  Qed.

  (** Where nothing is left in the window before, they hold one at most. *)
  Theorem one_start : forall k a b, 1 <= k -> rolls 1 a = false -> a <= b <= a + S length -> runs k b <= S (runs k a).
  Proof.
    intros k a b hk empty [ab within].
    assert (none : forall c, a <= c <= a + length -> rolls k c = false -> runs k c = runs k a).
    { intros c [ac near]. induction ac as [|c ac known]; auto. intros no.
      assert (split := occurrences_split x (S (c - length)) a c).
      assert (left := occurrences_monotone x (S (c - length)) (S (a - length)) a a).
      assert (right := occurrences_monotone x (S a) (S (S c - length)) c (S c)).
      cbn [runs]. unfold starts. rewrite no, known; unfold rolls, counted, rolling_start in *; cbn [andb]; lia. }
    induction ab as [|b ab known]; [lia|]. cbn [runs]. destruct (starts k (S b)) eqn:start; [|lia].
    rewrite none; [lia|lia|]. unfold starts in start. cbn [pred] in start. destruct (rolls k b); lia.
  Qed.

  (** So T steps hold at most k ceil(T / (W+1)) runs. *)
  Theorem few_runs : forall k chunks a n, 1 <= k -> n <= chunks * S length -> runs k (a + n) <= runs k a + k * chunks.
  Proof.
    intros k chunks. induction chunks as [|chunks known]; intros a n hk fits; [replace (a + n) with a; lia|].
    destruct (le_lt_dec n (S length)); [assert (few := few_starts k a (a + n)); nia|].
    assert (few := few_starts k a (a + S length)). specialize (known (a + S length) (n - S length) hk ltac:(lia)).
    replace (a + S length + (n - S length)) with (a + n) in known by lia. nia.
  Qed.

  (** And n places while it is counted at least once, fewer: of a run that is cut, or that ends after them. *)
  Definition most_starts (k : nat) (ends : bool) (n : nat) : nat :=
    1 + k * (pred (if ends then S n - length else n) / S length).
  Theorem few_starts_in_a_run : forall k ends a n, 1 <= k -> length <= n \/ ends = false ->
    rolls 1 a = false -> (ends = true -> rolls 1 (S (a + n)) = false) ->
    runs k (a + n) <= runs k a + most_starts k ends n.
  Proof.
    intros k ends a n hk long empty after.
    assert (cut : forall m, runs k (a + m) <= runs k a + (1 + k * (pred m / S length))).
    { intros m. assert (whole := Nat.div_mod (pred m) (S length)). assert (rest := Nat.mod_upper_bound (pred m) (S length)).
      destruct (le_lt_dec m (S length)); [assert (one := one_start k a (a + m)); lia|].
      assert (one := one_start k a (a + S length)).
      assert (few := few_runs k (pred m / S length) (a + S length) (m - S length) hk ltac:(lia)).
      replace (a + S length + (m - S length)) with (a + m) in few; lia. }
    unfold most_starts. destruct ends; [|apply cut]. specialize (cut (S n - length)). specialize (after eq_refl).
    assert (quiet := starts_occur k (a + (S n - length)) (a + n) hk ltac:(lia)).
    unfold rolls, counted, rolling_start in after.
    assert (mono := occurrences_monotone x (S (a + (S n - length))) (S (S (a + n) - length)) (a + n) (S (a + n))). lia.
  Qed.
End WholeItem.
