// Command sentences prints a sample of the sentences in pages, help texts, messages and comments. If the seed and the
// files are the same, the sample is the same, so that several readers can judge the same sentences.
//
//	cd tools && go run ./sentences -n 300 -seed 1
//
// With -around, the command also prints the lines before and after each sentence, because people read a comment beside
// its code.
package main

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The kinds of texts. Each kind gets a share of the sample.
const (
	pages    = "pages"          // *.md
	help     = "help"           // help texts of commands and flags
	messages = "messages"       // all other strings: errors, log messages, output
	docs     = "doc comments"   // doc comments in Go
	comments = "other comments" // other comments in Go, and comments in Lua, shell scripts and configuration files
)

var kinds = []string{pages, help, messages, docs, comments}

// A sentence is a sentence in a file, with the number of the line in which it begins.
type sentence struct {
	file, text string
	line       int
}

func main() {
	n := flag.Int("n", 300, "number of sentences")
	seed := flag.Int("seed", 1, "seed of the sample")
	around := flag.Int("around", 0, "number of lines to print before and after each sentence")
	flag.Parse()
	if err := run(os.Stdout, os.Stderr, "..", *seed, *n, *around); err != nil {
		log.Fatal(err)
	}
}

func run(stdout, stderr io.Writer, root string, seed, n, around int) error {
	all, err := collect(root)
	if err != nil {
		return err
	}
	number := 0
	shares := divide(all, n)
	for _, kind := range kinds {
		fmt.Fprintf(stderr, "%s: %d of %d\n", kind, shares[kind], len(all[kind]))
		for _, s := range draw(all[kind], seed, shares[kind]) {
			number++
			fmt.Fprintf(stdout, "%d\t%s:%d\t%s\n", number, s.file, s.line, s.text)
			if err := showLines(stdout, filepath.Join(root, s.file), s.line, around); err != nil {
				return err
			}
		}
	}
	return nil
}

// showLines writes the lines of a file around the given line.
func showLines(w io.Writer, path string, line, around int) error {
	if around == 0 {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(data), "\n")
	for _, l := range lines[max(0, line-1-around):min(len(lines), line+around)] {
		fmt.Fprintf(w, "\t\t| %s\n", l)
	}
	return nil
}

const least = 30 // the minimum share of a kind, unless the kind contains fewer sentences

// divide returns the number of sentences that the sample of n sentences contains of each kind. Each kind gets the
// minimum share. The remaining sentences are divided in proportion to the total numbers of sentences.
func divide(all map[string][]sentence, n int) map[string]int {
	shares, total, given := map[string]int{}, 0, 0
	for _, kind := range kinds {
		shares[kind] = min(len(all[kind]), least, n/len(kinds))
		total += len(all[kind])
		given += shares[kind]
	}
	claim := func(kind string) float64 { // the next sentence goes to the kind with the largest claim
		if shares[kind] == len(all[kind]) {
			return 0
		}
		return float64(len(all[kind])) / (float64(shares[kind]) + 0.5)
	}
	for range min(n, total) - given {
		shares[slices.MaxFunc(kinds, func(a, b string) int { return cmp.Compare(claim(a), claim(b)) })]++
	}
	return shares
}

// draw returns the n sentences with the smallest hashes. A hash depends only on the seed and the sentence, so that a
// small change of the files changes the sample only a little.
func draw(all []sentence, seed, n int) []sentence {
	hash := func(s sentence) string {
		return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, s.text)))
	}
	drawn := slices.SortedFunc(slices.Values(all), func(a, b sentence) int { return cmp.Compare(hash(a), hash(b)) })[:n]
	return slices.DeleteFunc(slices.Clone(all), func(s sentence) bool { return !slices.Contains(drawn, s) })
}

// collect returns the sentences of each kind. If a sentence occurs several times, collect returns only the first
// occurrence.
func collect(root string) (map[string][]sentence, error) {
	r := reader{found: map[string][]sentence{}, seen: map[string]bool{}, lines: map[int]int{}}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && slices.Contains([]string{".git", "testdata", "bin", "dist"}, d.Name()) {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		content := string(data)
		r.file = path
		switch ext := filepath.Ext(path); {
		case ext == ".go":
			return r.readGo(content)
		case ext == ".md":
			r.readPage(content)
		case ext == ".lua", ext == ".cfg", ext == ".service", strings.HasPrefix(content, "#!/bin/"):
			r.readComments(content)
		}
		return nil
	})
	return r.found, err
}
