"""Makes the calls of the transcripts by the client, where it has a verb for them: TestCorpus says how."""
import json, math, os, re, sys
import gothrottle

limits = gothrottle.connect(f"redis://{os.environ['ADDR']}", timeout=20)


class Lacks(Exception):
    """The client doesn't make this call."""


def number(word):
    if not re.fullmatch(r"-?(0|[1-9]\d{0,14})", word):
        raise Lacks
    return int(word)


def span(word, ms):
    if re.fullmatch(r"[1-9]\d*(ms|s|m|h|d)", word):
        return word
    return f"{number(word)}{'ms' if ms else 's'}"


def limiter(words, ms):
    """Reads a clause. Returns its limiter, its quantity, the weight of its share, and whether it has FORCE."""
    name, *words = words or [""]
    if name not in ("THROTTLE", "WINDOW", "QUOTA"):
        raise Lacks
    first = [number(words.pop(0)) for _ in range(2 if name == "THROTTLE" else 1)]
    period = words.pop(0)
    n = number(words.pop(0)) if words and re.match(r"[-\d]", words[0]) else 1
    more, weight, force = {}, 0, False
    while words:
        word = words.pop(0)
        if word == "LOCKOUT" and name == "THROTTLE" and "lockout" not in more:
            more["lockout"] = span(words.pop(0), ms)
        elif word == "EXACT" and name == "WINDOW" and "exact" not in more:
            more["exact"] = True
        elif word == "ALIGN" and name == "QUOTA" and words[0] == "0":
            more["zone"] = words.pop(0) and "UTC"
        elif word == "SHARE" and not weight and words[0] != "0":
            weight = number(words.pop(0))
        elif word == "FORCE":
            force = True
        else:
            raise Lacks
    period = period if period == "1mo" and "zone" in more else span(period, ms)
    if name == "THROTTLE":
        made = limits.rate("k", per=(first[1], period), burst=first[0] + 1, **more)
    else:
        made = (limits.window if name == "WINDOW" else limits.quota)("k", first[0], period, **more)
    made._key = lambda key: key  # without the name
    return made, n, weight, force


def integers(r, ms, peeked=False):
    unit = lambda seconds: round(seconds * 1000) if ms else math.ceil(round(seconds, 6))
    retry = unit(r.retry_after) if 0 < r.retry_after < gothrottle.NEVER else -1
    return [0 if r.allowed or peeked and retry < 0 else 1, r.limit, r.remaining, retry, unit(r.reset_after)]


def all(key, words, ms):
    parts = []
    while key:
        end = words.index("KEY") if "KEY" in words else len(words)
        made, n, weight, force = limiter(words[:end], ms)
        if force:
            raise Lacks
        parts.append(made.part(key, n, weight))
        key, words = words[end + 1] if end < len(words) else "", words[end + 2:]
    result = limits.all(*parts)
    return [*integers(result, ms), result.decider, *(integers(one, ms) for one in result.each)]


def one(name, key, words, ms):
    kind, _, read_only = name.partition("_")
    made, n, weight, force = limiter([kind, *words], ms)
    if weight or force and (n < 0 or made._by.lockout or read_only) or read_only and n:
        raise Lacks
    if force:
        return integers(made.settle(key, n), ms)
    if n == 0:
        return integers(made.peek(key), ms, peeked=True)
    return integers(made.allow(key, n) if n > 0 else made.refund(key, -n), ms)


def answer(words):
    name, key, *words = [*words, ""][:max(len(words), 2)]
    ms = words[-1:] == ["MS"]
    words = words[:-1] if ms else words
    if "" in words or "MS" in words or not name.startswith("GO.") or not key:
        return None  # an error, or an order that the client doesn't write
    try:
        return all(key, words, ms) if name == "GO.ALL" else one(name[3:], key, words, ms)
    except (Lacks, IndexError, gothrottle.ParamsError, gothrottle.NoModuleError):
        return None  # the transcript's own words may say more


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
