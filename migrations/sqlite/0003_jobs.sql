create table leases (
  name text not null primary key,
  holder text,
  token integer not null,
  expires integer not null
) strict;

-- What time it is for all who share this database, in ms.
create view clock as select cast(unixepoch('subsec') * 1000 as integer) as now;

create index sessions_by_expiry on sessions (expires);
create index keys_by_expiry on session_keys (expires);
