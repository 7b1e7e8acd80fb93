-- Which server does a kind of work for the installation, one at a time.
create table leases (
  name text not null primary key,
  holder text,
  token integer not null,
  expires integer not null
) strict;

-- What time it is for all who share this database, in ms.
create view clock as select cast(unixepoch('subsec') * 1000 as integer) as now;

-- The certificates of hosts that are ordered from an ACME authority. The keys are encrypted.
create table certificates (
  host text not null primary key,
  chain text,
  key text,
  issuer text,
  issued integer,
  expires integer,
  due integer not null,
  attempted integer,
  failures integer not null,
  problem text
) strict;

create table acme_accounts (
  directory text not null primary key,
  url text not null,
  key text not null,
  created integer not null
) strict;

-- What any server answers to an ACME authority that checks a host.
create table acme_challenges (
  token text not null primary key,
  answer text not null,
  created integer not null
) strict;
