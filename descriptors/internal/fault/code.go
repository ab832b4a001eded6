// Package fault lists the faults of descriptors: their codes, and an explanation of each.
package fault

// The codes. A code keeps its meaning for ever; a new fault gets a new one.
const (
	// The file.
	Syntax    = "BAI0001"
	Duplicate = "BAI0002"
	Empty     = "BAI0003"
	TooLarge  = "BAI0004"
	Binary    = "BAI0005"
	NotUTF8   = "BAI0006"
	TooDeep   = "BAI0007"
	Override  = "BAI0008"

	// Keys and values of any table.
	UnknownKey = "BAI0010"
	WrongType  = "BAI0011"
	Missing    = "BAI0012"
	NotOneOf   = "BAI0013"
	BadText    = "BAI0014"
	OutOfRange = "BAI0015"
	BadSize    = "BAI0016"
	BadTime    = "BAI0017"

	// The first line, and [info].
	Version       = "BAI0020"
	BadLabel      = "BAI0021"
	ReservedLabel = "BAI0022"
	TaskName      = "BAI0023"
	BadSchedule   = "BAI0024"
	NeverFires    = "BAI0025"
	TimeZone      = "BAI0026"
	BadTimestamp  = "BAI0027"
	NoTime        = "BAI0028"
	NoEngine      = "BAI0029"

	// [hardware].
	NoHardware    = "BAI0030"
	GPUsUnknown   = "BAI0031"
	NoGPUs        = "BAI0032"
	FewInstances  = "BAI0033"
	BadProcesses  = "BAI0034"
	BadToleration = "BAI0035"
	BadResource   = "BAI0036"
	UnknownZone   = "BAI0037"
	OtherNodes    = "BAI0038"
	ApartTogether = "BAI0039"

	// [env].
	BadImage          = "BAI0040"
	BadVariable       = "BAI0041"
	BadSecret         = "BAI0042"
	BadName           = "BAI0043"
	DuplicateVariable = "BAI0044"

	// Objects of the cluster that a descriptor names.
	PlatformObject = "BAI0045"
	NotAllowed     = "BAI0046"
	SecretArtifact = "BAI0047"

	// Settings of the platform for images and nodes.
	OtherPullPolicy = "BAI0048"
	OtherPlacement  = "BAI0049"

	// [ml].
	Quotes      = "BAI0050"
	Interpreter = "BAI0051"
	Framework   = "BAI0052"
	NotTar      = "BAI0053"
	NoCommand   = "BAI0054"

	// [data], and models.
	Scheme      = "BAI0060"
	BadURL      = "BAI0061"
	Credentials = "BAI0062"
	BadPath     = "BAI0063"
	TakenPath   = "BAI0064"
	SamePath    = "BAI0065"
	NestedPath  = "BAI0066"
	BadDigest   = "BAI0067"
	SignedURL   = "BAI0068"

	// [output].
	BadPattern   = "BAI0070"
	LookAround   = "BAI0071"
	LargePattern = "BAI0072"
	SameMetric   = "BAI0073"
	NoOutput     = "BAI0074"
	NoBlock      = "BAI0075"
	BadEndpoint  = "BAI0076"
	ManyBlocks   = "BAI0077"

	// [server].
	NoServer = "BAI0080"
	BadPorts = "BAI0081"

	// Data that are shared, and [[volumes]].
	SharedWritable = "BAI0090"
	VolumeKind     = "BAI0091"
	NoRole         = "BAI0092"

	// [sweep].
	BadSweep       = "BAI0093"
	NoParameter    = "BAI0094"
	NotVaried      = "BAI0095"
	NotSubstituted = "BAI0096"
	EqualCells     = "BAI0097"
	NoCells        = "BAI0098"
	ManyRuns       = "BAI0099"
	BadStopWhen    = "BAI0100"

	// Warnings.
	NotRead       = "BAI0101"
	UnknownType   = "BAI0103"
	GPUsDiffer    = "BAI0104"
	UnknownEngine = "BAI0105"
	NoShell       = "BAI0106"
	OneCommand    = "BAI0107"
	SecretInURL   = "BAI0108"
	LegacyValue   = "BAI0109"
	NotUsed       = "BAI0110"
	NotExcluded   = "BAI0111"
	ManyParallel  = "BAI0112"

	// [[roles]]: errors again.
	SameRole         = "BAI0120"
	BadRole          = "BAI0121"
	UnknownRole      = "BAI0122"
	RoleCircle       = "BAI0123"
	NoEnd            = "BAI0124"
	Replicas         = "BAI0125"
	ReadyKind        = "BAI0126"
	NeverReady       = "BAI0127"
	StrategyAndRoles = "BAI0128"

	// [[output.destinations]].
	NoDestination   = "BAI0130"
	SameDestination = "BAI0131"
	BadColumn       = "BAI0132"
	NoColumnValue   = "BAI0133"
	OtherRows       = "BAI0134"

	// [[steps]].
	SameStep     = "BAI0140"
	BadStep      = "BAI0141"
	UnknownStep  = "BAI0142"
	StepCircle   = "BAI0143"
	StepOrder    = "BAI0144"
	TooManySteps = "BAI0145"
	StepsAndPods = "BAI0146"

	// Suites.
	SameEntry   = "BAI0150"
	NoText      = "BAI0151"
	ManyEntries = "BAI0152"
	EntryStops  = "BAI0153"

	// [hardware], as the platform's settings let descriptors write it.
	OtherPriority = "BAI0160"
	OtherQueue    = "BAI0161"
	OtherRight    = "BAI0162"

	// [[output.parsers]].
	SameParser = "BAI0170"
	OtherUnits = "BAI0171"

	// [network], and resources by their names in the cluster.
	NetworkConflict = "BAI0180"
	NotMPI          = "BAI0181"
	NoRDMA          = "BAI0182"
	SameResource    = "BAI0183"
	UnequalResource = "BAI0184"
	HugepagesAlone  = "BAI0185"

	// [[alarms]].
	AlarmCondition = "BAI0190"
	AlarmConflict  = "BAI0191"
	AlarmMetric    = "BAI0192"
	NoDirection    = "BAI0193"
	SameAlarm      = "BAI0194"
	AlarmUnit      = "BAI0195"
	BadShare       = "BAI0196"
	BadReceiver    = "BAI0197"
	NoReceiver     = "BAI0198"
	NoDueTime      = "BAI0199"

	// [alarms.confirm].
	NothingToConfirm = "BAI0200"
	NotRepeatable    = "BAI0201"
	FewRuns          = "BAI0202"

	// Prices, and [cost].
	BadPrice   = "BAI0205"
	NoCurrency = "BAI0206"
	BadPer     = "BAI0207"
	NoPer      = "BAI0208"

	// [manifest].
	BadManifest      = "BAI0215"
	ObjectIdentity   = "BAI0216"
	SameObject       = "BAI0217"
	ObjectNamespace  = "BAI0218"
	PodRule          = "BAI0219"
	ObjectName       = "BAI0220"
	OtherKind        = "BAI0221"
	NoObjectEnds     = "BAI0222"
	ManifestConflict = "BAI0223"
	OneMachineOnly   = "BAI0224"
	BadCondition     = "BAI0225"
	NoFileText       = "BAI0260"
	BadFileName      = "BAI0261"
	BadSelector      = "BAI0262"
	OpenSelector     = "BAI0263"

	// [[output.parsers]] of kind command.
	NoParserCommand = "BAI0238"

	// [alarms.confirm] max_cost.
	NoBudget = "BAI0239"
)
