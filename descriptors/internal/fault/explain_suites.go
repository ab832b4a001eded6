package fault

func suites() []Explanation {
	const (
		head  = "[suite]\nname = \"nightly\"\n"
		entry = "[[suite.entries]]\nname = \"iperf\"\ndescriptor = \"iperf.toml\""
	)
	return []Explanation{
		{
			SameEntry, "two entries with one name",
			"The name of an entry is part of the names of its cells and of a column of the results. One descriptor may be in several entries, each with a name of its own.",
			head + entry + "\n" + entry,
			head + entry + "\n[[suite.entries]]\nname = \"iperf-2\"\ndescriptor = \"iperf.toml\"",
		},
		{
			NoText, "an entry whose descriptor cannot be read",
			"An entry names a file by its path from the suite's folder, a place as https://…, or stored:NAME[@VERSION]. baictl reads them all and sends their texts along. Who sends a suite without baictl writes each of them in [[suite.descriptors]], with name and text.",
			head + "[[suite.entries]]\nname = \"iperf\"\ndescriptor = \"nowhere.toml\"",
			head + entry,
		},
		{
			ManyEntries, "too many entries",
			"A suite has 1,000 entries at most.",
			"$ printf '[suite]\\nname = \"nightly\"\\n'; for i in $(seq 1001); do printf '[[suite.entries]]\\nname = \"e%d\"\\ndescriptor = \"iperf.toml\"\\n' $i; done",
			head + entry,
		},
		{
			EntryStops, "an entry that stops when it is precise enough",
			"A suite has no stop_when: its entries have the numbers of repetitions that the suite, the entry or its descriptor gives.",
			head + entry + "\n[suite.entries.values]\n\"sweep.product\" = { \"hardware.cpus\" = [1, 2] }\n\"sweep.stop_when\" = { metric = \"latency\", half_width = \"2%\", max = 30 }",
			head + entry + "\nrepetitions = 10\n[suite.entries.values]\n\"sweep.product\" = { \"hardware.cpus\" = [1, 2] }",
		},
	}
}
