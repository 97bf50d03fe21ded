-- SPDX-License-Identifier: Apache-2.0

-- The people. Written by package gallery, and by the fleet: when faces were added.
create table person(
	id integer primary key autoincrement,
	name text not null, -- several people may have it
	enrolled integer not null -- when faces were last added: seconds since 1970
) strict;
create index person_name on person(name);
create trigger unnamed before delete on person begin
	update event set person = null where person = old.id and kind = 'unknown';
end;
create trigger touched_name after update of name on person begin
	insert or ignore into touched values(new.id);
end;
create trigger touched_person after delete on person begin
	insert or ignore into touched values(old.id);
	update shared set data = x'' where person = old.id;
end;
