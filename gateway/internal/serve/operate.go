package serve

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"gothrottle/gateway/internal/rules"
)

// explain says which limits a request has, why, and what is in use. It takes nothing.
func (s *Service) explain(w http.ResponseWriter, r *http.Request) {
	say := func(f rules.Found) string { return s.engine.Describe(r.Context(), f) }
	domain, descriptors, err := explained(w, r)
	set := s.Rules.Load()
	switch d := set.Domains[domain]; {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case r.Method == http.MethodGet:
		for _, name := range slices.Sorted(maps.Keys(set.HTTP)) {
			fmt.Fprintf(w, "domain %s: %s\n", name, strings.Join(set.HTTP[name].Explain(r, say), "\n"))
		}
	case d == nil:
		fmt.Fprintf(w, "no limit: no rules have the domain %q\n", domain)
	default:
		for _, one := range descriptors {
			fmt.Fprintln(w, strings.Join(d.Explain(one, say), "\n"))
		}
	}
}

// explained returns the descriptors of a RateLimitRequest in a body, if there is one, without the entry of settleKey.
func explained(w http.ResponseWriter, r *http.Request) (domain string, descriptors []rules.Descriptor, err error) {
	if r.ContentLength == 0 && r.Method != http.MethodPost {
		return "", nil, nil
	}
	req, err := readRequest(w, r)
	for _, one := range req.GetDescriptors() {
		entries := one.GetEntries()[:min(len(one.GetEntries()), rules.MaxEntries)]
		if last := len(entries) - 1; last >= 0 && entries[last].GetKey() == settleKey {
			entries = entries[:last]
		}
		descriptors = append(descriptors, entries)
	}
	return req.GetDomain(), descriptors, err
}

// reset forgets what is in use of the limits that a request has, for rules that match ?rule=. A limit around a share stays:
// others use it, too.
func (s *Service) reset(w http.ResponseWriter, r *http.Request) {
	domain, descriptors, err := explained(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var found []rules.Found
	set := s.Rules.Load()
	if d := set.Domains[domain]; d != nil {
		for _, one := range descriptors {
			found = append(found, d.Match(one).All()...)
		}
	} else if descriptors == nil {
		r.Method = http.MethodGet // as /explain takes it, unless a header says otherwise
		for _, h := range set.HTTP {
			found = append(found, h.Match(r)...)
		}
	}
	var known, lines []string
	rule, status := rules.Pattern(r.URL.Query().Get("rule")), http.StatusOK
	for _, f := range found {
		if f.Limit == nil || f.Unlimited {
			continue
		}
		if known = append(known, f.Path); rule.Match(f.Path) {
			line, err := s.resetOne(r, f)
			if lines = append(lines, line); err != nil {
				status = http.StatusServiceUnavailable
			}
		}
	}
	if lines == nil {
		http.Error(w, fmt.Sprintf("nothing is reset: add ?rule= with a rule of the request, or a pattern such as *: %q", known), http.StatusBadRequest)
		return
	}
	w.WriteHeader(status)
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// resetOne resets a limit, and returns a line that says so.
func (s *Service) resetOne(r *http.Request, f rules.Found) (line string, err error) {
	before := s.engine.Describe(r.Context(), f)
	err = s.engine.Reset(r.Context(), f)
	s.engine.Log.Info("a limit is reset", "rule", f.Path, "before", before, "by", r.RemoteAddr, "error", err)
	if err != nil {
		return fmt.Sprintf("NOT reset: %s: %v", before, err), err
	}
	return "reset: " + before, nil
}

// top shows the keys that the server has denied most often.
func (s *Service) top(w http.ResponseWriter, r *http.Request) {
	lines, err := s.engine.Top(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, strings.Join(append([]string{"denied\tkey"}, lines...), "\n"))
}

// ServerTook counts how long a call to the server took.
func (s *Service) ServerTook(seconds float64) { s.metrics.serverTook.Observe(seconds) }
