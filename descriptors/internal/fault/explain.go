package fault

import (
	"fmt"
	"slices"
	"strings"
)

// An Explanation explains one code.
type Explanation struct {
	Code    string
	Title   string
	Text    string
	Example string // what begins with "$ " is a command that writes such a file, with "--set " an override
	Mended  string
}

// Explanations are those of all codes, in the order of the codes.
func Explanations() []Explanation {
	return slices.Concat(file(), tables(), info(), hardware(), env(), ml(), data(), output(), server(), volumes(), sweep(), warnings(),
		roles(), destinations(), steps(), suites(), parsers(), commandParsers(), network(), alarms(), costs(), manifests())
}

func file() []Explanation {
	return []Explanation{
		{
			Syntax, "not TOML",
			"The line does not follow the grammar of TOML (https://toml.io). Texts are in quotes; in double quotes a backslash begins an escape, in single quotes it is a backslash. What could be read of the file was checked too.",
			"[ml]\nbenchmark_code = python train.py",
			"[ml]\nbenchmark_code = \"python train.py\"",
		},
		{
			Duplicate, "defined twice",
			"A key or a table may be there once only. Lists of tables are written with two brackets.",
			"[ml]\nargs = \"a\"\nargs = \"b\"",
			"[ml]\nargs = \"a b\"",
		},
		{
			Empty, "an empty file",
			"There is nothing in the file. The smallest descriptor has spec_version and the tables info, hardware and env.",
			"$ printf '\\n'",
			"spec_version = \"1.0\"\n[info]\ndescription = \"what is measured\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"",
		},
		{
			TooLarge, "too large a file",
			"A descriptor has at most 256 KiB: it travels whole in every event of its run. Data belong into [data], code into the image or into [ml.script].",
			"$ head -c 300000 /dev/zero | tr '\\0' '#'", "[[data.sources]]\nsrc = \"https://example.org/set.tar\"\npath = \"/data/set\"",
		},
		{
			Binary, "not a text",
			"The file holds a NUL byte, which no text does. Most likely another file was meant: an archive, an image, a program.",
			"$ printf '[ml]\\nargs = \"a\\0\"\\n'", "[ml]\nargs = \"a\"",
		},
		{
			NotUTF8, "not UTF-8",
			"A descriptor is UTF-8. Editors name the encoding in the dialog in which a file is saved.",
			"$ printf '[ml]\\nargs = \"caf\\351\"\\n'", "[ml]\nargs = \"café\"",
		},
		{
			TooDeep, "nested too deeply",
			"Lists and tables lie in one another deeper than any descriptor needs, or a key has too many parts.",
			"[env]\ndocker_image = \"alpine:3\"\nvars" + strings.Repeat(".A", 32) + " = \"x\"",
			"[env]\ndocker_image = \"alpine:3\"\nvars.A = \"x\"",
		},
		{
			Override, "an override that cannot be put in its place",
			"--set takes the path of a key, as the descriptor has it: hardware.gpus, output.metrics.0.units or output.metrics[0].units, env.vars.\"A.B\". Elements of lists have numbers, from 0; the number of elements adds one. A path without a value (hardware.aws_zone_id=) takes the key away, but no element out of a list. What a table or a list is cannot have keys of another kind.",
			"--set info.description.text=x", "--set info.description=x",
		},
	}
}

func tables() []Explanation {
	return []Explanation{
		{
			UnknownKey, "unknown key",
			"The table has no such key. Keys that nothing reads are refused, because a mistyped one would change nothing and say nothing.",
			"[ml]\nbenchmark_cod = \"python train.py\"",
			"[ml]\nbenchmark_code = \"python train.py\"",
		},
		{
			WrongType, "wrong type",
			"The value has another type than the key. Types are not converted: 4 is a number and \"4\" is a text.",
			"[ml]\nargs = 4",
			"[ml]\nargs = \"4\"",
		},
		{
			Missing, "missing key",
			"The table must have this key, or the file this table.",
			"[[data.sources]]\nsrc = \"https://example.org/set.gz\"",
			"[[data.sources]]\nsrc = \"https://example.org/set.gz\"\npath = \"/data/set.gz\"",
		},
		{
			NotOneOf, "not one of the values",
			"The key takes a few values only, and this is none of them.",
			"[hardware]\ninstance_type = \"t3.small\"\nstrategy = \"singlenode\"",
			"[hardware]\ninstance_type = \"t3.small\"\nstrategy = \"single_node\"",
		},
		{
			BadText, "a text that cannot be taken",
			"The text is empty where it may not be, too long, or holds a NUL, the end of a line or another control character.",
			"[output]\nmetrics = [{ name = \"\", units = \"s\", pattern = 'x=(\\d+)' }]",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = 'x=(\\d+)' }]",
		},
		{
			OutOfRange, "a number out of range",
			"The number is smaller or larger than the key allows.",
			"[limits]\nretries = 1000",
			"[limits]\nretries = 3",
		},
		{
			BadSize, "not a size",
			"Sizes are a number and a unit: k, M, G, T, P for powers of 1000 and Ki, Mi, Gi, Ti, Pi for powers of 1024, with or without a B. CPUs are a number, or thousandths with an m.",
			"[hardware]\nmemory = \"16 gigs\"",
			"[hardware]\nmemory = \"16GiB\"",
		},
		{
			BadTime, "not a span of time",
			"Spans are numbers with units: d, h, m, s. They are a second or more and a year or less.",
			"[limits]\ndeadline = \"90\"",
			"[limits]\ndeadline = \"90m\"",
		},
	}
}

