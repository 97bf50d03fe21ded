-- SPDX-License-Identifier: Apache-2.0

-- Written by package fleet.
create table elsewhere( -- whom other devices of a fleet see
	device text not null,
	place text not null,   -- name of the device
	at integer not null,   -- when this was known: seconds since 1970
	id blob not null,      -- of the person in table shared
	since integer not null -- seconds since 1970
) strict;
create index elsewhere_of on elsewhere(device);
