(** A checker of rolling counts of at least 1, one item added or removed, through any matrix
    (`dpwindows.kernel.families.offset_patterns`). *)
From Coq Require Import Arith ZArith List Lia Bool.
From DPWindows Require Import Sums Logs Neighbours Filters Checks.
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

(** ** Runs of at least W places, place by place *)

Section Runs.
  Variables (lag : nat -> Z) (price : Z) (steps length_ : nat) (f : nat -> Z).
  (** What ones cost together by their distance, less a price for each; within the first t places. *)
  Definition cost (t : nat) : Z :=
    sum t (fun s => sum t (fun u => lag (if (s <=? u)%nat then u - s else s - u)%nat * (f s * f u))) - price * sum t f.
  (** What a place adds to a run that has so many, a run of W places and a gap before it; or nothing before it. *)
  Definition alone (a : nat) : Z := lag O - price + 2 * sum a (fun j => lag (S j)).
  Definition linked (gap a : nat) : Z := alone a + 2 * sum length_ (fun j => lag (S (a + gap + j))).

  Hypothesis apart : forall d, (1 <= d < steps)%nat -> lag d <= 0.
  Hypothesis binary : forall i, f i = 0 \/ f i = 1.

  Lemma cost_nothing : cost O = 0.
  Proof. unfold cost. cbn [sum]. lia. Qed.
  Lemma cost_zero : forall t, f t = 0 -> cost (S t) = cost t.
  Proof.
    intros t no. unfold cost. cbn [sum]. rewrite no, (sum_zero t (fun u => _ * (0 * f u))) by (intros; lia).
    rewrite (sum_ext t _ (fun s => sum t (fun u => lag (if (s <=? u)%nat then u - s else s - u)%nat * (f s * f u)))); [lia|].
    intros s _. lia.
  Qed.
  Lemma cost_one : forall t, f t = 1 -> cost (S t) = cost t + (lag O - price + 2 * sum t (fun j => lag (S j) * f (t - S j)%nat)).
  Proof.
    intros t yes. unfold cost. cbn [sum]. rewrite yes, sum_add.
    assert (back : forall g, sum t g = sum t (fun j => g (t - S j)%nat)).
    { clear. intros g. induction t as [|t known]; auto. rewrite (sum_front t (fun j => g (S t - S j)%nat)). cbn [sum]. rewrite known, Z.add_comm.
      f_equal. f_equal. lia. }
    assert (row : sum t (fun u => lag (if (t <=? u)%nat then u - t else t - u)%nat * (1 * f u)) =
      sum t (fun j => lag (S j) * f (t - S j)%nat)).
    { rewrite back. apply sum_ext. intros j hj. destruct (Nat.leb_spec t (t - S j)); [lia|].
      replace (t - (t - S j))%nat with (S j) by lia. lia. }
    assert (column : sum t (fun s => lag (if (s <=? t)%nat then t - s else s - t)%nat * (f s * 1)) =
      sum t (fun j => lag (S j) * f (t - S j)%nat)).
    { rewrite back. apply sum_ext. intros j hj. destruct (Nat.leb_spec (t - S j) t); [|lia].
      replace (t - (t - S j))%nat with (S j) by lia. lia. }
    rewrite row, column, Nat.leb_refl, Nat.sub_diag. lia.
  Qed.
  Lemma cost_zeros : forall n t, (forall i, (t <= i < t + n)%nat -> f i = 0) -> cost (t + n) = cost t.
  Proof.
    induction n as [|n known]; intros t no; [now rewrite Nat.add_0_r|]. rewrite Nat.add_succ_r, cost_zero by (apply no; lia).
    apply known. intros. apply no. lia.
  Qed.
  Lemma rest_below : forall n from, (from + n < steps)%nat -> forall t,
    sum n (fun j => lag (S (from + j)) * f (t - S (from + j))%nat) <= 0.
  Proof.
    intros n from within t. rewrite <- (sum_zero n (fun _ => 0)) by auto. apply sum_le. intros j hj.
    specialize (apart (S (from + j)) ltac:(lia)). destruct (binary (t - S (from + j))%nat) as [-> | ->]; lia.
  Qed.

  (** A run at the places t, t+1, ... *)
  Lemma alone_bounds : forall n t, (t + n <= steps)%nat -> (forall i, (t <= i < t + n)%nat -> f i = 1) ->
    cost (t + n) <= cost t + sum n alone.
  Proof.
    induction n as [|n known]; intros t within ones; [rewrite Nat.add_0_r; cbn; lia|].
    rewrite Nat.add_succ_r, cost_one by (apply ones; lia). specialize (known t ltac:(lia) ltac:(intros; apply ones; lia)).
    cbn [sum]. unfold alone at 2. rewrite (Nat.add_comm t n) at 2. rewrite sum_split.
    assert (rest := rest_below t n ltac:(lia) (t + n)).
    rewrite (sum_ext n _ (fun j => lag (S j))); [lia|]. intros j hj. rewrite ones by lia. lia.
  Qed.
  Lemma linked_bounds : forall n gap e, (length_ <= e)%nat -> (e + gap + n <= steps)%nat ->
    (forall i, (e - length_ <= i < e)%nat -> f i = 1) -> (forall i, (e <= i < e + gap)%nat -> f i = 0) ->
    (forall i, (e + gap <= i < e + gap + n)%nat -> f i = 1) -> cost (e + gap + n) <= cost e + sum n (linked gap).
  Proof.
    induction n as [|n known]; intros gap e long within before zeros ones.
    - rewrite Nat.add_0_r, cost_zeros by auto. cbn. lia.
    - rewrite Nat.add_succ_r, cost_one by (apply ones; lia).
      specialize (known gap e long ltac:(lia) before zeros ltac:(intros; apply ones; lia)).
      cbn [sum]. unfold linked at 2. unfold alone.
      replace (sum (e + gap + n)) with (sum (n + (gap + (length_ + (e - length_))))) by (f_equal; lia).
      rewrite !sum_split. assert (rest := rest_below (e - length_) (n + gap + length_) ltac:(lia) (e + gap + n)).
      rewrite (sum_ext n _ (fun j => lag (S j))) by (intros; rewrite ones by lia; lia).
      rewrite (sum_zero gap) by (intros; rewrite zeros by lia; lia).
      rewrite (sum_ext length_ _ (fun j => lag (S (n + gap + j)))).
      + rewrite (sum_ext (e - length_) _ (fun j => lag (S (n + gap + length_ + j)) * f (e + gap + n - S (n + gap + length_ + j))%nat));
          [lia|]. intros. do 2 f_equal; f_equal; lia.
      + intros j hj. rewrite before by lia. rewrite Z.mul_1_r. f_equal. lia.
  Qed.

  (** Potentials: of t places, whose last run is whole, or all of them; and what a gap and a run after it add. *)
  Variable most charge : nat -> Z.
  Hypothesis starts_at_nothing : 0 <= most O.
  Hypothesis rises : forall t, (t < steps)%nat -> most t <= most (S t).
  Hypothesis first_run : forall n, (length_ <= n <= steps)%nat -> sum n alone <= most n.
  Hypothesis first_short : forall n, (1 <= n <= steps)%nat -> sum n alone <= most steps.
  Hypothesis later_run : forall gap n, (1 <= gap)%nat -> (length_ <= n)%nat -> (length_ + gap + n <= steps)%nat ->
    sum n (linked gap) <= charge (gap + n).
  Hypothesis later_short : forall gap n, (1 <= gap)%nat -> (1 <= n)%nat -> (length_ + gap + n <= steps)%nat ->
    sum n (linked gap) + most (steps - (gap + n)) <= most steps.
  Hypothesis parts : forall part t, (length_ + part <= t <= steps)%nat -> charge part + most (t - part) <= most t.
  Hypothesis some : (1 <= length_)%nat.
  Hypothesis long : forall s u, f s = 1 -> (s = O \/ f (pred s) = 0) -> (s <= u < s + length_)%nat -> (u < steps)%nat -> f u = 1.

  Lemma run_behind : forall v t, f t = v -> exists b, (b <= t)%nat /\ (forall i, (b <= i <= t)%nat -> f i = v) /\ (b = O \/ f (pred b) <> v).
  Proof.
    induction t as [|t known]; intros same.
    - exists O. repeat split; auto. intros i hi. now replace i with O by lia.
    - destruct (Z.eq_dec (f t) v) as [before|other].
      + destruct (known before) as (b & hb & all & edge). exists b. repeat split; auto.
        intros i hi. destruct (Nat.eq_dec i (S t)) as [->|]; auto. apply all. lia.
      + exists (S t). repeat split; auto. intros i hi. now replace i with (S t) by lia.
  Qed.
  Lemma most_grows : forall s t, (s <= t <= steps)%nat -> most s <= most t.
  Proof.
    intros s t [le within]. induction le as [|t le known]; [lia|]. specialize (rises t ltac:(lia)).
    specialize (known ltac:(lia)). lia.
  Qed.
  (** A run that ended has its W places. *)
  Lemma ended : forall e, (1 <= e < steps)%nat -> f (pred e) = 1 -> f e = 0 ->
    (length_ <= e)%nat /\ forall i, (e - length_ <= i < e)%nat -> f i = 1.
  Proof.
    intros e he one zero. destruct (run_behind 1 (pred e) one) as (b & hb & all & edge).
    assert (whole : (b + length_ <= e)%nat).
    { destruct (le_lt_dec (b + length_) e); auto.
      assert (f e = 1); [|lia]. apply (long b); try lia.
      - apply all. lia.
      - destruct edge; auto. destruct (binary (pred b)); auto; contradiction. }
    split; [lia|]. intros. apply all. lia.
  Qed.

  Theorem runs_bounded : forall t, (t <= steps)%nat ->
    (t = O \/ f (pred t) = 0 \/ ((length_ <= t)%nat /\ forall i, (t - length_ <= i < t)%nat -> f i = 1) \/ t = steps) ->
    cost t <= most t.
  Proof.
    induction t as [t known] using (well_founded_induction lt_wf). intros within closed.
    destruct t as [|t]; [now rewrite cost_nothing|]. cbn [pred] in closed.
    destruct (binary t) as [zero|one].
    - rewrite cost_zero by auto. apply Z.le_trans with (most t); [|apply rises; lia]. apply known; try lia.
      destruct t as [|t]; auto. cbn [pred]. destruct (binary t) as [|one]; auto.
      right. right. left. apply (ended (S t)); auto. lia.
    - destruct (run_behind 1 t one) as (b & hb & ones & edge). set (n := (S t - b)%nat).
      assert (whole : (length_ <= n)%nat \/ S t = steps).
      { destruct closed as [|[|[[enough all]|]]]; try lia; auto. left. unfold n.
        destruct edge as [->|other]; [lia|]. destruct (le_lt_dec (S t - length_) (pred b)); [|lia].
        destruct (Nat.eq_dec b O) as [->|]; [lia|]. exfalso. apply other, all. lia. }
      replace (S t) with (b + n)%nat by lia.
      assert (first : cost b <= 0 -> cost (b + n) <= most (b + n)).
      { intros nothing. assert (up := alone_bounds n b ltac:(lia) ltac:(intros; apply ones; lia)).
        destruct whole as [enough|last_].
        - assert (some_ := first_run n ltac:(lia)). assert (most n <= most (b + n)) by (apply most_grows; lia). lia.
        - assert (some_ := first_short n ltac:(lia)). replace (b + n)%nat with steps in * by lia. lia. }
      destruct b as [|b]; [apply first; rewrite cost_nothing; lia|]. destruct edge as [|edge]; [lia|]. cbn [pred] in edge.
      assert (zero : f b = 0) by (destruct (binary b); auto; contradiction).
      destruct (run_behind 0 b zero) as (e & he & zeros & start).
      assert (same : cost (S b) = cost e).
      { replace (S b) with (e + (S b - e))%nat by lia. apply cost_zeros. intros. apply zeros. lia. }
      destruct e as [|e]; [apply first; rewrite same, cost_nothing; lia|]. destruct start as [|start]; [lia|]. cbn [pred] in start.
      assert (before : f e = 1) by (destruct (binary e); auto; contradiction).
      destruct (ended (S e) ltac:(lia) before ltac:(apply zeros; lia)) as [enough all].
      set (gap := (S b - S e)%nat).
      assert (up := linked_bounds n gap (S e) enough ltac:(lia) all ltac:(intros; apply zeros; lia) ltac:(intros; apply ones; lia)).
      assert (so_far : cost (S e) <= most (S e)) by (apply known; auto; lia).
      replace (S b + n)%nat with (S e + gap + n)%nat by lia.
      destruct whole as [long_|last_].
      + assert (later := later_run gap n ltac:(lia) long_ ltac:(lia)).
        assert (part := parts (gap + n) (S e + gap + n) ltac:(lia)).
        replace (S e + gap + n - (gap + n))%nat with (S e) in part by lia. lia.
      + assert (later := later_short gap n ltac:(lia) ltac:(lia) ltac:(lia)).
        replace (steps - (gap + n))%nat with (S e) in later by lia.
        replace (S e + gap + n)%nat with steps in * by lia. lia.
  Qed.
