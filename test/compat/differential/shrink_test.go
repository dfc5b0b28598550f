package differential

// shrink removes runs of steps, then single requests of bursts, while the script still fails. It
// calls fails at most budget times.
func shrink(script Script, budget int, fails func(Script) bool) Script {
	try := func(s Script) bool {
		if budget == 0 {
			return false
		}
		budget--
		return fails(s)
	}
	for size := len(script) / 2; size > 0; {
		dropped := false
		for at := 0; at+size <= len(script); {
			rest := append(append(Script{}, script[:at]...), script[at+size:]...)
			if try(rest) {
				script, dropped = rest, true
				continue
			}
			at += size
		}
		if !dropped || size > 1 {
			size /= 2
		}
	}
	for i := range script {
		for j := 0; j < len(script[i].Burst) && len(script[i].Burst) > 1; {
			rest := append(Script{}, script...)
			burst := script[i].Burst
			rest[i].Burst = append(append([]Step{}, burst[:j]...), burst[j+1:]...)
			if try(rest) {
				script = rest
				continue
			}
			j++
		}
	}
	return script
}
