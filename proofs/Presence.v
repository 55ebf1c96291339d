(** A checker of rolling counts of at least 1, one item added or removed, through any matrix
    (`dpwindows.kernel.families.chains_of_runs`). *)
From Coq Require Import Arith ZArith List Lia Bool ZifyBool.
From DPWindows Require Import Sums Logs Potentials Neighbours Filters Checks.
Import ListNotations.
Open Scope Z_scope.

(** ** `M'M` of a matrix, from the differences of neighbouring columns, most of which are 0 *)

Fixpoint suffixes (xs : list Z) : list Z :=
  match xs with [] => [] | x :: xs => let s := suffixes xs in x + hd 0 s :: s end.
Fixpoint steps_down (xs : list Z) : list Z := match xs with [] => [] | x :: xs => x - hd 0 xs :: steps_down xs end.
Fixpoint add_outer (d e : list Z) (table : list (list Z)) : list (list Z) :=
  match d, table with
  | x :: d, row :: table => (if x =? 0 then row else plus_lists (map (Z.mul x) e) row) :: add_outer d e table
  | _, _ => table
  end.
Fixpoint added_up (table : list (list Z)) : list (list Z) :=
  match table with [] => [] | row :: table => let s := added_up table in plus_lists (suffixes row) (hd [] s) :: s end.
Definition gram (places : nat) (matrix : list (list Z)) : list (list Z) :=
  added_up (fold_right (fun row => add_outer (steps_down row) (steps_down row)) (repeat [] places) matrix).
Definition at_ (table : list (list Z)) (s u : nat) : Z := nth u (nth s table []) 0.

Lemma hd_nth : forall xs : list Z, hd 0 xs = nth O xs 0.
Proof. now intros []. Qed.
Lemma suffixes_of_steps : forall xs, suffixes (steps_down xs) = xs.
Proof. induction xs as [|x xs known]; cbn; auto. rewrite known. f_equal. lia. Qed.
Lemma suffixes_plus : forall xs ys u, nth u (suffixes (plus_lists xs ys)) 0 = nth u (suffixes xs) 0 + nth u (suffixes ys) 0.
Proof.
  induction xs as [|x xs known]; intros [|y ys] u; cbn [plus_lists suffixes]; try (destruct u; cbn; lia).
  destruct u as [|u]; cbn [nth]; auto. rewrite !hd_nth, known. lia.
Qed.
Lemma suffixes_scale : forall k xs u, nth u (suffixes (map (Z.mul k) xs)) 0 = k * nth u (suffixes xs) 0.
Proof.
  induction xs as [|x xs known]; intros u; cbn [map suffixes]; [destruct u; cbn; lia|].
  destruct u as [|u]; cbn [nth]; auto. rewrite !hd_nth, known. lia.
Qed.
Lemma added_up_outer : forall d e table s u, (length d <= length table)%nat ->
  at_ (added_up (add_outer d e table)) s u = nth s (suffixes d) 0 * nth u (suffixes e) 0 + at_ (added_up table) s u.
Proof.
  assert (head : forall table u, nth u (hd [] (added_up table)) 0 = at_ (added_up table) O u) by now intros [].
  induction d as [|x d known]; intros e [|row table] s u fits; cbn [length] in fits; try lia.
  1, 2: cbn [add_outer suffixes]; destruct s; cbn [nth]; lia.
  cbn [add_outer added_up suffixes]. destruct s as [|s]; unfold at_; cbn [nth]; [|apply known; lia].
  rewrite !plus_lists_nth, !head, known, hd_nth by lia.
  destruct (Z.eqb_spec x 0) as [->|]; [|rewrite suffixes_plus, suffixes_scale]; lia.
Qed.
Lemma gram_sound : forall places matrix s u, forallb (fun row => length row =? places)%nat matrix = true ->
  at_ (gram places matrix) s u = fold_right (fun row rest => nth s row 0 * nth u row 0 + rest) 0 matrix.
Proof.
  intros places matrix s u. unfold gram.
  assert (lengths : forall d e table, length (add_outer d e table) = length table).
  { induction d; intros e [|row table]; cbn; auto. }
  assert (steps : forall xs, length (steps_down xs) = length xs) by (induction xs; cbn; auto).
  assert (all : forall m, length (fold_right (fun row => add_outer (steps_down row) (steps_down row)) (repeat [] places) m)
    = places) by (induction m; cbn [fold_right]; [apply repeat_length|now rewrite lengths]).
  induction matrix as [|row matrix known]; intros whole; cbn [fold_right].
  - clear. revert s. induction places as [|n known]; intros s; cbn [repeat added_up]; unfold at_ in *.
    + destruct s, u; reflexivity.
    + destruct s as [|s]; cbn [nth]; auto. rewrite plus_lists_nth. specialize (known O). cbn [suffixes].
      destruct (added_up _); destruct u; cbn [hd nth] in *; lia.
  - cbn [forallb] in whole. apply andb_prop in whole as [fits whole]. apply Nat.eqb_eq in fits.
    rewrite added_up_outer, known, suffixes_of_steps by (auto; rewrite steps, all; lia). reflexivity.
Qed.

Lemma gram_symmetric : forall places matrix s u, forallb (fun row => length row =? places)%nat matrix = true ->
  at_ (gram places matrix) s u = at_ (gram places matrix) u s.
