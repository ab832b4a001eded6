package email

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"sync"

	"github.com/wneessen/go-mail"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver/message"
)

// page returns the template of the part in HTML.
var page = sync.OnceValue(func() *template.Template { //nolint:gochecknoglobals // a constant that needs code
	return template.Must(template.New("mail").Parse(`<!DOCTYPE html>
<html><body style="font-family: sans-serif; max-width: 48em">
{{- range .Message.Remarks}}
<p><b>{{.}}</b></p>
{{- end}}
{{- if .Picture}}
<p><img src="cid:points.png" width="480" height="120" alt="the newest values of the first incident"></p>
{{- end}}
{{- range .Message.Entries}}
<h3>{{.Headline}}</h3>
<ul>
{{- range .Lines}}
<li>{{.}}</li>
{{- end}}
</ul>
{{- end}}
{{- if .Message.More}}
<p>{{.Message.More}}</p>
{{- end}}
{{- if .Message.URL}}
<p><a href="{{.Message.URL}}">Open the incident</a></p>
{{- end}}
<p style="color: #666">{{.Message.Footer}}</p>
</body></html>
`))
})

// mailOf returns the mail of a notice. The same notice has the same Message-ID, and a later notice of its incidents is in its thread.
func mailOf(n notice.Notice, from string, to []string) (*mail.Msg, error) {
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := m.From(from); err != nil {
		return nil, fmt.Errorf("sender %q: %w", from, err)
	}
	if err := m.To(to...); err != nil {
		return nil, fmt.Errorf("recipients %q: %w", to, err)
	}
	text := message.Of(n)
	domain := m.GetFrom()[0].Address
	domain = domain[strings.LastIndexByte(domain, '@')+1:]
	m.Subject(text.Title)
	m.SetDateWithValue(n.Made.UTC())
	m.SetMessageIDWithValue(token(n.ID) + "@" + domain)
	if n.First != "" && n.First != n.ID {
		first := "<" + token(n.First) + "@" + domain + ">"
		m.SetGenHeader(mail.HeaderInReplyTo, first)
		m.SetGenHeader(mail.HeaderReferences, first)
	}
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetGenHeader(mail.HeaderXAutoResponseSuppress, "All")
	m.SetBodyString(mail.TypeTextPlain, text.Text())
	image, ok := picture(n.Incidents)
	var html bytes.Buffer
	if err := page().Execute(&html, map[string]any{"Message": text, "Picture": ok}); err != nil {
		return nil, fmt.Errorf("write the HTML of notice %s: %w", n.ID, err)
	}
	m.AddAlternativeString(mail.TypeTextHTML, html.String())
	if ok {
		name := "points.png"
		if err := m.EmbedReader(name, bytes.NewReader(image), mail.WithFileContentID("<"+name+">"),
			mail.WithFileContentType("image/png")); err != nil {
			return nil, fmt.Errorf("embed the picture of notice %s: %w", n.ID, err)
		}
	}
	return m, nil
}

var notToken = regexp.MustCompile(`[^A-Za-z0-9-]`)

// token returns an ID without characters that have a meaning in headers.
func token(id string) string { return notToken.ReplaceAllString(id, "-") }
