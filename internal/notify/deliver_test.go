package notify

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/wneessen/go-mail"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/notify/notice"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/redisstate/notices"
)

// A notice that no channel takes is tried again, later each time, and given up in the end.
func TestDeliveryIsRepeated(t *testing.T) {
	s := newScene(t)
	client := testspace.Client(t, s.config)
	last := func() notice.Notice {
		return expect.Result(notice.List(t.Context(), s.store, notices.Max)).Value(t)[0]
	}
	expect.Result(s.store.Notices.See(t.Context(), notices.Sighting{Mark: "m", After: "1", Notice: notice.Notice{Text: "hello"}.Stored()})).OK(t)
	s.channel.fails = 1
	expect.NoError(t, s.notifier.deliver(t.Context()))
	expect.Equal(t, last().Tries, 1)
	expect.Equal(t, last().Error, "fake: no route")
	expect.Len(t, last().Delivered, 0)
	expect.NoError(t, s.notifier.deliver(t.Context()))
	expect.Equal(t, last().Tries, 1, "tries before the time")
	s.pass(firstRetry)
	expect.NoError(t, s.notifier.deliver(t.Context()))
	expect.Equal(t, last().Tries, 2)
	expect.Equal(t, last().Error, "")
	expect.True(t, !last().Delivered["fake"].IsZero(), last())
	expect.Equal(t, client.ZCard(t.Context(), s.store.Keys.NoticesDue()).Val(), int64(0), "due notices")

	given := notice.Notice{Text: "again", Tries: mostTries - 1}
	expect.Result(s.store.Notices.See(t.Context(), notices.Sighting{Mark: "n", After: "1", Notice: given.Stored()})).OK(t)
	s.channel.fails = 1
	expect.NoError(t, s.notifier.deliver(t.Context()))
	expect.True(t, last().GivenUp, last())
	expect.Equal(t, last().Tries, mostTries)
	expect.Equal(t, client.ZCard(t.Context(), s.store.Keys.NoticesDue()).Val(), int64(0), "due notices")
}

// Receivers that need much time do not keep the Notifier from its walk: it delivers the other notices after the next part.
func TestADeliveryEnds(t *testing.T) {
	s := newScene(t)
	s.notifier.turn = 0
	for _, mark := range []string{"a", "b"} {
		expect.Result(s.store.Notices.See(t.Context(), notices.Sighting{Mark: mark, After: "1", Notice: notice.Notice{Text: mark}.Stored()})).OK(t)
	}
	for range 2 {
		expect.NoError(t, s.notifier.deliver(t.Context()))
		expect.Equal(t, len(s.channel.taken()), 1)
	}
}

// A channel that has taken a notice does not get it again because another one has failed.
func TestChannelsAreApart(t *testing.T) {
	s := newScene(t)
	bad := &other{fake{fails: 1}}
	s.notifier.channels = append(s.notifier.channels, bad)
	expect.Result(s.store.Notices.See(t.Context(), notices.Sighting{Mark: "m", After: "1", Notice: notice.Notice{Text: "hello"}.Stored()})).OK(t)
	expect.NoError(t, s.notifier.deliver(t.Context()))
	s.pass(firstRetry)
	expect.NoError(t, s.notifier.deliver(t.Context()))
	expect.Equal(t, len(s.channel.taken()), 1)
	expect.Equal(t, len(bad.taken()), 1)
}

type other struct{ fake }

func (*other) name() string { return "other" }

// Whatever another program writes into the keys of notices stops nothing but the notice that it has written.
func TestHostileNotices(t *testing.T) {
	s := newScene(t)
	client, keys := testspace.Client(t, s.config), s.store.Keys
	for id, text := range map[string]string{"6": strings.Repeat(" ", 1<<20), "7": "no JSON", "8": `{"tries":"x"}`, "x": `{}`, "9": ""} {
		client.HSet(t.Context(), keys.Notices(), id, text)
		client.ZAdd(t.Context(), keys.NoticesDue(), redis.Z{Score: 1, Member: id})
	}
	client.HSet(t.Context(), keys.Noticed(), "last", "10")
	client.ZAdd(t.Context(), keys.NoticesDue(), redis.Z{Score: 1, Member: "10"})
	for range 5 { // a member that is no id is an error, and waits for the end of its lease
		_ = s.notifier.deliver(t.Context())
	}
	expect.NoError(t, s.notifier.deliver(t.Context()))
	expect.Equal(t, len(s.channel.taken()), 0)
	_, err := notice.List(t.Context(), s.store, notices.Max)
	for _, id := range []string{"6", "7", "8"} {
		expect.Fails(t, err, "notice "+id+" cannot be read")
	}
	s.walk(s.notifier)
	client.Set(t.Context(), keys.Noticed(), "x", 0)
	_, err = s.notifier.watch.look(t.Context())
	expect.Fails(t, err, "WRONGTYPE")
	client.Del(t.Context(), keys.Noticed())
	s.walk(s.notifier)
}

func settings() config.Notify {
	return config.Notify{Webhook: "http://127.0.0.1:1", PrivateAddresses: true}
}