Proof.
  intros. rewrite !gram_sound by auto. clear. induction matrix; cbn [fold_right]; lia.
Qed.

Lemma sum_product : forall n m f g, sum n f * sum m g = sum n (fun i => sum m (fun j => f i * g j)).
Proof.
  intros. rewrite Z.mul_comm, <- sum_scale. apply sum_ext. intros. now rewrite Z.mul_comm, <- sum_scale.
Qed.
Lemma moved_is_a_form : forall places matrix f, forallb (fun row => length row =? places)%nat matrix = true ->
  moved L2_squared matrix f = sum places (fun s => sum places (fun u => at_ (gram places matrix) s u * (f s * f u))).
Proof.
  intros places matrix f whole.
  rewrite (sum_ext places _ (fun s => sum places (fun u =>
    fold_right (fun row rest => nth s row 0 * nth u row 0 + rest) 0 matrix * (f s * f u)))).
  2: { intros. apply sum_ext. intros. now rewrite gram_sound. }
  induction matrix as [|row matrix known]; cbn [forallb] in whole.
  - cbn. rewrite sum_zero; auto. intros. now apply sum_zero.
  - apply andb_prop in whole as [fits whole]. apply Nat.eqb_eq in fits. unfold moved in *. cbn [fold_right].
    rewrite known by auto. unfold size, dot. rewrite fits, sum_product, <- sum_add. apply sum_ext. intros.
    rewrite <- sum_add. apply sum_ext. intros. lia.
Qed.

(** ** What the rolling counts of one item cost, window by window *)

