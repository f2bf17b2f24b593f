package embedded

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// allowed lists the commands that clients may send. TDF uses some of them. Users use the other commands to read keys or
// to change a task by hand (docs/redis.md). The front refuses the commands of miniredis that are not in the list. Some
// of the refused commands panic. Some allocate as much memory as the client asks for. Some run in goroutines, where the
// front cannot recover from a panic.
var allowed = setOf(`
	PING ECHO AUTH HELLO QUIT SELECT CLIENT INFO TIME DBSIZE MEMORY FLUSHDB FLUSHALL
	MULTI EXEC DISCARD EVAL EVALSHA SCRIPT
	KEYS SCAN TYPE TTL PTTL EXISTS DEL UNLINK EXPIRE PEXPIRE PERSIST
	GET GETRANGE SET SETNX SETEX MGET MSET GETDEL STRLEN INCR INCRBY DECR DECRBY
	HGET HSET HSETNX HMGET HMSET HGETALL HDEL HEXISTS HLEN HKEYS HVALS HSTRLEN HSCAN HINCRBY
	LPUSH RPUSH LPOP RPOP BLPOP BRPOP LLEN LRANGE LINDEX LREM LTRIM
	SADD SREM SMEMBERS SISMEMBER SCARD SSCAN
	ZADD ZREM ZCARD ZCOUNT ZSCORE ZMSCORE ZRANK ZREVRANK ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX
	ZLEXCOUNT ZRANDMEMBER
	ZINCRBY ZREMRANGEBYRANK ZREMRANGEBYSCORE ZSCAN
	XADD XLEN XRANGE XREVRANGE XDEL`)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// objection returns an error for the client if miniredis would panic at the arguments of an allowed command. Otherwise
// it returns "".
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
			return "ERR invalid pattern: it contains an invalid class, such as [z-a], or a backslash before an E"
		}
	}
	return ""
}

// valuesOf returns each word of a request that follows the name of an option.
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

// isPattern reports whether miniredis can convert a pattern to a regular expression. Miniredis panics if the pattern
// contains an invalid class such as [z-a]. It puts other text between \Q and \E, so a backslash before an E would end
// the quoted text.
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

// cutClass returns the text before the next unescaped closing bracket, and the text after it.
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

// printable shortens a client's text for an error reply. It also replaces characters that the reply must not contain.
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

// number parses a number that miniredis has accepted.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
