(** (a) A table of potentials bounds every walk (`dpwindows.kernel.dearest_path`).

    An automaton's states at its places are nodes; a move leads from one node to another and is charged something. Moves
    may skip places. Nothing is assumed of the graph. *)
From Coq Require Import ZArith List Lia Bool ZifyBool.
From DPWindows Require Import Sums.
Import ListNotations.
Open Scope Z_scope.

Section Walks.
  Variable node : Type.
  (** The moves out of a node: what each is charged, and where it leads. *)
  Variable moves : node -> list (Z * node).
  (** What a walk is charged for ending at a node, or that it may not end there. *)
  Variable ends : node -> option Z.

  (** A walk from a node, and what it is charged in all. *)
  Inductive walk : node -> Z -> Prop :=
  | stop : forall here charge, ends here = Some charge -> walk here charge
  | move : forall here charge next rest,
      In (charge, next) (moves here) -> walk next rest -> walk here (charge + rest).

  Variable potential : node -> Z.

  (** A table is accepted at a node if it holds at least each end's charge, and each move's with what it leads to. *)
  Definition accepted (here : node) : Prop :=
    (forall charge, ends here = Some charge -> charge <= potential here) /\
    (forall charge next, In (charge, next) (moves here) -> charge + potential next <= potential here).

  Theorem potentials_bound_every_walk :
    (forall here, accepted here) -> forall here total, walk here total -> total <= potential here.
  Proof.
    intros every here total taken. induction taken as [here charge end_ | here charge next rest listed _ known].
    - now apply (proj1 (every here)).
    - specialize (proj2 (every here) _ _ listed). lia.
  Qed.
End Walks.

(** In the words of the kernel: V(state, place) >= charge + V(next, place + 1) for every move, V >= 0 where a path may
    end, and the largest V over the states that a path may begin in bounds every path. *)
Theorem table_bounds_every_path : forall (state : Type) (moves : nat -> state -> list (Z * state))
    (may_end : nat -> state -> bool) (table : nat -> state -> Z) (entries : list state) (bound : Z),
  (forall place here charge next, In (charge, next) (moves place here) ->
    charge + table (S place) next <= table place here) ->
  (forall place here, may_end place here = true -> 0 <= table place here) ->
  (forall entry, In entry entries -> table O entry <= bound) ->
  forall entry total, In entry entries ->
    walk (nat * state) (fun at_ => map (fun one => (fst one, (S (fst at_), snd one))) (moves (fst at_) (snd at_)))
      (fun at_ => if may_end (fst at_) (snd at_) then Some 0 else None) (O, entry) total ->
    total <= bound.
Proof.
  intros state moves may_end table entries bound onMoves atEnds atEntries entry total among taken.
  apply Z.le_trans with (table O entry); [|auto].
  eapply (potentials_bound_every_walk _ _ _ (fun at_ => table (fst at_) (snd at_))) in taken; [exact taken|].
  intros [place here]; split; cbn.
  - intros charge. destruct (may_end place here) eqn:allowed; [|discriminate]. intros [= <-]. auto.
  - intros charge next listed. apply in_map_iff in listed as [[c s] [[= <- <-] listed]]. cbn. auto.
Qed.

(** One part after another fills a range: `charges` holds what a part of 1, 2, ... steps is charged. The nodes are the
    steps still to be filled. *)
Section Cuts.
  Variable charges : list Z.
  Definition whole (parts : list nat) : nat := fold_right plus O parts.
  Definition charge (part : nat) : Z := nth (pred part) charges 0.
  Definition total (parts : list nat) : Z := fold_right Z.add 0 (map charge parts).

  (** `table` is V for the most steps, ..., 2, 1, 0 that are still to be filled. *)
  Fixpoint cuts_accepted (table : list Z) : bool :=
    match table with
    | [] => false
    | [value] => 0 <=? value
    | value :: rest => every (fun charge left => charge + left <=? value) charges rest && cuts_accepted rest
    end.

  Lemma cut_accepted : forall table n, cuts_accepted table = true -> (n < length table)%nat ->
    (S n = length table -> 0 <= nth n table 0) /\ forall part, (1 <= part <= length charges)%nat ->
    (n + part < length table)%nat -> charge part + nth (n + part) table 0 <= nth n table 0.
  Proof.
    induction table as [|value [|second rest] known]; intros n yes within; cbn [length] in within; [lia|split|].
    - intros _. destruct n; [|lia]. cbn in *. lia.
    - cbn [length]. lia.
    - cbn [cuts_accepted] in yes. apply andb_prop in yes as [pairs yes]. destruct n as [|n].
      + split; [discriminate|]. intros [|part] fits less; [lia|]. cbn [length plus] in less.
        assert (one := every_nth _ _ _ pairs part ltac:(lia) ltac:(cbn [length]; lia)). unfold charge. cbn [plus pred].
        change (nth (S part) (value :: second :: rest) 0) with (nth part (second :: rest) 0). cbn [nth] in *. lia.
      + specialize (known n yes ltac:(cbn [length]; lia)) as [last_ more].
        split; [intros same; apply last_; cbn in *; lia|intros part fits less; apply more; auto; cbn in *; lia].
  Qed.

  Theorem cuts_bounded : forall table, cuts_accepted table = true ->
    forall parts n, S (n + whole parts) = length table ->
    Forall (fun part => (1 <= part <= length charges)%nat) parts -> total parts <= nth n table 0.
  Proof.
    intros table yes. induction parts as [|part parts known]; intros n filled each; unfold whole, total in *;
      cbn [map fold_right] in *; destruct (cut_accepted table n yes ltac:(lia)) as [last_ cut]; [apply last_; lia|].
    inversion each as [|? ? fits others]; subst. specialize (known (n + part)%nat ltac:(lia) others).
    specialize (cut part fits ltac:(lia)). lia.
  Qed.
End Cuts.
