package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/notify/notice"
)

// A webhook sends each notice as JSON to an address. The headers are those of standardwebhooks.com, so that receivers
// can check them with its libraries.
type webhook struct {
	url, namespace string
	secret         []byte // nil means that calls are not signed
	client         *http.Client
}

func newWebhook(cfg config.Notify, namespace string) (*webhook, error) {
	w := &webhook{url: cfg.Webhook, namespace: namespace}
	secret, err := readSecret("webhook_secret_file", cfg.WebhookSecretFile)
	if err != nil {
		return nil, err
	}
	if w.secret, err = keyOf(secret); err != nil {
		return nil, &config.Error{Section: "notify", Key: "webhook_secret_file", Problem: cfg.WebhookSecretFile +
			": after whsec_, the secret must be base64"}
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !cfg.PrivateAddresses {
		dialer.Control = refusePrivate
	}
	w.client = &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2: true, DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       15 * time.Second,
	}
	return w, nil
}

func (w *webhook) name() string { return "webhook" }

// A message is the body of a call.
type message struct {
	Type      notice.Kind `json:"type"`
	Timestamp time.Time   `json:"timestamp"`
	Data      data        `json:"data"`
}

type data struct {
	Namespace string `json:"namespace"`
	notice.Notice
}

func (w *webhook) send(ctx context.Context, n *notice.Notice) error {
	about := *n
	about.Delivered, about.Tries, about.Error = nil, 0, ""
	body, err := json.Marshal(message{n.Kind, n.At, data{w.namespace, about}})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	id, at := fmt.Sprintf("tdf_%s_%d_%d", w.namespace, n.ID, n.At.Unix()), strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "tdf")
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", at)
	if w.secret != nil {
		r.Header.Set("webhook-signature", "v1,"+sign(w.secret, id, at, body))
	}
	answer, err := w.client.Do(r)
	if of := new(url.Error); errors.As(err, &of) { // its text has the address, which may hold a secret
		err = of.Err
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<16)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("the answer is %.100s", answer.Status)
	}
	return nil
}

// keyOf returns the key that a secret stands for.
func keyOf(secret []byte) ([]byte, error) {
	if encoded, ok := bytes.CutPrefix(secret, []byte("whsec_")); ok {
		return base64.StdEncoding.AppendDecode(nil, encoded)
	}
	return secret, nil
}

func sign(secret []byte, id, at string, body []byte) string {
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "%s.%s.%s", id, at, body)
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// isPublic reports whether an address is that of a host on the internet. An IPv6 address that contains an IPv4 address
// leads to this address, so it is not public either: NAT64, 6to4, and the old form ::a.b.c.d. The other networks are
// reserved by IANA.
func isPublic(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, network := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "fec0::/10",
	} {
		if netip.MustParsePrefix(network).Contains(ip) {
			return false
		}
	}
	return true
}

// refusePrivate refuses a connection to an address that is not public. It gets the address to which the name of the
// host was resolved, so that no name can hide it.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap()
	if !isPublic(ip) {
		return fmt.Errorf("%s is not a public address; private_addresses=True in section [notify] allows it", ip)
	}
	return nil
}
