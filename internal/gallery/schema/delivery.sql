-- SPDX-License-Identifier: Apache-2.0

-- Written by package office.
create table delivery(
	office integer not null references office(id) on delete cascade,
	sink text not null,
	done integer not null, -- number of the last event that the sink has got, or that was dropped
	lost integer not null, -- events that were dropped
	primary key(office, sink)
) strict, without rowid;
