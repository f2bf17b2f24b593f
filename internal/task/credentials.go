package task

import "strings"

// HideCredentials returns a source or URL in a form for logs and error texts. It replaces these parts by ***:
//
//   - the user name and password,
//   - every value in the query, because a value with any name may be a secret,
//   - a fragment that is not a checksum.
//
// In a malformed URL, it may hide other parts, too. A secret in the path stays visible.
func HideCredentials(s string) string {
	sep := "://"
	head, rest, found := strings.Cut(s, sep)
	if !found {
		sep = ":" // a URL without slashes
		if head, rest, found = strings.Cut(s, sep); !found || head == SchemeRsync || head == SchemeRedis {
			return s
		}
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	if _, after, found := cutLast(rest, "@"); found && !isPlainUser(head, rest) {
		rest = "***@" + after
	}
	if hasQuery {
		rest += "?" + hideValues(query)
	}
	if hasFragment {
		rest += "#" + hideFragment(fragment)
	}
	return head + sep + rest
}

// isPlainUser reports whether an rsync address has the form user@host, which holds no secret. The form
// user:password@host holds a secret.
func isPlainUser(head, rest string) bool {
	user, _, _ := strings.Cut(rest, "@")
	return strings.HasSuffix(head, "rsync") && !strings.ContainsAny(user, ":/")
}

func hideValues(query string) string {
	pairs := strings.Split(query, "&")
	for i, p := range pairs {
		key, _, found := strings.Cut(p, "=")
		if !found {
			key = ""
		} else {
			key += "="
		}
		pairs[i] = key + "***"
	}
	return strings.Join(pairs, "&")
}

func hideFragment(f string) string {
	if sum, found := strings.CutPrefix(f, "sha256="); found {
		if _, err := parseSum(sum); err == nil {
			return f
		}
	}
	return "***"
}
