package fault

func alarms() []Explanation {
	const metric = "[[output.metrics]]\nname = \"rate\"\nunits = \"images/s\"\ndirection = \"higher\"\n"
	return []Explanation{
		{
			AlarmCondition, "an alarm without a condition",
			"An alarm says when it opens an incident: by when, or by a limit in above, below or beyond. When = \"beyond\" also needs the name of the baseline, and every condition but failed needs a metric.",
			metric + "[[alarms]]\nmetric = \"rate\"",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"",
		},
		{
			AlarmConflict, "keys of an alarm that exclude each other",
			"An alarm has one condition. To watch a metric for two, write two alarms.",
			metric + "[[alarms]]\nmetric = \"rate\"\nabove = 900\nbelow = 100",
			metric + "[[alarms]]\nmetric = \"rate\"\nabove = 900\n[[alarms]]\nmetric = \"rate\"\nbelow = 100",
		},
		{
			AlarmMetric, "an alarm on a metric that the descriptor does not have",
			"The name resembles that of a metric of the descriptor, so that it is most likely mistyped, and the alarm would never open. A metric that the benchmark emits itself, and whose name resembles another one, can be listed in [[output.metrics]] without a pattern.",
			metric + "[[alarms]]\nmetric = \"rat\"\nbelow = 100",
			metric + "[[alarms]]\nmetric = \"rate\"\nbelow = 100",
		},
		{
			NoDirection, "an alarm on a metric without a direction",
			"A regression, and a value beyond a baseline, are changes to the worse: the alarm has to know which values are better. A metric that the benchmark emits gets a direction by an entry of [[output.metrics]] without a pattern. when = \"change\" needs none.",
			"[[output.metrics]]\nname = \"rate\"\nunits = \"images/s\"\n[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"",
		},
		{
			SameAlarm, "an alarm that is there twice",
			"Two alarms with the same metric, condition, statistic and limits would open each incident twice. One alarm may notify several receivers.",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"change\"\nnotify = [\"a\"]\n[[alarms]]\nmetric = \"rate\"\nwhen = \"change\"\nnotify = [\"b\"]",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"change\"\nnotify = [\"a\", \"b\"]",
		},
		{
			AlarmUnit, "a limit in a unit that is not of its metric",
			"The limit cannot be compared with the values: neither unit can be converted to the other. Without unit, a limit is in the unit of its metric.",
			metric + "[[alarms]]\nmetric = \"rate\"\nbelow = 100\nunit = \"ms\"",
			metric + "[[alarms]]\nmetric = \"rate\"\nbelow = 100\nunit = \"images/s\"",
		},
		{
			BadShare, "a change that is not a percentage",
			"A change is a percentage of the value before it: \"2%\". A number without a unit could be meant as a percentage, as a share or in the unit of the metric.",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"change\"\nmin_change = 0.02",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"change\"\nmin_change = \"2%\"",
		},
		{
			BadReceiver, "a receiver that cannot be",
			"A receiver has a name, which the operator gives it in the settings of the platform, with its address and its secrets. A descriptor names no address: else whoever can submit a run could send messages anywhere.",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"change\"\nnotify = [\"https://example.org/hook\"]",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"change\"\nnotify = [\"perf-team\"]",
		},
		{
			NoReceiver, "a receiver that the platform does not have",
			"The settings of the platform name its receivers, and which namespaces may notify each. So the platform says this when it validates a descriptor, at submit and preflight, and baictl validate does not.",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"change\"\nnotify = [\"other-team\"]",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"change\"\nnotify = [\"perf-team\"]",
		},
		{
			NoDueTime, "an alarm on missing values that does not know when they are due",
			"The descriptor is run once, so that no schedule says when the next value is due. A descriptor that another program submits again and again says it by within.",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"missing\"",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"missing\"\nwithin = \"26h\"",
		},
		{
			NothingToConfirm, "a confirmation of an alarm without values",
			"Runs confirm an incident by their values: those of the old edition are compared with those of the new one. An alarm with when = \"failed\" or \"missing\" has no values to compare.",
			"[[alarms]]\nwhen = \"failed\"\n[alarms.confirm]\npairs = 5",
			"[[alarms]]\nwhen = \"failed\"",
		},
		{
			NotRepeatable, "a confirmation of a benchmark that cannot be repeated",
			"Runs that confirm an incident repeat runs as they were. The platform knows the digest of the image that ran where a descriptor has one image; where it has several, a tag may name another image by then.",
			metric + "[[steps]]\nname = \"warm\"\nwhen = \"before\"\ncommand = \"warm\"\nimage = \"debian:12\"\n[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"\n[alarms.confirm]",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"\n[alarms.confirm]",
		},
		{
			FewRuns, "a confirmation with fewer runs than its pairs need",
			"A pair is a run of the old edition and one of the new edition, so max_runs is at least twice pairs. Runs that fail count, and another pair takes their place.",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"\n[alarms.confirm]\npairs = 8\nmax_runs = 12",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"\n[alarms.confirm]\npairs = 8\nmax_runs = 20",
		},
		{
			NoBudget, "a limit of cost that may not be kept",
			"What runs cost is estimated by what such runs have cost, in the currency of the price. Where neither the descriptor nor the settings of the platform have a price, nothing is known of the cost, and max_runs has to be the limit.",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"\n[alarms.confirm]\nmax_cost = \"20 USD\"",
			metric + "[[alarms]]\nmetric = \"rate\"\nwhen = \"regression\"\n[alarms.confirm]\nmax_cost = \"20 USD\"\nmax_runs = 12",
		},
	}
}