func info() []Explanation {
	return []Explanation{
		{
			Version, "unknown version of the language",
			"spec_version says in which version of the language the file is written. Known are 0.1.0, of the first descriptors, and 1.0; both are read by the same rules. A newer file needs a newer program.",
			"spec_version = \"7.0\"",
			"spec_version = \"1.0\"",
		},
		{
			BadLabel, "not a label",
			"Keys and values of labels have 1 to 63 letters, digits, -, _ and ., and begin and end with a letter or digit. A value may be empty.",
			"[info]\ndescription = \"x\"\nlabels = { \"my task\" = \"yes\" }",
			"[info]\ndescription = \"x\"\nlabels = { my_task = \"yes\" }",
		},
		{
			ReservedLabel, "a label of the platform",
			"The platform says this label of every run, pod and sample itself; yours would hide it, or be hidden.",
			"[info]\ndescription = \"x\"\nlabels = { run = \"first\" }",
			"[info]\ndescription = \"x\"\nlabels = { try = \"first\" }",
		},
		{
			TaskName, "two names for the task",
			"info.task_name and the label task_name are the same thing, and the file gives them different values.",
			"[info]\ndescription = \"x\"\ntask_name = \"a\"\nlabels = { task_name = \"b\" }",
			"[info]\ndescription = \"x\"\ntask_name = \"a\"",
		},
		{
			BadSchedule, "not a schedule",
			"A schedule is single_run, or five fields: minute, hour, day of month, month, day of week, with names, lists, ranges and steps; or @hourly, @daily, @weekly, @monthly, @yearly. There are no seconds, no years, no ? and no @reboot.",
			"[info]\ndescription = \"x\"\nscheduling = \"* * ? * *\"",
			"[info]\ndescription = \"x\"\nscheduling = \"0 3 * * mon-fri\"",
		},
		{
			NeverFires, "a schedule without a date",
			"No month has such a day, so that the schedule would be accepted and never run.",
			"[info]\ndescription = \"x\"\nscheduling = \"0 0 30 2 *\"",
			"[info]\ndescription = \"x\"\nscheduling = \"0 0 28 2 *\"",
		},
		{
			TimeZone, "not a time zone",
			"Zones have the names of the IANA database: a continent and a city, or UTC.",
			"[info]\ndescription = \"x\"\nscheduling = \"@daily\"\ntimezone = \"Berlin\"",
			"[info]\ndescription = \"x\"\nscheduling = \"@daily\"\ntimezone = \"Europe/Berlin\"",
		},
		{
			BadTimestamp, "not a time",
			"A time is a date, of which it is the beginning, or a date and a time of day with a T between them. Without a zone at its end it is a time of info.timezone.",
			"[info]\ndescription = \"x\"\nscheduling = \"@daily\"\n[schedule]\nstart = \"1st of May\"",
			"[info]\ndescription = \"x\"\nscheduling = \"@daily\"\n[schedule]\nstart = \"2026-05-01\"",
		},
		{
			NoTime, "a schedule that is over before it begins",
			"A schedule fires from its start on and before its end. With an end that is not later than the start it would be accepted and never run.",
			"[info]\ndescription = \"x\"\nscheduling = \"@daily\"\n[schedule]\nstart = \"2026-05-02\"\nend = \"2026-05-01\"",
			"[info]\ndescription = \"x\"\nscheduling = \"@daily\"\n[schedule]\nstart = \"2026-05-01\"\nend = \"2026-06-01\"",
		},
		{
			NoEngine, "an engine that the platform does not have",
			"A platform has the engine default, which is also called local on one machine (bai standalone) and kubernetes in a cluster, and those that its settings name in engines. Only the platform knows which, so the platform says this at submit and preflight and when it validates a descriptor; baictl validate, which asks no platform, warns of names that not every platform can have (BAI0105). Leave the key out to run on the default engine.",
			"[info]\ndescription = \"x\"\nexecution_engine = \"kubernetes\"",
			"[info]\ndescription = \"x\"\nexecution_engine = \"default\"",
		},
	}
}

func hardware() []Explanation {
	return []Explanation{
		{
			NoHardware, "nothing about the machine",
			"A benchmark without its machine measures nothing. Give the type of instance, or what is needed of it: gpus, cpus, memory or labels of the node.",
			"[hardware]\nstrategy = \"single_node\"",
			"[hardware]\nstrategy = \"single_node\"\ncpus = 4\nmemory = \"8GiB\"",
		},
		{
			GPUsUnknown, "an unknown number of GPUs",
			"One process on each GPU was asked for, but the type of instance is not one of those whose GPUs are known.",
			"[hardware]\ninstance_type = \"x9.huge\"\nstrategy = \"mpi\"\n[hardware.distributed]\nprocesses_per_instance = \"gpus\"\n[ml]\nbenchmark_code = \"train\"",
			"[hardware]\ninstance_type = \"x9.huge\"\ngpus = 8\nstrategy = \"mpi\"\n[hardware.distributed]\nprocesses_per_instance = \"gpus\"\n[ml]\nbenchmark_code = \"train\"",
		},
		{
			NoGPUs, "no GPU",
			"One process on each GPU was asked for, and the machine has none.",
			"[hardware]\ninstance_type = \"t2.small\"\nstrategy = \"mpi\"\n[hardware.distributed]\nprocesses_per_instance = \"gpus\"\n[ml]\nbenchmark_code = \"train\"",
			"[hardware]\ninstance_type = \"p3.8xlarge\"\nstrategy = \"mpi\"\n[hardware.distributed]\nprocesses_per_instance = \"gpus\"\n[ml]\nbenchmark_code = \"train\"",
		},
		{
			FewInstances, "a number of instances that mpi does not run",
			"Strategy mpi runs on two instances or more. Other strategies do not read the number.",
			"[hardware]\ninstance_type = \"p3.8xlarge\"\nstrategy = \"mpi\"\n[hardware.distributed]\nnum_instances = 1\n[ml]\nbenchmark_code = \"train\"",
			"[hardware]\ninstance_type = \"p3.8xlarge\"\nstrategy = \"mpi\"\n[hardware.distributed]\nnum_instances = 2\n[ml]\nbenchmark_code = \"train\"",
		},
		{
			BadProcesses, "not a number of processes",
			"processes_per_instance is \"gpus\", for one process on each GPU, or a whole number from 1 on.",
			"[hardware]\ninstance_type = \"p3.8xlarge\"\nstrategy = \"mpi\"\n[hardware.distributed]\nprocesses_per_instance = \"-3\"\n[ml]\nbenchmark_code = \"train\"",
			"[hardware]\ninstance_type = \"p3.8xlarge\"\nstrategy = \"mpi\"\n[hardware.distributed]\nprocesses_per_instance = 3\n[ml]\nbenchmark_code = \"train\"",
		},
		{
			BadToleration, "a toleration that a cluster refuses",
			"Operator Equal compares a key and a value, Exists a key only, or none. Only effect NoExecute has a time.",
			"[hardware]\ninstance_type = \"t3.small\"\ntolerations = [{ operator = \"Exists\", key = \"a\", value = \"b\" }]",
			"[hardware]\ninstance_type = \"t3.small\"\ntolerations = [{ operator = \"Exists\", key = \"a\" }]",
		},
		{
			BadResource, "not a resource",
			"The name by which a cluster counts GPUs is a domain and a name.",
			"[hardware]\ngpus = 1\ngpu_resource = \"gpu\"",
			"[hardware]\ngpus = 1\ngpu_resource = \"amd.com/gpu\"",
		},
		{
			UnknownZone, "a zone that the platform does not know",
			"Only the platform's settings (executor.pods.zones) say which name a zone's ID has, so the platform says this at submit and preflight, and validate does not. The name of a zone needs no map.",
			"[hardware]\ngpus = 1\naws_zone_id = \"use1-az9\"",
			"[hardware]\ngpus = 1\navailability_zone = \"us-east-1a\"",
		},
		{
			OtherNodes, "nodes that the platform does not use",
			"The platform's settings (executor.pods.node_selector) have all pods run on nodes with some labels, and a descriptor cannot give such a label another value, in node_selector, instance_type or availability_zone. So the platform says this at submit and preflight, and validate does not.",
			"[hardware]\ngpus = 1\nnode_selector = { pool = \"services\" }",
			"[hardware]\ngpus = 1\nnode_selector = { pool = \"benchmarks\" }",
		},
		{
			ApartTogether, "pods that are to be apart and together",
			"Each pod cannot have a node of its own (apart) and share one with all others (together with the label of one node).",
			"[hardware]\ncpus = 1\nstrategy = \"mpi\"\napart = \"node\"\ntogether = \"kubernetes.io/hostname\"\n[ml]\nbenchmark_code = \"train\"",
			"[hardware]\ncpus = 1\nstrategy = \"mpi\"\napart = \"node\"\ntogether = \"zone\"\n[ml]\nbenchmark_code = \"train\"",
		},
	}
}

