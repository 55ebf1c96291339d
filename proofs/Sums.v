(** Finite sums of whole numbers. *)
From Coq Require Import Arith ZArith Lia.
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
