// Package notify tells people by webhook and by mail what they would otherwise have to look for: a campaign has ended,
// too many of its tasks have failed, or a worker is lost (docs/notifications.md).
//
// Each server looks for these events (watch.go), and each event becomes a notice in Redis once, because a mark
// remembers it. Any server delivers it (deliver.go): it takes a notice for a while, tries, and stores how the attempt
// has ended. So a notice survives the servers, and may arrive twice if a server ends between an attempt and its record.
// Its id tells the receiver.
package notify
