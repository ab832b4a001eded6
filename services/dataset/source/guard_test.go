package source_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// hostile returns URLs that the platform must not read, with the reasons.
func hostile() map[string]string {
	return map[string]string{
		"http://127.0.0.1/x":                         "address 127.0.0.1 is not public",
		"http://127.9.9.9:9200/_all":                 "address 127.9.9.9 is not public",
		"http://[::1]/x":                             "address ::1 is not public",
		"http://0.0.0.0/x":                           "is not public",
		"http://0.1.2.3/x":                           "is not public",
		"http://[::]/x":                              "is not public",
		"http://10.0.0.1/x":                          "is not public",
		"http://172.16.0.1/x":                        "is not public",
		"http://172.31.255.255/x":                    "is not public",
		"http://192.168.0.1/x":                       "is not public",
		"http://100.64.0.1/x":                        "is not public",
		"http://100.100.100.200/latest/meta-data":    "is not public",
		"http://169.254.169.254/latest/meta-data":    "is not public",
		"http://169.254.170.2/v2/credentials":        "is not public",
		"http://168.63.129.16/machine":               "is not public",
		"http://192.0.0.192/opc/v2":                  "is not public",
		"http://192.0.2.1/x":                         "is not public",
		"http://198.18.0.1/x":                        "is not public",
		"http://198.51.100.1/x":                      "is not public",
		"http://203.0.113.1/x":                       "is not public",
		"http://224.0.0.251/x":                       "is not public",
		"http://240.0.0.1/x":                         "is not public",
		"http://255.255.255.255/x":                   "is not public",
		"http://[fe80::1]/x":                         "is not public",
		"http://[fe80::1%25lo]/x":                    "is not public",
		"http://[fc00::1]/x":                         "is not public",
		"http://[fd00:ec2::254]/latest/meta-data":    "is not public",
		"http://[fec0::1]/x":                         "is not public",
		"http://[ff02::1]/x":                         "is not public",
		"http://[::ffff:127.0.0.1]/x":                "is not public",
		"http://[::ffff:169.254.169.254]/x":          "is not public",
		"http://[::127.0.0.1]/x":                     "is not public",
		"http://[64:ff9b::7f00:1]/x":                 "is not public",
		"http://[64:ff9b:1::a9fe:a9fe]/x":            "is not public",
		"http://[2002:7f00:1::]/x":                   "is not public",
		"http://[2001::1]/x":                         "is not public",
		"http://[2001:db8::1]/x":                     "is not public",
		"http://[100::1]/x":                          "is not public",
		"file:///etc/passwd":                         `"file"`,
		"ftp://ftp.example.com/x":                    `"ftp"`,
		"gopher://127.0.0.1:6379/_FLUSHALL":          `"gopher"`,
		"dict://127.0.0.1:11211/stats":               `"dict"`,
		"ldap://127.0.0.1/x":                         `"ldap"`,
		"jar:http://example.com/x!/y":                `"jar"`,
		"data:text/plain,x":                          `"data"`,
		"unix:///var/run/docker.sock":                `"unix"`,
		"javascript:alert(1)":                        `"javascript"`,
		"http://elsewhere.example.org/x":             `host "elsewhere.example.org" is not one`,
		"http://127.0.0.1.evil.example.org/x":        `host "127.0.0.1.evil.example.org" is not one`,
		"https://example.com@evil.example.org/x":     `host "evil.example.org" is not one`,
		"https://example.com.evil.example.org/x":     `host "example.com.evil.example.org" is not one`,
		"https://evilexample.com/x":                  `host "evilexample.com" is not one`,
		"https://EXAMPLE.COM.evil.example.org:443/x": `is not one`,
	}
}

// testHostSettings returns settings that allow all addresses, and none of the hosts of
// the hostile URLs.
func testHostSettings() source.Settings {
	return source.Settings{Schemes: []string{"http", "https"}, Hosts: []string{"start.test", "example.com"}, Retry: 1}
}

// hosts is only(), and allows the hosts that are addresses.
func hosts(url string) source.Settings {
	s := testHostSettings()
	if strings.Contains(url, "example.") {
		return s
	}
	s.Hosts = nil
	return s
}

// atLeast is the minimum number of hostile URLs of each kind.
const atLeast = 40

func TestEachHostileURLIsRefusedWithItsReason(t *testing.T) {
	if n := len(hostile()); n < atLeast {
		t.Errorf("%d hostile URLs, want %d at least", n, atLeast)
	}
	t.Logf("%d hostile URLs, as they are and as redirects", len(hostile()))
	for url, want := range hostile() {
		t.Run(url, func(t *testing.T) {
			_, err := reader(t, hosts(url)).Get(t.Context(), source.Request{URL: url}, rejectingSink(t))
			wantError(t, err, event.SourceRefused, event.ClassUser, want)
		})
	}
}

