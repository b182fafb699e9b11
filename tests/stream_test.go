package tests

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// stream reads what a server sends to a replica.
type stream struct {
	master *server
	conn   net.Conn
	in     *bufio.Reader
	marks  int
}

// replicate connects to s as a replica does and reads past the snapshot. The server must not have diskless replication.
func (s *server) replicate() *stream {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	st := &stream{master: s, conn: conn, in: bufio.NewReader(conn)}
	_, err = conn.Write([]byte("PSYNC ? -1\r\n"))
	require.NoError(s.t, err)
	header := ""
	for !strings.HasPrefix(header, "$") { // +FULLRESYNC, and empty lines while the server forks
		header = st.line()
	}
	st.bytes(header)
	st.since() // the server sends SELECT before the first command
	return st
}

func (st *stream) line() string {
	require.NoError(st.master.t, st.conn.SetReadDeadline(time.Now().Add(patience)))
	line, err := st.in.ReadString('\n')
	require.NoError(st.master.t, err)
	return strings.TrimSpace(line)
}

// bytes reads what follows a header $ and its length.
func (st *stream) bytes(header string) string {
	n := 0
	_, err := fmt.Sscanf(header, "$%d", &n)
	require.NoError(st.master.t, err, header)
	b := make([]byte, n)
	_, err = io.ReadFull(st.in, b)
	require.NoError(st.master.t, err)
	return string(b)
}

// command reads one command.
func (st *stream) command() (words []string) {
	n, header := 0, st.line()
	_, err := fmt.Sscanf(header, "*%d", &n)
	require.NoError(st.master.t, err, header)
	for range n {
		words = append(words, st.bytes(st.line()))
		st.line()
	}
	return words
}

// since returns the commands that were replicated since the last call of since. It publishes a mark, which is replicated
// too, and reads until the mark arrives. So an empty result means that nothing was replicated.
func (st *stream) since() (all [][]string) {
	st.master.t.Helper()
	st.marks++
	mark := fmt.Sprint("mark ", st.marks)
	require.NoError(st.master.t, st.master.Publish(ctx, "marks", mark).Err())
	for {
		words := st.command()
		switch name := strings.ToUpper(words[0]); {
		case name == "PING" || name == "SELECT":
		case name == "PUBLISH" && words[2] == mark:
			return all
		default:
			all = append(all, words)
		}
	}
}
