(* Budgets of the Go client: clients take units in advance, spend them within hold, and give back the rest when they close.
   Times are whole numbers. *)
Require Import ZArith Lia List Bool.
Open Scope Z_scope.
Arguments Z.add : simpl never.

Inductive fate := Spent (x : Z) | Returned (x : Z) | Lost. (* Returned: when the server got it back, and had it in use *)
Record item := { taken : Z; end_ : fate }.                 (* a unit: when the server granted it, and its end *)
Record client := { closes : Z; units : list item }.

Section Budgets.
Variables (hold N s t : Z) (cap : Z -> Z) (clients : list client).

Definition within (a b x : Z) := (a <? x) && (x <=? b).
Definition taken_in a b u := within a b (taken u).
Definition spent_in a b u := match end_ u with Spent x => within a b x | _ => false end.
Definition returned_in a b u := match end_ u with Returned x => within a b x | _ => false end.
(* Whether a client holds the unit at z: until it is spent, or through the moment at which the client closes. *)
Definition held close z u := match end_ u with
  | Spent x => (taken u <=? z) && (z <? x) | Returned _ => (taken u <=? z) && (z <=? close) | Lost => false end.
Fixpoint many (p : item -> bool) us := match us with nil => 0 | u :: us => Z.b2z (p u) + many p us end.
Fixpoint sum (f : client -> Z) cs := match cs with nil => 0 | c :: cs => f c + sum f cs end.
Definition net a b c := many (taken_in a b) (units c) - many (returned_in a b) (units c).

