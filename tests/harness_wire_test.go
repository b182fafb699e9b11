package tests

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wire is one connection that shows what a client library hides: the type of a reply and the
// length of a command in the replication stream.
type wire struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	read int // number of bytes read from in
}

type (
	status    string // +OK
	wireError string // -ERR ...
)

// wire opens a connection. The end of the test of the server closes it.
func (s *server) wire() *wire { return s.wireFor(s.t) }

// wireFor opens a connection for t, which may be a subtest. The end of t closes it.
func (s *server) wireFor(t testing.TB) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	return newWire(t, conn, 1<<16)
}

// newWire reads through a buffer of this many bytes. The end of t closes the connection.
func newWire(t testing.TB, conn net.Conn, buffer int) *wire {
	t.Cleanup(func() { conn.Close() })
	return &wire{t: t, conn: conn, in: bufio.NewReaderSize(conn, buffer)}
}

// do sends one command and returns its reply: status, wireError, int64, string, nil, bool or
// []any. A map of RESP3 becomes a flat []any.
func (w *wire) do(words ...any) any {
	w.t.Helper()
	w.send(words...)
	return w.next()
}

func (w *wire) send(words ...any) {
	w.t.Helper()
	buf := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		s := fmt.Sprint(word)
		buf = fmt.Appendf(buf, "$%d\r\n%s\r\n", len(s), s)
	}
	w.sendRaw(buf)
}

func (w *wire) sendRaw(b []byte) {
	w.t.Helper()
	_, err := w.conn.Write(b)
	require.NoError(w.t, err)
}

// next reads one reply.
func (w *wire) next() any {
	w.t.Helper()
	require.NoError(w.t, w.conn.SetReadDeadline(time.Now().Add(patience)))
	v, err := w.value()
	require.NoError(w.t, err)
	return v
}

func (w *wire) line() (string, error) {
	s, err := w.in.ReadString('\n')
	w.read += len(s)
	if err != nil || len(s) < 2 {
		return "", err
	}
	return s[:len(s)-2], nil
}

func (w *wire) value() (any, error) {
	s, err := w.line()
	if err != nil || s == "" {
		return nil, fmt.Errorf("no reply: %q, %w", s, err)
	}
	kind, rest := s[0], s[1:]
	switch kind {
	case '+':
		return status(rest), nil
	case '-':
		return wireError(rest), nil
	case '_':
		return nil, nil
	case '#':
		return rest == "t", nil
	case ',', '(':
		return rest, nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("odd reply %q: %w", s, err)
	}
	switch kind {
	case ':':
		return n, nil
	case '$', '=':
		if n < 0 {
			return nil, nil
		}
		return w.bytes(int(n))
	case '%':
		return w.values(2 * n)
	case '*', '~', '>':
		if n < 0 {
			return nil, nil
		}
		return w.values(n)
	}
	return nil, fmt.Errorf("odd reply %q", s)
}

func (w *wire) bytes(n int) (string, error) {
	b := make([]byte, n+2)
	k, err := io.ReadFull(w.in, b)
	w.read += k
	return string(b[:n]), err
}

func (w *wire) values(n int64) ([]any, error) {
	all := make([]any, n)
	for i := range all {
		var err error
		if all[i], err = w.value(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