Section Series.
  Variables (x : history) (length_ k : nat) (lag : nat -> Z) (price : Z) (steps : nat).
  Notation on := (rolls x length_ k).
  (** Its counts at the places 0, 1, ..., in the windows that end at the steps 1, 2, ... *)
  Definition one (i : nat) : Z := Z.b2z (rolls x length_ k (S i)).
  (** What ones cost together by their distance, less a price for each; within the first t places. *)
  Fixpoint cost (t : nat) : Z :=
    match t with
    | O => 0
    | S t => cost t + one t * (lag O - price + 2 * sum t (fun u => lag (t - u)%nat * one u))
    end.
  (** What a place adds to a run that has so many; the same with a run of some places and a gap before. *)
  Definition reach (d : nat) : Z := sum d (fun j => lag (S j)).
  Definition alone (a : nat) : Z := lag O - price + 2 * reach a.
  Definition linked (before gap a : nat) : Z := alone a + 2 * (reach (a + gap + before) - reach (a + gap)).

  Lemma cost_zeros : forall n t, (forall i, (t < i <= t + n)%nat -> on i = false) -> cost (t + n) = cost t.
  Proof.
    induction n as [|n known]; intros t no; [now rewrite Nat.add_0_r|]. rewrite Nat.add_succ_r. cbn [cost].
    rewrite known by (intros; apply no; lia). unfold one at 1. specialize (no (S (t + n)) ltac:(lia)).
    rewrite no. cbn [Z.b2z]. lia.
  Qed.
  Lemma reached : forall n low t, (low + n <= t)%nat -> (forall i, (low < i <= low + n)%nat -> on i = true) ->
    sum n (fun u => lag (t - (low + u))%nat * one (low + u)) = reach (t - low) - reach (t - low - n).
  Proof.
    induction n as [|n known]; intros low t fits ones; [rewrite Nat.sub_0_r; cbn [sum]; lia|]. cbn [sum].
    rewrite known by (lia || (intros; apply ones; lia)). specialize (ones (S (low + n)) ltac:(lia)). unfold one.
    set (d := (t - low - S n)%nat). replace (t - low - n)%nat with (S d) by lia.
    replace (t - (low + n))%nat with (S d) by lia. rewrite ones. change (reach (S d)) with (reach d + lag (S d)).
    cbn [Z.b2z]. lia.
  Qed.
  (** Any products within the lags cost no more, but for what each two ones and each one give back. *)
  Lemma form_costs : forall product offset, (forall s u, product s u = product u s) ->
    (forall s u, (u <= s < steps)%nat -> product s u + offset <= lag (s - u)%nat) -> forall t, (t <= steps)%nat ->
    sum t (fun s => sum t (fun u => product s u * (one s * one u))) + offset * (sum t one * sum t one) <=
    cost t + price * sum t one.
  Proof.
    intros product offset symmetric below. induction t as [|t known]; intros within; [cbn; lia|].
    specialize (known ltac:(lia)). cbn [sum cost]. rewrite sum_add.
    rewrite (sum_ext t (fun s => product s t * _) (fun u => product t u * (one t * one u))).
    2: { intros s _. rewrite (symmetric s t). lia. }
    rewrite (sum_ext t (fun u => product t u * _) (fun u => one t * (product t u * one u))) by (intros; lia).
    rewrite sum_scale. assert (top := below t t ltac:(lia)). rewrite Nat.sub_diag in top.
    assert (row : sum t (fun u => product t u * one u) + offset * sum t one <= sum t (fun u => lag (t - u)%nat * one u)).
    { rewrite <- sum_scale, <- sum_add. apply sum_le. intros u hu. specialize (below t u ltac:(lia)).
      unfold one. destruct (rolls _ _ _ _); cbn [Z.b2z]; lia. }
    assert (one t = 0 \/ one t = 1) as [-> | ->] by (unfold one; destruct (rolls _ _ _ _); auto); lia.
  Qed.

  Hypothesis some_times : (1 <= k)%nat.
  Lemma none_at_first : on O = false.
  Proof. unfold rolls, counted. cbn. lia. Qed.
  Lemma run_behind : forall t, exists e, (e <= t)%nat /\ on e = false /\ forall i, (e < i <= t)%nat -> on i = true.
  Proof.
    induction t as [|t (e & le & edge & ones)]; [exists O; repeat split; [lia|apply none_at_first|lia]|].
    destruct (on (S t)) eqn:here; [exists e|exists (S t)]; repeat split; auto; try lia.
    intros i hi. destruct (Nat.eq_dec i (S t)) as [->|]; auto. apply ones. lia.
  Qed.
  Lemma gap_behind : forall t, on t = false -> exists e, (e <= t)%nat /\ (forall i, (e < i <= t)%nat -> on i = false) /\
    (e = O \/ on e = true).
  Proof.
    induction t as [|t known]; intros no; [exists O; repeat split; auto; lia|].
    destruct (on t) eqn:before; [|destruct (known eq_refl) as (e & le & zeros & edge)].
    - exists t. repeat split; auto. intros i hi. now replace i with (S t) by lia.
    - exists e. repeat split; auto. intros i hi. destruct (Nat.eq_dec i (S t)) as [->|]; auto. apply zeros. lia.
  Qed.

  Hypothesis apart : forall d, (1 <= d < steps)%nat -> lag d <= 0.
  Lemma run_costs : forall before gap n e, (before <= e)%nat -> (e + gap + n <= steps)%nat ->
    (forall i, (e - before < i <= e)%nat -> on i = true) -> (forall i, (e < i <= e + gap)%nat -> on i = false) ->
    (forall i, (e + gap < i <= e + gap + n)%nat -> on i = true) ->
    cost (e + gap + n) <= cost e + sum n (linked before gap).
  Proof.
    induction n as [|n known]; intros e long within first zeros ones.
    - rewrite Nat.add_0_r, cost_zeros by auto. cbn. lia.
    - specialize (known e long ltac:(lia) first zeros ltac:(intros; apply ones; lia)). rewrite Nat.add_succ_r.
      set (t := (e + gap + n)%nat) in *. cbn [cost sum]. unfold linked at 2, alone.
      assert (here : one t = 1). { unfold one. rewrite ones by lia. reflexivity. }
      replace (sum t) with (sum (e - before + (before + (gap + n)))) by (f_equal; lia). rewrite here, !sum_split.
      assert (rest : sum (e - before) (fun u => lag (t - u)%nat * one u) <= 0).
      { rewrite <- (sum_zero (e - before) (fun _ => 0)) by auto. apply sum_le. intros u hu.
        specialize (apart (t - u)%nat ltac:(lia)). unfold one. destruct (rolls _ _ _ _); cbn [Z.b2z]; lia. }
      rewrite (reached before (e - before) t ltac:(lia)) by (intros; apply first; lia).
      rewrite (sum_zero gap) by (intros; unfold one; fold on; rewrite zeros by lia; cbn [Z.b2z]; lia).
      rewrite (sum_ext n _ (fun u => lag (t - (e + gap + u))%nat * one (e + gap + u))).
      2: { intros. f_equal; f_equal; lia. }
      rewrite (reached n (e + gap) t ltac:(lia)) by (intros; apply ones; lia).
      replace (t - (e - before))%nat with (n + gap + before)%nat by lia.
      replace (n + gap + before - before)%nat with (n + gap)%nat by lia. replace (t - (e + gap))%nat with n by lia.
        rewrite Nat.sub_diag. change (reach O) with 0. lia.
  Qed.

  Hypothesis some_steps : (1 <= length_)%nat.
  (** If no run costs more than a toll, the tolls of all starts are enough. *)
  Lemma tolls_cover : forall toll, (forall n, (n <= steps)%nat -> sum n alone <= toll) -> forall t, (t <= steps)%nat ->
    cost t <= toll * Z.of_nat (runs x length_ k t).
  Proof.
    intros toll enough t. induction t as [t known] using (well_founded_induction lt_wf). intros within.
    destruct (run_behind t) as (e & le & edge & ones). destruct (Nat.eq_dec e t) as [->|less].
    - destruct t as [|t]; [cbn; lia|]. specialize (known t ltac:(lia) ltac:(lia)).
      assert (same := cost_zeros 1 t ltac:(intros i hi; now replace i with (S t) by lia)).
      rewrite Nat.add_1_r in same. rewrite same. cbn [runs]. unfold starts. rewrite edge. cbn [andb]. lia.
    - assert (up := run_costs 0 0 (t - e) e ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia)
        ltac:(intros; apply ones; lia)).
      rewrite Nat.add_0_r in up. replace (e + (t - e))%nat with t in up by lia.
      rewrite (sum_ext _ _ alone) in up by (intros; unfold linked; rewrite !Nat.add_0_r; lia).
      specialize (known e ltac:(lia) ltac:(lia)). specialize (enough (t - e)%nat ltac:(lia)) as most.
      specialize (enough O ltac:(lia)). cbn [sum] in enough.
      assert (more := starts_occur x length_ some_steps k (S e) t some_times ltac:(lia)). cbn [runs] in more.
      assert (start : starts x length_ k (S e) = true).
      { unfold starts. cbn [pred]. rewrite edge, ones by lia. reflexivity. }
      rewrite start in more. nia.
  Qed.