func env() []Explanation {
	return []Explanation{
		{
			BadImage, "not an image",
			"An image is a name in lower case, which may begin with a host, and a tag or a digest.",
			"[env]\ndocker_image = \"Ubuntu 24.04\"",
			"[env]\ndocker_image = \"ubuntu:24.04\"",
		},
		{
			BadVariable, "not a variable",
			"Names of environment variables have letters, digits, _, - and ., and do not begin with a digit. A variable has at most 131,071 bytes, as NAME=VALUE: Linux takes no more.",
			"[env]\ndocker_image = \"alpine:3\"\nvars = { \"2ND\" = \"x\" }",
			"[env]\ndocker_image = \"alpine:3\"\nvars = { SECOND = \"x\" }",
		},
		{
			BadSecret, "not the place of a secret",
			"The values of env.secrets and env.secret_files are name/key: the name of a secret in the cluster, and a key in it. Write no value of a secret into a descriptor: descriptors are kept and shown.",
			"[env]\ndocker_image = \"alpine:3\"\nsecrets = { TOKEN = \"hunter2\" }",
			"[env]\ndocker_image = \"alpine:3\"\nsecrets = { TOKEN = \"registry/token\" }",
		},
		{
			BadName, "not a name",
			"Names have letters, digits, -, _ and ., and begin and end with a letter or digit; those of objects in a cluster are lower case.",
			"[env]\ndocker_image = \"alpine:3\"\nimage_pull_secret = \"My Secret\"",
			"[env]\ndocker_image = \"alpine:3\"\nimage_pull_secret = \"my-secret\"",
		},
		{
			DuplicateVariable, "a variable with two values",
			"The same variable is in vars and in secrets.",
			"[env]\ndocker_image = \"alpine:3\"\nvars = { TOKEN = \"x\" }\nsecrets = { TOKEN = \"registry/token\" }",
			"[env]\ndocker_image = \"alpine:3\"\nsecrets = { TOKEN = \"registry/token\" }",
		},
		{
			PlatformObject, "an object of the platform",
			"Names that begin with bai- are those of the platform's own Secrets and claims: they hold the tokens and the data of runs. No descriptor may name one, in env.secrets, env.secret_files, env.image_pull_secret or volumes.claim, and no setting allows it.",
			"[env]\ndocker_image = \"alpine:3\"\nsecrets = { TOKEN = \"bai-01jd0000000000000000000000-1/collect.json\" }",
			"[env]\ndocker_image = \"alpine:3\"\nsecrets = { TOKEN = \"registry/token\" }",
		},
		{
			NotAllowed, "an object that the namespace may not name",
			"The Secrets and claims of the cluster belong to somebody. Only the platform's settings (executor.pods.allow) say which of them the descriptors of a namespace may name: by name, where * stands for any text, or by label. Without an entry they may name none. So the platform says this at submit and preflight, and validate does not. The operator allows the Secret billing for the namespace default with [executor.pods.allow.default] secrets = [\"billing\"], and for all namespaces with [executor.pods.allow.\"*\"].",
			"[env]\ndocker_image = \"alpine:3\"\nsecrets = { TOKEN = \"billing/token\" }",
			"[env]\ndocker_image = \"alpine:3\"\nsecrets = { TOKEN = \"registry/token\" }",
		},
		{
			SecretArtifact, "an artifact that holds a secret",
			"Artifacts are stored, and everybody who sees the run can read them. So an artifact is no file of env.secret_files, nor a folder that one lies in.",
			"[env]\ndocker_image = \"alpine:3\"\nsecret_files = { \"/root/.aws/credentials\" = \"registry/aws\" }\n[output]\nartifacts = [{ path = \"/root\" }]",
			"[env]\ndocker_image = \"alpine:3\"\nsecret_files = { \"/root/.aws/credentials\" = \"registry/aws\" }\n[output]\nartifacts = [{ path = \"/root/results\" }]",
		},
		{
			OtherPullPolicy, "a pull policy that the platform does not have",
			"The platform's settings (executor.pods.pull_policy) fix when nodes pull images, for all pods. So the platform says this at submit and preflight, and validate does not.",
			"[env]\ndocker_image = \"alpine:3\"\npull_policy = \"always\"",
			"[env]\ndocker_image = \"alpine:3\"\npull_policy = \"never\"",
		},
		{
			OtherPriority, "a priority class that the platform does not let descriptors name",
			"Pods of a higher class may have others evicted. The platform's settings say which classes the descriptors of a namespace may name, as in [executor.pods.allow.\"team\"] priorities = [\"nightly\"]; without an entry there are none. So the platform says this when it validates a descriptor, at submit and preflight, and baictl validate does not.",
			"[hardware]\ncpus = 1\npriority = \"system-cluster-critical\"",
			"[hardware]\ncpus = 1",
		},
		{
			OtherQueue, "a queue that the platform does not let descriptors name",
			"The platform's settings say which queues of Kueue or volcano the descriptors of a namespace may name, as in [executor.pods.allow.\"team\"] queues = [\"team-a\"]; without an entry there are none, and runs wait in the queue of executor.pods.queue, if there is one. So the platform says this when it validates a descriptor, at submit and preflight, and baictl validate does not.",
			"[hardware]\ncpus = 1\nqueue = \"of-others\"",
			"[hardware]\ncpus = 1",
		},
		{
			OtherPlacement, "a placement that the platform does not let descriptors name",
			"The platform's settings (executor.pods.placements) say which placements descriptors may name: an exclusive run keeps all others off its nodes. So the platform says this at submit and preflight, and validate does not.",
			"[hardware]\ncpus = 1\nplacement = \"exclusive\"",
			"[hardware]\ncpus = 1\nplacement = \"spread\"",
		},
	}
}

