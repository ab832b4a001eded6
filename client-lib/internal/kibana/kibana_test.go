package kibana_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/internal/kibana"
)

// shipped is the file for users without baictl.
const shipped = "../../../deploy/kibana/benchmark-ai.ndjson"

func TestTheObjectsThatAreShippedAreCurrent(t *testing.T) {
	want, err := kibana.Objects(kibana.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("GOLDEN") == "write" {
		if err := os.WriteFile(shipped, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("make it anew with GOLDEN=write: %s", d)
	}
}

// object is as much of a saved object as concerns others.
type object struct {
	Type, ID   string
	Attributes map[string]any
	References []struct{ Name, Type, ID string }
}

func objects(t *testing.T, prefix string) []object {
	t.Helper()
	text, err := kibana.Objects(prefix)
	if err != nil {
		t.Fatal(err)
	}
	var out []object
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		var o object
		if err := json.Unmarshal(s.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// objectsByID are objects by type and ID.
func objectsByID(t *testing.T, all []object) map[string]object {
	t.Helper()
	byID := make(map[string]object)
	for _, o := range all {
		name := o.Type + " " + o.ID
		if _, ok := byID[name]; ok {
			t.Errorf("there are two of %s", name)
		}
		if !strings.HasPrefix(o.ID, "lab-") {
			t.Errorf("%s would collide with that of another platform", name)
		}
		byID[name] = o
	}
	return byID
}

func TestEveryReferenceLeadsToAnObjectThatIsThere(t *testing.T) {
	byID := objectsByID(t, objects(t, "lab"))
	used := make(map[string]bool)
	for name, o := range byID {
		panels, _ := o.Attributes["panelsJSON"].(string)
		for _, r := range o.References {
			used[r.Type+" "+r.ID] = true
			if _, ok := byID[r.Type+" "+r.ID]; !ok {
				t.Errorf("%s refers to %s %s, which is not there", name, r.Type, r.ID)
			}
			if panel, _, _ := strings.Cut(r.Name, ":"); panels != "" && !strings.Contains(panels, `"panelIndex":"`+panel+`"`) {
				t.Errorf("%s has a reference %s without a panel", name, r.Name)
			}
		}
	}
	for name, o := range byID {
		if o.Type == "visualization" && !used[name] {
			t.Errorf("%s is on no dashboard", name)
		}
	}
}

func TestARunHasALinkThatNothingIsLostIn(t *testing.T) {
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		to   time.Time
		want string
	}{
		"one that is over": {from.Add(time.Hour), "%28time%3A%28from%3A%272026-01-02T03%3A03%3A05.000Z%27%2Cto%3A%272026-01-02T04%3A05%3A05.000Z%27%29%29"},
		"one that is not":  {time.Time{}, "%28time%3A%28from%3A%272026-01-02T03%3A03%3A05.000Z%27%2Cto%3Anow%29%29"},
	} {
		t.Run(name, func(t *testing.T) {
			want := "https://k.example.org/app/dashboards#/view/bai-run?_g=" + tt.want + "&_a=%28query%3A%28language%3Akuery%2Cquery%3A%27run.id%3A%2201abc%22%27%29%29"
			if got := kibana.Link("https://k.example.org/", "bai", "01abc", from, tt.to); got != want {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

func TestDashboardsAreInstalledOrItIsSaidWhyNot(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		answer string
		count  int
		want   string
	}{
		"all are taken":                 {200, `{"success":true,"successCount":17}`, 17, ""},
		"one is refused":                {200, `{"success":false,"successCount":16,"errors":[{"id":"bai-run","type":"dashboard","error":{"type":"unsupported_type"}}]}`, 16, "dashboard bai-run: unsupported_type"},
		"nobody may":                    {403, `{"message":"Forbidden"}`, 0, "403 Forbidden"},
		"what answers is no Kibana":     {200, `<html>`, 0, "is not what Kibana answers"},
		"it leads elsewhere, as logins": {302, ``, 0, "302 Found"},
	} {
		t.Run(name, func(t *testing.T) {
			var request *http.Request
			var body []byte
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				request = r
				body, _ = io.ReadAll(r.Body)
				if tt.status == http.StatusFound {
					w.Header().Set("Location", "/login")
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.answer)
			}))
			defer s.Close()
			n, err := kibana.Server{URL: s.URL + "/", Space: "lab", APIKey: "a2V5"}.Install(t.Context(), []byte("{\"type\":\"dashboard\"}\n"))
			if n != tt.count || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%d, %v, want %d, %q", n, err, tt.count, tt.want)
			}
			if request.URL.String() != "/s/lab/api/saved_objects/_import?overwrite=true" || request.Header.Get("Kbn-Xsrf") == "" || request.Header.Get("Authorization") != "ApiKey a2V5" || !bytes.Contains(body, []byte(`filename="benchmark-ai.ndjson"`)) {
				t.Errorf("asked %s %v", request.URL, request.Header)
			}
		})
	}
}
