(** What a neighbour changes for k = 1 (`dpwindows.kernel.families.runs`): one occurrence more, and one whole item. *)
From Coq Require Import Arith List Lia Bool ZArith.
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

(** A family of yes and no that never comes back has one place where it turns. *)
Lemma turn : forall (p : nat -> bool) low high, (forall t, low <= t < high -> p (S t) = true -> p t = true) ->
  exists at_, forall t, low <= t <= high -> (p t = true <-> t < at_).
Proof.
  intros p low high. destruct (le_lt_dec low high) as [some|none]; [|exists 0; intros; lia].
  induction some as [|high some known]; intros falls.
  - exists (if p low then S low else low). intros t ht. replace t with low by lia. destruct (p low); split; auto; lia.
  - destruct known as [at_ turns]; [intros; apply falls; auto; lia|].
    exists (if p (S high) then S (S high) else min at_ (S high)). intros t ht.
    destruct (p (S high)) eqn:last_.
    + assert (t = S high \/ t <= high) as [->|before] by lia; [rewrite last_; split; auto; lia|].
      assert (forall n, n <= high - t -> p (high - n) = true) as all.
      { induction n; intros.
        - replace (high - 0) with high by lia. apply falls; auto; lia.
        - apply falls; try lia. replace (S (high - S n)) with (high - n) by lia. apply IHn. lia. }
      split; [lia|]. intros _. replace t with (high - (high - t)) by lia. apply all. lia.
    + assert (t = S high \/ t <= high) as [->|before] by lia; [rewrite last_; split; [discriminate|lia]|].
      rewrite turns by lia. lia.
Qed.

(** (c) Any windows: one rectangle, of the starts after the item's last occurrence before the step, and the ends before
    its next one. *)
Theorem any_windows_change_on_a_rectangle : forall x s steps, 1 <= s ->
  exists lo hi, 1 <= lo /\ forall a b, 1 <= a -> a <= b -> b <= steps ->
    (changed 1 x s a b = true <-> lo <= a <= s /\ s <= b < hi).
Proof.
  intros x s steps hs. exists (S (recency 1 x s)).
  destruct (turn (fun b => negb (counted 1 x s b)) s steps) as [hi turns].
  { intros t ht. unfold counted. rewrite !negb_true_iff, !Nat.leb_gt.
    assert (low := occurrences_monotone x s s t (S t)). lia. }
  exists hi. split; [lia|]. intros a b ha ab hb. unfold changed.
  rewrite andb_true_iff, negb_true_iff.
  assert (back : a <= s -> (counted 1 x a s = false <-> S (recency 1 x s) <= a)).
  { intros _. rewrite recency_counts by auto. rewrite Nat.leb_gt. lia. }
  assert (forth : s <= b -> (counted 1 x s b = false <-> b < hi)).
  { intros sb. rewrite <- turns by lia. now rewrite negb_true_iff. }
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

(** (d) One whole item's rolling counts. *)
Section WholeItem.
  Variables (x : history) (length : nat).
  Hypothesis some_steps : 1 <= length.

  (** Whether the item is counted in the window that ends at step t; there is none at step 0. *)
  Definition rolls (t : nat) : bool := counted 1 x (rolling_start length t) t.
  (** It starts being counted. *)
  Definition starts (t : nat) : bool := rolls t && negb (rolls (pred t)).

  Lemma start_occurs : forall t, starts t = true -> 1 <= t /\ 1 <= x t.
  Proof.
    intros [|t]; unfold starts, rolls, counted, rolling_start; cbn [pred].
    - cbn. discriminate.
    - rewrite andb_true_iff, negb_true_iff, Nat.leb_le, Nat.leb_gt. intros [now_ before]. split; [lia|].
      rewrite occurrences_step in now_ by lia.
      assert (mono := occurrences_monotone x (S (S t - length)) (S (t - length)) t t). lia.
  Qed.

  (** A run has at least W places, but for one that the horizon cuts: an item that starts being counted at step t is
      counted at least until step t+W-1. *)
  Theorem runs_are_long : forall t later, starts t = true -> t <= later < t + length -> rolls later = true.
  Proof.
    intros t later start within. apply start_occurs in start as [ht occurs].
    unfold rolls, counted, rolling_start. apply Nat.leb_le.
    assert (mono := occurrences_monotone x t (S (later - length)) t later).
    destruct t as [|t]; [lia|]. rewrite occurrences_step in mono by lia. lia.
  Qed.

  (** Two starts are more than W steps apart. *)
  Theorem starts_are_apart : forall t later, starts t = true -> starts later = true -> t < later -> t + length < later.
  Proof.
    intros t later start again less. destruct (le_lt_dec later (t + length)) as [near|]; auto.
    assert (still := runs_are_long t (pred later) start). unfold starts in again.
    rewrite still in again by lia. now rewrite andb_false_r in again.
  Qed.

  Fixpoint runs (steps : nat) : nat :=
    match steps with O => 0 | S before => runs before + (if starts steps then 1 else 0) end.

  Lemma last_start : forall steps, runs steps = 0 \/
    exists last, 1 <= last <= steps /\ starts last = true /\ runs steps * S length <= last + length.
  Proof.
    induction steps as [|steps known]; cbn [runs]; [auto|].
    destruct (starts (S steps)) eqn:start.
    - right. exists (S steps). split; [lia|]. split; auto. destruct known as [none|(last & within & begun & few)].
      + rewrite none. lia.
      + assert (apart := starts_are_apart last (S steps) begun start). lia.
    - rewrite Nat.add_0_r. destruct known as [none|(last & within & begun & few)]; auto.
      right. exists last. repeat split; auto; lia.
  Qed.

  (** So T steps hold at most ceil(T / (W+1)) runs. *)
  Theorem few_runs : forall steps, runs steps <= (steps + length) / S length.
  Proof.
    intros steps. apply Nat.div_le_lower_bound; [lia|].
    destruct (last_start steps) as [none|(last & within & _ & few)]; [rewrite none|]; lia.
  Qed.
End WholeItem.