End Series.

(** ** The checker *)

(** What is measured for one threshold, and hints: `M'M <= lags - offset` entry by
    entry, by distance from the diagonal, what the offset gives back for
    a price of every one, and a toll that no run costs more than. *)
Record lane := {
  threshold : nat; matrix : list (list Z); offset : Z; price : Z; spare : Z; toll : Z;
  diagonal : Z; lags : list Z
}.
Definition lag (l : lane) (d : nat) : Z := nth d (diagonal l :: lags l) 0.
Definition reaches (l : lane) : list Z := sums_from 0 (lags l).
(** What runs of 0, 1, ... places cost by themselves. *)
Definition runs_alone (l : lane) : list Z :=
  sums_from 0 (map (fun reached => lag l O - price l + 2 * reached) (reaches l)).
Definition lane_within (steps : nat) (l : lane) : bool :=
  let products := gram steps (matrix l) in
  (1 <=? threshold l)%nat && forallb (fun row => length row =? steps)%nat (matrix l) &&
  (S (length (lags l)) =? steps)%nat && forallb (fun one => one <=? 0) (lags l) &&
  forallb (fun s => let row := nth s products [] in (length row =? steps)%nat &&
    every (fun product one => product + offset l <=? one) (skipn s row) (diagonal l :: lags l)) (seq 0 steps) &&
  (0 <=? offset l) && (0 <=? spare l) && (price l * price l <=? 4 * offset l * spare l).

(** The tolls of other thresholds in a run of n places. *)
Definition tolls (length_ : nat) (lanes : list lane) (ends : bool) (n : nat) : Z :=
  fold_right (fun l rest => toll l * Z.of_nat (most_starts length_ (threshold l) ends n) + rest) 0 lanes.
(** `charges` are the most that a gap and a run after it add, by the length of both; `table` the most that runs cost in the
    first T, ..., 1, 0 places, the last of them whole, but for all T places. *)
Definition presence_within (steps length_ : nat) (bound : Z) (first : lane) (lanes : list lane) (charges table : list Z)
    : bool :=
  let ended := map (tolls length_ lanes true) (seq 0 (S steps)) in
  let cut := map (tolls length_ lanes false) (seq 0 (S steps)) in
  let run := runs_alone first in
  let links := zip (fun later here => 2 * (later - here)) (skipn length_ (reaches first)) (reaches first) in
  let most := hd 0 table in
  (1 <=? length_)%nat && forallb (lane_within steps) (first :: lanes) && (threshold first =? 1)%nat &&
  forallb (fun l => forallb (fun cost => cost <=? toll l) (runs_alone l)) lanes &&
  (length charges =? steps)%nat && (length table =? S steps)%nat && cuts_accepted charges table && (0 <=? hd 0 charges) &&
  every Z.leb (skipn length_ (zip Z.add run ended)) (skipn length_ (rev table)) &&
  forallb (fun cost => cost <=? most) (zip Z.add run cut) &&
  forallb (fun gap => let linked := zip Z.add run (sums_from 0 (skipn gap links)) in
    every Z.leb (skipn length_ (zip Z.add linked ended)) (skipn (pred gap + length_) charges) &&
    every (fun cost left => cost + left <=? most) (zip Z.add linked cut) (skipn gap table)) (seq 1 (steps - length_)) &&
  (fold_right (fun l => Z.add (spare l)) most (first :: lanes) <=? bound).

(** What a whole item changes, for every history of it. *)
Lemma whole_item_changes : forall k length_ others more x i,
  change_of k (rolling_start length_) (others ++ more) (others ++ x :: more) i = one x length_ k i.
Proof.
  intros. unfold change_of, count_at_least, one, rolls. rewrite !filter_app, !app_length. cbn [filter].
  destruct (counted k x _ _); cbn [length Z.b2z]; lia.
Qed.

Lemma lags_nonpositive : forall l, forallb (fun one => one <=? 0) (lags l) = true ->
  forall d, (1 <= d)%nat -> lag l d <= 0.
Proof.
  intros l yes [|d] hd; [lia|]. unfold lag. cbn [nth]. rewrite forallb_forall in yes.
  destruct (le_lt_dec (length (lags l)) d); [rewrite nth_overflow; lia|]. apply Z.leb_le, yes, nth_In. lia.
Qed.

