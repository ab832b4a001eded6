package fault

func costs() []Explanation {
	const head = "[hardware]\ninstance_type = \"p3.8xlarge\"\n"
	return []Explanation{
		{
			BadPrice, "a price that is no amount of money",
			"A price is an amount of 0 or more, with at most 9 digits before the point and 9 after it, and a currency. The prices of the platform's settings have the same form.",
			head + "price_per_hour = \"-12.24 USD\"",
			head + "price_per_hour = \"12.24 USD\"",
		},
		{
			NoCurrency, "a price without a currency",
			"A number alone could be of any currency. A currency is written as the three capital letters of ISO 4217.",
			head + "price_per_hour = 12.24",
			head + "price_per_hour = \"12.24 USD\"",
		},
		{
			BadPer, "a cost per what cannot be counted",
			"Cost and energy are divided by a number of things. A metric that is a rate, as images/s, is no such number, and a metric can be there once.",
			"[[output.metrics]]\nname = \"speed\"\nunits = \"images/s\"\npattern = 'speed=([0-9.]+)'\n[cost]\nper = [\"speed\"]",
			"[[output.metrics]]\nname = \"images\"\nunits = \"images\"\npattern = 'images=([0-9]+)'\n[cost]\nper = [\"images\"]",
		},
		{
			NoPer, "an alarm on a cost that is not computed",
			"A run has cost.per.NAME and energy.per.NAME for the metrics that [cost] lists in per.",
			"[[alarms]]\nmetric = \"cost.per.images\"\nwhen = \"regression\"",
			"[cost]\nper = [\"images\"]\n[[alarms]]\nmetric = \"cost.per.images\"\nwhen = \"regression\"",
		},
	}
}
