package cluster

// ImageQuery is a request for the default command of an image.
type ImageQuery struct {
	Name    string   // as in the descriptor
	Arch    string   // of the machine that runs the image; empty if unknown
	Scope   string   // Kubernetes namespace of the pull secrets
	Secrets []string // with which the image is pulled, in the order in which they are tried
}

// Image is the answer of a registry: it stays the same for all attempts of a run, even if the registry or the image's tag changes.
type Image struct {
	Name       string   `json:"name"`             // as in the descriptor
	Digest     string   `json:"digest,omitempty"` // of all that the name stood for
	Platform   string   `json:"platform,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"` // default arguments of Entrypoint
	// UnreadReason is why the registry gave no answer, for the user; empty if it answered.
	UnreadReason string `json:"unread,omitempty"`
	// NoSecret means that the process that asked could not read a pull secret: another process may get an answer.
	NoSecret bool `json:"no_secret,omitempty"`
}
