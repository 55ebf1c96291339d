(** (a) A table of potentials bounds every walk (`dpwindows.kernel.dearest_path`).

    An automaton's states at its places are nodes; a move leads from one node to another and is charged something. Moves
    may skip places. Nothing is assumed of the graph. *)
From Coq Require Import ZArith List Lia Bool.
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

  (** `table` is V for 0, 1, 2, ... steps, last to first: its head is for the most steps. *)
  Fixpoint pairs_within (charges table : list Z) (most : Z) : bool :=
    match charges, table with
    | charge :: charges, value :: table => (charge + value <=? most) && pairs_within charges table most
    | _, _ => true
    end.
  Fixpoint cuts_accepted (table : list Z) : bool :=
    match table with
    | [] => false
    | [value] => 0 <=? value
    | value :: rest => pairs_within charges rest value && cuts_accepted rest
    end.

  Lemma pairs_within_sound : forall part some table most, pairs_within some table most = true ->
    (part < length some)%nat -> (part < length table)%nat -> nth part some 0 + nth part table 0 <= most.
  Proof.
    induction part as [|part known]; intros [|c some] [|v table] most yes enough left;
      cbn [pairs_within length nth] in *; try lia; apply andb_prop in yes as [first rest].
    apply known; auto; lia.
  Qed.

  Lemma cuts_accepted_nth : forall table less, cuts_accepted table = true -> (less < length table)%nat ->
    cuts_accepted (skipn less table) = true.
  Proof.
    induction table as [|value table known]; intros [|less] yes within; cbn in *; try lia; auto.
    destruct table as [|second table]; cbn in within; [lia|]. apply andb_prop in yes as [_ yes]. apply known; cbn in *; auto; lia.
  Qed.

  Theorem cuts_bounded : forall parts table, cuts_accepted table = true -> S (whole parts) = length table ->
    Forall (fun part => (1 <= part <= length charges)%nat) parts -> total parts <= nth O table 0.
  Proof.
    induction parts as [|part parts known]; intros table yes filled each.
    - destruct table as [|value [|second rest]]; cbn in *; try discriminate. now apply Z.leb_le.
    - inversion each as [|? ? fits others]; subst. destruct part as [|part]; [lia|].
      unfold whole in *. cbn [fold_right] in filled.
      destruct table as [|value table]; cbn [length] in filled; [lia|].
      assert (later : total parts <= nth O (skipn part table) 0).
      { apply known; auto.
        - apply (cuts_accepted_nth (value :: table) (S part)); auto. cbn [length]. lia.
        - rewrite skipn_length. lia. }
      assert (pair : charge (S part) + nth part table 0 <= value).
      { unfold charge. cbn [pred]. apply pairs_within_sound; try lia. destruct table; cbn [length] in filled; [lia|].
        cbn [cuts_accepted] in yes. now apply andb_prop in yes as [yes _]. }
      assert (same : nth part table 0 = nth O (skipn part table) 0).
      { clear. revert table. induction part; intros [|v table]; cbn; auto. }
      unfold total in *. cbn [map fold_right nth] in *. lia.
  Qed.
End Cuts.
