package main

import "time"

// Peak is the most that was admitted in any span of one period.
type Peak struct {
	Units  int64 `json:"units"`
	FromMS int64 `json:"from"` // the first and the last call of the span
	ToMS   int64 `json:"to"`
}

// peaks finds the peak of one key as calls come in. A decision falls between the instants at which its call was sent
// and its reply came. Only what fell into one period for certain is counted together, so the peak is never too high.
type peaks struct {
	period time.Duration
	within []admission
	sum    int64
	most   Peak
}

type admission struct {
	sent, replied time.Duration
	units         int64
}

func (p *peaks) add(a admission) {
	if p.period == 0 {
		return
	}
	p.within = append(p.within, a)
	p.sum += a.units
	for a.replied-p.within[0].sent >= p.period {
		p.sum -= p.within[0].units
		p.within = p.within[1:]
		if len(p.within) == 0 {
			return
		}
	}
	if p.sum > p.most.Units {
		p.most = Peak{p.sum, p.within[0].sent.Milliseconds(), a.replied.Milliseconds()}
	}
}