(* In a span of length d the server grants at most cap d units, less those returned: limit + rate x d, by gcra.v's promise. *)
Hypothesis server : forall a b, a <= b -> sum (net a b) clients <= cap (b - a).
Hypotheses (span : s <= t) (hold_0 : 0 <= hold) (N_0 : 0 <= N) (cap_0 : forall d, 0 <= cap d).
(* A client holds at most N units. It spends a unit, or closes and gives it back, within hold. Nothing follows the close. *)
Hypothesis holds : forall c z, In c clients -> many (held (closes c) z) (units c) <= N.
Hypothesis ends : forall c u, In c clients -> In u (units c) -> match end_ u with
  | Spent x => taken u <= x <= taken u + hold /\ x <= closes c
  | Returned x => taken u <= closes c <= taken u + hold /\ closes c <= x
  | Lost => True end.

Definition spends c := many (spent_in s t) (units c).
(* What a client spends, it took since a and didn't return, or it is old: taken before, and spent or returned since. *)
Definition is_old a u := (taken u <=? a) && (spent_in s t u || returned_in a t u).
Definition old a c := many (is_old a) (units c).
Definition counts a c := 0 <? spends c + old a c.
Definition C a := sum (fun c => Z.b2z (counts a c)) clients. (* the clients that spend, or return old units *)

Lemma compare p q r o us : (forall u, In u us -> Z.b2z (p u) <= Z.b2z (q u) - Z.b2z (r u) + Z.b2z (o u)) ->
  many p us <= many q us - many r us + many o us.
Proof.
  induction us as [|u us IH]; simpl; intros H; [lia|].
  assert (K : many p us <= many q us - many r us + many o us) by auto. specialize (H u (or_introl eq_refl)). lia.
Qed.
Lemma imply p q us : (forall u, In u us -> p u = true -> q u = true) -> many p us <= many q us.
Proof.
  induction us as [|u us IH]; simpl; intros H; [lia|]. assert (I : many p us <= many q us) by auto.
  destruct (p u) eqn:E; [rewrite (H u (or_introl eq_refl) E)|destruct (q u)]; simpl; lia.
Qed.
Lemma none p us : (forall u, In u us -> p u = true -> False) -> many p us = 0.
Proof.
  induction us as [|u us IH]; simpl; intros H; [lia|]. rewrite IH by eauto.
  destruct (p u) eqn:E; [destruct (H u (or_introl eq_refl) E)|reflexivity].
Qed.
Lemma many_0 p us : 0 <= many p us.
Proof. induction us as [|u us IH]; simpl; [|destruct (p u); simpl]; lia. Qed.

Lemma one a c : a = s \/ a = s - hold -> In c clients -> spends c <= net a t c + old a c /\ old a c <= N.
Proof.
  intros A I. split.
  - unfold net. apply compare. intros u Iu. pose proof (ends c u I Iu) as E. unfold is_old. revert E.
    unfold spent_in, returned_in, taken_in, within. destruct (end_ u); simpl; repeat match goal with
      |- context [?a <? ?b] => destruct (Z.ltb_spec a b) | |- context [?a <=? ?b] => destruct (Z.leb_spec a b) end; simpl; lia.
  - etransitivity; [|exact (holds c (Z.min (if Z.eq_dec a s then s else closes c) (closes c)) I)].
    apply imply. intros u Iu H. apply andb_prop in H as [T H]. apply Z.leb_le in T. pose proof (ends c u I Iu) as E. revert E H.
    unfold held, spent_in, returned_in, within. destruct (end_ u); simpl; rewrite ?orb_false_r; try discriminate;
      rewrite !andb_true_iff, !Z.leb_le, !Z.ltb_lt; destruct (Z.eq_dec a s); lia.
Qed.

(* Clients spend at most C x N more than the server would grant to callers without budgets. *)
Theorem excess_units : sum spends clients <= cap (t - s) + C s * N.
Proof.
  specialize (server s t span). enough (H : sum spends clients <= sum (net s t) clients + C s * N) by lia.
  assert (H : forall c, In c clients -> spends c <= net s t c + Z.b2z (counts s c) * N).
  { intros c I. destruct (one s c (or_introl eq_refl) I). unfold counts. pose proof (many_0 (is_old s) (units c)).
    pose proof (many_0 (spent_in s t) (units c)). fold (old s c) (spends c) in *.
    destruct (Z.ltb_spec 0 (spends c + old s c)); simpl Z.b2z; lia. }
  clear - H. unfold C. induction clients as [|c cs IH]; simpl in *; [lia|].
  assert (K : sum spends cs <= sum (net s t) cs + sum (fun c => Z.b2z (counts s c)) cs * N) by auto.
  specialize (H c (or_introl eq_refl)). lia.
Qed.

(* What drains in hold takes the place of one client's units: a client that still spends has returned nothing old. *)
Theorem excess_hold : sum spends clients <= cap (t - s + hold) + Z.max 0 (C (s - hold) - 1) * N.
Proof.
  specialize (server (s - hold) t ltac:(lia)). replace (t - (s - hold)) with (t - s + hold) in server by lia.
  set (a := s - hold) in *.
  assert (H : forall c, In c clients ->
    0 <= spends c <= net a t c + old a c /\ 0 <= old a c <= N /\ (spends c = 0 \/ old a c = 0)).
  { intros c I. destruct (one a c (or_intror eq_refl) I). pose proof (many_0 (spent_in s t) (units c)).
    pose proof (many_0 (is_old a) (units c)). repeat split; try assumption.
    destruct (Z.leb_spec (closes c) s).
    - left. apply none. intros u Iu U. pose proof (ends c u I Iu) as E. revert E U. unfold spent_in, within.
      destruct (end_ u); try discriminate. rewrite andb_true_iff, Z.leb_le, Z.ltb_lt. lia.
    - right. apply none. intros u Iu U. pose proof (ends c u I Iu) as E. revert E U.
      unfold is_old, spent_in, returned_in, within.
      destruct (end_ u); simpl; rewrite ?orb_false_r, ?andb_false_r; try discriminate;
        rewrite !andb_true_iff, !Z.leb_le, !Z.ltb_lt; lia. }
  assert (K : sum spends clients = 0 \/ sum spends clients + N <= sum (net a t) clients + C a * N).
  { clear - H N_0. unfold C. set (k := fun c => Z.b2z (counts a c)).
    enough (sum spends clients = 0 /\ 0 <= sum (net a t) clients + sum k clients * N
      \/ sum spends clients + N <= sum (net a t) clients + sum k clients * N) by tauto.
    induction clients as [|c cs IH]; simpl in *; [lia|]. specialize (IH (fun c I => H c (or_intror I))).
    specialize (H c (or_introl eq_refl)). change (k c) with (Z.b2z (counts a c)). unfold counts.
    destruct (Z.ltb_spec 0 (spends c + old a c)); simpl Z.b2z; lia. }
  specialize (cap_0 (t - s + hold)). nia.
Qed.
End Budgets.