Section Checked.
  Variables (steps length_ : nat) (x : history).
  Lemma lane_costs : forall l, lane_within steps l = true ->
    moved L2_squared (matrix l) (one x length_ (threshold l)) <=
    cost x length_ (threshold l) (lag l) (price l) steps + spare l.
  Proof.
    intros l yes. unfold lane_within in yes. rewrite !andb_true_iff in yes.
    destruct yes as [[[[[[[times whole] long] signs] products] positive] left] priced].
    rewrite (moved_is_a_form steps) by exact whole.
    rewrite forallb_forall in products. set (n := sum steps (one x length_ (threshold l))).
    assert (form := form_costs x length_ (threshold l) (lag l) (price l) steps (at_ (gram steps (matrix l))) (offset l)
      (fun s u => gram_symmetric steps (matrix l) s u whole)). fold n in form.
    assert (back : price l * n - offset l * (n * n) <= spare l).
    { destruct (Z.eq_dec (offset l) 0) as [none|]; [nia|]. apply Z.mul_le_mono_pos_l with (p := 4 * offset l); [lia|].
      assert (square_ := square_nonneg (2 * offset l * n - price l)). rewrite Z.pow_2_r in square_. lia. }
    apply Z.le_trans with (2 := proj1 (Z.add_le_mono_l _ _ _) back).
    enough (goal : forall s u, (u <= s < steps)%nat -> at_ (gram steps (matrix l)) s u + offset l <= lag l (s - u)).
    { specialize (form goal steps (le_n _)). lia. }
    intros s u hs. rewrite gram_symmetric by exact whole. specialize (products u ltac:(apply in_seq; lia)).
    apply andb_prop in products as [row below]. apply Z.leb_le. unfold lag, at_.
    replace (nth s (nth u _ []) 0) with (nth (s - u) (skipn u (nth u (gram steps (matrix l)) [])) 0)
      by (rewrite nth_skipn; f_equal; lia).
    apply (every_nth _ _ _ below); [rewrite skipn_length; lia|cbn [length]; lia].
  Qed.

  (** What the runs of a threshold cost by themselves, from their list. *)
  Lemma reaches_nth : forall l d, (S (length (lags l)) = steps)%nat -> (d < steps)%nat ->
    nth d (reaches l) 0 = reach (lag l) d.
  Proof.
    intros l d long hd. unfold reaches. rewrite sums_from_nth by lia. now apply sum_ext.
  Qed.
  Lemma runs_alone_nth : forall l n, (S (length (lags l)) = steps)%nat -> (n <= steps)%nat ->
    nth n (runs_alone l) 0 = sum n (alone (lag l) (price l)).
  Proof.
    intros l n long hn. unfold runs_alone.
    assert (same : length (reaches l) = steps) by (unfold reaches; rewrite sums_from_length; lia).
    rewrite sums_from_nth by (rewrite map_length; lia). apply sum_ext. intros a ha. unfold alone.
    rewrite <- reaches_nth by lia. set (gain := fun reached => _ + 2 * reached).
    rewrite (nth_indep _ 0 (gain 0)) by (rewrite map_length; lia). apply map_nth.
  Qed.
  Lemma runs_alone_length : forall l, (S (length (lags l)) = steps)%nat -> length (runs_alone l) = S steps.
  Proof. intros. unfold runs_alone, reaches. rewrite sums_from_length, map_length, sums_from_length. lia. Qed.

  Hypothesis some_steps : (1 <= length_)%nat.
  (** Tolls for the starts within the first t places. *)
  Definition tolled (lanes : list lane) (t : nat) : Z :=
    fold_right (fun l rest => toll l * Z.of_nat (runs x length_ (threshold l) t) + rest) 0 lanes.
  Lemma tolled_run : forall lanes ends a n,
    Forall (fun l => (1 <= threshold l)%nat /\ 0 <= toll l) lanes -> (length_ <= n)%nat \/ ends = false ->
    rolls x length_ 1 a = false -> (ends = true -> rolls x length_ 1 (S (a + n)) = false) ->
    tolled lanes (a + n) <= tolled lanes a + tolls length_ lanes ends n.
  Proof.
    intros lanes ends a n fit long before after. induction fit as [|l lanes [times positive] fit known]; [cbn; lia|].
    unfold tolled, tolls in *. cbn [fold_right].
    assert (few := few_starts_in_a_run x length_ some_steps (threshold l) ends a n times long before after). nia.
  Qed.
  Lemma tolled_gap : forall lanes n a, Forall (fun l => (1 <= threshold l)%nat /\ 0 <= toll l) lanes ->
    (forall i, (a < i <= a + n)%nat -> rolls x length_ 1 i = false) -> tolled lanes (a + n) = tolled lanes a.
  Proof.
    intros lanes n a fit zeros. induction fit as [|l lanes [times _] fit known]; [reflexivity|]. unfold tolled in *.
    cbn [fold_right]. rewrite known. do 3 f_equal. clear - zeros times some_steps. induction n as [|n known]; [now rewrite Nat.add_0_r|].
    rewrite Nat.add_succ_r. cbn [runs]. rewrite known by (intros; apply zeros; lia). unfold starts.
    destruct (rolls x length_ (threshold l) (S (a + n))) eqn:on; cbn [andb]; [|lia].
    apply (rolls_less x length_ some_steps _ 1) in on; [|lia]. rewrite zeros in on; [discriminate|lia].
  Qed.

  Notation on := (rolls x length_ 1).
  Lemma ended_run : forall e t, on e = false -> (forall i, (e < i <= t)%nat -> on i = true) -> (e < t)%nat ->
    on (S t) = false -> (e + length_ <= t)%nat.
  Proof.
    intros e t edge ones less after. destruct (le_lt_dec (e + length_) t); auto.
    rewrite (runs_are_long x length_ some_steps (S e) (S t)) in after; [discriminate| |lia].
    unfold starts. cbn [pred]. rewrite edge, ones by lia. reflexivity.
  Qed.

  Variables (first_lags : nat -> Z) (first_price : Z) (lanes : list lane) (charges table : list Z).
  Let so_far (t : nat) : Z := cost x length_ 1 first_lags first_price t + tolled lanes t.
  Let most (t : nat) : Z := nth (steps - t) table 0.
  Let in_run (n : nat) : Z := sum n (alone first_lags first_price).
  Let in_later (gap n : nat) : Z := sum n (linked first_lags first_price length_ gap).
  Hypothesis apart : forall d, (1 <= d < steps)%nat -> first_lags d <= 0.
  Hypothesis proper : Forall (fun l => (1 <= threshold l)%nat /\ 0 <= toll l) lanes.
  Hypothesis starts_at_nothing : 0 <= most O.
  Hypothesis rises : 0 <= charge charges 1.
  Hypothesis cuts : forall part t, (1 <= part <= t)%nat -> (t <= steps)%nat -> charge charges part + most (t - part) <= most t.
  Hypothesis first_run : forall n, (length_ <= n <= steps)%nat -> in_run n + tolls length_ lanes true n <= most n.
  Hypothesis first_cut : forall n, (n <= steps)%nat -> in_run n + tolls length_ lanes false n <= most steps.
  Hypothesis later_run : forall gap n, (1 <= gap)%nat -> (length_ <= n)%nat -> (length_ + gap + n <= steps)%nat ->
    in_later gap n + tolls length_ lanes true n <= charge charges (gap + n).
  Hypothesis later_cut : forall gap n, (1 <= gap)%nat -> (length_ + gap + n <= steps)%nat ->
    in_later gap n + tolls length_ lanes false n + most (steps - (gap + n)) <= most steps.

  Theorem runs_bounded : forall t, (t <= steps)%nat -> t = steps \/ on (S t) = false -> so_far t <= most t.
  Proof.
    assert (nothing : so_far O = 0).
    { unfold so_far, tolled. cbn [cost]. clear. induction lanes; cbn [fold_right runs] in *; lia. }
    assert (quiet : forall n t, (forall i, (t < i <= t + n)%nat -> on i = false) -> so_far (t + n) = so_far t).
    { intros n t zeros. unfold so_far. rewrite cost_zeros, tolled_gap by auto. reflexivity. }
    induction t as [t known] using (well_founded_induction lt_wf). intros within closed.
    destruct (run_behind x length_ 1 (le_n _) t) as (e & le & edge & ones). destruct (Nat.eq_dec e t) as [->|less].
    - destruct t as [|t]; [lia|]. rewrite <- Nat.add_1_r, quiet by (intros i hi; now replace i with (S t) by lia).
      specialize (known t ltac:(lia) ltac:(lia) (or_intror edge)). specialize (cuts 1%nat (S t) ltac:(lia) within).
      rewrite Nat.add_1_r. replace (S t - 1)%nat with t in cuts by lia. lia.
    - destruct (gap_behind x length_ 1 (le_n _) e edge) as (d & hd & zeros & start).
      set (n := (t - e)%nat). set (gap := (e - d)%nat). set (ends := negb (t =? steps)%nat).
      assert (same : so_far e = so_far d).
      { replace e with (d + gap)%nat by lia. apply quiet. intros. apply zeros. lia. }
      assert (after : ends = true -> on (S t) = false) by (destruct closed; auto; unfold ends; lia).
      assert (last_ : ends = false -> t = steps) by (unfold ends; lia).
      assert (t = (e + n)%nat /\ e = (d + gap)%nat) as [t_is e_is] by lia. clearbody n gap ends.
      assert (long : (length_ <= n)%nat \/ ends = false).
      { destruct ends; [|auto]. assert (long := ended_run e t edge ones ltac:(lia) (after eq_refl)). lia. }
      assert (more := tolled_run lanes ends e n proper long edge). replace (e + n)%nat with t in more by lia.
      specialize (more after). unfold so_far in same |- *.
      destruct (Bool.bool_dec (on d) true) as [run|none].
      + assert (begins : (d < e)%nat) by (destruct (Nat.eq_dec d e) as [->|]; [congruence|lia]).
        destruct (run_behind x length_ 1 (le_n _) d) as (b & hb & before & all).
        assert (whole := ended_run b d before all). rewrite (zeros (S d)) in whole by lia.
        assert (b < d)%nat by (destruct (Nat.eq_dec b d) as [->|]; [congruence|lia]). specialize (whole ltac:(lia) eq_refl).
        assert (up := run_costs x length_ 1 first_lags first_price steps (le_n _) apart length_ gap n d ltac:(lia) ltac:(lia)
          ltac:(intros; apply all; lia) ltac:(intros; apply zeros; lia) ltac:(intros; apply ones; lia)).
        replace (d + gap + n)%nat with t in up by lia. fold (in_later gap n) in up.
        specialize (known d ltac:(lia) ltac:(lia) ltac:(right; apply zeros; lia)). unfold so_far in known.
        assert (same_tolls : tolled lanes e = tolled lanes d).
        { replace e with (d + gap)%nat by lia. apply tolled_gap; auto. intros. apply zeros. lia. }
        destruct ends eqn:whether.
        * specialize (later_run gap n ltac:(lia) ltac:(lia) ltac:(lia)).
          specialize (cuts (gap + n) t ltac:(lia) within). replace (t - (gap + n))%nat with d in cuts by lia. lia.
        * specialize (later_cut gap n ltac:(lia) ltac:(lia)). assert (t = steps) as -> by auto.
          replace (steps - (gap + n))%nat with d in later_cut by lia. lia.
      + assert (d = O) as -> by (destruct start; congruence). unfold so_far in nothing. rewrite nothing in same.
        assert (up := run_costs x length_ 1 first_lags first_price steps (le_n _) apart 0 0 n e ltac:(lia) ltac:(lia)
          ltac:(lia) ltac:(lia) ltac:(intros; apply ones; lia)).
        replace (e + 0 + n)%nat with t in up by lia.
        assert (simple : sum n (linked first_lags first_price 0 0) = in_run n).
        { apply sum_ext. intros. unfold linked. rewrite !Nat.add_0_r. lia. }
        assert (grows : forall m, (n <= m <= t)%nat -> most n <= most m).
        { intros m [nm mt]. induction nm as [|m nm up_]; [lia|]. specialize (cuts 1%nat (S m) ltac:(lia) ltac:(lia)).
          replace (S m - 1)%nat with m in cuts by lia. specialize (up_ ltac:(lia)). lia. }
        destruct ends eqn:whether.
        * specialize (first_run n ltac:(lia)). specialize (grows t ltac:(lia)). lia.
        * specialize (first_cut n ltac:(lia)). assert (t = steps) as -> by auto. lia.
  Qed.
