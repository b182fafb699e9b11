package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// An op is what a contender is asked to do once: one command, or several sent together.
type op struct {
	parts   []part
	replies int
}

// A part is bytes that are always the same, then a blank of a fixed width.
type part struct {
	text  string
	blank string
	width int
}

// blanks are the words that differ from op to op, and their widths. All keys have 13 bytes.
var blanks = map[string]int{
	"{key}":   9,  // the op's key, the same wherever it stands in the op
	"{other}": 9,  // another key each time it stands there
	"{hot}":   9,  // one key for all ops
	"{slot}":  2,  // 00 to 99: in a warm-up the number of the pass over the keys, else random
	"{phase}": 2,  // 00 to 14
	"{id}":    16, // never the same twice
	"{now}":   16, // the client's clock, µs since the Unix epoch
	"{old}":   16, // the same, one period ago
}

const keyPrefix = "key:"

// compile turns a text such as "GET {key} ; PING" into an op. The words in fixed, as
// {sha}, are replaced first.
func compile(text string, fixed map[string]string) (*op, error) {
	var o op
	var wire strings.Builder
	for command := range strings.SplitSeq(text, " ; ") {
		words := strings.Fields(command)
		if len(words) == 0 {
			return nil, fmt.Errorf("an empty command in %q", text)
		}
		fmt.Fprintf(&wire, "*%d\r\n", len(words))
		for _, word := range words {
			if value, ok := fixed[word]; ok {
				word = value
			}
			width, ok := blanks[word]
			switch {
			case !ok && strings.HasPrefix(word, "{"):
				return nil, fmt.Errorf("what is %s in %q?", word, text)
			case !ok:
				fmt.Fprintf(&wire, "$%d\r\n%s\r\n", len(word), word)
				continue
			}
			prefix := ""
			if word == "{key}" || word == "{other}" || word == "{hot}" {
				prefix = keyPrefix
			}
			fmt.Fprintf(&wire, "$%d\r\n%s", len(prefix)+width, prefix)
			o.parts = append(o.parts, part{wire.String(), word, width})
			wire.Reset()
			wire.WriteString("\r\n")
		}
		o.replies++
	}
	o.parts = append(o.parts, part{text: wire.String()})
	return &o, nil
}

// blanksOf is what is written into the blanks of one op.
type blanksOf struct {
	key, keys, slot, id int64
	period              time.Duration
}

// append writes the op to b.
func (o *op) append(b []byte, v blanksOf, random *rand.Rand) []byte {
	for i := range o.parts {
		p := &o.parts[i]
		b = append(b, p.text...)
		switch p.blank {
		case "":
		case "{key}":
			b = appendDigits(b, v.key, p.width)
		case "{other}":
			b = appendDigits(b, random.Int64N(v.keys), p.width)
		case "{hot}":
			b = appendDigits(b, 0, p.width)
		case "{slot}":
			b = appendDigits(b, v.slot, p.width)
		case "{phase}":
			b = appendDigits(b, v.key%15, p.width)
		case "{id}":
			b = appendDigits(b, v.id, p.width)
		case "{now}":
			b = appendDigits(b, time.Now().UnixMicro(), p.width)
		case "{old}":
			b = appendDigits(b, time.Now().Add(-v.period).UnixMicro(), p.width)
		}
	}
	return b
}

func appendDigits(b []byte, n int64, width int) []byte {
	b = append(b, "0000000000000000"[:width]...)
	for i := len(b) - 1; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}

// errReply is an error that the server replied with.
type errReply string

func (e errReply) Error() string { return "the server replied " + strconv.Quote(string(e)) }

var errProtocol = errors.New("the server's bytes are no RESP2 reply")

// skipReply reads one reply, nested or not, and adds its integers to ints, as many as
// have room there. An error reply is an error, also within an array.
func skipReply(r *bufio.Reader, ints []int64) ([]int64, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return ints, err
	}
	if len(line) < 3 {
		return ints, errProtocol
	}
	text := line[1 : len(line)-2]
	switch line[0] {
	case '+':
		return ints, nil
	case '-':
		return ints, errReply(text)
	}
	n, ok := parseInt(text)
	if !ok {
		return ints, errProtocol
	}
	switch line[0] {
	case ':':
		if len(ints) < cap(ints) {
			ints = append(ints, n)
		}
		return ints, nil
	case '$':
		if n >= 0 {
			_, err = r.Discard(int(n) + 2)
		}
		return ints, err
	case '*':
		for ; n > 0 && err == nil; n-- {
			ints, err = skipReply(r, ints)
		}
		return ints, err
	}
	return ints, errProtocol
}

func parseInt(text []byte) (n int64, ok bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, len(text) > 0
}
