(** (f) Windows on lines (`dpwindows.kernel.families.lines`): what a changed item costs. *)
From Coq Require Import Arith ZArith List Lia Bool.
From DPWindows Require Import Sums Logs Filters.
Import ListNotations.
Open Scope nat_scope.

(** Windows that are measured as one series, in the order of its places: one start and ends in ascending order, or one
    end and starts in descending order. A window may end before it begins: it holds no step. *)
Record line := { first : nat; last : nat; places : nat; weight : Z; backward : bool }.

(** The line lies within the steps 1, 2, ...; a forward line may begin with windows that hold no step. *)
Definition proper (l : line) : Prop :=
  (1 <= first l)%nat /\ (if backward l then 1 <= places l else places l <= last l)%nat.

(** Forward, `first` is the start of all windows, and the last place ends at `last`; backward, `last` is the end of all
    of them, and the last place starts at `first`. *)
Definition window_start (l : line) (i : nat) : nat := if backward l then first l + (places l - 1 - i) else first l.
Definition window_end (l : line) (i : nat) : nat := if backward l then last l else last l + 1 + i - places l.
Definition on_line (k : nat) (x : history) (l : line) (i : nat) : bool := counted k x (window_start l i) (window_end l i).
Definition answer (k : nat) (x : history) (l : line) (i : nat) : Z := if on_line k x l i then 1%Z else 0%Z.

(** In how many of its last places a change within the span p..q can begin; 0 where the line does not meet it. *)
Definition changed_places (p q : nat) (l : line) : nat :=
  min (places l)
    (if backward l then if last l <? p then 0 else min (last l) q + 1 - first l
     else if q <? first l then 0 else last l + 1 - max (first l) p).

(** Neighbours: two histories of one item, equal outside the span. *)
Definition equal_outside (p q : nat) (x y : history) : Prop := forall t, t < p \/ q < t -> x t = y t.

Lemma line_is_a_step : forall k x l, 1 <= k -> proper l ->
  exists begin, begin <= places l /\ forall i, i < places l -> on_line k x l i = (begin <=? i).
Proof.
  intros k x l hk fits. apply rise. intros i hi. unfold on_line, counted. rewrite !Nat.leb_le. intros yes.
  apply (Nat.le_trans _ _ _ yes), occurrences_monotone; unfold window_start, window_end; destruct (backward l); lia.
Qed.

Lemma unchanged_before : forall k p q x y l i, 1 <= p -> proper l -> equal_outside p q x y ->
  i < places l - changed_places p q l -> on_line k x l i = on_line k y l i.
Proof.
  intros k p q x y l i hp [low fits] same before. unfold on_line, counted. f_equal.
  apply occurrences_equal. intros t ht within. apply same.
  unfold changed_places, window_start, window_end in *.
  destruct (backward l); [destruct (Nat.ltb_spec (last l) p)|destruct (Nat.ltb_spec q (first l))]; lia.
Qed.

(** What a neighbour changes on a line: nothing, or the difference of two steps that both begin in the last places. *)
Theorem change_on_a_line : forall k p q x y l, 1 <= k -> 1 <= p -> proper l -> equal_outside p q x y ->
  exists i j, i <= places l /\ j <= places l /\
    (forall n, n < places l -> answer k x l n = step i n /\ answer k y l n = step j n) /\
    (i = j \/ (places l - changed_places p q l <= i /\ places l - changed_places p q l <= j)).
