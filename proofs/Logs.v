(** What a log is, what is counted, and recency (`docs/notation.md`; `dpwindows.count`). *)
From Coq Require Import Arith List Lia Bool ZArith ZifyBool.
Import ListNotations.

(** How often one item occurs at each step; step 0 and earlier there are none. *)
Definition history := nat -> nat.
(** One history for each item that may occur: no universe is needed, for an item that never occurs counts nowhere. *)
Definition log := list history.

(** `S[u,[a,b]]`: the occurrences of an item in the steps a..b. *)
Fixpoint occurrences (x : history) (a b : nat) : nat :=
  match b with
  | O => 0
  | S before => if a <=? b then occurrences x a before + x b else 0
  end.

Definition counted (k : nat) (x : history) (a b : nat) : bool := k <=? occurrences x a b.
(** `CountAtLeast_k(a, b)`. *)
Definition count_at_least (k : nat) (items : log) (a b : nat) : nat :=
  length (filter (fun x => counted k x a b) items).

Lemma occurrences_empty : forall x a b, b < a -> occurrences x a b = 0.
Proof. intros x a [|b] less; cbn; auto. destruct (Nat.leb_spec a (S b)); lia. Qed.

Lemma occurrences_step : forall x a b, a <= S b -> occurrences x a (S b) = occurrences x a b + x (S b).
Proof. intros x a b le. cbn [occurrences]. now apply Nat.leb_le in le as ->. Qed.

Lemma occurrences_split : forall x a m b, a <= S m -> m <= b ->
  occurrences x a b = occurrences x a m + occurrences x (S m) b.
Proof.
  intros x a m b am mb. induction mb as [|b mb known].
  - rewrite (occurrences_empty x (S m)) by lia. lia.
  - rewrite !occurrences_step by lia. lia.
Qed.

