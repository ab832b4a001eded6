package notice

// Receivers returns the names of the receivers that a notice goes to, each once: those of a namespace that notify names, as a rule or a
// descriptor does, with those of an owner in place of submitter. A notify that names none stands for the defaults of the namespace.
type Receivers func(namespace, owner string, notify []string) []string
