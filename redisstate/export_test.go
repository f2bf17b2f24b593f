package redisstate

import (
	"context"
	"time"
)

const (
	ClaimReplySeen    = claimReplySeen
	FewNames          = fewNames
	HashesUnseen      = hashesUnseen
	LongRun           = longRun
	LongestFact       = longestFact
	LongestField      = longestField
	MaxTasksPerCall   = maxTasksPerCall
	MaxUpdatesPerCall = maxUpdatesPerCall
	MostOfOne         = mostOfOne
	MostRequirements  = mostRequirements
	NamesAtOnce       = namesAtOnce
	ReadAtOnce        = readAtOnce
	ReadTries         = readTries
	RoomForClaims     = roomForClaims
	RoomWithoutLimit  = roomWithoutLimit
	SmallBytes        = smallBytes
	Unbounded         = unbounded
)

var (
	ClaimAndExpire    = (*Store).claimAndExpire
	ClaimProperties   = claimProperties
	FactFields        = factFields
	FirstFields       = firstFields
	HeadFields        = headFields
	LargeHash         = (*Store).largeHash
	LearnRequirements = (*Store).learnRequirements
	NamesOf           = namesOf
	OpenUnique        = (*Store).openUnique
	PlainOffer        = plainOffer
	RoundFacts        = roundFacts
	RoundProperties   = roundProperties
	ServesKey         = (*Store).servesKey
	Transact          = (*Store).transact
	UnitsOf           = unitsOf
	ValidLength       = validLength
)

// ReadLong reads properties of one task, whatever their lengths.
func (s *Store) ReadLong(ctx context.Context, id int64, names []string,
	put func(i int, name, value string, length int),
) (int, error) {
	return s.readLong(ctx, []question{{id, names}}, 1<<30, validLength, put)
}

// SetRoomRead changes when the Store has read the settings and the memory of Redis.
func (s *Store) SetRoomRead(at time.Time) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.read = at
}

// SetRoomClock replaces the clock for the age of these values.
func (s *Store) SetRoomClock(clock func() time.Time) { s.room.clock = clock }

// SetSizeless makes the Store read tasks as if Redis did not report their sizes.
func (s *Store) SetSizeless() { s.sizeless.Store(true) }
