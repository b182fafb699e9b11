package resp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
	"gothrottle/script"
	"gothrottle/tests/corpus"
)

// Over the wire, every command replies and replicates what the transcripts say: in both protocols, by name and by the script.
func TestCorpus(t *testing.T) {
	for _, protocol := range []string{"2", "3"} {
		for _, byScript := range []bool{false, true} {
			if testing.Short() && byScript == (protocol == "2") {
				continue
			}
			h := &host{t: t, byScript: byScript}
			s := resp.NewNetwork(resp.Options{Now: func() time.Time { return time.UnixMicro(h.now) }}).Add("10.0.0.1:6379")
			s.Change(func(f *resp.Faults) { f.NoModule = byScript })
			h.Memory = &corpus.Memory{Server: s.Memory()}
			h.Observe(func(command []string) { h.effects = append(h.effects, command) })
			raw, err := s.Dial(ctx, "tcp", s.Addr)
			require.NoError(t, err)
			h.raw, h.in = raw, bufio.NewReader(raw)
			h.ask("HELLO", protocol)
			h.sha = h.ask("SCRIPT", "LOAD", script.Text).(string)
			corpus.Run(t, h, "../../../tests/corpus", corpus.Options{Script: byScript, Wide: true})
			s.Cut()
		}
	}
}

// host is a server, over one connection, as a host of the transcripts.
type host struct {
	*corpus.Memory // by which the server decides
	t              *testing.T
	byScript       bool
	sha            string
	now            int64
	effects        [][]string
	raw            net.Conn
	in             *bufio.Reader
}

func (h *host) Begin(now int64) {
	h.now = now
	h.Memory.Begin(now)
}

func (h *host) Clock(now int64) { h.now = now }

func (h *host) Call(words []string) (reply any, effects [][]string) {
	own := strings.HasPrefix(strings.ToUpper(words[0]), "GO.") || strings.HasPrefix(strings.ToUpper(words[0]), "CL.")
	if h.effects = nil; own && h.byScript {
		reply = h.ask(corpus.ByScript("EVALSHA", h.sha, words)...)
	} else {
		reply = h.ask(corpus.Args(words)...)
	}
	if !own {
		return reply, nil
	}
	return reply, h.effects
}

// ask sends one command and reads its reply.
func (h *host) ask(words ...any) any {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, arg := range words {
		word := fmt.Sprint(arg)
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	_, err := io.WriteString(h.raw, text)
	require.NoError(h.t, err)
	reply, err := corpus.ReadReply(h.in)
	require.NoError(h.t, err)
	return reply
}