func ml() []Explanation {
	return []Explanation{
		{
			Quotes, "a quote without its partner",
			"Commands are split into words as by a shell, so that quotes come in pairs.",
			"[ml]\nbenchmark_code = \"echo it's done\"",
			"[ml]\nbenchmark_code = \"echo \\\"it's done\\\"\"",
		},
		{
			Interpreter, "a script without an interpreter",
			"A command that begins with #! is a script; the line says which program runs it.",
			"[ml]\nbenchmark_code = \"\"\"\n#!\necho hello\n\"\"\"",
			"[ml]\nbenchmark_code = \"\"\"\n#!/bin/sh\necho hello\n\"\"\"",
		},
		{
			Framework, "a version of nothing",
			"framework_version is the version of framework, which is not there.",
			"[ml]\nframework_version = \"1.5\"",
			"[ml]\nframework = \"mxnet\"\nframework_version = \"1.5\"",
		},
		{
			NotTar, "not a .tar archive",
			"Code that is sent along with a descriptor is one .tar archive.",
			"[ml.script]\nscript = \"code.zip\"",
			"[ml.script]\nscript = \"code.tar\"",
		},
		{
			NoCommand, "no command where one is needed",
			"Strategy mpi starts the command on every worker with mpirun, which needs a program or a script. The entrypoint of an image cannot be started so, and arguments alone are arguments of that. A role that is ready by a file or a line of its log needs a command, too: the platform watches commands, not entrypoints.",
			"[hardware]\ninstance_type = \"p3.8xlarge\"\nstrategy = \"mpi\"\n[ml]\nargs = \"8\"",
			"[hardware]\ninstance_type = \"p3.8xlarge\"\nstrategy = \"mpi\"\n[ml]\nbenchmark_code = \"/examples/train.sh\"\nargs = \"8\"",
		},
	}
}

func data() []Explanation {
	return []Explanation{
		{
			Scheme, "a source that nothing fetches",
			"Data come from s3://, gs://, azblob://, http://, https:// and git+https://, and from file:// where the platform's settings allow it.",
			"[[data.sources]]\nsrc = \"ftp://example.org/set\"\npath = \"/data\"",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"/data\"",
		},
		{
			BadURL, "not a URL",
			"The URL has no host or bucket, or holds what a URL may not.",
			"[[data.sources]]\nsrc = \"https:///set\"\npath = \"/data\"",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"/data\"",
		},
		{
			Credentials, "a password in a URL",
			"Descriptors are kept, shown and sent around. The right to read the data is the platform's, not the descriptor's.",
			"[[data.sources]]\nsrc = \"https://me:secret@example.org/set\"\npath = \"/data\"",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"/data\"",
		},
		{
			BadPath, "not a path",
			"Paths begin with /, do not go upwards, and hold no colon where something is mounted.",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"data/set\"",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"/data/set\"",
		},
		{
			TakenPath, "a path of the system",
			"Data cannot lie where the system or the platform has its own files.",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"/proc/set\"",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"/data/set\"",
		},
		{
			SamePath, "one path twice",
			"Two sources, or two artifacts, have one path: one would hide the other.",
			"[[data.sources]]\nsrc = \"https://example.org/a\"\npath = \"/data\"\n[[data.sources]]\nsrc = \"https://example.org/b\"\npath = \"/data\"",
			"[[data.sources]]\nsrc = \"https://example.org/a\"\npath = \"/data/a\"\n[[data.sources]]\nsrc = \"https://example.org/b\"\npath = \"/data/b\"",
		},
		{
			NestedPath, "a path inside another",
			"One source lies inside another one, and would change it or be hidden by it.",
			"[[data.sources]]\nsrc = \"https://example.org/a\"\npath = \"/data\"\n[[data.sources]]\nsrc = \"https://example.org/b\"\npath = \"/data/b\"",
			"[[data.sources]]\nsrc = \"https://example.org/a\"\npath = \"/data/a\"\n[[data.sources]]\nsrc = \"https://example.org/b\"\npath = \"/data/b\"",
		},
		{
			BadDigest, "not a digest",
			"md5 has 32 hexadecimal digits, sha256 has 64.",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"/data\"\nmd5 = \"abc\"",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"/data\"\nmd5 = \"d41d8cd98f00b204e9800998ecf8427e\"",
		},
		{
			SignedURL, "a right that is a part of a URL",
			"A signed link lets in whoever has it, and descriptors are kept, shown and sent around; it also ends some day, and a run cannot be repeated then. Buckets and repositories are read with the right of the platform: s3://, gs:// and azblob:// with that of its settings or its machines, git+https:// with the token that its settings have for the host.",
			"[[data.sources]]\nsrc = \"https://team.s3.amazonaws.com/set?X-Amz-Signature=4e1c\"\npath = \"/data\"",
			"[[data.sources]]\nsrc = \"s3://team/set\"\npath = \"/data\"",
		},
	}
}

