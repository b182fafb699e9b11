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

// A part is a constant text followed by a blank of a fixed width.
type part struct {
	text  string
	blank string
	width int
}

// blanks are the placeholders of an op and their widths in bytes. A placeholder of a key
// becomes 13 bytes: keyPrefix and 9 digits.
var blanks = map[string]int{
	"{key}":   9,  // the op's key, the same wherever it stands in the op
	"{other}": 9,  // a random key that is neither {key} nor {third}
	"{third}": 9,  // a random key that is neither {key} nor {other}
	"{hot}":   9,  // one key for all ops
	"{slot}":  2,  // 00 to 99: in a warm-up the number of the pass over the keys, else random
	"{phase}": 2,  // 00 to 14
	"{id}":    16, // unique in the run
	"{now}":   16, // the client's clock, µs since the Unix epoch
	"{old}":   16, // the client's clock one period ago, µs since the Unix epoch
}

const keyPrefix = "key:"

// hotKey is the key that {hot} stands for.
const hotKey = keyPrefix + "000000000"

// compile turns a text such as "GET {key} ; PING" into an op. Words that fixed has, such
// as {sha}, are replaced first. A word may have text around its blank: "{{key}}:a" is a key
// with a hash tag.
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
			before, blank, after := cutBlank(word)
			switch {
			case blank == "" && strings.Contains(word, "{"):
				return nil, fmt.Errorf("what is %s in %q?", word, text)
			case blank == "":
				fmt.Fprintf(&wire, "$%d\r\n%s\r\n", len(word), word)
				continue
			}
			if blank == "{key}" || blank == "{other}" || blank == "{third}" || blank == "{hot}" {
				before += keyPrefix
			}
			width := blanks[blank]
			fmt.Fprintf(&wire, "$%d\r\n%s", len(before)+width+len(after), before)
			o.parts = append(o.parts, part{wire.String(), blank, width})
			wire.Reset()
			wire.WriteString(after + "\r\n")
		}
		o.replies++
	}
	o.parts = append(o.parts, part{text: wire.String()})
	return &o, nil
}

// cutBlank returns the blank in a word and the text around it. The blank is "" if the word
// has none. A word has at most one.
func cutBlank(word string) (before, blank, after string) {
	for name := range blanks {
		if before, after, found := strings.Cut(word, name); found {
			return before, name, after
		}
	}
	return word, "", ""
}

// blanksOf are the values for the blanks of one op. keys is at least 3 if the op has an
// {other} or a {third}.
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
			b = appendDigits(b, v.other(random), p.width)
		case "{third}":
			b = appendDigits(b, v.third(random), p.width)
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

// other draws from the first half of the keys behind v.key, counted round the end, and
// third from the second half. So the three keys of an op differ.
func (v *blanksOf) other(random *rand.Rand) int64 {
	return (v.key + 1 + random.Int64N((v.keys-1)/2)) % v.keys
}

func (v *blanksOf) third(random *rand.Rand) int64 {
	half := (v.keys - 1) / 2
	return (v.key + 1 + half + random.Int64N(v.keys-1-half)) % v.keys
}

// appendDigits writes n with leading zeros, width bytes in all.
func appendDigits(b []byte, n int64, width int) []byte {
	b = append(b, "0000000000000000"[:width]...)
	for i := len(b) - 1; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}

// errReply is an error reply of the server.
type errReply string

func (e errReply) Error() string { return "the server replied " + strconv.Quote(string(e)) }

var errProtocol = errors.New("the server sent something that is not a RESP2 reply")

// skipReply reads one reply, nested or not. It appends the reply's integers to ints until
// ints is full. It returns an error for an error reply, also for one inside an array.
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