Proof.
  intros k p q x y l hk hp fits same.
  destruct (line_is_a_step k x l hk fits) as (i & hi & steps_x). destruct (line_is_a_step k y l hk fits) as (j & hj & steps_y).
  exists i, j. split; auto. split; auto. split.
  - intros n hn. unfold answer, step. rewrite steps_x, steps_y by auto. split; reflexivity.
  - assert (before := fun n hn => unchanged_before k p q x y l n hp fits same hn).
    set (m := places l - changed_places p q l) in *. assert (m <= places l) by (subst m; lia).
    destruct (lt_eq_lt_dec i j) as [[less|]|less]; auto; right.
    + destruct (le_lt_dec m i); [lia|]. specialize (before i ltac:(auto)). rewrite steps_x, steps_y in before by lia.
      rewrite (proj2 (Nat.leb_le i i)), (proj2 (Nat.leb_gt j i)) in before by lia. discriminate.
    + destruct (le_lt_dec m j); [lia|]. specialize (before j ltac:(auto)). rewrite steps_x, steps_y in before by lia.
      rewrite (proj2 (Nat.leb_gt i j)), (proj2 (Nat.leb_le j j)) in before by lia. discriminate.
Qed.

Open Scope Z_scope.

(** What is measured of an item along a line: its answers through a causal filter. *)
Section Filtered.
  Variable taps : nat -> Z.
  (** `cost[n]`: the most that the difference of two steps that begin in the last n places costs; of one step, where the
      item is added or removed. *)
  Variable cost : nat -> Z.

  Definition covers_changes : Prop := forall n apart, (apart <= n)%nat -> steps_cost taps n apart <= cost n.
  Definition covers_presence : Prop := forall n, steps_cost taps n n <= cost n.

  (** What one line changes by between two histories, squared and weighed. *)
  Definition line_change (k : nat) (x y : history) (l : line) : Z :=
    weight l ^ 2 * squared_norm taps (places l) (fun i => answer k x l i - answer k y l i).
  Fixpoint all_lines (f : line -> Z) (lines : list line) : Z :=
    match lines with [] => 0 | l :: more => f l + all_lines f more end.

  Lemma squared_norm_ext : forall n u v, (forall i, (i < n)%nat -> u i = v i) ->
    squared_norm taps n u = squared_norm taps n v.
  Proof. intros n u v same. apply sum_ext. intros t _. f_equal. apply sum_ext. intros i hi. now rewrite same. Qed.
  Lemma squared_norm_sign : forall n u v, squared_norm taps n (fun i => u i - v i) = squared_norm taps n (fun i => v i - u i).
  Proof. intros. apply sum_ext. intros t _. rewrite !filtered_difference. ring. Qed.

  Lemma steps_within : forall n changed i j, (changed <= n)%nat -> (i <= n)%nat -> (j <= n)%nat ->
    (n - changed <= i)%nat -> (n - changed <= j)%nat -> covers_changes ->
    squared_norm taps n (fun m => step i m - step j m) <= cost changed.
  Proof.
    intros n changed i j hc hi hj li lj covers.
    assert (ordered : forall a b, (a <= b)%nat -> (b <= n)%nat -> (n - changed <= a)%nat ->
      squared_norm taps n (fun m => step a m - step b m) <= cost changed).
    { intros a b ab bn la. replace b with (a + (b - a))%nat by lia. rewrite difference_of_steps_costs by lia.
      eapply Z.le_trans; [apply (steps_cost_grows taps (n - a) changed)|apply covers]; lia. }
    destruct (le_lt_dec i j); [auto|]. rewrite squared_norm_sign. apply ordered; lia.
  Qed.

  Lemma cost_nonneg : covers_presence -> forall n, 0 <= cost n.
  Proof. intros covers n. specialize (covers n). assert (0 <= steps_cost taps n n); [|lia].
    apply sum_nonneg. intros. apply square_nonneg. Qed.

  Theorem line_costs : forall k p q x y l, (1 <= k)%nat -> (1 <= p)%nat -> proper l -> equal_outside p q x y ->
    covers_changes -> line_change k x y l <= weight l ^ 2 * cost (changed_places p q l).
  Proof.
    intros k p q x y l hk hp fits same covers.
    destruct (change_on_a_line k p q x y l hk hp fits same) as (i & j & hi & hj & steps & where_).
    unfold line_change. apply Z.mul_le_mono_nonneg_l; [apply square_nonneg|].
    rewrite (squared_norm_ext _ _ (fun m => step i m - step j m)).
    2: { intros m hm. destruct (steps m hm) as [-> ->]. reflexivity. }
    destruct where_ as [->|[li lj]].
    - unfold squared_norm. rewrite sum_zero; [apply cost_nonneg; intros n; apply covers; lia|].
      intros t _. rewrite filtered_difference. lia.
    - apply steps_within; auto. unfold changed_places. lia.
  Qed.

  (** **The theorem on lines.** Thresholds and lines are measured apart, with one map; a neighbour within a span costs at
      most the number of thresholds times the sum of what the lines cost that it meets. *)
  Definition measured_change (ks : list nat) (x y : history) (lines : list line) : Z :=
    fold_right (fun k rest => all_lines (line_change k x y) lines + rest) 0 ks.
  Definition lines_sum (p q : nat) (lines : list line) : Z :=
    all_lines (fun l => weight l ^ 2 * cost (changed_places p q l)) lines.

  Theorem windows_on_lines : forall ks p q x y lines bound, Forall (fun k => (1 <= k)%nat) ks -> (1 <= p)%nat ->
    Forall proper lines -> equal_outside p q x y -> covers_changes -> lines_sum p q lines <= bound ->
    measured_change ks x y lines <= Z.of_nat (length ks) * bound.
  Proof.
    intros ks p q x y lines bound positive hp fit same covers within.
    induction positive as [|k ks hk positive known]; [cbn; lia|].
    assert (one : all_lines (line_change k x y) lines <= lines_sum p q lines).
    { clear within known. induction fit as [|l lines fits fit known]; [apply Z.le_refl|]. unfold lines_sum in *.
      cbn [all_lines]. assert (first_ := line_costs k p q x y l hk hp fits same covers). lia. }
    unfold measured_change in *. cbn [fold_right length]. lia.
  Qed.

  (** An item added or removed: one of the histories is empty, and on each line the change is one step. *)
  Definition never : history := fun _ => 0%nat.

  Lemma nothing_never : forall a b, occurrences never a b = 0%nat.
  Proof. intros a b. induction b as [|b known]; cbn; auto. destruct (a <=? S b)%nat; auto. rewrite known. reflexivity. Qed.

  Theorem items_on_lines : forall ks x lines bound, Forall (fun k => (1 <= k)%nat) ks -> Forall proper lines ->
    covers_presence -> all_lines (fun l => weight l ^ 2 * cost (places l)) lines <= bound ->
    measured_change ks x never lines <= Z.of_nat (length ks) * bound.
  Proof.
    intros ks x lines bound positive fit covers within.
    induction positive as [|k ks hk positive known]; [cbn; lia|].
    assert (one : all_lines (line_change k x never) lines <= all_lines (fun l => weight l ^ 2 * cost (places l)) lines).
    { clear within known. induction fit as [|l lines fits fit known]; [apply Z.le_refl|]. cbn [all_lines].
      assert (line_change k x never l <= weight l ^ 2 * cost (places l)); [|lia].
      destruct (line_is_a_step k x l hk fits) as (begin & hb & steps). unfold line_change.
      apply Z.mul_le_mono_nonneg_l; [apply square_nonneg|].
      rewrite (squared_norm_ext _ _ (fun m => step begin m - step (begin + places l) m)).
      - rewrite difference_of_steps_costs by lia. rewrite steps_cost_beyond by lia.
        eapply Z.le_trans; [|apply covers].
        rewrite <- (steps_cost_beyond taps (places l - begin) (places l)) by lia. apply steps_cost_grows. lia.
      - intros m hm. unfold answer. rewrite steps by auto. unfold on_line, counted. rewrite nothing_never.
        rewrite (proj2 (Nat.leb_gt k 0)) by lia. unfold step. rewrite (proj2 (Nat.leb_gt (begin + places l) m)) by lia.
        reflexivity. }
    unfold measured_change in *. cbn [fold_right length]. lia.
  Qed.
End Filtered.