(** A larger window holds no fewer. *)
Lemma occurrences_monotone : forall x a a' b b', a' <= a -> b <= b' -> occurrences x a b <= occurrences x a' b'.
Proof.
  intros x a a' b b' ha hb. destruct (le_lt_dec a (S b)) as [some|none]; [|rewrite occurrences_empty; lia].
  rewrite (occurrences_split x a' b b') by lia.
  destruct a as [|a]; [replace a' with 0 by lia; lia|].
  destruct (le_lt_dec a' (S a)); [|lia]. destruct (le_lt_dec a b); [|rewrite (occurrences_empty x (S a)); lia].
  rewrite (occurrences_split x a' a b) by lia. lia.
Qed.

Lemma occurrences_equal : forall x y a b, (forall t, 1 <= t -> a <= t <= b -> x t = y t) ->
  occurrences x a b = occurrences y a b.
Proof.
  intros x y a b same. induction b as [|b known]; cbn; auto. destruct (Nat.leb_spec a (S b)); auto.
  rewrite known, same; auto; try lia. intros; apply same; lia.
Qed.

(** (b) `tau_k(u,t)`: the step of the k-th most recent occurrence at or before t, multiplicities counted; 0 if there are
    fewer than k. *)
Fixpoint recency (k : nat) (x : history) (t : nat) : nat :=
  match t with
  | O => 0
  | S before => if k <=? x t then t else recency (k - x t) x before
  end.

Lemma recency_at_most : forall x t k, recency k x t <= t.
Proof.
  induction t as [|t known]; intros k; cbn [recency]; auto. destruct (k <=? x (S t)); [lia|].
  specialize (known (k - x (S t))). lia.
Qed.

Theorem recency_counts : forall x t k a, 1 <= k -> 1 <= a -> counted k x a t = (a <=? recency k x t).
Proof.
  unfold counted. induction t as [|t known]; intros k a hk ha; cbn [recency occurrences].
  - now destruct k, a; try lia.
  - destruct (Nat.leb_spec a (S t)) as [in_|out].
    + destruct (Nat.leb_spec k (x (S t))) as [now_|earlier].
      * rewrite (proj2 (Nat.leb_le a (S t))) by lia. apply Nat.leb_le. lia.
      * rewrite <- (known (k - x (S t)) a) by lia.
        destruct (Nat.leb_spec k (occurrences x a t + x (S t)));
          destruct (Nat.leb_spec (k - x (S t)) (occurrences x a t)); auto; lia.
    + assert (recency k x (S t) <= S t) as most by apply recency_at_most. cbn [recency] in most.
      rewrite (proj2 (Nat.leb_gt k 0)) by lia. symmetry. apply Nat.leb_gt. lia.
Qed.

(** Recency is what it is said to be. *)
Corollary recency_is_the_kth : forall x t k, 1 <= k ->
  (recency k x t = 0 /\ occurrences x 1 t < k) \/
  (1 <= recency k x t <= t /\ occurrences x (S (recency k x t)) t < k <= occurrences x (recency k x t) t).
Proof.
  intros x t k hk. assert (most := recency_at_most x t k).
  assert (at_ := fun a ha => recency_counts x t k a hk ha). unfold counted in at_.
  destruct (recency k x t) as [|r].
  - left. split; auto. specialize (at_ 1 ltac:(lia)). cbn in at_. apply Nat.leb_gt in at_. lia.
  - right. assert (yes := at_ (S r) ltac:(lia)). assert (no := at_ (S (S r)) ltac:(lia)).
    rewrite (proj2 (Nat.leb_le (S r) (S r))) in yes by lia. rewrite (proj2 (Nat.leb_gt (S (S r)) (S r))) in no by lia.
    apply Nat.leb_le in yes. apply Nat.leb_gt in no. lia.
Qed.

(** `CountAtLeast_k(a, t) = #{u : tau_k(u,t) >= a}`, for every log. *)
Theorem counts_from_recency : forall (items : log) k a t, 1 <= k -> 1 <= a ->
  count_at_least k items a t = length (filter (fun x => a <=? recency k x t) items).
Proof.
  intros items k a t hk ha. unfold count_at_least. f_equal. apply filter_ext. intros x. now apply recency_counts.
Qed.

(** Signed counts: items that got a recency of at least a at step s, less those that lost it. They add up to the count,
    so a table of them is all that an engine has to return. *)
Definition with_recency (k : nat) (items : log) (s a : nat) : Z :=
  Z.of_nat (length (filter (fun x => a <=? recency k x s) items)).
Definition signed (k : nat) (items : log) (s a : nat) : Z :=
  (with_recency k items s a - with_recency k items (pred s) a)%Z.
Fixpoint signed_up_to (k : nat) (items : log) (t a : nat) : Z :=
  match t with O => 0%Z | S before => (signed_up_to k items before a + signed k items t a)%Z end.

Theorem counts_from_signed : forall (items : log) k a t, 1 <= k -> 1 <= a ->
  Z.of_nat (count_at_least k items a t) = signed_up_to k items t a.
Proof.
  intros items k a t hk ha. rewrite counts_from_recency by auto. fold (with_recency k items t a).
  induction t as [|t known]; cbn [signed_up_to].
  - unfold with_recency. induction items as [|x items known]; cbn; auto. destruct a; [lia|]. cbn. exact known.
  - unfold signed. cbn [pred]. lia.
Qed.

(** What rises once is a step. *)
Lemma rise : forall (p : nat -> bool) n, (forall i, S i < n -> p i = true -> p (S i) = true) ->
  exists begin, begin <= n /\ forall i, i < n -> p i = (begin <=? i).
Proof.
  induction n as [|n known]; intros rises; [exists 0; split; lia|].
  destruct known as (begin & within & is_step); [intros; apply rises; auto; lia|].
  exists (if p n then min begin n else S n). split; [destruct (p n); lia|]. intros i hi.
  destruct (p n) eqn:top, (Nat.eq_dec i n) as [->|]; try lia; assert (at_i := is_step i ltac:(lia)); [lia|].
  destruct n as [|n]; [lia|]. assert (at_n := is_step n ltac:(lia)). specialize (rises n ltac:(lia)).
  destruct (p n); [rewrite rises in top by auto; discriminate|lia].
Qed.
