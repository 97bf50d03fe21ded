-- SPDX-License-Identifier: Apache-2.0

-- The pictures of enrolled faces of which table face has none. Written by package gallery.
create table portrait(
	number integer primary key, -- of the face, as in label
	jpeg blob not null
) strict;
create trigger portrait_gone after delete on label begin
	delete from portrait where number = old.number and
		not exists (select 1 from label where label.number = old.number);
end;
