//go:build !linux

package retention

import "golang.org/x/sys/unix"

// identify returns the identity of an entry of an open directory. It follows no link.
func identify(dir int, name string) (identity, error) {
	var info unix.Stat_t
	err := unix.Fstatat(dir, name, &info, unix.AT_SYMLINK_NOFOLLOW)
	return identity{Inode: uint64(info.Ino)}, err
}