// A call of the webhook has the notice as JSON, and a signature that the receiver can check.
func TestWebhook(t *testing.T) {
	t.Parallel()
	cfg := settings()
	cfg.WebhookSecretFile = filepath.Join(t.TempDir(), "secret")
	expect.NoError(t, os.WriteFile(cfg.WebhookSecretFile, []byte("whsec_c2VjcmV0\n"), 0o600))
	status := http.StatusNoContent
	var calls []*http.Request
	var body []byte
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		calls = append(calls, r)
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(status)
	}))
	defer receiver.Close()
	cfg.Webhook = receiver.URL + "/hook?x=1"
	hook := expect.Result(newWebhook(cfg, "ns")).Value(t)
	hook.client.Timeout = time.Hour
	n := &notice.Notice{ID: 3, Kind: notice.CampaignEnded, Text: "The campaign <a> has ended.", Campaign: "<a>", Tries: 2, Error: "earlier"}
	expect.NoError(t, hook.send(t.Context(), n))
	got := calls[0]
	expect.Equal(t, got.Method, "POST")
	expect.Equal(t, got.URL.String(), "/hook?x=1")
	expect.Equal(t, got.Header.Get("Content-Type"), "application/json")
	id, at := got.Header.Get("webhook-id"), got.Header.Get("webhook-timestamp")
	expect.Equal(t, got.Header.Get("webhook-signature"), "v1,"+sign([]byte("secret"), id, at, body))
	var sent struct {
		Type string
		Data struct{ Namespace, Text, Campaign, Error string }
	}
	expect.NoError(t, json.Unmarshal(body, &sent))
	expect.Equal(t, sent.Type, "campaign_ended")
	expect.Equal(t, sent.Data.Namespace, "ns")
	expect.Equal(t, sent.Data.Campaign, "<a>")
	expect.Equal(t, sent.Data.Error, "")
	for _, status = range []int{http.StatusFound, http.StatusForbidden, http.StatusInternalServerError} {
		expect.Fails(t, hook.send(t.Context(), n), "the answer is")
	}
	expect.Equal(t, len(calls), 4, "calls: a redirect is not followed")
	expect.Equal(t, calls[1].Header.Get("webhook-id"), id, "the id of a repeated call")
}

// The webhook reaches no private address, whatever its name is.
func TestWebhookReachesNoPrivateAddress(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "10.1.2.3", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[fd00::1]", "[fe80::1]", "224.0.0.1", "255.255.255.255"} {
		cfg := settings()
		cfg.PrivateAddresses, cfg.Webhook = false, "http://"+host+":9/token"
		hook := expect.Result(newWebhook(cfg, "ns")).Value(t)
		err := hook.send(t.Context(), &notice.Notice{})
		expect.Fails(t, err, "is not a public address", host)
		expect.True(t, !strings.Contains(err.Error(), "token"), "the error has the address of the webhook:", err)
	}
	for _, address := range []string{
		"0.1.2.3:80", "192.0.0.8:80", "198.18.0.1:80", "240.0.0.1:80", "[::7f00:1]:80", "[64:ff9b::7f00:1]:80", "[64:ff9b:1::a00:1]:80",
		"[2002:a00:1::]:80", "[fec0::1]:80",
	} {
		expect.Fails(t, refusePrivate("tcp", address, nil), "is not a public address", address)
	}
	expect.NoError(t, refusePrivate("tcp", "93.184.216.34:443", nil))
	expect.NoError(t, refusePrivate("tcp", "[2606:2800:220:1::1]:443", nil))
}

// A secret that cannot be read is an error at the start, which names the key.
func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": " \n", "bad": "whsec_%"} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	expect.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "open"), []byte("secret"), 0o644))
	for _, name := range []string{"missing", "empty", "fifo", "open", "bad"} {
		cfg := settings()
		cfg.WebhookSecretFile = filepath.Join(dir, name)
		_, err := New(cfg, "ns", nil, testspace.Silent)
		expect.Fails(t, err, "[notify] webhook_secret_file", name)
		cfg = config.Notify{MailTo: []string{"a@example.org"}, MailFrom: "b@example.org", MailServer: "localhost:25", MailUser: "b", MailPasswordFile: cfg.WebhookSecretFile}
		if name != "bad" {
			_, err = New(cfg, "ns", nil, testspace.Silent)
			expect.Fails(t, err, "[notify] mail_password_file", name)
		}
	}
}

// Without a webhook and mail addresses, a Notifier does nothing until it ends.
func TestNoChannels(t *testing.T) {
	t.Parallel()
	n := expect.Result(New(config.Notify{}, "ns", nil, testspace.Silent)).Value(t)
	ctx, end := context.WithCancel(t.Context())
	end()
	expect.NoError(t, n.Run(ctx))
}

// A mail has the text of the notice. A text that another program has written adds no headers.
func TestMail(t *testing.T) {
	t.Parallel()
	server := newMailServer(t)
	cfg := config.Notify{MailTo: []string{"a@example.org", "b@example.org"}, MailFrom: "tdf@example.org", MailServer: server.addr}
	m := expect.Result(newMail(cfg, "ns")).Value(t)
	m.options = append(m.options, mail.WithTimeout(time.Hour))
	expect.NoError(t, m.send(t.Context(), &notice.Notice{ID: 1, Text: "The campaign c\r\nBcc: evil@example.org\r\n\r\n.\r\nQUIT has ended."}))
	got := <-server.mails
	expect.Contains(t, got, "RCPT TO:<a@example.org>")
	expect.Contains(t, got, "RCPT TO:<b@example.org>")
	expect.Contains(t, got, "[TDF ns]")
	if strings.Contains(got, "\nBcc:") {
		expect.Compare(t, strings.Index(got, "\nBcc:"), ">", strings.Index(got, "\n\n"))
	}
	expect.True(t, strings.Contains(got, "QUIT has ended."), "the text is whole:", got)

	cfg.MailServer = strings.Replace(server.addr, "127.0.0.1", "127.0.0.1.nip.invalid", 1)
	expect.True(t, expect.Result(newMail(cfg, "ns")).Value(t).send(t.Context(), &notice.Notice{}) != nil, "a mail to a server that does not exist is sent")
}
