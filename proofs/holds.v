(* Holds at one level, for any limit and any number of holders. A call that another level denies doesn't happen here. *)
Require Import ZArith Lia List.
Open Scope Z_scope.
Arguments Z.add : simpl never.

Record state := { spent : Z; held : list (nat * Z) }. (* ids and their slots *)
Inductive event :=
| Hold (id : nat) (n : Z)     (* a new id takes n slots if there is room; an old one keeps what it has *)
| Settle (id : nat) (cost : Z) (* RELEASE id, and cost by FORCE: nothing if the id holds nothing *)
| Free (id : nat)             (* released, or lapsed *)
| Drain (units : Z).          (* usage drains, or leaves with its window *)

Definition total (h : list (nat * Z)) := fold_right (fun x n => snd x + n) 0 h.
Definition slots id (h : list (nat * Z)) := total (filter (fun x => Nat.eqb (fst x) id) h).
Definition free id (h : list (nat * Z)) := filter (fun x => negb (Nat.eqb (fst x) id)) h.
Definition admits L s id n := slots id (held s) = 0 /\ spent s + total (held s) + n <= L.

(* The step, and by how much the cost of a settlement exceeds what was held. *)
Definition step L s e : state * Z :=
  match e with
  | Hold id n => if (slots id (held s) =? 0) && (spent s + total (held s) + n <=? L)
                 then ({| spent := spent s; held := (id, n) :: held s |}, 0) else (s, 0)
  | Settle id cost => if slots id (held s) =? 0 then (s, 0)
                      else ({| spent := spent s + cost; held := free id (held s) |}, Z.max 0 (cost - slots id (held s)))
  | Free id => ({| spent := spent s; held := free id (held s) |}, 0)
  | Drain d => ({| spent := Z.max 0 (spent s - d); held := held s |}, 0)
  end%bool.
Fixpoint run L s es : state * Z :=
  match es with
  | nil => (s, 0)
  | e :: es => let (s1, o) := step L s e in let (s2, o') := run L s1 es in (s2, o + o')
  end.

Definition positive (h : list (nat * Z)) := Forall (fun x => 0 < snd x) h.
Definition fine :=
  Forall (fun e => match e with Hold _ n => 0 < n | Settle _ n | Drain n => 0 <= n | Free _ => True end).

Lemma parts id h : positive h ->
  total (free id h) + slots id h = total h /\ 0 <= slots id h /\ 0 <= total h /\ positive (free id h).
Proof.
  induction 1 as [|[i n] h Hn Hh IH]; unfold free, slots in *; simpl in *; [repeat split; try lia; constructor|].
  destruct (Nat.eqb i id); simpl; repeat split; try lia; try apply IH. constructor; [exact Hn | apply IH].
Qed.

(* After an admitted hold, spent + held <= limit. *)
Theorem admitted L s id n : admits L s id n -> let s' := fst (step L s (Hold id n)) in
  held s' = (id, n) :: held s /\ spent s' + total (held s') <= L.
Proof.
  intros [A B]. simpl. rewrite A, (proj2 (Z.leb_le _ L) B). simpl. split; [reflexivity | lia].
Qed.

(* At all times: only what settlements cost more than they held passes the limit. *)
Theorem never_more L es : fine es -> forall s, 0 <= spent s -> positive (held s) -> spent s + total (held s) <= L ->
  let (s', over) := run L s es in spent s' + total (held s') <= L + over.
Proof.
  intros Hf. cut (forall s k, 0 <= spent s -> positive (held s) -> spent s + total (held s) <= L + k -> 0 <= k ->
    let (s', over) := run L s es in spent s' + total (held s') <= L + k + over).
  { intros H s A B K. specialize (H s 0 A B). destruct (run L s es). lia. }
  induction Hf as [|e es He Hf IH]; intros s k A B K K0; simpl; [lia|].
  assert (S : let (s1, o) := step L s e in
    0 <= o /\ 0 <= spent s1 /\ positive (held s1) /\ spent s1 + total (held s1) <= L + k + o).
  { destruct e as [id n|id n|id|d]; simpl in *; try destruct (parts id (held s) B) as (P & P0 & P1 & P2).
    - destruct (slots id (held s) =? 0); [|simpl; auto with zarith].
      destruct (Z.leb_spec (spent s + total (held s) + n) L); simpl; auto with zarith.
      repeat split; try lia. constructor; assumption.
    - destruct (slots id (held s) =? 0); simpl; repeat split; (assumption || lia).
    - repeat split; (assumption || lia).
    - repeat split; (assumption || lia). }
  destruct (step L s e) as [s1 o]. destruct S as (S0 & S1 & S2 & S3). specialize (IH s1 (k + o) S1 S2).
  destruct (run L s1 es) as [s2 o']. lia.
Qed.