End Checked.

(** *Rolling counts, one item added*, of at least 1, and of other thresholds with it: each through a matrix of its own, on
    every log. (Removed: the same with the logs exchanged.) *)
Theorem rolling_presence_checked : forall steps length_ bound first lanes charges table,
  presence_within steps length_ bound first lanes charges table = true -> forall (others more : log) x,
  fold_right (fun l rest => moved L2_squared (matrix l)
    (change_of (threshold l) (rolling_start length_) (others ++ more) (others ++ x :: more)) + rest) 0 (first :: lanes)
  <= bound.
Proof.
  intros steps w bound first lanes charges table yes others more x. unfold presence_within in yes.
  cbn [forallb] in yes. rewrite !andb_true_iff, !forallb_forall in yes.
  destruct yes as [[[[[[[[[[[some [base each]] one_] tolls_] lc] lt] accepted] up] run_] cut_] later_] total_].
  assert (rows : forall l, lane_within steps l = true -> (1 <= threshold l)%nat /\ (S (length (lags l)) = steps)%nat /\
    (forall d, (1 <= d < steps)%nat -> lag l d <= 0) /\ moved L2_squared (matrix l)
      (change_of (threshold l) (rolling_start w) (others ++ more) (others ++ x :: more)) <=
      cost x w (threshold l) (lag l) (price l) steps + spare l).
  { intros l within. assert (whole := within). unfold lane_within in whole. rewrite !andb_true_iff in whole.
    destruct whole as [[[[[[[times whole] long] signs] _] _] _] _]. repeat split; try lia.
    - intros. apply lags_nonpositive; auto. lia.
    - erewrite moved_ext; [now apply lane_costs|exact whole|]. intros. apply whole_item_changes. }
  destruct (rows first base) as (_ & long & apart & first_costs). apply Nat.eqb_eq in one_. rewrite one_ in first_costs.
  apply Nat.leb_le in some. set (most := hd 0 table) in *.
  assert (top : forall n, (n <= steps)%nat -> nth n (rev table) 0 = nth (steps - n) table 0).
  { intros. rewrite rev_nth by lia. f_equal. lia. }
  assert (most_is : most = nth (steps - steps) table 0) by (rewrite Nat.sub_diag; now destruct table).
  assert (extra : forall ends n, (n <= steps)%nat -> nth n (map (tolls w lanes ends) (seq 0 (S steps))) 0 = tolls w lanes ends n).
  { intros ends n hn. rewrite (nth_indep _ 0 (tolls w lanes ends O)) by (rewrite map_length, seq_length; lia).
    rewrite map_nth, seq_nth by lia. reflexivity. }
  assert (ll := runs_alone_length steps first long). assert (alone_ := runs_alone_nth steps first).
  set (links := zip _ (skipn w (reaches first)) (reaches first)) in *.
  assert (reach_length : length (reaches first) = steps) by (unfold reaches; rewrite sums_from_length; lia).
  assert (link_length : length links = (steps - w)%nat) by (unfold links; rewrite zip_length, skipn_length; lia).
  assert (sizes : forall ends, length (map (tolls w lanes ends) (seq 0 (S steps))) = S steps).
  { intros. now rewrite map_length, seq_length. }
  set (with_gap := fun gap => zip Z.add (runs_alone first) (sums_from 0 (skipn gap links))) in *.
  assert (gap_length : forall gap, (w + gap <= steps)%nat -> length (with_gap gap) = S (steps - w - gap)).
  { intros. unfold with_gap. rewrite zip_length, sums_from_length, skipn_length. lia. }
  assert (gap_nth : forall gap n, (w + gap + n <= steps)%nat ->
    nth n (with_gap gap) 0 = sum n (linked (lag first) (price first) w gap)).
  { intros gap n fits. unfold with_gap.
    rewrite zip_nth, alone_, sums_from_nth by (rewrite ?sums_from_length, ?skipn_length; lia).
    unfold linked. rewrite sum_add. cbn [Z.add]. f_equal. apply sum_ext. intros a ha. rewrite nth_skipn. unfold links.
    rewrite zip_nth, nth_skipn, !(reaches_nth steps) by (rewrite ?skipn_length; lia).
    replace (w + (gap + a))%nat with (a + gap + w)%nat by lia. now replace (gap + a)%nat with (a + gap)%nat by lia. }
  assert (fit : Forall (fun l => (1 <= threshold l)%nat /\ 0 <= toll l) lanes).
  { apply Forall_forall. intros l listed. destruct (rows l (each l listed)) as (times & long_ & _). split; auto.
    specialize (tolls_ l listed). rewrite forallb_forall in tolls_.
    assert (head : forall row, In 0 (sums_from 0 row)) by (intros []; now left). apply Z.leb_le, tolls_, head. }
  assert (chain : cost x w 1 (lag first) (price first) steps + tolled w x lanes steps <= nth (steps - steps) table 0).
  { apply (runs_bounded steps w x some (lag first) (price first) lanes charges table); auto.
    - destruct (cut_accepted charges table steps accepted ltac:(lia)) as [last_ _]. rewrite Nat.sub_0_r. apply last_. lia.
    - unfold charge. cbn [pred]. destruct charges; cbn [hd nth] in *; lia.
    - intros part t hp ht. destruct (cut_accepted charges table (steps - t) accepted ltac:(lia)) as [_ cut].
      specialize (cut part ltac:(lia) ltac:(lia)). now replace (steps - (t - part))%nat with (steps - t + part)%nat by lia.
    - intros n hn. rewrite <- top, <- extra, <- alone_ by lia.
      assert (exists i, n = (w + i)%nat) as [i ->] by (exists (n - w)%nat; lia). assert (all := every_nth _ _ _ run_ i).
      rewrite !nth_skipn, !skipn_length, rev_length, zip_length, sizes, zip_nth in all by (rewrite ?sizes; lia).
      specialize (all ltac:(lia) ltac:(lia)). lia.
    - intros n hn. rewrite <- most_is, <- extra, <- alone_, <- zip_nth by (rewrite ?sizes; lia).
      apply Z.leb_le, cut_, nth_In. rewrite zip_length, sizes. lia.
    - intros gap n hg hn fits. rewrite <- extra, <- gap_nth by lia. specialize (later_ gap ltac:(apply in_seq; lia)).
      fold (with_gap gap) in later_. apply andb_prop in later_ as [all _]. clearbody links with_gap.
      assert (exists i, n = (w + i)%nat) as [i ->] by (exists (n - w)%nat; lia). assert (at_n := every_nth _ _ _ all i).
      rewrite !nth_skipn, !skipn_length, zip_length, gap_length, sizes in at_n by lia.
      rewrite zip_nth in at_n by (rewrite ?gap_length, ?sizes; lia). specialize (at_n ltac:(lia) ltac:(lia)).
      unfold charge. replace (pred (gap + (w + i))) with (pred gap + w + i)%nat by lia. lia.
    - intros gap n hg fits. rewrite <- extra, <- gap_nth by lia. specialize (later_ gap ltac:(apply in_seq; lia)).
      fold (with_gap gap) in later_. apply andb_prop in later_ as [_ all]. clearbody links with_gap. assert (at_n := every_nth _ _ _ all n).
      rewrite !nth_skipn, !skipn_length, zip_length, gap_length, sizes in at_n by lia.
      rewrite zip_nth in at_n by (rewrite ?gap_length, ?sizes; lia).
      replace (steps - (steps - (gap + n)))%nat with (gap + n)%nat by lia.
      rewrite <- most_is. specialize (at_n ltac:(lia) ltac:(lia)). lia. }
  rewrite <- most_is in chain. apply Z.leb_le in total_. eapply Z.le_trans; [|exact total_]. cbn [fold_right]. rewrite one_.
  assert (others_ : fold_right (fun l rest => moved L2_squared (matrix l)
      (change_of (threshold l) (rolling_start w) (others ++ more) (others ++ x :: more)) + rest) 0 lanes <=
    tolled w x lanes steps + fold_right (fun l => Z.add (spare l)) 0 lanes); [|clear - chain first_costs others_].
  { clear - tolls_ each rows some. unfold tolled. induction lanes as [|l lanes known]; [cbn; lia|]. cbn [fold_right].
    specialize (known (fun l_ there => each l_ (or_intror there)) (fun l_ there => tolls_ l_ (or_intror there))).
    destruct (rows l (each l (or_introl eq_refl))) as (times & long & apart & costs_).
    specialize (tolls_ l (or_introl eq_refl)). rewrite forallb_forall in tolls_.
    assert (paid := tolls_cover x w (threshold l) (lag l) (price l) steps times apart some (toll l)).
    specialize (paid ltac:(intros n hn; rewrite <- (runs_alone_nth steps) by auto; apply Z.leb_le, tolls_, nth_In;
      rewrite (runs_alone_length steps) by auto; lia) steps (le_n _)). lia. }
  assert (sums : forall m, fold_right (fun l => Z.add (spare l)) m lanes = fold_right (fun l => Z.add (spare l)) 0 lanes + m).
  { intros m. clear. induction lanes; cbn [fold_right]; lia. }
  rewrite sums. lia.
Qed.
