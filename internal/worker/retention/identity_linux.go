package retention

import "golang.org/x/sys/unix"

// identify returns the identity of an entry of an open directory. It follows no link.
func identify(dir int, name string) (identity, error) {
	var info unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &info)
	id := identity{Inode: info.Ino}
	if info.Mask&unix.STATX_BTIME != 0 {
		id.Born = info.Btime.Sec*1e9 + int64(info.Btime.Nsec)
	}
	return id, err
}