// A permitted site redirects to each of these URLs. The name start.test has a public
// address for the guard, and the connection goes to the test's own server.
func TestEachHostileRedirectIsRefusedWithItsReason(t *testing.T) {
	for url, want := range hostile() {
		t.Run(url, func(t *testing.T) {
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", url)
				w.WriteHeader(http.StatusTemporaryRedirect)
			}))
			defer site.Close()
			r := reader(t, hosts(url))
			r.ConnectTo("start.test:80", site.Listener.Addr().String())
			_, err := r.Get(t.Context(), source.Request{URL: "http://start.test/begin?token=hunter2"}, rejectingSink(t))
			wantError(t, err, event.SourceRefused, event.ClassUser, want)
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a token is shown: %v", err)
			}
		})
	}
}

func TestWhoIsRedirectedToIsNotToldTheTokensOfWhereItCameFrom(t *testing.T) {
	var leaked string
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			leaked = r.Header.Get("Referer") + r.Header.Get("Authorization")
			return
		}
		w.Header().Set("Location", "/there")
		w.WriteHeader(http.StatusFound)
	}))
	defer site.Close()
	if _, err := reader(t, quick).Get(t.Context(), source.Request{URL: site.URL + "/begin?token=hunter2"}, new(sink).put); err != nil {
		t.Fatal(err)
	}
	if leaked != "" {
		t.Errorf("it is told %q", leaked)
	}
}

func TestARedirectFromHTTPSToHTTPIsRefused(t *testing.T) {
	why := source.Redirect("https://example.com/x", "http://example.com/x")
	if why == nil || !strings.Contains(why.Message, "redirects from https to http://example.com/x") {
		t.Errorf("redirect: %v", why)
	}
	if why := source.Redirect("http://example.com/x", "https://example.com/x"); why != nil {
		t.Errorf("redirect: %v", why)
	}
}

func TestANameIsCheckedWhereItLeadsWhenItIsConnectedTo(t *testing.T) {
	for name, tt := range map[string]struct {
		answers []string // answers of the name server, one after another; the last one repeats
		url     string
	}{
		"a name of a private address":                   {answers: []string{"10.0.0.7"}},
		"a name of loopback":                            {answers: []string{"127.0.0.1"}},
		"a name of the cloud's metadata":                {answers: []string{"169.254.169.254"}},
		"a name that is rebound after it was looked at": {answers: []string{"93.184.216.34", "127.0.0.1"}},
		"a port does not help":                          {answers: []string{"127.0.0.1"}, url: "http://rebind.test:9200/"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader(t, source.Settings{Retry: 1})
			res := fakeResolver(t, tt.answers)
			for range len(tt.answers) - 1 { // the name was checked before and found good
				if _, err := res.LookupNetIP(t.Context(), "ip4", "rebind.test"); err != nil {
					t.Fatal(err)
				}
			}
			r.ResolveWith(res)
			if tt.url == "" {
				tt.url = "http://rebind.test/"
			}
			_, err := r.Get(t.Context(), source.Request{URL: tt.url}, rejectingSink(t))
			last := tt.answers[len(tt.answers)-1]
			wantError(t, err, event.SourceRefused, event.ClassUser, "address "+last+" is not public")
		})
	}
}

// rejectingSink returns a sink that must not be called.
func rejectingSink(t *testing.T) source.Sink {
	t.Helper()
	return func(context.Context, int64, func(io.Writer) error) error {
		t.Error("it was read")
		return errors.New("it was read")
	}
}

// fakeResolver returns a resolver with its own name server.
func fakeResolver(t *testing.T, answers []string) *net.Resolver {
	t.Helper()
	var config net.ListenConfig
	conn, err := config.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // nothing depends on this close
	var queries atomic.Int64
	go func() {
		for buf := make([]byte, 512); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			i := min(int(queries.Load()), len(answers)-1)
			if b, isA := answerDNS(buf[:n], answers[i]); b != nil {
				if isA {
					queries.Add(1)
				}
				_, _ = conn.WriteTo(b, from) // on an error it is asked again
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func answerDNS(query []byte, address string) (answer []byte, isA bool) {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil, false
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	if q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()},
		}}
	}
	b, err := m.Pack()
	if err != nil {
		return nil, false
	}
	return b, q.Type == dnsmessage.TypeA
}
