package embedded

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// allowed are the commands that clients may send: those of TDF, and those that people type to look into a Redis or to
// change a task by hand (docs/redis.md). The others of miniredis are left out, since some of them panic, allocate what
// the client asks for, or go on in goroutines that the front cannot recover.
var allowed = setOf(`
	PING ECHO AUTH HELLO QUIT SELECT CLIENT INFO TIME DBSIZE MEMORY FLUSHDB FLUSHALL
	MULTI EXEC DISCARD EVAL EVALSHA SCRIPT
	KEYS SCAN TYPE TTL PTTL EXISTS DEL UNLINK EXPIRE PEXPIRE PERSIST
	GET SET SETNX SETEX MGET MSET GETDEL STRLEN INCR INCRBY DECR DECRBY
	HGET HSET HSETNX HMGET HMSET HGETALL HDEL HEXISTS HLEN HKEYS HVALS HSTRLEN HSCAN HINCRBY
	LPUSH RPUSH LPOP RPOP BLPOP BRPOP LLEN LRANGE LINDEX LREM LTRIM
	SADD SREM SMEMBERS SISMEMBER SCARD SSCAN
	ZADD ZREM ZCARD ZCOUNT ZSCORE ZMSCORE ZRANK ZREVRANK ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZINCRBY
	ZREMRANGEBYRANK ZREMRANGEBYSCORE ZSCAN
	XADD XLEN XRANGE XREVRANGE XDEL`)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// objection says why a request of an allowed command is refused all the same: with these arguments miniredis would panic.
func objection(name string, request []string) string {
	patterns := request[1:]
	switch name {
	case "KEYS":
	case "SCAN":
		patterns = valuesOf("match", request[1:])
		if len(request) > 1 && !isCursor(request[1]) {
			return "ERR invalid cursor"
		}
	case "HSCAN", "SSCAN", "ZSCAN":
		patterns = valuesOf("match", request[1:])
		if len(request) > 2 && !isCursor(request[2]) {
			return "ERR invalid cursor"
		}
	default:
		return ""
	}
	for _, p := range patterns {
		if !isPattern(p) {
			return "ERR invalid pattern: a class such as [a-z] is wrong, or a backslash stands before an E"
		}
	}
	return ""
}

// valuesOf returns what follows an option, wherever it stands.
func valuesOf(option string, words []string) []string {
	var values []string
	for i, word := range words {
		if strings.EqualFold(word, option) && i+1 < len(words) {
			values = append(values, words[i+1])
		}
	}
	return values
}

func isCursor(text string) bool {
	_, err := strconv.ParseUint(text, 10, 63)
	return err == nil
}

// isPattern says whether miniredis can make a regular expression of a pattern. It panics where a class is none, as [z-a],
// and quotes the rest by \Q and \E, so that a backslash before an E would end the quotation.
func isPattern(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for before := byte(0); text != ""; {
		letter := text[0]
		text = text[1:]
		switch {
		case letter == '[':
			var class string
			if class, text = cutClass(text); !isClass(class) {
				return false
			}
			letter = 0
		case letter == '*' || letter == '?':
			letter = 0
		case letter == '\\' && text != "":
			letter, text = text[0], text[1:]
		}
		if before == '\\' && letter == 'E' {
			return false
		}
		before = letter
	}
	return true
}

// cutClass returns what is before the next bracket that no backslash escapes, and what is behind it.
func cutClass(text string) (class, rest string) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ']':
			return text[:i], text[i+1:]
		case '\\':
			i++
		}
	}
	return text, ""
}

func isClass(class string) bool {
	_, err := regexp.Compile("[" + class + "]")
	return (err == nil || class == "") && !strings.Contains(class, "[:")
}

// printable shortens what a client sent, and replaces what must not stand in a reply's line.
func printable(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// number reads what miniredis has accepted as a number.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
