/* Holds, for Spin. Each caller has one request, which must be charged once. It holds an estimate, renews the hold, settles
   it by its id, and asks again if no reply comes. Requests and replies are lost, requests arrive late, callers die, holds
   lapse, and a replica that lacks the last writes takes over. There are two levels: a caller's own limit, and everybody's.

   Variables of the environment: RULE breaks a rule, ALONE=1 leaves out the second caller, FAILOVER=1, JUMP=1 (the server's
   clock gets ahead by a tick), MARGIN=1 (callers count E a tick early), RESEND=1 (a proxy sends holds twice), STRICT (an
   exception that isn't accepted). The second caller's calls aren't lost: else there would be millions of states. */
#define CALLERS 2
#define TRIES 2                 /* ids of a caller's holds; also its tries of a settlement */
#define IDS (CALLERS * TRIES)   /* the ids of caller c are c * TRIES + 0, 1, ... */
#define TTL 2                   /* ticks */
#define OWN 3                   /* the limits of the two levels */
#define ALL 4
#define ESTIMATE 2

/* The rules that RULE breaks. Letters are those of the contract. */
#define RENEWAL_TAKES  (rule == 1) /* (b) a renewal that finds nothing takes slots */
#define RELEASE_ADMITS (rule == 2) /* RELEASE admits although the id holds nothing */
#define ID_AGAIN       (rule == 3) /* (a) the next try of a hold has the same id */
#define CHARGES_LATE   (rule == 4) /* (c) charges again from E on */
#define E_FROM_REPLY   (rule == 5) /* (c) E counts from the reply */
#define PLAIN_FORCE    (rule == 6) /* (d) charges a lost hold by FORCE without a hold */
#define ONE_LEVEL      (rule == 7) /* judges a hold at its own level only */
#define GROWS          (rule == 8) /* a renewal adds its slots */
#define NO_TTL         (rule == 9) /* slots don't lapse */

