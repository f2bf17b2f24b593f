package redistest

// Command starts a server as [Start] does, but for a command instead of a test. The server keeps its files in dir. It
// ends when the caller calls stop, or when the process ends.
func Command(dir string, opts ...Option) (addr string, stop func(), err error) {
	s, err := start(dir, opts)
	if err != nil {
		return "", nil, err
	}
	return s.Addr, func() {
		_ = s.process.kill() // fails only if the server has ended
		s.claim.Close()
	}, nil
}
