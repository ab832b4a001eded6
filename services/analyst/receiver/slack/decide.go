package slack

import (
	"strings"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver/message"
)

// The limits of Slack for a message, in characters; the one of the text is what Slack recommends.
const (
	maxText    = 4000
	maxHeader  = 150
	maxSection = 3000
)

// body is what is posted for a notice. Mattermost and Rocket.Chat show the text alone.
type body struct {
	Text        string  `json:"text"`
	Markdown    bool    `json:"mrkdwn"`
	Parse       string  `json:"parse"`
	LinkNames   bool    `json:"link_names"`
	UnfurlLinks bool    `json:"unfurl_links"`
	UnfurlMedia bool    `json:"unfurl_media"`
	Blocks      []block `json:"blocks"`
}

type block struct {
	Type     string `json:"type"`
	Text     *text  `json:"text,omitempty"`
	Elements []text `json:"elements,omitempty"`
}

type text struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji *bool  `json:"emoji,omitempty"` // of plain_text alone
}

func bodyOf(n notice.Notice) body {
	m := message.Of(n)
	blocks := []block{{Type: "header", Text: plain(m.Title, maxHeader)}}
	if len(m.Remarks) > 0 {
		blocks = append(blocks, section(strings.Join(m.Remarks, "\n")))
	}
	for _, e := range m.Entries[:min(len(m.Entries), 40)] { // Slack takes 50 blocks
		blocks = append(blocks, section(strings.Join(append([]string{e.Headline}, e.Lines...), "\n")))
	}
	if m.More != "" {
		blocks = append(blocks, section(m.More))
	}
	foot := []text{*plain(m.Footer, maxSection)}
	if link := linkTo(m.URL); link != "" {
		foot = append(foot, text{Type: "mrkdwn", Text: link})
	}
	blocks = append(blocks, block{Type: "context", Elements: foot})
	link := linkTo(m.URL)
	m.URL = ""
	whole := escape(m.Title+"\n"+m.Text(), maxText-len([]rune(link))-1)
	if link != "" {
		whole += "\n" + link
	}
	return body{Text: whole, Parse: "none", Blocks: blocks}
}

func section(s string) block { return block{Type: "section", Text: plain(s, maxSection)} }

func plain(s string, limit int) *text {
	return &text{Type: "plain_text", Text: escape(s, limit), Emoji: new(bool)}
}

// linkTo returns a link in Slack's markup to a URL of the settings.
func linkTo(url string) string {
	if url == "" || strings.ContainsAny(url, "<>|& \n") {
		return ""
	}
	return "<" + url + "|Open the incident>"
}

// escape returns a text in which nothing is markup, a mention or a link, neither for Slack nor for Mattermost and Rocket.Chat, of at most
// limit characters after the escaping. A zero-width space follows the sign of a mention, and stands within addresses and links.
func escape(s string, limit int) string {
	escaped := strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b", "://", ":\u200b//", "www.", "www\u200b.", "](", "]\u200b(",
		"*", "\u2217", "~", "\u223c", "`", "\u02cb", "__", "_\u200b_", " _", " \u02cd", "_ ", "\u02cd ",
	)
	for runes := []rune(s); ; runes = runes[:len(runes)-max(1, len(runes)/50)] {
		got := escaped.Replace(string(runes))
		if len(runes) < len([]rune(s)) {
			got += "…"
		}
		if len([]rune(got)) <= limit || len(runes) == 0 {
			return got
		}
	}
}
