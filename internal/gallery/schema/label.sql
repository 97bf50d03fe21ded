-- SPDX-License-Identifier: Apache-2.0

-- Labelled faces, which the learner follows. Written by package gallery.
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
create trigger touched_new after insert on label begin
	insert or ignore into touched values(new.person);
end;
create trigger touched_valid after update of valid on label begin
	insert or ignore into touched values(new.person);
end;
create trigger touched_gone after delete on label begin
	insert or ignore into touched values(old.person);
end;
