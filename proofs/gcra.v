(* GO.THROTTLE: GCRA, as a bucket that drains. Its rate may change from call to call. Times are in nanoseconds, units are
   rationals. A rate is in units per ns and in lowest terms: its denominator is its period in ns. *)
Require Import QArith Qminmax Qround Lqa Lia List.
Import ListNotations.
Open Scope Q_scope.

Record state := { used : Q; own : Q }. (* the units in use, and the rate at which they drain *)

Inductive call :=
| Take (n : Z)    (* all or nothing *)
| UpTo (n : Z)    (* what is left, if that is less *)
| Force (n : Z)   (* past the limit *)
| Raise (n : Z)   (* usage becomes at least n *)
| Refund (n : Z). (* at most what is in use *)

(* What is in use after a time t. *)
Definition drained s t := Qmax 0 (used s - own s * t).
(* The same for a call at rate r: rounded up to what drains in a part of a nanosecond. *)
Definition up (r x : Q) := Qceiling (x * inject_Z (Zpos (Qden r))) # Qden r.
Definition usage s t r := up r (drained s t).

Definition admits (L : Z) (r t : Q) s (n : Z) := usage s t r + inject_Z n <= inject_Z L.

(* A call at rate r and with limit L, a time t after the one before. The result is the state after it and the units granted:
   fewer than 0 are given back. *)
Definition step (L : Z) (r t : Q) (s : state) (c : call) : state * Q :=
  let u := usage s t r in
  let unchanged := {| used := drained s t; own := own s |} in
  let to x := ({| used := u + x; own := r |}, x) in
  match c with
  | Take n => if (L <? n)%Z then (unchanged, 0)
              else if Qlt_le_dec (inject_Z L) (u + inject_Z n) then to 0 else to (inject_Z n)
  | UpTo n => to (inject_Z (Z.max 0 (Z.min n (Qfloor (inject_Z L - u)))))
  | Force n => to (inject_Z n)
  | Raise n => if Qlt_le_dec u (inject_Z n) then to (inject_Z n - u) else (unchanged, 0)
  | Refund n => to (- Qmin (inject_Z n) u)
  end.

(* A history: each call's limit, rate, and time since the call before. run returns the last state, the units granted less
   those given back, and what drains meanwhile. *)
Definition history := list (Z * Q * Q * call).
Definition asked c := match c with Take n | UpTo n | Force n | Raise n | Refund n => n end.
Definition fine (h : history) := Forall (fun '(L, r, t, c) => 0 < r /\ 0 <= t /\ (0 <= asked c)%Z) h.
Fixpoint run s (h : history) : state * Q * Q :=
  match h with
  | [] => (s, 0, 0)
  | (L, r, t, c) :: h => let '(s1, g) := step L r t s c in
                         let '(s2, g', d) := run s1 h in (s2, g + g', own s * t + d)
  end.

Lemma up_le r x : x <= up r x.
Proof.
  unfold up. pose proof (Qle_ceiling (x * inject_Z (Zpos (Qden r)))) as C. revert C.
  generalize (Qceiling (x * inject_Z (Zpos (Qden r)))). intros z C.
  rewrite Qmake_Qdiv. apply Qle_shift_div_l; [reflexivity | exact C].
Qed.

(* Rounding never passes a whole number of units. *)
Lemma up_whole r x (m : Z) : x <= inject_Z m -> up r x <= inject_Z m.
Proof.
  intros H. unfold up. set (p := Zpos (Qden r)).
  assert (C : (Qceiling (x * inject_Z p) <= m * p)%Z).
  { rewrite <- (Qceiling_Z (m * p)). apply Qceiling_resp_le. rewrite inject_Z_mult.
    apply Qmult_le_compat_r; [exact H | discriminate]. }
  unfold Qle. simpl. fold p. lia.
Qed.

Lemma usage_bounds s t r : 0 <= usage s t r /\ used s - own s * t <= usage s t r.
Proof.
  pose proof (up_le r (drained s t)) as H. fold (usage s t r) in H. unfold drained in H.
  pose proof (Q.le_max_l 0 (used s - own s * t)). pose proof (Q.le_max_r 0 (used s - own s * t)). lra.
Qed.

Lemma drained_bounds s t : 0 <= used s -> 0 <= own s * t -> 0 <= drained s t <= used s /\ used s - own s * t <= drained s t.
Proof. intros. unfold drained. destruct (Q.max_spec 0 (used s - own s * t)) as [[? E]|[? E]]; rewrite E; lra. Qed.

Lemma step_keeps L r t s c : 0 < r -> 0 <= t -> (0 <= asked c)%Z -> 0 <= used s -> 0 < own s ->
  let '(s', g) := step L r t s c in 0 <= used s' /\ 0 < own s' /\ g <= used s' - used s + own s * t.