End Runs.

(** ** The checker *)

Fixpoint each_length (gain : nat -> Z) (limit : nat -> Z -> bool) (known : Z) (n more : nat) : bool :=
  match more with
  | O => true
  | S more => let known := known + gain n in limit (S n) known && each_length gain limit known (S n) more
  end.
Lemma each_length_sound : forall gain limit more n, each_length gain limit (sum n gain) n more = true ->
  forall m, (n < m <= n + more)%nat -> limit m (sum m gain) = true.
Proof.
  induction more as [|more known]; intros n yes m hm; [lia|]. cbn [each_length] in yes.
  apply andb_prop in yes as [here yes]. destruct (Nat.eq_dec m (S n)) as [->|]; [exact here|].
  apply (known (S n) yes). lia.
Qed.

(** All but the matrix and the bound are hints: `M'M <= lags - offset` entry by entry, a price for every one, what parts
    of gap and run are charged by their length, and the potentials of 0, 1, ..., T places. *)
Definition presence_within (matrix : list (list Z)) (steps length_ : nat) (bound offset price : Z)
    (lags charges table : list Z) : bool :=
  let products := gram steps matrix in
  let sums := sums_from 0 lags in
  let lag d := nth d lags 0 in
  let most t := nth t table 0 in
  let alone a := 2 * nth (S a) sums 0 - lag O - price in
  let linked gap a := alone a + 2 * (nth (S (a + gap) + length_)%nat sums 0 - nth (S (a + gap)) sums 0) in
  forallb (fun row => length row =? steps)%nat matrix && (length lags =? steps)%nat && (1 <=? length_)%nat &&
  forallb (fun s => forallb (fun u =>
    at_ products s u + offset <=? lag (if s <=? u then u - s else s - u)%nat) (seq 0 steps)) (seq 0 steps) &&
  forallb (fun one => one <=? 0) (tl lags) &&
  (0 <=? most O) && forallb (fun t => most t <=? most (S t)) (seq 0 steps) &&
  each_length alone (fun n total => (total <=? most steps) && ((n <? length_)%nat || (total <=? most n))) 0 0 steps &&
  forallb (fun gap => each_length (linked gap) (fun n total =>
    ((n <? length_)%nat || (total <=? nth (gap + n) charges 0)) && (total + most (steps - (gap + n))%nat <=? most steps))
    0 0 (steps - length_ - gap)) (seq 1 steps) &&
  forallb (fun t => forallb (fun part => nth part charges 0 + most (t - part)%nat <=? most t) (seq 0 (S (t - length_))))
    (seq length_ (S steps - length_)) &&
  (0 <? offset) && (price * price <=? 4 * offset * (bound - most steps)).

