package notify

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/notify/notice"
)

// A mailer sends each notice as a mail.
type mailer struct {
	from, namespace, host string
	to                    []string
	options               []mail.Option
}

func newMail(cfg config.Notify, namespace string) (*mailer, error) {
	host, port, err := net.SplitHostPort(cfg.MailServer)
	if err != nil {
		return nil, err // config has checked it
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	m := &mailer{from: cfg.MailFrom, to: cfg.MailTo, namespace: namespace, host: host}
	m.options = []mail.Option{
		mail.WithPort(number), mail.WithTimeout(15 * time.Second),
		mail.WithTLSPolicy(policy(host)),
	}
	if number == 465 {
		m.options = append(m.options, mail.WithSSL())
	}
	if cfg.MailUser != "" {
		password, err := readSecret("mail_password_file", cfg.MailPasswordFile)
		if err != nil {
			return nil, err
		}
		m.options = append(m.options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(cfg.MailUser),
			mail.WithPassword(string(password)))
	}
	return m, nil
}

// policy returns whether the mail server must have TLS. A connection on the same machine cannot be read by others.
func policy(host string) mail.TLSPolicy {
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return mail.TLSOpportunistic
	}
	return mail.TLSMandatory
}

func (m *mailer) name() string { return "mail" }

func (m *mailer) send(ctx context.Context, n *notice.Notice) error {
	message := mail.NewMsg()
	if err := message.From(m.from); err != nil {
		return err
	}
	if err := message.To(m.to...); err != nil {
		return err
	}
	message.Subject(fmt.Sprintf("[TDF %s] %s", m.namespace, format.OneLine(strings.TrimSuffix(n.Text, "."), 200)))
	message.SetMessageIDWithValue(fmt.Sprintf("tdf.%s.%d.%d@tdf", m.namespace, n.ID, n.At.UnixNano()))
	message.SetDateWithValue(n.At)
	message.SetBodyString(mail.TypeTextPlain, n.Text+"\n")
	client, err := mail.NewClient(m.host, m.options...)
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, message)
}
