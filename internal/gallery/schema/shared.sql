-- SPDX-License-Identifier: Apache-2.0

-- Written by package fleet, and by a trigger when a person is removed.
create table shared( -- what the devices of a fleet know of each person (package fleet)
	id blob primary key,
	person integer,         -- number in person; null: nobody in this gallery
	write text not null,    -- which write of the server's value this device has seen; '': none
	rev integer not null,   -- sequence number of that value; 0: the server has none
	key integer not null,   -- number of the key that sealed it
	sent integer not null,  -- 1: the server has the record as it is
	clock integer not null, -- the latest of the record
	data blob not null      -- CBOR: the record, without the vectors that are labels of the person; empty: removed here
) strict;
create index shared_of on shared(person);
create index shared_clock on shared(clock);
create index shared_unsent on shared(id) where not sent;