(** What a whole item changes, for every history of it. *)
Lemma whole_item_changes : forall length_ others more x i,
  change_of 1 (rolling_start length_) (others ++ more) (others ++ x :: more) i = if rolls x length_ (S i) then 1 else 0.
Proof.
  intros. unfold change_of, count_at_least, rolls. rewrite !filter_app, !app_length. cbn [filter].
  destruct (counted 1 x _ _); cbn [length]; lia.
Qed.

(** *Rolling counts of at least 1, one item added*: through any matrix, on every log. (Removed: the same with the logs
    exchanged.) *)
Theorem rolling_presence_checked : forall matrix steps length_ bound offset price lags charges table,
  presence_within matrix steps length_ bound offset price lags charges table = true ->
  forall (others more : log) x,
  moved L2_squared matrix (change_of 1 (rolling_start length_) (others ++ more) (others ++ x :: more)) <= bound.
Proof.
  intros matrix steps w bound offset price lags charges table yes others more x. unfold presence_within in yes.
  rewrite !andb_true_iff, !forallb_forall in yes.
  destruct yes as [[[[[[[[[[[whole ll] hw] products] signs] nothing] up] alone_] linked_] parts_] positive] top].
  apply Nat.eqb_eq in ll. apply Nat.leb_le in hw. apply Z.leb_le in nothing, top. apply Z.ltb_lt in positive.
  set (f := fun i => if rolls x w (S i) then 1 else 0).
  rewrite (moved_ext L2_squared matrix steps _ f); [|now apply forallb_forall|intros; apply whole_item_changes].
  set (lag := fun d => nth d lags 0). set (most := fun t => nth t table 0).
  assert (binary : forall i, f i = 0 \/ f i = 1) by (intros i; unfold f; destruct (rolls _ _ _); auto).
  assert (sums : forall i, (i <= steps)%nat -> nth i (sums_from 0 lags) 0 = sum i lag).
  { intros. rewrite sums_from_nth by lia. reflexivity. }
  assert (gain : forall a, (a < steps)%nat -> alone lag price a = 2 * nth (S a) (sums_from 0 lags) 0 - lag O - price).
  { intros a ha. rewrite sums, sum_front by lia. unfold alone. lia. }
  assert (gains : forall n, (n <= steps)%nat -> sum n (alone lag price) =
    sum n (fun a => 2 * nth (S a) (sums_from 0 lags) 0 - lag O - price)).
  { intros. apply sum_ext. intros. apply gain. lia. }
  assert (both : forall gap n, (w + gap + n <= steps)%nat -> sum n (linked lag price w gap) =
    sum n (fun a => 2 * nth (S a) (sums_from 0 lags) 0 - lag O - price +
      2 * (nth (S (a + gap) + w)%nat (sums_from 0 lags) 0 - nth (S (a + gap)) (sums_from 0 lags) 0))).
  { intros. apply sum_ext. intros a ha. unfold linked. rewrite gain, (sums (S (a + gap) + w)%nat), (sums (S (a + gap))) by lia.
    rewrite sum_split. cbn [plus]. lia. }
  assert (within : cost lag price f steps <= most steps).
  { apply (runs_bounded lag price steps w f) with (charge := fun part => nth part charges 0); auto.
    - intros d hd. apply Z.leb_le, signs. unfold lag.
      destruct lags as [|l lags]; cbn [length] in ll; [lia|]. destruct d as [|d]; [lia|]. cbn [tl nth]. apply nth_In. lia.
    - intros t ht. apply Z.leb_le. apply up, in_seq. lia.
    - intros n hn. rewrite gains by lia.
      assert (one := each_length_sound _ _ _ O alone_ n ltac:(lia)). cbv beta in one.
      rewrite andb_true_iff, orb_true_iff, !Z.leb_le, Nat.ltb_lt in one. fold (most n) in one. destruct one as [_ [|]]; auto. lia.
    - intros n hn. rewrite gains by lia.
      assert (one := each_length_sound _ _ _ O alone_ n ltac:(lia)). cbv beta in one.
      rewrite andb_true_iff, Z.leb_le in one. apply one.
    - intros gap n hg hn fits. rewrite both by lia.
      assert (one := each_length_sound _ _ _ O (linked_ gap ltac:(apply in_seq; lia)) n ltac:(lia)). cbv beta in one.
      rewrite andb_true_iff, orb_true_iff, !Z.leb_le, Nat.ltb_lt in one. destruct one as [[|] _]; auto. lia.
    - intros gap n hg hn fits. rewrite both by lia.
      assert (one := each_length_sound _ _ _ O (linked_ gap ltac:(apply in_seq; lia)) n ltac:(lia)). cbv beta in one.
      rewrite andb_true_iff, !Z.leb_le in one. apply one.
    - intros part t ht. specialize (parts_ t ltac:(apply in_seq; lia)).
      rewrite forallb_forall in parts_. apply Z.leb_le, parts_, in_seq. lia.
    - intros s u one edge near inside. unfold f in *.
      assert (start : starts x w (S s) = true).
      { unfold starts. cbn [pred]. destruct (rolls x w (S s)); [|discriminate]. destruct s as [|s].
        - reflexivity.
        - destruct edge as [|edge]; [discriminate|]. cbn [pred] in edge. destruct (rolls x w (S s)); [discriminate|reflexivity]. }
      now rewrite (runs_are_long x w hw (S s) (S u) start) by lia. }
  rewrite (moved_is_a_form steps) by now apply forallb_forall.
  set (ones := sum steps f).
  assert (form : sum steps (fun s => sum steps (fun u => at_ (gram steps matrix) s u * (f s * f u))) + offset * (ones * ones) <=
    cost lag price f steps + price * ones).
  { unfold cost. fold ones. unfold ones at 1 2. rewrite sum_product, <- sum_scale, <- sum_add.
    match goal with |- _ <= ?a - ?b + ?b => replace (a - b + b) with a by lia end.
    apply sum_le. intros s hs. rewrite <- sum_scale, <- sum_add. apply sum_le. intros u hu.
    specialize (products s ltac:(apply in_seq; lia)). rewrite forallb_forall in products.
    specialize (products u ltac:(apply in_seq; lia)). apply Z.leb_le in products.
    change (nth (if (s <=? u)%nat then (u - s)%nat else (s - u)%nat) lags 0) with (lag (if (s <=? u)%nat then (u - s)%nat else (s - u)%nat)) in products.
    destruct (binary s) as [-> | ->], (binary u) as [-> | ->]; lia. }
  assert (square_ := square_nonneg (2 * offset * ones - price)).
  fold (most steps) in top. assert (price * ones - offset * (ones * ones) <= bound - most steps); [|lia].
  apply Z.mul_le_mono_pos_l with (p := 4 * offset); [lia|]. eapply Z.le_trans; [|exact top].
  replace ((2 * offset * ones - price) ^ 2) with (price * price - 4 * offset * (price * ones - offset * (ones * ones))) in square_ by ring. lia.
Qed.
