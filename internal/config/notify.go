package config

import (
	"net/mail"
	"net/url"
	"strings"
)

// Notify is the configuration of notices by webhook and mail (docs/configuration.md, "[notify]").
type Notify struct {
	Webhook           string // the address that gets notices; "" means none
	WebhookSecretFile string // a file with the secret that signs the calls of the webhook
	PrivateAddresses  bool   // the webhook may be at an address that is not public

	MailTo                                           []string // addresses that get notices
	MailFrom, MailServer, MailUser, MailPasswordFile string
}

func (s *settings) checkNotify() error {
	switch n := s.notify; {
	case n.WebhookSecretFile != "" && n.Webhook == "":
		return s.fault("notify", "webhook_secret_file",
			"is set but webhook is not; expected both, or no webhook_secret_file")
	case len(n.MailTo) > 0 && n.MailServer == "":
		return s.fault("notify", "mail_server", "is missing but mail_to is set; expected HOST:PORT, or no mail_to")
	case len(n.MailTo) > 0 && n.MailFrom == "":
		return s.fault("notify", "mail_from", "is missing but mail_to is set; expected a mail address, or no mail_to")
	case (n.MailUser == "") != (n.MailPasswordFile == ""):
		return s.fault("notify", "mail_server", "a name for the login and mail_password_file need each other; expected "+
			"USER@HOST:PORT and mail_password_file, or neither")
	}
	return nil
}

func isMail(s string) bool {
	at, err := mail.ParseAddress(s)
	return err == nil && at.Address == s && plain(s)
}

// mailServer returns the kind of a mail server's address, after the name for the login. The name may contain @.
func mailServer() kind {
	server := address(func(s *settings) *string { return &s.notify.MailServer })
	return kind{"nothing, HOST:PORT or USER@HOST:PORT", func(s *settings, text string) bool {
		at := strings.LastIndex(text, "@")
		if !plain(text) || at == 0 || !server.set(s, text[at+1:]) || at > 0 && s.notify.MailServer == "" {
			return false
		}
		s.notify.MailUser = text[:max(at, 0)]
		return true
	}}
}

func webAddress(at func(*settings) *string) kind {
	valid := func(s string) bool {
		u, err := url.Parse(s)
		return s == "" || err == nil && plain(s) && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
			!strings.Contains(s, "#")
	}
	return matching("nothing, or an address that begins with http:// or https://", valid, at)
}

var notifyKeys = []key{
	{
		"notify", "webhook", "", webAddress(func(s *settings) *string { return &s.notify.Webhook }),
		"The address that gets each notice by HTTP POST. Empty means none. The server ignores proxies.",
	},
	{
		"notify", "webhook_secret_file", "", text(func(s *settings) *string { return &s.notify.WebhookSecretFile }),
		"A file with a secret, as text, or in the form `whsec_BASE64`. With it, the calls of the webhook are " +
			"signed. Requires `webhook`.",
	},
	{
		"notify", "private_addresses", "False", truth(func(s *settings) *bool { return &s.notify.PrivateAddresses }),
		"Allow a webhook at an address that is not public, such as 10.0.0.1 or localhost. Otherwise, who may write " +
			"the configuration could use the server to reach services that trust it.",
	},
	{
		"notify", "mail_to", "", listOf("mail addresses", isMail, func(s *settings) *[]string {
			return &s.notify.MailTo
		}),
		"The addresses that get each notice by mail. Empty means none. Requires `mail_from` and `mail_server`.",
	},
	{
		"notify", "mail_from", "", matching("nothing, or a mail address", func(s string) bool {
			return s == "" || isMail(s)
		}, func(s *settings) *string { return &s.notify.MailFrom }),
		"The sender of the mails.",
	},
	{
		"notify", "mail_server", "", mailServer(),
		"The mail server (SMTP), such as `mail.example.org:587`, or with the name for the login, " +
			"`tdf@mail.example.org:587`, which requires `mail_password_file`. It must have TLS, by STARTTLS or at " +
			"port 465, unless it is on the same machine.",
	},
	{
		"notify", "mail_password_file", "", text(func(s *settings) *string { return &s.notify.MailPasswordFile }),
		"A file with the password for the login at the mail server.",
	},
}
