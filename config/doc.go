// Package config turns the INI files of the three components into typed values, with every
// default, every check and the overrides by environment variables (docs/configuration.md).
//
// One table, keys, says all there is to say of a key: where it stands, what it accepts, its
// default, its meaning. Decoding, the environment, the search for unknown keys, the page in
// docs/ and the files in configs/ follow it; the tests hold them together. A new key is one line in
// that table and one field of a struct.
//
// Any file may hold the sections of all components, so that a project can keep one file for
// all. Whoever loads it, everything in it is checked.
//
// The files are read by gopkg.in/ini.v1, behind a check of each line (file.go), since a password may hold
// any character: left to itself, ini.v1 unquotes, joins or cuts values that begin with a backquote, end in
// a backslash or hold a #, and repeats whole lines in its errors.
package config
