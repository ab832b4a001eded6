package fault

func manifests() []Explanation {
	const (
		head = "[hardware]\ncpus = 1\nstrategy = \"manifest\"\n[manifest]\n"
		meta = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: train\n"
		pods = "spec:\n  template:\n    spec:\n      containers:\n      - name: train\n        image: debian:12\n        command: [\"true\"]\n"
		good = head + "objects = '''\n" + meta + pods + "'''"
		own  = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: one\n"
	)
	text := func(yaml string) string { return head + "objects = '''\n" + yaml + "'''" }
	return []Explanation{
		{
			BadManifest, "a manifest that is not a list of objects",
			"manifest.objects is YAML documents with a line --- between two of them, 32 at most. Each is a map with apiVersion, kind and metadata. Keys are texts and no key is there twice; there are no anchors, aliases and tags, which JSON does not have either.",
			text(meta + "spec: {a: 1, a: 2}\n"), good,
		},
		{
			ObjectIdentity, "an object without kind, version or name",
			"Every object says its apiVersion, its kind and its metadata.name (or generateName). The name is lower-case letters, digits and -: the platform makes the name of the object in the cluster from it and from the run's ID.",
			text("apiVersion: batch/v1\nmetadata:\n  name: train\n"), good,
		},
		{
			SameObject, "two objects of one kind and name",
			"The second one could not be created. To run an object several times, write copies.",
			text(meta + pods + "---\n" + meta + pods), good,
		},
		{
			ObjectNamespace, "an object of another namespace",
			"All objects of a run are in the namespace of the platform's runs, by which they are found, watched and deleted. No object of a manifest names one, and none refers to an object in another.",
			text("apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: train\n  namespace: kube-system\n" + pods), good,
		},
		{
			PodRule, "something that no run may have",
			"Pods of a manifest are held to the rules of all runs: no folder of the node, no account or token of the cluster, no network, processes or ports of the node, no capabilities, no volumes that reach past the cluster's own claims. Nor has an object finalizers or owners, with which it would outlive its run. The rules hold anywhere in an object, whatever its kind.",
			text(meta + "spec:\n  template:\n    spec:\n      volumes:\n      - name: host\n        hostPath: {path: /}\n"), good,
		},
		{
			ObjectName, "a name or a label that only the platform gives",
			"Names that begin with bai- are those of the platform's objects, among them the Secrets of other runs. Labels and annotations of benchmark-ai.dev say which run an object is of; those of Kueue, volcano and Multus follow from keys of the descriptor.",
			text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bai-config\n"), good,
		},
		{
			OtherKind, "a kind of object that the platform does not take",
			"The platform takes Job, ConfigMap and Service, and the kinds that its settings list in executor.pods.manifests: for these it has the right to make and delete objects. So the platform says this when it validates a descriptor, at submit and preflight, and baictl validate does not.",
			text(meta + pods + "---\n" + own), good,
		},
		{
			NoObjectEnds, "a manifest whose end nobody knows",
			"The run ends with its objects. The platform knows how Job, JobSet, MPIJob, TFJob, PyTorchJob, MXJob, XGBoostJob, TrainJob and Workflow end. For an object of another kind succeeded says it, and failed.",
			text(own), head + "succeeded = \"condition=Ready\"\nobjects = '''\n" + own + "'''",
		},
		{
			ManifestConflict, "a manifest, and a key that does not go with it",
			"With strategy manifest the objects of the table manifest make the pods: there are no roles, steps and server, and no network of pods. The other strategies make the pods themselves, and have no manifest.",
			"[hardware]\ncpus = 1\nstrategy = \"manifest\"", good,
		},
		{
			OneMachineOnly, "a manifest on one machine",
			"Controllers of a cluster run the objects of a manifest, and the local cluster has none.",
			good, "[hardware]\ncpus = 1",
		},
		{
			BadCondition, "a condition that cannot be read",
			"succeeded and failed are written as for kubectl wait: condition=TYPE is a condition in status.conditions that is True, jsonpath={.status.phase}=VALUE is a value at a path of keys, with [0] for an item of a list, and | between several values.",
			head + "succeeded = \"phase == done\"\nobjects = '''\n" + own + "'''",
			head + "succeeded = \"jsonpath={.status.phase}=Done\"\nobjects = '''\n" + own + "'''",
		},
		{
			NoFileText, "a file of a manifest without its text",
			"manifest.file names a file beside the descriptor. baictl reads it, and sends its text along; the platform reads no files of yours. A client that sends a descriptor itself writes the text into manifest.objects, or file = {name = \"objects.yaml\", text = \"…\"}. baictl reads the file only for a descriptor that is a file, too, and for manifest.file in the descriptor itself, not for --set and values of a sweep.",
			head + "file = \"objects.yaml\"", good,
		},
		{
			BadFileName, "a file that is not below the descriptor",
			"manifest.file is a path from the folder of the descriptor, with slashes. It does not leave that folder, so that the folder can be sent to others, and a descriptor of theirs reads no other file of yours.",
			head + "file = \"../objects.yaml\"", good,
		},
		{
			BadSelector, "a label selector that cannot be read",
			"manifest.pods is written as for kubectl get pods -l: app=x, app!=x, role in (a,b), role notin (a,b), gpu and !old, with commas between them; or as a table of labels and their values.",
			head + "succeeded = \"condition=Ready\"\npods = \"of is $(BAI_OBJECTS)\"\nobjects = '''\n" + own + "'''",
			head + "succeeded = \"condition=Ready\"\npods = \"of=$(BAI_OBJECTS)\"\nobjects = '''\n" + own + "'''",
		},
		{
			OpenSelector, "a label selector that pods of other runs meet",
			"One label at least of manifest.pods has to have a value with $(BAI_OBJECTS) in it, by = or in. That is the beginning of the names of the run's objects, which operators write into the labels of pods. So no run reads the log of another.",
			head + "succeeded = \"condition=Ready\"\npods = \"app=x\"\nobjects = '''\n" + own + "'''",
			head + "succeeded = \"condition=Ready\"\npods = {app = \"x\", of = \"$(BAI_OBJECTS)\"}\nobjects = '''\n" + own + "'''",
		},
	}
}