mtype = { nothing, flight, admitted, limited, hold, settle, counted, refused, unknown, dead };
c_decl { \#include <stdlib.h> }
byte rule, failover, resend, alone, jump, margin, strict;

byte left[IDS], slots[IDS], charged[IDS];    /* the server: ticks until an id lapses, its slots, its charges */
byte left2[IDS], slots2[IDS], charged2[IDS]; /* its replica, which gets no more writes once it is cut off */
bit cut, failed;

byte id[CALLERS], cost[CALLERS], e[CALLERS], sent[CALLERS]; /* e: ticks until E; sent: what e will be if the call is admitted */
mtype kind[CALLERS], call[CALLERS], renewal[CALLERS], end[CALLERS]; /* call: a request on its way, or a reply */
byte sent_renewal[CALLERS], ask[IDS]; /* ask: the slots to hold */
bit late_hold[IDS], late_renewal[IDS], late_settle[IDS], plain[IDS]; /* requests whose reply nobody awaits */
bit lost_hold[CALLERS], lost_renewal[CALLERS], lost_charge[CALLERS]; /* by the failover, of a caller */
hidden byte k, held, spent, all_held, all_spent;

#define HELD(i) (slots[i] > 0 && left[i] > 0)
#define OWNER(i) (i / TRIES)
#define REPLIED(c) (call[c] == admitted || call[c] == limited)

/* add sums up what is held and spent at both levels. */
inline add(c) {
  held = 0; spent = 0; all_held = 0; all_spent = 0;
  for (k : 0 .. IDS - 1) {
    all_held = all_held + (HELD(k) -> slots[k] : 0);
    held = held + (HELD(k) && OWNER(k) == c -> slots[k] : 0);
    all_spent = all_spent + charged[k] * cost[OWNER(k)];
    spent = spent + (OWNER(k) == c -> charged[k] * cost[c] : 0)
  }
}

/* Exactly once: a request is never charged twice; it is charged if its caller counts it so, and isn't if it was refused.
   The exceptions of STRICT: the failover lost the hold, a charge that the caller knew of, or the last renewal. */
#define excused(c) (lost_hold[c] && strict != 1 || lost_charge[c] && strict != 2 || lost_renewal[c] && strict != 3)
inline check(c) {
  add(c);
  assert(spent <= cost[c]);
  assert(end[c] != counted || spent == cost[c] || excused(c));
  assert(end[c] != refused || spent == 0)
}

/* GO.ALL QUOTA .. 0 LEASE .. id n SHARE 1, then the same at the other level. */
inline take(c, i, n, reply) {
  add(c);
  if
  :: HELD(i) -> reply = admitted; left[i] = TTL
  :: else ->
     if
     :: spent + held + n <= OWN && (all_spent + all_held + n <= ALL || ONE_LEVEL) ->
        reply = admitted; left[i] = TTL; slots[i] = n;
        add(c);
        assert(spent + held <= OWN && all_spent + all_held <= ALL)
     :: else -> reply = limited
     fi
  fi
}
inline renew(c, i, reply) {
  if
  :: HELD(i) -> reply = admitted; left[i] = TTL; slots[i] = slots[i] + (GROWS -> ESTIMATE : 0)
  :: else -> reply = limited; if :: RENEWAL_TAKES -> take(c, i, ESTIMATE, reply) :: else fi
  fi;
  add(c);
  assert(all_held <= ALL)
}
/* GO.ALL RELEASE id, QUOTA .. cost FORCE, at both levels. A released id's time runs on, to notice a lost renewal. */
inline pay(c, i, reply) {
  if
  :: HELD(i) || RELEASE_ADMITS || plain[i] -> reply = admitted; slots[i] = 0; charged[i]++
  :: else -> reply = limited
  fi;
  check(c)
}

/* The network: each request of an id arrives at some time, or never. */
mtype ignored;
proctype network(byte c, i) {
  do
  :: d_step { id[c] == i && kind[c] == hold && call[c] == flight ->
       take(c, i, ask[i], call[c]); late_hold[i] = late_hold[i] || resend }
  :: d_step { id[c] == i && kind[c] == settle && call[c] == flight -> pay(c, i, call[c]) }
  :: d_step { id[c] == i && renewal[c] == flight -> renew(c, i, renewal[c]) }
  :: d_step { late_hold[i] -> take(c, i, ask[i], ignored); late_hold[i] = 0; ignored = 0 }
  :: d_step { late_settle[i] -> pay(c, i, ignored); late_settle[i] = 0; ignored = 0 }
  :: d_step { late_renewal[i] -> renew(c, i, ignored); late_renewal[i] = 0; ignored = 0 }
  od
}

#define I id[c]
#define LOSES (c == 0)
#define BEFORE_E (e[c] > margin)
#define SEND(what) kind[c] = what; call[c] = flight
/* Nobody awaits the reply any more: the request arrives later, or it did and the reply is lost. */
#define GIVE_UP(late) late[I] = late[I] || call[c] == flight; call[c] = nothing; lost_charge[c] = 0
#define GIVE_UP_RENEWAL late_renewal[I] = late_renewal[I] || renewal[c] == flight; renewal[c] = nothing; sent_renewal[c] = 0
#define END(as) GIVE_UP_RENEWAL; call[c] = nothing; e[c] = 0; end[c] = as

proctype caller(byte c) {
  bit lost, renewed, unsure; /* unsure: a try of the settlement got no reply */
  byte tries;
try:
  atomic { SEND(hold); sent[c] = TTL; ask[I] = (lost -> 1 : ESTIMATE) }
  if
  :: atomic { call[c] == admitted -> e[c] = (E_FROM_REPLY -> TTL : sent[c]); sent[c] = 0; call[c] = nothing };
     if :: lost -> goto charge :: else -> goto work fi
  :: atomic { call[c] == limited -> sent[c] = 0; END(refused); check(c) }; goto stop
  :: atomic { call[c] != nothing && LOSES -> GIVE_UP(late_hold); sent[c] = 0 }
  fi;
again:
  if
  :: atomic { tries < TRIES - 1 -> tries++; I = I + (ID_AGAIN -> 0 : 1);
       lost_hold[c] = 0; lost_renewal[c] = 0; lost_charge[c] = 0 }; goto try
  :: atomic { tries == TRIES - 1 -> END(refused); check(c) }; goto stop
  fi;
work:
  do
  :: atomic { !renewed && LOSES -> renewed = 1; renewal[c] = flight; sent_renewal[c] = TTL }
  :: atomic { renewal[c] == admitted -> e[c] = (E_FROM_REPLY -> TTL : sent_renewal[c]);
       renewal[c] = nothing; sent_renewal[c] = 0 }
  :: goto charge
  :: atomic { GIVE_UP_RENEWAL; END(dead) }; goto stop
  od;
charge:
  atomic { GIVE_UP_RENEWAL; SEND(settle); unsure = 0 }
reply:
  if
  :: atomic { call[c] == admitted -> END(counted); check(c) }
  :: atomic { call[c] == limited && BEFORE_E && unsure -> END(counted); check(c) }
  :: atomic { call[c] == limited && (!unsure || !BEFORE_E && CHARGES_LATE) ->
       call[c] = nothing; lost = 1; plain[I] = PLAIN_FORCE };
     if :: PLAIN_FORCE -> goto charge :: else -> goto again fi
  :: atomic { call[c] == limited && !BEFORE_E && unsure -> END(unknown) }
  :: atomic { call[c] != nothing && !unsure && LOSES -> GIVE_UP(late_settle); unsure = 1; SEND(settle) }; goto reply
  :: atomic { call[c] != nothing && unsure && !BEFORE_E -> GIVE_UP(late_settle); END(unknown) }
  :: atomic { call[c] != nothing -> GIVE_UP(late_settle); END(dead) }
  fi;
stop:
}

inline age() {
  for (k : 0 .. IDS - 1) {
    left[k] = left[k] - (left[k] > 0 && !NO_TTL -> 1 : 0);
    left2[k] = left2[k] - (left2[k] > 0 && !NO_TTL -> 1 : 0)
  }
}
inline tick() {
  age();
  for (k : 0 .. CALLERS - 1) {
    e[k] = e[k] - (e[k] > 0 -> 1 : 0);
    sent[k] = sent[k] - (sent[k] > 0 -> 1 : 0);
    sent_renewal[k] = sent_renewal[k] - (sent_renewal[k] > 0 -> 1 : 0)
  }
  k = 0
}

/* At the failover, the replica's state becomes the server's. */
inline take_over() {
  for (k : 0 .. CALLERS - 1) {
    lost_charge[k] = charged[id[k]] > charged2[id[k]] && (end[k] == counted || kind[k] == settle && REPLIED(k));
    lost_hold[k] = slots2[id[k]] == 0 && charged2[id[k]] == 0 && (slots[id[k]] > 0 || charged[id[k]] > 0);
    lost_renewal[k] = !lost_hold[k] && left[id[k]] > left2[id[k]]
  }
  for (k : 0 .. IDS - 1) {
    left[k] = left2[k]; slots[k] = slots2[k]; charged[k] = charged2[k];
    left2[k] = 0; slots2[k] = 0; charged2[k] = 0
  }
}

init {
  byte c, i;
  d_step {
    c_code {
      #define SET(what, name) now.what = getenv(name) ? atoi(getenv(name)) : 0
      SET(rule, "RULE"); SET(alone, "ALONE"); SET(failover, "FAILOVER"); SET(jump, "JUMP"); SET(margin, "MARGIN");
      SET(resend, "RESEND"); SET(strict, "STRICT");
    };
    for (c : 0 .. CALLERS - 1) {
      id[c] = c * TRIES; call[c] = nothing; renewal[c] = nothing; end[c] = nothing; kind[c] = hold
    }
    ignored = 0
  }
  atomic {
    for (c : 0 .. CALLERS - 1) {
      if :: cost[c] = 1 :: cost[c] = 3 fi; /* less, or more, than the estimate */
      if :: c == 0 || !alone -> run caller(c); for (i : 0 .. TRIES - 1) { run network(c, c * TRIES + i) }
      :: else -> end[c] = dead fi
    }
    c = 0; i = 0
  }
  do
  :: d_step { tick() }
  :: d_step { jump -> age(); jump = 0 }
  :: d_step { failover && !cut ->
       for (k : 0 .. IDS - 1) { left2[k] = left[k]; slots2[k] = slots[k]; charged2[k] = charged[k] }
       cut = 1 }
  :: d_step { cut && !failed -> take_over(); failed = 1 }
  :: d_step { end[0] != nothing && end[CALLERS - 1] != nothing -> /* nothing is held for ever */
       tick(); tick();
       for (k : 0 .. IDS - 1) { assert(!HELD(k)) }
       k = 0 }; break
  od
}
