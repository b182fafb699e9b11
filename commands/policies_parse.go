package commands

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxPolicies bounds the text of all policies, in bytes: the server waits while it is parsed.
const maxPolicies = 1 << 20

// ParsePolicies reads the value of the configuration "policies":
//
//	name [SHADOW] clause [, clause ...] [; name [SHADOW] clause [, clause ...] ...] [;]
//
// White space separates words. Keywords may be in any case. A text without a word is no
// policies. The error of a wrong text is a sentence of printable ASCII that names the place. It has
// at most maxPolicyError bytes. The memory of text is the caller's again when ParsePolicies returns.
func ParsePolicies(text string) (*Policies, error) {
	if len(text) > maxPolicies {
		return nil, fmt.Errorf("the text has %d bytes; at most %d are allowed", len(text), maxPolicies)
	}
	p := &Policies{text: strings.Join(strings.Fields(strings.Clone(text)), " ")}
	if p.text == "" {
		return p, nil
	}
	entries := strings.Split(p.text, ";")
	if last := len(entries) - 1; strings.TrimSpace(entries[last]) == "" {
		entries = entries[:last] // what follows a semicolon at the end
	}
	numbers := map[string]int{}
	for i, entry := range entries {
		at := policyPlace{number: i + 1}
		policy, err := parsePolicy(&at, entry)
		if err != nil {
			return nil, err
		}
		if before := numbers[policy.name]; before != 0 {
			return nil, at.fail("policy %d has the same name", before)
		}
		numbers[policy.name] = at.number
		p.byName = append(p.byName, policy)
	}
	slices.SortFunc(p.byName, func(a, b Policy) int { return cmp.Compare(a.name, b.name) })
	return p, nil
}

// policyPlace is where an error is.
type policyPlace struct {
	number int    // of the policy, from 1
	name   string // of the policy; "" if not known yet
	clause int    // from 1; named if it is not the first
}

// maxPolicyError bounds the text of an error: the server keeps 255 bytes of it.
const maxPolicyError = 255

func (at *policyPlace) fail(format string, args ...any) error {
	place := fmt.Sprintf("policy %d", at.number)
	if at.name != "" {
		place += fmt.Sprintf(" (%s)", at.name)
	}
	if at.clause > 1 {
		place += fmt.Sprintf(", clause %d", at.clause)
	}
	return errors.New(place + ": " + fmt.Sprintf(format, args...))
}

// printable cuts a word and replaces its unprintable bytes.
func printable(word string) string { return string(appendWord(nil, word)) }

func parsePolicy(at *policyPlace, entry string) (p Policy, err error) {
	for i, text := range strings.Split(entry, ",") {
		words := strings.Fields(text)
		if i == 0 {
			if words, err = p.parseName(at, words); err != nil {
				return p, err
			}
		}
		at.clause = i + 1
		clause, err := parsePolicyClause(at, words)
		if err != nil {
			return p, err
		}
		p.clauses = append(p.clauses, clause)
		if len(p.clauses) > 1 && (!clauseKinds[clause.kind].cells || clause.kind != p.clauses[0].kind) {
			return p, at.fail("a %s clause must be the only one", keywords(aloneInPolicy))
		}
		if len(p.clauses) > MaxClauses {
			return p, at.fail("at most %d clauses", MaxClauses)
		}
	}
	at.clause = 0
	return p, nil
}

// parseName reads the words before the first clause and returns the others.
func (p *Policy) parseName(at *policyPlace, words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, at.fail("the name is missing")
	}
	if p.name = words[0]; !isPolicyName(p.name) {
		return nil, at.fail("a name must be 1 to %d of a-z 0-9 _ - . and not '%s'", maxPolicyName, printable(p.name))
	}
	at.name = p.name
	words = words[1:]
	if p.shadow = len(words) > 0 && isWord(words[0], "SHADOW"); p.shadow {
		words = words[1:]
	}
	return words, nil
}

func isPolicyName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return len(name) <= maxPolicyName
}

// parsePolicyClause reads all words of a clause: those of GO.ALL's, without a quantity.
func parsePolicyClause(at *policyPlace, words []string) (clause policyClause, err error) {
	if len(words) == 0 {
		return clause, at.fail("a clause is missing")
	}
	i := findClause(words[0])
	if i == noClause || !clauseKinds[i].units {
		return clause, at.fail("a clause must begin with %s, not '%s'", keywords(inPolicies), printable(words[0]))
	}
	c, kind := Call{Args: words, Keys: make([]Key, 1), Clauses: make([]Clause, 0, 1)}, clauseKinds[i]
	next, wrong := c.planClause(i, 1)
	if wrong == ErrClauseShort {
		return clause, at.failCall(&c, wrong)
	}
	w := c.Clauses[0].clauseWords
	if w.quantityWord > 0 {
		next, wrong = int(w.quantityWord), NoError
		w.opts, w.quantityWord = 0, 0
	}
	if wrong == NoError && next < len(words) {
		wrong = ErrUnknownOption
	}
	clause.kind, clause.limiter = int16(i), kind.in(new(room))
	limit, code := clause.limiter.parse(words, &request{clauseWords: w, quantity: 1})
	clause.limit = limit
	switch {
	case code != NoError && !lacksALIGN(code, wrong): // the words from the left are judged first
		return clause, at.wrongWord(code, words, &w)
	case wrong == ErrShareFirst || wrong == ErrShareCells:
		return clause, at.fail("a policy cannot have SHARE: use GO.ALL")
	case wrong == ErrUnknownOption:
		return clause, at.fail("unknown option '%s': a %s clause may have %s, and another clause needs a comma before it",
			printable(words[next]), kind.keyword, (kind.option &^ optShare).appendList(nil))
	case wrong != NoError:
		return clause, at.failCall(&c, wrong)
	}
	return clause, nil
}

// failCall returns the error of a call whose only clause is that of the policy.
func (at *policyPlace) failCall(c *Call, code ErrorCode) error {
	c.ErrClause = 0
	return at.fail("%s", strings.TrimPrefix(string(c.AppendError(nil, code)), "ERR "))
}

func inPolicies(kind *clauseKind) bool    { return kind.units }
func aloneInPolicy(kind *clauseKind) bool { return kind.units && !kind.cells }

// wrongWord returns the error of a word that a limiter has read.
func (at *policyPlace) wrongWord(code ErrorCode, words []string, w *clauseWords) error {
	word := words[w.wrong(code)]
	if code == ErrWindowTooLong {
		word = strings.Join(words[w.first:w.period+1], " ")
	}
	name := "period"
	switch code {
	case ErrOffsetNotTime:
		return at.fail("offset must be a time such as -1h, or a UTC offset such as +01:00: '%s'", printable(word))
	case ErrLockoutNotTime:
		name = "the time of LOCKOUT"
	case ErrPeriodNotTime:
	default:
		return at.fail("%s: '%s'", strings.TrimPrefix(code.Text(), "ERR "), printable(word))
	}
	if hint := timeHint(word); hint != "" {
		return at.fail("%s is not a time: did you mean %s?", name, hint)
	}
	return at.fail("%s must be an integer with a unit, such as 250ms, 5s, 15m, 1h or 1d: '%s'", name, printable(word))
}
