(** Finite sums and lists of whole numbers. *)
From Coq Require Import Arith ZArith List Lia.
Import ListNotations.
Open Scope Z_scope.

Fixpoint sum (n : nat) (f : nat -> Z) : Z := match n with O => 0 | S m => sum m f + f m end.

Lemma sum_ext : forall n f g, (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof. induction n; intros f g same; cbn; auto. rewrite (IHn f g), same; auto; try lia; intros; apply same; lia. Qed.
Lemma sum_le : forall n f g, (forall i, (i < n)%nat -> f i <= g i) -> sum n f <= sum n g.
Proof.
  induction n; intros f g less; cbn; [lia|]. assert (sum n f <= sum n g) by (apply IHn; intros; apply less; lia).
  specialize (less n ltac:(lia)). lia.
Qed.
Lemma sum_add : forall n f g, sum n (fun i => f i + g i) = sum n f + sum n g.
Proof. induction n; intros; cbn; [lia|]. rewrite IHn. lia. Qed.
Lemma sum_scale : forall n c f, sum n (fun i => c * f i) = c * sum n f.
Proof. induction n; intros; cbn; [lia|]. rewrite IHn. lia. Qed.
Lemma sum_zero : forall n f, (forall i, (i < n)%nat -> f i = 0) -> sum n f = 0.
Proof. induction n; intros f zero; cbn; auto. rewrite IHn, zero; auto; lia. Qed.
Lemma sum_nonneg : forall n f, (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= sum n f.
Proof. intros n f pos. rewrite <- (sum_zero n (fun _ => 0)) by auto. now apply sum_le. Qed.
Lemma sum_swap : forall n m f, sum n (fun i => sum m (f i)) = sum m (fun j => sum n (fun i => f i j)).
Proof.
  induction n; intros; cbn.
  - now rewrite sum_zero.
  - rewrite IHn, <- sum_add. now apply sum_ext.
Qed.
Lemma sum_split : forall m n f, sum (m + n) f = sum m f + sum n (fun i => f (m + i)%nat).
Proof.
  intros m n f. induction n; cbn; [rewrite Nat.add_0_r; lia|]. rewrite Nat.add_succ_r. cbn. rewrite IHn. lia.
Qed.
Lemma sum_more : forall m n f, (m <= n)%nat -> (forall i, (m <= i < n)%nat -> 0 <= f i) -> sum m f <= sum n f.
Proof.
  intros m n f le pos. replace n with (m + (n - m))%nat by lia. rewrite sum_split.
  assert (0 <= sum (n - m) (fun i => f (m + i)%nat)) by (apply sum_nonneg; intros; apply pos; lia). lia.
Qed.
Lemma sum_front : forall n f, sum (S n) f = f O + sum n (fun i => f (S i)).
Proof. induction n; intros; [cbn; lia|]. change (sum (S (S n)) f) with (sum (S n) f + f (S n)). rewrite IHn. cbn. lia. Qed.
Lemma square_nonneg : forall a, 0 <= a ^ 2.
Proof. intros. nia. Qed.

(** Two lists entry by entry, as far as both go. *)
Fixpoint zip (op : Z -> Z -> Z) (xs ys : list Z) : list Z :=
  match xs, ys with x :: xs, y :: ys => op x y :: zip op xs ys | _, _ => [] end.
Fixpoint every (holds : Z -> Z -> bool) (xs ys : list Z) : bool :=
  match xs, ys with x :: xs, y :: ys => (holds x y && every holds xs ys)%bool | _, _ => true end.
Lemma zip_length : forall op xs ys, length (zip op xs ys) = min (length xs) (length ys).
Proof. induction xs as [|x xs known]; intros [|y ys]; cbn; auto. Qed.
Lemma zip_nth : forall op xs ys i, (i < length xs)%nat -> (i < length ys)%nat ->
  nth i (zip op xs ys) 0 = op (nth i xs 0) (nth i ys 0).
Proof. induction xs as [|x xs known]; intros [|y ys] [|i] hx hy; cbn in *; try lia. apply known; lia. Qed.
Lemma every_nth : forall holds xs ys, every holds xs ys = true -> forall i, (i < length xs)%nat -> (i < length ys)%nat ->
  holds (nth i xs 0) (nth i ys 0) = true.
Proof.
  induction xs as [|x xs known]; intros [|y ys] yes [|i] hx hy; cbn in *; try lia; apply andb_prop in yes as []; auto.
  apply known; auto; lia.
Qed.
Lemma nth_skipn : forall (A : Type) n (xs : list A) i d, nth i (skipn n xs) d = nth (n + i) xs d.
Proof. intros A. induction n; intros [|x xs] i d; cbn; auto. now destruct i. Qed.

(** The sums of the first 0, 1, ... entries. *)
Fixpoint sums_from (known : Z) (row : list Z) : list Z :=
  known :: match row with [] => [] | one :: more => sums_from (known + one) more end.
Lemma sums_from_length : forall row known, length (sums_from known row) = S (length row).
Proof. induction row as [|one row more]; intros; cbn; auto. Qed.
Lemma sums_from_nth : forall row known i, (i <= length row)%nat ->
  nth i (sums_from known row) 0 = known + sum i (fun j => nth j row 0).
Proof.
  induction row as [|one row more]; intros known [|i] hi; cbn [length] in hi; try lia; cbn [sums_from nth];
    try (cbn [sum]; lia).
  rewrite more by lia. rewrite (sum_front i). cbn [nth]. lia.
Qed.
