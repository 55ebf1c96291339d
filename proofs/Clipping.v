(** (g) Clipping moves no two values further apart. *)
From Coq Require Import ZArith List Lia.
From DPWindows Require Import Sums.
Open Scope Z_scope.

(** A value clipped to low..high. *)
Definition clip (low high value : Z) : Z := Z.max low (Z.min high value).

Theorem clipping_moves_nothing_apart : forall low high x y, Z.abs (clip low high x - clip low high y) <= Z.abs (x - y).
Proof. unfold clip. lia. Qed.

(** So neither norm of a change grows when every value is clipped, each to limits of its own. *)
Theorem clipping_norms : forall places (low high x y : nat -> Z),
  sum places (fun i => Z.abs (clip (low i) (high i) (x i) - clip (low i) (high i) (y i))) <=
    sum places (fun i => Z.abs (x i - y i)) /\
  sum places (fun i => (clip (low i) (high i) (x i) - clip (low i) (high i) (y i)) ^ 2) <=
    sum places (fun i => (x i - y i) ^ 2).
Proof.
  intros places low high x y.
  split; apply sum_le; intros i _; assert (nearer := clipping_moves_nothing_apart (low i) (high i) (x i) (y i)); auto.
  rewrite !Z.pow_2_r, <- Z.abs_square, <- (Z.abs_square (x i - y i)). apply Z.square_le_mono_nonneg; lia.
Qed.
