-- Small tables whose primary key is a text have a page less each, and are read in one step, without rowids.

create table signin_failures_next (
  subject text not null primary key,
  count integer not null,
  since integer not null
) strict, without rowid;
insert into signin_failures_next select * from signin_failures;
drop table signin_failures;
alter table signin_failures_next rename to signin_failures;

create table leases_next (
  name text not null primary key,
  holder text,
  token integer not null,
  expires integer not null
) strict, without rowid;
insert into leases_next select * from leases;
drop table leases;
alter table leases_next rename to leases;

create table search_progress_next (
  blueprint text not null primary key references blueprints (key) on delete cascade,
  done integer not null,
  upto integer not null
) strict, without rowid;
insert into search_progress_next select * from search_progress;
drop table search_progress;
alter table search_progress_next rename to search_progress;

create table cursors_next (
  name text not null primary key,
  seq integer not null
) strict, without rowid;
insert into cursors_next select * from cursors;
drop table cursors;
alter table cursors_next rename to cursors;

create table search_files_next (file text not null primary key) strict, without rowid;
insert into search_files_next select * from search_files;
drop table search_files;
alter table search_files_next rename to search_files;

create table ai_spent_next (
  _id text not null primary key,
  tokens integer not null,
  cost integer not null
) strict, without rowid;
insert into ai_spent_next select * from ai_spent;
drop table ai_spent;
alter table ai_spent_next rename to ai_spent;

create table daily_use_next (
  day text not null,
  kind text not null,
  amount integer not null,
  primary key (day, kind)
) strict, without rowid;
insert into daily_use_next select * from daily_use;
drop table daily_use;
alter table daily_use_next rename to daily_use;

create table quota_levels_next (
  kind text not null primary key,
  period text not null,
  level integer not null
) strict, without rowid;
insert into quota_levels_next select * from quota_levels;
drop table quota_levels;
alter table quota_levels_next rename to quota_levels;

create table redemptions_next (
  subscription text not null,
  coupon text not null,
  created integer not null,
  primary key (subscription, coupon)
) strict, without rowid;
insert into redemptions_next select * from redemptions;
drop table redemptions;
alter table redemptions_next rename to redemptions;

create table totp_next (
  user text not null primary key references users (_id) on delete cascade,
  confirmed integer not null,
  step integer not null
) strict, without rowid;
insert into totp_next select * from totp;
drop table totp;
alter table totp_next rename to totp;

create table alterations_next (
  blueprint text not null primary key references blueprints (key) on delete cascade,
  form integer not null,
  state text not null,
  change text not null,
  created integer not null,
  entity integer not null,
  upto integer not null,
  done integer not null,
  total integer not null,
  problem text,
  since integer not null
) strict, without rowid;
insert into alterations_next select * from alterations;
drop table alterations;
alter table alterations_next rename to alterations;

create table devices_next (
  user text not null references users (_id) on delete cascade,
  device text not null,
  seen integer not null,
  primary key (user, device)
) strict, without rowid;
insert into devices_next select * from devices;
drop table devices;
alter table devices_next rename to devices;
CREATE INDEX devices_by_time on devices (seen);

create table recovery_codes_next (
  hash text not null primary key,
  user text not null references users (_id) on delete cascade
) strict, without rowid;
insert into recovery_codes_next select * from recovery_codes;
drop table recovery_codes;
alter table recovery_codes_next rename to recovery_codes;
CREATE INDEX recovery_codes_of_user on recovery_codes (user);

create table identities_next (
  provider text not null,
  subject text not null,
  user text not null references users (_id) on delete cascade,
  created integer not null, email text, used integer,
  primary key (provider, subject)
) strict, without rowid;
insert into identities_next select * from identities;
drop table identities;
alter table identities_next rename to identities;
CREATE INDEX identities_of_user on identities (user);

create table sealed_next (
  purpose text not null,
  owner text not null,
  name text not null,
  key integer not null,
  text text not null,
  updated integer not null,
  primary key (purpose, owner, name)
) strict, without rowid;
insert into sealed_next select * from sealed;
drop table sealed;
alter table sealed_next rename to sealed;
CREATE INDEX sealed_by_key on sealed (key);

create table versions_next (
  topic text not null primary key,
  version integer not null
) strict, without rowid;
insert into versions_next select * from versions;
drop table versions;
alter table versions_next rename to versions;