func output() []Explanation {
	return []Explanation{
		{
			BadPattern, "not a regular expression",
			"Patterns are those of Go (https://pkg.go.dev/regexp/syntax). Single quotes keep backslashes as they are.",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = 'x=(\\d+' }]",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = 'x=(\\d+)' }]",
		},
		{
			LookAround, "look-around or a back-reference",
			"Go's regular expressions match in linear time, and for that have no look-ahead, no look-behind, no back-references and no possessive or atomic groups. A group called value says which part of the match is the number.",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = '(?<=x=)\\d+' }]",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = 'x=(?P<value>\\d+)' }]",
		},
		{
			LargePattern, "too large a pattern",
			"Written out, the repetitions of the pattern take too much memory on every line that is matched.",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = 'x{5000}' }]",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = 'x+' }]",
		},
		{
			SameMetric, "two metrics with one name",
			"Nobody could tell the numbers of the two apart.",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = 'a' }, { name = \"x\", units = \"s\", pattern = 'b' }]",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = 'a|b' }]",
		},
		{
			NoOutput, "an output without anything",
			"The table output has metrics, or artifacts, or both. metrics = [] keeps what the benchmark emits itself.",
			"[output]",
			"[output]\nmetrics = []",
		},
		{
			NoBlock, "a block of lines without a beginning",
			"The parser blocks holds a pattern against several lines together; block is a pattern of the first of them.",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = '(?s)epoch.*x=(\\d+)', parser = \"blocks\" }]",
			"[output]\nmetrics = [{ name = \"x\", units = \"s\", pattern = '(?s)epoch.*x=(\\d+)', parser = \"blocks\", block = '^epoch' }]",
		},
		{
			BadEndpoint, "not a URL of the benchmark's pod",
			"Numbers are read over http from who runs in the same pod: from 127.0.0.1, localhost or [::1].",
			"[output]\nprometheus = \"https://metrics.example.org/metrics\"",
			"[output]\nprometheus = \"http://127.0.0.1:9090/metrics\"",
		},
		{
			ManyBlocks, "too many kinds of blocks",
			"All lines are held against the beginning of every kind of block, and the lines of each are kept in memory until it ends: 32 different kinds at most. Metrics whose block, block_lines and block_time are the same share one.",
			"[output]\nmetrics = [" + kindsOfBlocks(33) + "]",
			"[output]\nmetrics = [" + kindsOfBlocks(2) + "]",
		},
	}
}

