// SPDX-License-Identifier: Apache-2.0

package store

const (
	version     = 9          // of the schema: no other version is read
	application = 0x66616365 // "face": SQLite's application_id
	magic       = "SQLite format 3\x00"
	pageSize    = 8192 // a face of 512 values and its row fit four times
)

// A time is a number of nanoseconds since 1970, except where a comment says something else.
const schema = `
create table meta(key text primary key, value any) strict;
create table person(
	id integer primary key autoincrement,
	name text not null, -- several people may have it
	enrolled integer not null -- when faces were last added: seconds since 1970
) strict;
create index person_name on person(name);
create table label( -- a face may have several
	id integer primary key autoincrement, -- rises in the order of the transactions
	number integer not null, -- of the face, which no other face has
	person integer not null references person(id) on delete cascade,
	rejected integer not null, -- 1: the face is known not to be this person's
	vector blob not null, -- little-endian float32
	valid integer not null default 1 -- 0: what users said takes it back
) strict;
create index label_of on label(person, rejected, valid);
create index label_face on label(number);
create index label_rejected on label(vector) where rejected;
create index label_vector on label(substr(vector, 1, 16)) where not rejected;
create table number(kind text primary key, last integer not null) strict; -- numbers that were given
create table learned(
	id integer primary key check(id = 1),
	generation integer not null, -- rises with each change of what was learned
	faces blob not null,         -- CBOR map: the learner's number of each labelled face, and its row
	snapshot blob not null       -- of the learner, without the vectors of labelled faces
) strict;
create table office(
	id integer primary key autoincrement,
	name text not null unique,
	code text not null, -- random
	temporary integer not null, -- 1: nothing outlives the program
	off integer not null, -- 1: faces of strangers are not kept
	last integer not null -- number of the last event
) strict;
create table stranger( -- a group of unknown faces
	id integer primary key,
	office integer not null references office(id) on delete cascade,
	last integer not null, -- the last sighting
	ignored integer not null
) strict;
create table sighting(
	id integer primary key,
	office integer not null references office(id) on delete cascade,
	camera text not null,
	first integer not null,
	last integer not null,
	person integer references person(id) on delete cascade,
	trust text not null,
	stranger integer not null, -- the group of unknown faces; 0: none
	size integer not null -- bytes of its faces
) strict;
create index sighting_of on sighting(person, office, last);
create index sighting_in on sighting(office, last, size); -- size: their sum is read each minute
create index sighting_group on sighting(stranger, office, last);
create table face(
	number integer primary key,
	office integer not null references office(id) on delete cascade,
	sighting integer references sighting(id) on delete set null,
	stranger integer not null, -- the group of unknown faces; 0: none
	camera text not null,
	at integer not null,
	sharp real not null, -- variance of the Laplacian of its picture
	vector blob not null,
	jpeg blob
) strict;
create index face_of on face(sighting);
create index face_group on face(stranger);
create table film( -- pictures of the beginning of a sighting
	sighting integer not null references sighting(id) on delete cascade,
	number integer not null, -- counts from 0
	jpeg blob not null,
	primary key(sighting, number)
) strict;
create table film_with( -- who else is in a film
	film integer not null references sighting(id) on delete cascade,
	sighting integer not null,
	primary key(film, sighting)
) strict, without rowid;
create index film_of on film_with(sighting);
create table event(
	id integer primary key autoincrement,
	office integer not null references office(id) on delete cascade,
	number integer not null,
	kind text not null,
	person integer references person(id) on delete cascade,
	stranger integer not null, -- the group of unknown faces; 0: none
	camera text not null,
	trust text not null,
	at integer not null,
	known integer not null, -- when it was recognised
	unique(office, number)
) strict;
create index event_of on event(person);
create index event_group on event(stranger);
create table present(
	office integer not null references office(id) on delete cascade,
	person integer not null references person(id) on delete cascade,
	since integer not null,
	last integer not null, -- the last sighting
	camera text not null,
	trust text not null,
	primary key(office, person)
) strict, without rowid;
create index present_of on present(person);
create table delivery(
	office integer not null references office(id) on delete cascade,
	sink text not null,
	done integer not null, -- number of the last event that the sink has got, or that was dropped
	lost integer not null, -- events that were dropped
	primary key(office, sink)
) strict, without rowid;
create table statement( -- what a user said
	id integer primary key autoincrement,
	office integer not null references office(id) on delete cascade,
	at integer not null,
	kind text not null,
	person integer references person(id) on delete cascade, -- whom it names
	other integer references person(id) on delete cascade, -- who it was taken for
	name text not null, -- the new name of a person
	was text not null, -- the old one
	stranger integer not null,
	sighting integer not null,
	face integer not null, -- number of a picture of it
	undone integer not null default 0
) strict;
create index statement_of on statement(person);
create index statement_other on statement(other);
create index statement_about on statement(sighting);
create table said( -- a value that a statement gave: of those that are not undone, the last one counts
	statement integer references statement(id) on delete cascade, -- null: the value before all statements
	what text not null,
	of integer not null,
	person integer references person(id) on delete cascade,
	text text,
	value integer
) strict;
create unique index said_of on said(what, of, coalesce(statement, 0));
create index said_by on said(statement);
create index said_person on said(person);
create trigger film_gone before delete on sighting begin
	delete from film where sighting in (select film from film_with where sighting = old.id);
	delete from face where sighting = old.id and +stranger = 0 and -- +: by face_of, as nearly all are of no group
		not exists (select 1 from said where what = 'face' and of = number) and
		not exists (select 1 from label where label.number = face.number);
end;
create trigger unnamed before delete on person begin
	update event set person = null where person = old.id and kind = 'unknown';
end;
create table cache( -- what package search has found, in databases of their own
	key blob primary key,
	at integer not null, -- seconds since 1970
	body blob not null -- CBOR
) strict;
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
create table elsewhere( -- whom other devices of a fleet see
	device text not null,
	place text not null,   -- name of the device
	at integer not null,   -- when this was known: seconds since 1970
	id blob not null,      -- of the person in table shared
	since integer not null -- seconds since 1970
) strict;
create index elsewhere_of on elsewhere(device);
create table touched(person integer primary key) strict; -- people whose name or labels the fleet has not looked at
create table dropped( -- labels that a program without a learner has deleted, until a learner has followed
	id integer primary key,
	person integer not null,
	number integer not null,
	rejected integer not null,
	vector blob not null
) strict;
create trigger touched_new after insert on label begin
	insert or ignore into touched values(new.person);
end;
create trigger touched_valid after update of valid on label begin
	insert or ignore into touched values(new.person);
end;
create trigger touched_gone after delete on label begin
	insert or ignore into touched values(old.person);
end;
create trigger touched_name after update of name on person begin
	insert or ignore into touched values(new.id);
end;
create trigger touched_person after delete on person begin
	insert or ignore into touched values(old.id);
	update shared set data = x'' where person = old.id;
end;
create view people_v1 as select id, name, enrolled,
	(select count(*) from label where label.person = person.id and not rejected and valid) as faces
	from person where faces > 0;
create view faces_v1 as select number as id, person, name, rejected, length(vector)/4 as dimensions
	from label join person on person.id = label.person where valid;
create view vectors_v1 as select number as id, person, rejected, vector from label where valid;
create view events_v1 as select office.name as office, number, kind, event.person,
	(select name from person where id = event.person) as name, stranger, camera, trust, at, known
	from event join office on office.id = event.office;
create view present_v1 as select office.name as office, person, person.name, since, last, camera, trust
	from present join office on office.id = present.office join person on person.id = person;
create view sightings_v1 as select office.name as office, sighting.id as number, camera,
	strftime('%Y-%m-%dT%H:%M:%fZ', first / 1e9, 'unixepoch') as first,
	strftime('%Y-%m-%dT%H:%M:%fZ', last / 1e9, 'unixepoch') as last, person,
	(select name from person where id = person) as name, trust
	from sighting join office on office.id = sighting.office;
`
