package task

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"unicode"
)

// splitRsync splits PATH, HOST:PATH or rsync://HOST[:PORT]/MODULE/PATH into host and file, as rsync does. The text
// before the first colon is a host if it contains no slash.
func splitRsync(loc string) (host, file string, err error) {
	if rest, found := strings.CutPrefix(loc, "rsync://"); found {
		host, file, err = splitDaemon(rest)
	} else {
		host, file, err = splitShell(loc)
	}
	if err != nil {
		return "", "", err
	}
	return host, file, checkRsyncParts(host, file)
}

func splitDaemon(rest string) (host, file string, err error) {
	host, file, _ = strings.Cut(rest, "/")
	user, address, found := cutLast(host, "@")
	if found && (user == "" || strings.Contains(user, ":")) {
		return "", "", errors.New("rsync takes no password in a URL")
	}
	if !found {
		address = host
	}
	if address == "" || strings.HasPrefix(address, ":") {
		return "", "", errors.New("no host (expected rsync:rsync://HOST/MODULE/PATH)")
	}
	if name, port, err := net.SplitHostPort(address); err == nil {
		if err := checkPort(port); err != nil || port == "" || name == "" {
			return "", "", fmt.Errorf("invalid port in %q: want 1 to 65535", address)
		}
	}
	module, inside, _ := strings.Cut(file, "/")
	if module == "" || inside == "" {
		return "", "", errors.New("no module, or no path after it (expected rsync:rsync://HOST/MODULE/PATH)")
	}
	return host, file, nil
}

func splitShell(loc string) (host, file string, err error) {
	end := strings.IndexByte(loc, ':')
	if bracket := strings.Index(loc, "]:"); bracket >= 0 && strings.ContainsRune(loc[:bracket], '[') {
		end = bracket + 1 // an IPv6 address
	}
	if end < 0 || strings.Contains(loc[:end], "/") {
		return "", loc, nil
	}
	host, file = loc[:end], loc[end+1:]
	switch {
	case host == "" || strings.HasSuffix(host, "@"):
		return "", "", errors.New("no host before the colon")
	case strings.HasPrefix(file, ":"):
		return "", "", errors.New("two colons (write an rsync daemon as rsync:rsync://HOST/MODULE/PATH)")
	}
	return host, file, nil
}

// checkRsyncParts refuses a host or path that rsync, ssh or the remote rsync would read as an option or as a pattern.
func checkRsyncParts(host, file string) error {
	user, address, found := cutLast(host, "@")
	if !found {
		user, address = "", host
	}
	name := strings.TrimLeft(address, "[") // rsync removes the brackets of an IPv6 address before it calls ssh
	switch {
	case file == "":
		return errors.New("no path")
	case strings.HasPrefix(user, "-"), strings.HasPrefix(name, "-"), strings.HasPrefix(file, "-"):
		return errors.New("a part begins with - and would be taken for an option (begin the path with ./)")
	case host == "":
		return nil
	case !isHost(address) || strings.ContainsAny(user, " \t'\"\\$`;&|<>()*?@[]="):
		return fmt.Errorf("invalid host name %q", shorten(host))
	case strings.ContainsAny(file, "*?["):
		return errors.New("the remote rsync would take * ? [ for a pattern (name one file)")
	}
	return nil
}

// isHost reports whether address is a name, an IPv4 address, or an IPv6 address in brackets. A port may follow, and
// isHost does not check its range.
func isHost(address string) bool {
	if inside, found := strings.CutPrefix(address, "["); found {
		inside, port, closed := strings.Cut(inside, "]")
		ip, err := netip.ParseAddr(inside)
		return closed && err == nil && ip.Is6() && isName(ip.Zone()) && (port == "" || port[0] == ':' &&
			isName(port[1:]))
	}
	name, port, _ := strings.Cut(address, ":")
	return name != "" && isName(name+port)
}

// isName reports whether each character of s is allowed in a host name or in a host alias of ssh's configuration.
func isName(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '.' && r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
