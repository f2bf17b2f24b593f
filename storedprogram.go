package tdf

// ProgramKeep is how long the server keeps a stored program after its last use, if no task names the program.
const ProgramKeep = Seconds(7 * 24 * 60 * 60)

// UnusedBefore returns the time before which the last use of a removable program lies. The server has begun its last
// complete walk through all tasks at the time walked. A walk renews the last use of each program that a task names, so a program
// with an earlier use has no task. It returns 0 if there was no complete walk: then no program is removable.
func UnusedBefore(now, walked Time) Time {
	if walked <= 0 {
		return 0
	}
	return max(0, min(now.Add(-ProgramKeep), walked))
}

// StoredProgram returns the SHA-256 of the stored program that a source names. It returns "" for any other source.
func StoredProgram(source string) string {
	if len(source) < len(SchemeRedis) || source[:len(SchemeRedis)] != SchemeRedis { // most sources are no such sources
		return ""
	}
	src, err := ParseSource(source)
	if err != nil || src.Scheme != SchemeRedis {
		return ""
	}
	return src.Location
}

// NamedProgram returns the SHA-256 of the stored program that the Move writes into its task, or "".
func (m *Move) NamedProgram() string {
	if m.Verb != VerbChange && m.Verb != VerbReopen {
		return ""
	}
	for _, f := range m.Set {
		if f.Name == fieldSource {
			return StoredProgram(f.Value)
		}
	}
	return ""
}
