package resp

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"

	"gothrottle/commands/memory"
)

// Bounds of what a client may send.
const (
	mostWords   = 1 << 20
	longestWord = 16 << 20
)

var errProtocol = errors.New("Protocol error: expected an array of bulk strings")

// readCommand reads one command: an array of bulk strings. There are no words in an empty one.
func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readLength(in, '*', mostWords)
	if err != nil {
		return nil, err
	}
	words := make([]string, 0, min(n, 64))
	for range n {
		size, err := readLength(in, '$', longestWord)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		words = append(words, string(text[:size]))
	}
	return words, nil
}

func readLength(in *bufio.Reader, kind byte, most int) (int, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, errProtocol
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	if err != nil || n < 0 || n > most {
		return 0, errProtocol
	}
	return n, nil
}

// push is a message that no command asked for.
type push []any

// appendReply writes a reply as the protocol 2 or 3 has it: an integer, a text, a memory.Status, an error, nil, or a list, map
// or push of such.
func appendReply(b []byte, protocol int, reply any) []byte {
	line := func(kind byte, text string) []byte { return append(append(append(b, kind), text...), "\r\n"...) }
	all := func(kind byte, n int, items []any) []byte {
		b = line(kind, strconv.Itoa(n))
		for _, item := range items {
			b = appendReply(b, protocol, item)
		}
		return b
	}
	switch reply := reply.(type) {
	case nil:
		if protocol == 3 {
			return line('_', "")
		}
		return line('$', "-1")
	case int64:
		return line(':', strconv.FormatInt(reply, 10))
	case memory.Status:
		if strings.ContainsAny(string(reply), "\r\n") {
			return appendReply(b, protocol, string(reply))
		}
		return line('+', string(reply))
	case error:
		return line('-', strings.NewReplacer("\r", " ", "\n", " ").Replace(reply.Error()))
	case memory.Map:
		if protocol == 3 {
			return all('%', len(reply)/2, reply)
		}
		return all('*', len(reply), reply)
	case push:
		if protocol == 3 {
			return all('>', len(reply), reply)
		}
		return all('*', len(reply), reply)
	case []any:
		return all('*', len(reply), reply)
	}
	text := reply.(string)
	b = line('$', strconv.Itoa(len(text)))
	return append(append(b, text...), "\r\n"...)
}
