package cluster

// ImageQuery asks what an image runs by itself.
type ImageQuery struct {
	Name    string   // as a descriptor gives it
	Arch    string   // of the machine that it is to run on; empty where that is not said
	Scope   string   // Kubernetes namespace of the pull secrets
	Secrets []string // with which the image is pulled, in the order in which they are tried
}

// Image is the answer of a registry: the same for all attempts of a run, whatever
// becomes of the registry or of the image's tag.
type Image struct {
	Name       string   `json:"name"`             // as a descriptor gives it
	Digest     string   `json:"digest,omitempty"` // of all that the name stood for
	Platform   string   `json:"platform,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"` // arguments of Entrypoint where nobody gives others
	// UnreadReason is why the registry gave no answer, for the user; empty where it did.
	UnreadReason string `json:"unread,omitempty"`
	// NoSecret says that a pull secret could not be read by who asked: somebody else
	// may be given an answer.
	NoSecret bool `json:"no_secret,omitempty"`
}
