-- SPDX-License-Identifier: Apache-2.0

-- Written by triggers; package fleet empties it.
create table touched(person integer primary key) strict; -- people whose name or labels the fleet has not looked at