// kindsOfBlocks are n metrics, each with blocks of its own.
func kindsOfBlocks(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{ name = "m%d", units = "s", pattern = '(\d+)', parser = "blocks", block = 'begin %d' }`, i, i))
	}
	return strings.Join(all, ", ")
}

func server() []Explanation {
	return []Explanation{
		{
			NoServer, "inference without a server",
			"Strategy inference runs a server and a client that asks it; the table server says what the server is.",
			"[hardware]\ninstance_type = \"t3.small\"\nstrategy = \"inference\"",
			"[hardware]\ninstance_type = \"t3.small\"\nstrategy = \"inference\"\n[server.hardware]\ninstance_type = \"t3.small\"\n[server.env]\ndocker_image = \"nginx:1\"\nports = [80]\nstart_command = \"\"",
		},
		{
			BadPorts, "not ports",
			"A server listens on one port or more, each named once.",
			"[hardware]\ninstance_type = \"t3.small\"\nstrategy = \"inference\"\n[server.hardware]\ninstance_type = \"t3.small\"\n[server.env]\ndocker_image = \"nginx:1\"\nports = []\nstart_command = \"\"",
			"[hardware]\ninstance_type = \"t3.small\"\nstrategy = \"inference\"\n[server.hardware]\ninstance_type = \"t3.small\"\n[server.env]\ndocker_image = \"nginx:1\"\nports = [80]\nstart_command = \"\"",
		},
	}
}

func volumes() []Explanation {
	return []Explanation{
		{
			SharedWritable, "shared data that may be changed",
			"With mount = \"shared\" all pods of a role read the data from one volume. What one of them changed the others would measure.",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"/data\"\nmount = \"shared\"\nread_only = false",
			"[[data.sources]]\nsrc = \"https://example.org/set\"\npath = \"/data\"\nmount = \"shared\"",
		},
		{
			VolumeKind, "a volume that is nothing, or two things",
			"A volume is one of four: a claim that exists, a claim that is made for the run (template), space of each pod's own (ephemeral), or a folder of an NFS server.",
			"[[volumes]]\npath = \"/scratch\"",
			"[[volumes]]\npath = \"/scratch\"\nephemeral = { size = \"10GiB\" }",
		},
		{
			NoRole, "a role that the run does not have",
			"The pods of a run are: benchmark; with strategy mpi, worker and launcher; with strategy inference, client and server; with [[roles]], those of the file. Without role all of them mount a volume, and the workers, the client, the benchmark or all roles of the file have data.",
			"[[volumes]]\npath = \"/scratch\"\nrole = \"server\"\nephemeral = { size = \"10GiB\" }",
			"[[volumes]]\npath = \"/scratch\"\nephemeral = { size = \"10GiB\" }",
		},
	}
}

func sweep() []Explanation {
	return []Explanation{
		{
			BadSweep, "a list or row of a sweep that is none",
			"Each name in product and zip has a list of one value or more, and all lists of zip have as many. A name without a dot is a parameter: letters, digits and _. The path of a key is in quotes, since a dot outside of quotes begins a table in TOML. No two names set one key.",
			"[ml]\nargs = \"{{size}}\"\n[sweep.product]\nsize = []",
			"[ml]\nargs = \"{{size}}\"\n[sweep.product]\nsize = [\"1K\", \"1M\"]",
		},
		{
			NoParameter, "a name that has no value",
			"In a descriptor with [sweep], {{name}} stands for the cell's value of the parameter name. Either no list or row has this name, or a row of explicit or the combinations of product and zip leave it out. Two braces that are no name are written as four: {{{{.",
			"[ml]\nargs = \"{{size}} {{count}}\"\n[sweep.product]\nsize = [\"1K\", \"1M\"]",
			"[ml]\nargs = \"{{size}} {{{{count}}\"\n[sweep.product]\nsize = [\"1K\", \"1M\"]",
		},
		{
			NotVaried, "a key that is the same in all cells",
			"spec_version, info.scheduling, info.timezone and the keys of [schedule] and [sweep] belong to the whole file.",
			"[sweep.product]\n\"info.timezone\" = [\"UTC\", \"Europe/Berlin\"]",
			"[sweep.product]\n\"info.description\" = [\"one\", \"two\"]",
		},
		{
			NotSubstituted, "a value that cannot stand in a string",
			"{{name}} in a string becomes the content of a string, or the text of a number, a bool or a time. A list or a table has no such text: set the whole key by its path.",
			"[ml]\nargs = \"{{size}}\"\n[sweep.product]\nsize = [[1, 2], [3, 4]]",
			"[ml]\nargs = \"{{size}}\"\n[sweep.product]\nsize = [\"1 2\", \"3 4\"]",
		},
		{
			EqualCells, "two cells with the same values",
			"Two combinations or rows have the same value for every name. Results are kept by cell, so that each is there once; repetitions says how often it runs.",
			"[sweep.product]\n\"hardware.cpus\" = [1, 2, 2]",
			"[sweep]\nrepetitions = 2\n[sweep.product]\n\"hardware.cpus\" = [1, 2]",
		},
		{
			NoCells, "a sweep without cells",
			"[sweep] needs product, zip or explicit, and exclude may not leave out all cells.",
			"[sweep]\nrepetitions = 3",
			"[sweep]\nrepetitions = 3\n[sweep.product]\n\"hardware.cpus\" = [1, 2]",
		},
		{
			ManyRuns, "too many runs",
			"A set has as many runs as cells times repetitions and warm-up runs: 100,000 at most, if the platform sets no other limit. Combinations count before exclude leaves some out. A sweep with very many values in a long descriptor is refused too, as checking it would take too long, and so is a suite whose entries together would take too long; entries with the same descriptor and values count once.",
			"[sweep]\nrepetitions = 10000\nwarmup = 10000\n[sweep.product]\n\"hardware.cpus\" = [1, 2, 3, 4, 5, 6]",
			"[sweep]\nrepetitions = 100\nwarmup = 1\n[sweep.product]\n\"hardware.cpus\" = [1, 2, 3, 4, 5, 6]",
		},
		{
			BadStopWhen, "a rule to stop that contradicts the sweep",
			"With stop_when each cell has min repetitions or more, and max at most: max is the number of repetitions, which is not given twice, and not less than min. The rule needs the repetitions of a cell in their order, which order random does not keep. half_width is a percentage above 0, as \"2%\".",
			"[sweep]\nrepetitions = 10\n[sweep.product]\n\"hardware.cpus\" = [1, 2]\n[sweep.stop_when]\nmetric = \"latency\"\nhalf_width = \"2%\"\nmax = 30",
			"[sweep.product]\n\"hardware.cpus\" = [1, 2]\n[sweep.stop_when]\nmetric = \"latency\"\nhalf_width = \"2%\"\nmax = 30",
		},
	}
}

func warnings() []Explanation {
	return []Explanation{
		{
			NotRead, "something that nothing reads",
			"The key is allowed here and changes nothing. It is kept for other engines, or belongs to another setting than the file has.",
			"[hardware]\ninstance_type = \"p3.8xlarge\"\n[hardware.distributed]\nnum_instances = 4",
			"[hardware]\ninstance_type = \"p3.8xlarge\"\nstrategy = \"mpi\"\n[hardware.distributed]\nnum_instances = 4\n[ml]\nbenchmark_code = \"train\"",
		},
		{
			UnknownType, "an unknown type of instance",
			"The number of GPUs of this type is not known, and none is asked for. hardware.gpus says it; the platform's settings can say it for every descriptor.",
			"[hardware]\ninstance_type = \"x9.huge\"",
			"[hardware]\ninstance_type = \"x9.huge\"\ngpus = 8",
		},
		{
			GPUsDiffer, "more GPUs than the machine has",
			"hardware.gpus asks for more than machines of this type have; such a run waits for ever, unless the cluster counts parts of GPUs.",
			"[hardware]\ninstance_type = \"p3.2xlarge\"\ngpus = 4",
			"[hardware]\ninstance_type = \"p3.8xlarge\"\ngpus = 4",
		},
		{
			UnknownEngine, "an engine that not every platform has",
			"A platform has the engine default, which is also called local on one machine (bai standalone) and kubernetes in a cluster, and those that its settings name in engines. The file alone is warned; a platform without the engine named here refuses it with an error, BAI0029, at submit and preflight and when it validates a descriptor. A run that waits for a slot when its engine is taken out of the settings ends with reason EngineUnavailable. Leave the key out to run on the default engine.",
			"[info]\ndescription = \"x\"\nexecution_engine = \"aws.sagemaker\"",
			"[info]\ndescription = \"x\"\nexecution_engine = \"kubernetes\"",
		},
		{
			NoShell, "a command for a shell, without a shell",
			"The words of a command are handed to the program as they are: no shell expands $NAME or acts on && and |. Make it a script, which begins with #!, as ml.benchmark_code and server.env.start_command may be, or call a shell.",
			"[ml]\nbenchmark_code = \"make && ./bench\"",
			"[ml]\nbenchmark_code = \"\"\"\n#!/bin/sh -e\nmake && ./bench\n\"\"\"",
		},
		{
			OneCommand, "several lines that are one command",
			"Without #! a text of several lines is one command, and its lines are its words. Make it a script, which begins with #!, or end each line but the last with a backslash.",
			"[ml]\nbenchmark_code = \"\"\"\nmake\n./bench\n\"\"\"",
			"[ml]\nbenchmark_code = \"\"\"\n#!/bin/sh -e\nmake\n./bench\n\"\"\"",
		},
		{
			LegacyValue, "what only version 0.1 took",
			"Files of version 0.1, which the system that this one replaces reads, may have blanks in info.task_name and paths that begin with ~/. The blanks become hyphens, and ~ becomes /root.",
			"spec_version = \"0.1.0\"\n[info]\ndescription = \"x\"\ntask_name = \"my task\"",
			"spec_version = \"0.1.0\"\n[info]\ndescription = \"x\"\ntask_name = \"my-task\"",
		},
		{
			SecretInURL, "what sounds like a secret in a URL",
			"Whoever may see a run sees its descriptor, and with it this URL as it is. In statuses, errors and logs the value of such a parameter is left out. An HTTP server has no other way to be told who asks: where that matters, keep the data where the platform reads them with a right of its own.",
			"[[data.sources]]\nsrc = \"https://example.org/set?access_token=4e1c\"\npath = \"/data\"",
			"[[data.sources]]\nsrc = \"s3://team/set\"\npath = \"/data\"",
		},
		{
			NotUsed, "a parameter that no string uses",
			"The name has no dot, so that it is a parameter, and no string of the descriptor has it in double braces: the cells differ in nothing but their labels. Write {{name}} without blanks, or the path of a key with its dots.",
			"[sweep.product]\ncpus = [1, 2]",
			"[sweep.product]\n\"hardware.cpus\" = [1, 2]",
		},
		{
			NotExcluded, "a row of exclude that leaves out nothing",
			"No cell has all values of the row. Values are compared by their TOML text: \"1\" is not 1, and 1_000 is not 1000.",
			"[sweep.product]\n\"hardware.cpus\" = [1, 2]\n[[sweep.exclude]]\n\"hardware.cpus\" = \"2\"",
			"[sweep.product]\n\"hardware.cpus\" = [1, 2]\n[[sweep.exclude]]\n\"hardware.cpus\" = 2",
		},
		{
			ManyParallel, "more active runs than a set has",
			"A set has 200 active runs at most, whatever max_parallel says. As many of them run as the platform has slots.",
			"[sweep]\nmax_parallel = 1000\n[sweep.product]\n\"hardware.cpus\" = [1, 2]",
			"[sweep]\nmax_parallel = 200\n[sweep.product]\n\"hardware.cpus\" = [1, 2]",
		},
	}
}

func roles() []Explanation {
	return []Explanation{
		{
			SameRole, "two roles of one name",
			"Pods, addresses, log lines and samples of a run are told apart by their role. For several equal pods give one role replicas.",
			"[[roles]]\nname = \"server\"\n[[roles]]\nname = \"server\"",
			"[[roles]]\nname = \"server\"\nreplicas = 2",
		},
		{
			BadRole, "not the name of a role",
			"The name is a part of the names of pods and hosts: 1 to 20 lower-case letters, digits and hyphens, the first and last no hyphen.",
			"[[roles]]\nname = \"Load_Generator\"",
			"[[roles]]\nname = \"load-generator\"",
		},
		{
			UnknownRole, "a role waits for one that is not there",
			"starts_after names other roles of the file.",
			"[[roles]]\nname = \"client\"\nstarts_after = [\"sever\"]",
			"[[roles]]\nname = \"server\"\nready = { port = 5201 }\n[[roles]]\nname = \"client\"\nstarts_after = [\"server\"]",
		},
		{
			RoleCircle, "roles that wait for each other",
			"None of these roles would ever start: each waits until the next one is ready, and the last waits for the first.",
			"[[roles]]\nname = \"a\"\nready = { port = 1 }\nstarts_after = [\"b\"]\n[[roles]]\nname = \"b\"\nready = { port = 2 }\nstarts_after = [\"a\"]",
			"[[roles]]\nname = \"a\"\nready = { port = 1 }\n[[roles]]\nname = \"b\"\nready = { port = 2 }\nstarts_after = [\"a\"]",
		},
		{
			NoEnd, "no role that ends the run",
			"The run ends when all roles with ends_run have ended. If no role has the key, the last role of the file ends the run.",
			"[[roles]]\nname = \"server\"\nends_run = false",
			"[[roles]]\nname = \"server\"",
		},
		{
			Replicas, "not a number of pods",
			"A role has one pod or more, and a run has 1000 pods and 32 roles at most: each pod is given the names of all others.",
			"[[roles]]\nname = \"server\"\nreplicas = 0",
			"[[roles]]\nname = \"server\"\nreplicas = 1",
		},
		{
			ReadyKind, "ready without exactly one way to tell",
			"A pod is ready when it accepts connections on a port, answers over HTTP, has created a file, or has written a line: ready has exactly one of port, http, file and log.",
			"[[roles]]\nname = \"server\"\nready = {}",
			"[[roles]]\nname = \"server\"\nready = { port = 5201 }",
		},
		{
			NeverReady, "others wait for a role without ready",
			"Roles that start after others wait until these are ready, and only ready says when a role is.",
			"[[roles]]\nname = \"server\"\n[[roles]]\nname = \"client\"\nstarts_after = [\"server\"]",
			"[[roles]]\nname = \"server\"\nready = { port = 5201 }\n[[roles]]\nname = \"client\"\nstarts_after = [\"server\"]",
		},
		{
			StrategyAndRoles, "a strategy beside roles",
			"A strategy is a short form of roles: a file has one of the two.",
			"[hardware]\ncpus = 1\nstrategy = \"inference\"\n[[roles]]\nname = \"server\"",
			"[hardware]\ncpus = 1\n[[roles]]\nname = \"server\"",
		},
	}
}

func parsers() []Explanation {
	return []Explanation{
		{
			SameParser, "two parsers of the same output",
			"Each number would be stored twice.",
			"[output]\nparsers = [{ kind = \"iperf3\" }, { kind = \"iperf3\" }]",
			"[output]\nparsers = [{ kind = \"iperf3\" }, { kind = \"iperf3\", path = \"/tmp/second.json\" }]",
		},
		{
			OtherUnits, "units that cannot be converted",
			"A metric that a parser finds is converted to the units that the descriptor gives it, which have to measure the same. docs/parsers.md has the units of each metric.",
			"[output]\nparsers = [{ kind = \"iperf3\" }]\nmetrics = [{ name = \"bandwidth\", units = \"s\" }]",
			"[output]\nparsers = [{ kind = \"iperf3\" }]\nmetrics = [{ name = \"bandwidth\", units = \"Gbit/s\" }]",
		},
	}
}

func commandParsers() []Explanation {
	return []Explanation{
		{
			NoParserCommand, "a parser of kind command without a command",
			"A parser of kind command is a program of your own, which command names: in the image, or sent along with the descriptor. It reads the output from standard input, and prints a JSON object a line. Try it with baictl parser test FILE --with COMMAND.",
			"[output]\nparsers = [{ kind = \"command\" }]",
			"[output]\nparsers = [{ kind = \"command\", command = \"python3 parse.py\" }]",
		},
	}
}

func destinations() []Explanation {
	const example = "[[output.destinations]]\nname = \"warehouse\"\n"
	return []Explanation{
		{
			NoDestination, "a destination that the platform does not have",
			"A destination is a table of the platform's settings, [destinations.NAME], with the namespaces that may use it. A descriptor only names it: addresses and passwords are the operator's. So the platform says this at submit and preflight, and validate does not.",
			example + "# the settings have no [destinations.warehouse]",
			"[[output.destinations]]\nname = \"lake\"\n# the settings have [destinations.lake]",
		},
		{
			SameDestination, "one destination twice",
			"A destination gets the rows of a run once, with one set of columns.",
			example + example,
			example,
		},
		{
			BadColumn, "not the name of a column",
			"The name of a column has 1 to 63 lower-case letters, digits and _, and begins with no digit: every kind of destination takes such names as they are.",
			example + "columns = { \"run ID\" = \"run.id\" }",
			example + "columns = { run_id = \"run.id\" }",
		},
		{
			NoColumnValue, "a column without a value that is known",
			"The value of a column is run.FIELD with id, name, namespace, owner, outcome, attempt, created, started, ended, set, cell or repetition; label.KEY; summary.FIELD with metric, unit, labels or a number; metric.NAME.FIELD with unit or a number; or sample.FIELD with metric, unit, labels, value, time or step. The numbers of summaries are n, min, max, median, p90, p95, p99, mean, sd, first and last.",
			example + "columns = { run = \"id\" }",
			example + "columns = { run = \"run.id\" }",
		},
		{
			OtherRows, "a column of other rows",
			"A row is a summary, a sample, or with values of metrics the whole run. So sample.FIELD needs rows = \"samples\", summary.FIELD and metric.NAME.FIELD need rows = \"summaries\", and a row has no values of both summary and metric.",
			example + "columns = { value = \"sample.value\" }",
			example + "rows = \"samples\"\ncolumns = { value = \"sample.value\" }",
		},
	}
}

func steps() []Explanation {
	const before = "[[steps]]\nname = \"warm\"\nwhen = \"before\"\ncommand = \"warm-cache\"\n"
	const after = "[ml]\nbenchmark_code = \"measure\"\n[[steps]]\nname = \"report\"\nwhen = \"after\"\ncommand = \"write-report\"\n"
	return []Explanation{
		{
			SameStep, "two steps of one name",
			"Containers, log lines and output folders of steps are told apart by their names.",
			before + before,
			before + strings.Replace(before, "warm", "fill", 1),
		},
		{
			BadStep, "not the name of a step",
			"The name is a part of the name of a container and of paths: 1 to 20 lower-case letters, digits and hyphens, the first and last no hyphen.",
			strings.Replace(before, "\"warm\"", "\"Warm_Cache\"", 1),
			strings.Replace(before, "\"warm\"", "\"warm-cache\"", 1),
		},
		{
			UnknownStep, "a step needs one that is not there",
			"needs names other steps of the file.",
			before + after + "needs = [\"wram\"]\n",
			before + after + "needs = [\"warm\"]\n",
		},
		{
			StepCircle, "steps that need each other",
			"None of these steps would ever start: each needs the end of the next one, and the last needs that of the first.",
			before + "needs = [\"warm\"]\n",
			before,
		},
		{
			StepOrder, "a step needs one that runs later",
			"Steps with when = \"after\" start once the benchmark has succeeded, and it starts after all steps with when = \"before\". Steps with when = \"always\" run at the end of the attempt, whatever became of the others: they can need each other alone.",
			before + "needs = [\"report\"]\n" + after,
			before + after + "needs = [\"warm\"]\n",
		},
		{
			TooManySteps, "too many steps",
			"A run has 32 steps at most: each is a container with a volume of its own.",
			"$ printf 'spec_version = \"1.0\"\\n[info]\\ndescription = \"x\"\\n[hardware]\\ncpus = 1\\n[env]\\ndocker_image = \"a\"\\n'; for i in $(seq 33); do printf '[[steps]]\\nname = \"s%d\"\\nwhen = \"before\"\\ncommand = \"x\"\\n' $i; done",
			before,
		},
		{
			StepsAndPods, "steps of a run with several pods",
			"Steps before the benchmark's command and after it run in its pod. Nothing would hold back the other pods of a run of several. A step that runs always runs in one pod, too: that of the last role whose end ends the run.",
			"[hardware]\ncpus = 1\n[[roles]]\nname = \"pair\"\nreplicas = 2\n" + before,
			"[hardware]\ncpus = 1\n[[roles]]\nname = \"one\"\n" + before,
		},
	}
}