Proof.
  intros Hr Ht Hc Hu Ho. assert (Hot : 0 <= own s * t) by (apply Qmult_le_0_compat; lra).
  pose proof (usage_bounds s t r) as [U0 U1]. pose proof (drained_bounds s t Hu Hot) as D.
  destruct c as [n|n|n|n|n]; cbn [step asked used own] in *; rewrite Zle_Qle in Hc; change (inject_Z 0) with 0 in Hc.
  - destruct (L <? n)%Z; [|destruct Qlt_le_dec]; cbn [used own]; lra.
  - assert (H : 0 <= inject_Z (Z.max 0 (Z.min n (Qfloor (inject_Z L - usage s t r))))) by
      (change 0 with (inject_Z 0); rewrite <- Zle_Qle; lia). lra.
  - lra.
  - destruct Qlt_le_dec; cbn [used own]; lra.
  - destruct (Q.min_spec (inject_Z n) (usage s t r)) as [[? E]|[? E]]; rewrite E; lra.
Qed.

(* What was granted is in use at the end, was in use at the start, or has drained. *)
Theorem conservation h : fine h -> forall s, 0 <= used s -> 0 < own s ->
  let '(s', g, d) := run s h in 0 <= used s' /\ g <= used s' - used s + d.
Proof.
  induction 1 as [|[[[L r] t] c] h (Hr & Ht & Hc) Hf IH]; intros s Hu Ho; simpl; [lra|].
  pose proof (step_keeps L r t s c Hr Ht Hc Hu Ho) as S. destruct (step L r t s c) as [s1 g]. destruct S as (S1 & S2 & S3).
  specialize (IH s1 S1 S2). destruct (run s1 h) as [[s2 g'] d]. lra.
Qed.

(* Calls that stay within limits of at most M leave at most M in use. *)
Definition polite (M : Z) (h : history) :=
  Forall (fun '(L, r, t, c) => (L <= M)%Z /\ match c with Force _ | Raise _ => False | _ => True end) h.
Lemma bounded M h : fine h -> polite M h -> forall s, 0 <= used s <= inject_Z M -> 0 < own s ->
  let '(s', _, _) := run s h in used s' <= inject_Z M.
Proof.
  induction 1 as [|[[[L r] t] c] h (Hr & Ht & Hc) Hf IH]; intros Hp s Hu Ho; simpl; [lra|].
  inversion_clear Hp as [|? ? Hx Hp']; destruct Hx as [HL Hk]. pose proof (step_keeps L r t s c Hr Ht Hc (proj1 Hu) Ho) as S.
  assert (B : used (fst (step L r t s c)) <= inject_Z M).
  { assert (Hot : 0 <= own s * t) by (apply Qmult_le_0_compat; lra).
    pose proof (drained_bounds s t (proj1 Hu) Hot) as D.
    assert (U : usage s t r <= inject_Z M) by (apply up_whole; lra).
    pose proof (usage_bounds s t r) as [U0 _]. rewrite Zle_Qle in HL.
    destruct c as [n|n|n|n|n]; cbn [step asked used own fst] in *; try tauto;
      rewrite Zle_Qle in Hc; change (inject_Z 0) with 0 in Hc.
    - destruct (L <? n)%Z; [|destruct Qlt_le_dec]; cbn [fst used]; lra.
    - pose proof (Qfloor_le (inject_Z L - usage s t r)) as F. set (k := Qfloor _) in *.
      destruct (Z.max_spec 0 (Z.min n k)) as [[? E]|[? E]]; rewrite E; [|change (inject_Z 0) with 0; lra].
      assert (G : inject_Z (Z.min n k) <= inject_Z k) by (rewrite <- Zle_Qle; lia). lra.
    - destruct (Q.min_spec (inject_Z n) (usage s t r)) as [[? E]|[? E]]; rewrite E; lra. }
  destruct (step L r t s c) as [s1 g]. simpl in B. destruct S as (S1 & S2 & _).
  specialize (IH Hp' s1 (conj S1 B) S2). destruct (run s1 h) as [[s2 g'] d]. exact IH.
Qed.

(* In any span, units granted less those given back are at most the largest limit and what drains meanwhile. *)
Theorem promise M h s : fine h -> polite M h -> 0 <= used s <= inject_Z M -> 0 < own s ->
  let '(_, g, d) := run s h in g <= inject_Z M + d.
Proof.
  intros Hf Hp Hu Ho. pose proof (conservation h Hf s (proj1 Hu) Ho) as C. pose proof (bounded M h Hf Hp s Hu Ho) as B.
  destruct (run s h) as [[s' g] d]. lra.
Qed.

(* With FORCE and RAISE, what is in use at the end takes the limit's place. *)
Theorem promise_debt h s : fine h -> 0 <= used s -> 0 < own s -> let '(s', g, d) := run s h in g <= used s' + d.
Proof. intros Hf Hu Ho. pose proof (conservation h Hf s Hu Ho) as C. destruct (run s h) as [[s' g] d]. lra. Qed.

(* If no rate is above R, no more drains than R x the time. *)
Theorem drains R h : fine h -> Forall (fun '(_, r, _, _) => r <= R) h -> forall s, 0 < own s <= R ->
  let '(_, _, d) := run s h in d <= R * fold_right (fun '(_, _, t, _) T => t + T) 0 h.
Proof.
  induction 1 as [|[[[L r] t] c] h (Hr & Ht & Hc) Hf IH]; intros HR s Ho; simpl; [lra|].
  inversion_clear HR as [|? ? Hx HR'].
  assert (O : 0 < own (fst (step L r t s c)) <= R) by
    (destruct c; simpl; try destruct (_ <? _)%Z; try destruct Qlt_le_dec; simpl; lra).
  destruct (step L r t s c) as [s1 g]. specialize (IH HR' s1 O). destruct (run s1 h) as [[s2 g'] d].
  assert (own s * t <= R * t) by (apply Qmult_le_compat_r; lra). lra.
Qed.

(* How long a call for n units must wait that just was denied, in whole ns. *)
Definition wait (L : Z) s (n : Z) := Qceiling ((used s + inject_Z n - inject_Z L) / own s).

(* retry_after is exact: a call for at most the limit that is denied is admitted after wait, if no other comes in between, and
   at no earlier nanosecond. *)
Lemma waits L s n : 0 < own s -> (n <= L)%Z -> inject_Z L < used s + inject_Z n ->
  admits L (own s) (inject_Z (wait L s n)) s n /\ forall e, (e < wait L s n)%Z -> ~ admits L (own s) (inject_Z e) s n.
Proof.
  destruct s as [u r]. unfold admits, usage, drained, wait. cbn [used own]. intros Hr Hn Hd.
  set (x := u + inject_Z n - inject_Z L). set (w := Qceiling (x / r)).
  assert (X : x / r * r == x) by (field; lra).
  assert (S : inject_Z (L - n) == inject_Z L - inject_Z n)
    by (unfold Z.sub; rewrite inject_Z_plus, inject_Z_opp; reflexivity).
  split.
  - pose proof (Qle_ceiling (x / r)) as C. fold w in C.
    assert (K : x <= inject_Z w * r) by (rewrite <- X at 1; apply Qmult_le_compat_r; lra).
    assert (M : up r (Qmax 0 (u - r * inject_Z w)) <= inject_Z (L - n)).
    { apply up_whole. rewrite S. rewrite Zle_Qle in Hn. apply Q.max_lub; unfold x in K; lra. }
    rewrite S in M. lra.
  - intros e He Hf. pose proof (up_le r (Qmax 0 (u - r * inject_Z e))).
    pose proof (Q.le_max_r 0 (u - r * inject_Z e)). pose proof (Qceiling_lt (x / r)) as C. fold w in C.
    assert (K : inject_Z e <= inject_Z (w - 1)) by (rewrite <- Zle_Qle; lia).
    assert (inject_Z e * r < x) by (rewrite <- X; apply Qmult_lt_compat_r; lra). unfold x in *. lra.
Qed.
Theorem retry L r t s n : 0 < r -> (n <= L)%Z -> ~ admits L r t s n ->
  let s' := fst (step L r t s (Take n)) in
  admits L r (inject_Z (wait L s' n)) s' n /\ forall e, (e < wait L s' n)%Z -> ~ admits L r (inject_Z e) s' n.
Proof.
  intros Hr Hn Hd. cbn [step]. assert (E : (L <? n)%Z = false) by (apply Z.ltb_ge; exact Hn). rewrite E.
  unfold admits in Hd. destruct Qlt_le_dec as [H|H]; [|tauto].
  apply (waits L {| used := usage s t r + 0; own := r |} n Hr Hn). cbn [used]. lra.
Qed.
