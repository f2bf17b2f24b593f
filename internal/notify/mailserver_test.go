package notify

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A mailServer accepts mails on the loopback interface.
type mailServer struct {
	addr  string
	mails chan string // the commands and the text of each mail
}

func newMailServer(t *testing.T) *mailServer {
	t.Helper()
	l := expect.Result(net.Listen("tcp", "127.0.0.1:0")).Value(t)
	t.Cleanup(func() { l.Close() })
	s := &mailServer{l.Addr().String(), make(chan string, 10)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.talk(c)
		}
	}()
	return s
}

func (s *mailServer) talk(c net.Conn) {
	defer c.Close()
	fmt.Fprint(c, "220 mail\r\n")
	var all strings.Builder
	inText := false
	for lines := bufio.NewScanner(c); lines.Scan(); {
		line := lines.Text()
		all.WriteString(line + "\n")
		switch word, _, _ := strings.Cut(line, " "); {
		case inText && line == ".":
			inText = false
			s.mails <- all.String()
			fmt.Fprint(c, "250 ok\r\n")
		case inText:
		case word == "DATA":
			inText = true
			fmt.Fprint(c, "354 go on\r\n")
		case word == "QUIT":
			fmt.Fprint(c, "221 bye\r\n")
			return
		default:
			fmt.Fprint(c, "250 ok\r\n")
		}
	}
}
